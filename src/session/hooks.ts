import { endWithFailures } from '../base/failure-lines.ts'
import type { EventOf } from '../core/events/events.ts'
import { describeHook } from '../core/rules/notices.ts'
import type { Hook, HookMoment } from '../core/shapes/hook.ts'
import type { Budget } from './budget.ts'
import type { HookMeans, LineEnd, RunnerOptions } from './options.ts'
import { emitRestored } from './proof/proof.ts'
import { OUTPUT_CHARACTERS, statusOf } from './proof/run-gate.ts'

/** Result of a moment's hooks. `refusal`: output of the first that refuses; `isComplete`: none was interrupted. */
interface HooksCame {
  refusal: string | null
  isComplete: boolean
}

/** Runs the commands that settings name for the moments of a session, and journals what they print. */
export class Hooks {
  readonly #options: Pick<RunnerOptions, 'log' | 'redactor' | 'asked' | 'guard'>
  readonly #means: HookMeans
  readonly #budget: Budget
  #breakingOff = new AbortController()

  constructor(options: Pick<RunnerOptions, 'log' | 'redactor' | 'asked' | 'guard' | 'hooks'>, budget: Budget) {
    this.#options = options
    this.#means = options.hooks ?? NO_HOOKS
    this.#budget = budget
  }

  /** Returns true if a hook runs at this moment. A session with a replayed round runs none, because it never counts. */
  has(on: HookMoment): boolean {
    return !this.#options.log.state.replayed && this.#means.hooks.some(hook => hook.on === on)
  }

  /** True if the project's settings file names a hook. */
  get ofProject(): boolean {
    return this.#means.hooks.some(({ of }) => of === 'project')
  }

  /**
   * Runs the hooks of a moment, the person's first, until one refuses or a person interrupts.
   * @param round as in `hook-started`
   * @param outcome how the round or the session ended: a class of a round, or a kind of a session
   */
  async run(on: HookMoment, round: number, outcome?: string): Promise<HooksCame> {
    if (!this.has(on)) return { refusal: null, isComplete: true }
    const { log, redactor, asked, guard } = this.#options
    this.#breakingOff = new AbortController()
    // Restore the repository's settings first: git in a hook would run an agent's settings as the person.
    emitRestored(log, await guard.check(), round)
    // The last hooks run even if a person ended the session.
    const isLast = on === 'on_done' || on === 'on_end'
    const signal = isLast ? this.#breakingOff.signal : AbortSignal.any([asked.ending, this.#breakingOff.signal])
    const mostMs = isLast && asked.ending.aborted ? LAST_MS : this.#budget.leastMs
    const variables = variablesOf(on, { session: log.state.id, round, outcome })
    for (const hook of this.#means.hooks.filter(each => each.on === on)) {
      const of = { round, hook: on, of: hook.of }
      log.emit({ type: 'hook-started', ...of })
      const end = await this.#means.run(hook, { variables, signal, timeoutMs: Math.min(hook.timeoutMs, mostMs) })
      const ran = ranOf(hook, end, text => redactor.text(text))
      const refuses = hook.refuses && ran.status !== 'passed' && ran.status !== 'broken-off'
      const event: EventOf<'hook-ended'> = {
        type: 'hook-ended',
        ...of,
        ...ran,
        ...(refuses && { refuses: true as const }),
      }
      log.emit(event)
      if (refuses) return { refusal: describeHook(event), isComplete: true }
      if (ran.status === 'broken-off') return { refusal: null, isComplete: false }
    }
    return { refusal: null, isComplete: true }
  }

  /** Interrupts the running hook, if there is one. */
  interrupt(): void {
    this.#breakingOff.abort()
  }
}

/** Longest time of a hook after a person has ended the session at once, ms. */
const LAST_MS = 10_000

const NO_HOOKS: HookMeans = {
  hooks: [],
  run: () => Promise.reject(new Error('There is no hook.')),
}

function ranOf({ run }: Hook, end: LineEnd, redact: (text: string) => string) {
  return {
    run: redact(run),
    status: statusOf(end),
    exitCode: end.kind === 'exited' ? end.exitCode : null,
    durationMs: end.durationMs,
    output: endWithFailures(redact(end.output), OUTPUT_CHARACTERS),
    problem: end.kind === 'not-started' ? redact(end.problem) : null,
  }
}

function variablesOf(
  on: HookMoment,
  { session, round, outcome }: { session: string; round: number; outcome: string | undefined },
): Record<string, string> {
  return {
    CODEMACHINE_HOOK: on,
    CODEMACHINE_SESSION: session,
    CODEMACHINE_ROUND: String(round),
    ...(outcome === undefined ? {} : { CODEMACHINE_OUTCOME: outcome }),
  }
}
