import type { Clock } from '../base/clock.ts'
import type { SandboxProblem, ThreadSpec } from '../core/engine.ts'
import type { EventOf } from '../core/events/events.ts'
import {
  limitReached,
  type RoundOutcome,
  renewalOf,
  type SessionOutcome,
  type WaitReason,
} from '../core/events/outcome.ts'
import {
  type AfterRound,
  type AfterRoundOptions,
  afterRenewal,
  afterRound,
  waitAtMost,
} from '../core/rules/after-round.ts'
import { sessionTokens } from '../core/state/state.ts'
import type { RunnerOptions, RunnerPolicy } from './options.ts'
import type { PersonAsked } from './person.ts'
import type { ProviderLook } from './providers/round-providers.ts'
import type { SessionLog } from './session-log.ts'

export interface RetryPolicyOptions {
  log: SessionLog
  clock: Clock
  asked: PersonAsked
  random(): number
  policy: Pick<RunnerPolicy, 'maxWaitMs' | 'maxUsage'>
}

/**
 * Decides after each round whether to retry, and when: back-off, usage-window resets, the person's `retry`. All times in
 * Unix ms.
 */
export class RetryPolicy {
  readonly #options: RetryPolicyOptions
  /** Usage windows that are renewed by then are not waited for; Unix time, ms. */
  #waivedUntil = 0

  constructor(options: RetryPolicyOptions) {
    this.#options = options
  }

  /** The per cent of the account's usage limit that may be used; null: all of it, or a person ended the wait for it. */
  get maxUsage(): number | null {
    return this.#waivedUntil > this.#options.clock.now() ? null : this.#options.policy.maxUsage
  }

  /** The action after a round that ended with this outcome. */
  after(outcome: RoundOutcome, { provider }: Pick<ThreadSpec, 'provider'>): AfterRound {
    const { state } = this.#options.log
    // The usage windows are those of the account, which is another one's.
    const known = provider === undefined ? state : { ...state, primaryWindow: null, secondaryWindow: null }
    return afterRound(outcome, known, this.#moment())
  }

  /**
   * The wait, or the end, if as much of the account's usage limit is used as may be; null if less is used.
   * @param isFirst no round has run yet: then a window that is full is not tried either
   */
  beforeRound(isFirst: boolean): { reason: WaitReason; cause: RoundOutcome; after: AfterRound } | null {
    const { clock, log } = this.#options
    const share = this.#options.policy.maxUsage ?? (isFirst && !log.state.hasCredits ? 100 : null)
    if (share === null) return null
    const { primaryWindow, secondaryWindow } = log.state
    const renewedAt = renewalOf([primaryWindow, secondaryWindow], share, clock.now())
    if (renewedAt === null || renewedAt <= this.#waivedUntil) return null
    const used = Math.max(...[primaryWindow, secondaryWindow].map(window => window?.usedPercent ?? 0))
    const message =
      share === 100 ? 'The usage limit is reached.' : `${used} % of it are used, and --max-usage is ${share} %.`
    const cause: RoundOutcome = { class: 'window', message }
    const moment = this.#moment()
    const after = waitAtMost(cause, log.state, afterRenewal(renewedAt, moment.random), moment)
    return { reason: share === 100 ? 'usage-limit' : 'max-usage', cause, after }
  }

  /** Journals the wait and waits, at most `mostMs`. */
  async wait(reason: WaitReason, cause: RoundOutcome, until: number, mostMs: number): Promise<void> {
    const { log } = this.#options
    const round = log.state.roundsUsed + 1
    log.emit({ type: 'waiting', round, reason, cause, until: new Date(until).toISOString() })
    await this.waitOn(until, mostMs)
  }

  /** Waits out what has been journaled as `waiting`, at most `mostMs`, and never longer than a person allows. */
  async waitOn(until: number, mostMs: number): Promise<void> {
    const reason = await this.#wait(until, mostMs)
    // A person who does not want to wait knows of the limit.
    if (reason === 'retry') this.#waivedUntil = until
  }

  /** Journals the wait for a provider, and waits until it is back, at most until then and `mostMs`. */
  async waitForProvider(
    { cause, until, isBack }: Extract<ProviderLook, { kind: 'wait' }>,
    mostMs: number,
  ): Promise<void> {
    const { log } = this.#options
    const round = log.state.roundsUsed + 1
    log.emit({ type: 'waiting', round, reason: 'provider-away', cause, until: new Date(until).toISOString() })
    await this.#wait(until, mostMs, isBack)
  }

  /** A wait for a provider that was cut off: it is asked anew. */
  endProviderWait(): void {
    const { log } = this.#options
    log.emit({ type: 'wait-ended', round: log.state.roundsUsed + 1, reason: 'over' })
  }

  async #wait(until: number, mostMs: number, isOver?: WaitOptions['isOver']): Promise<EventOf<'wait-ended'>['reason']> {
    const { clock, asked, log, policy } = this.#options
    const now = clock.now()
    const end = Math.min(until, now + Math.max(0, mostMs), now + policy.maxWaitMs)
    const onSlice = (leftMs: number) => log.live({ type: 'still-waiting', leftMs })
    const reason = await asked.duringWait(signal => waitUntil(end, { clock, signal, onSlice, isOver }))
    log.emit({ type: 'wait-ended', round: log.state.roundsUsed + 1, reason })
    return reason
  }

  #moment(): AfterRoundOptions {
    const { clock, random, policy } = this.#options
    return { now: clock.now(), random: random(), maxWaitMs: policy.maxWaitMs }
  }
}

/** A machine that slept wakes up late; so the time of day is looked at this often. */
const SLICE_MS = 60_000

/** How often it is asked whether the wait is over. */
const LOOK_MS = 10_000

interface WaitOptions {
  clock: Clock
  /** Ends the wait early. */
  signal: AbortSignal
  /** Called once a minute with what is left, ms. */
  onSlice(leftMs: number): void
  /** Asked every ten seconds; the wait ends when it answers true. Left out: only time ends it. */
  isOver?: ((signal: AbortSignal) => Promise<boolean>) | undefined
}

/**
 * Waits until a moment of the day, Unix time in ms; a machine that sleeps meanwhile does not prolong it, and a clock
 * that is set back does not either.
 */
async function waitUntil(until: number, { clock, signal, onSlice, isOver }: WaitOptions): Promise<void> {
  const end = clock.monotonic() + (until - clock.now())
  let toldAt = clock.monotonic()
  for (;;) {
    const left = Math.min(until - clock.now(), end - clock.monotonic())
    if (!(left > 0) || signal.aborted) return
    await clock.wait(Math.min(left, isOver === undefined ? SLICE_MS : LOOK_MS), signal)
    if (signal.aborted || (await isOver?.(signal))) return
    const stillLeft = until - clock.now()
    if (stillLeft <= 0 || clock.monotonic() - toldAt < SLICE_MS) continue
    toldAt = clock.monotonic()
    onSlice(stillLeft)
  }
}

/** What of its limits a session has used while it runs. */
export class Budget {
  readonly #log: SessionLog
  readonly #clock: Clock
  readonly #startedAt: number

  constructor({ log, clock }: { log: SessionLog; clock: Clock }) {
    this.#log = log
    this.#clock = clock
    this.#startedAt = clock.monotonic()
  }

  /** How long the session has been worked on, ms; what it waited for counts, for a person too. */
  get elapsedMs(): number {
    return this.#log.state.workedMs + this.#clock.monotonic() - this.#startedAt
  }

  /** Infinity if there is no limit of time. */
  get timeLeftMs(): number {
    return (this.#log.state.limits.timeMs ?? Number.POSITIVE_INFINITY) - this.elapsedMs
  }

  /** The limit that is reached when this many rounds are used; null if none is. */
  limitReached(rounds: number): ReturnType<typeof limitReached> {
    const { state } = this.#log
    return limitReached(state.limits, {
      rounds,
      timeMs: this.elapsedMs,
      tokens: sessionTokens(state),
      cost: state.cost.amount,
    })
  }
}

/** The end of a session before its first round, where the sandbox starts nothing; null if it can begin. */
export async function refusedBySandbox({
  template,
  engines,
  asked,
}: Pick<RunnerOptions, 'template' | 'engines' | 'asked'>): Promise<SessionOutcome | null> {
  // A recording needs no sandbox; where there are no agents, each command says by itself that it could not be run.
  const hasAgents = template.threads.some(({ thread }) => engines.of(thread).replays !== true)
  if (asked.endedBy !== null || !hasAgents) return null
  return endOfSandbox(await engines.trySandbox(asked.stopping))
}

/** The end of a session in whose sandbox nothing can be started; null if it can go on. */
export function endOfSandbox(found: SandboxProblem | null): SessionOutcome | null {
  if (found === null) return null
  return { kind: 'needs-person', reason: found.problem, hint: { do: 'mend-sandbox', mend: found.mend } }
}
