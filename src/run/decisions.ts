import { inTemplate } from '../core/contracts/template.ts'
import type { SessionOutcome } from '../core/events/outcome.ts'
import { checkedDecision, type Decision, type OpenDecision } from '../core/rules/decision.ts'
import type { RunnerOptions } from './options.ts'
import type { Budget } from './retry-policy.ts'

export interface DecisionsOptions extends Pick<RunnerOptions, 'log' | 'clock' | 'asked' | 'policy' | 'canAsk'> {
  budget: Budget
}

/** A machine that slept wakes up late; so the time of day is looked at this often. */
const SLICE_MS = 60_000

/**
 * The decisions of a session that a person makes, one at a time. While one is open no round runs; its time counts as time
 * that is worked on.
 */
export class Decisions {
  readonly #options: DecisionsOptions
  #woken = new AbortController()

  constructor(options: DecisionsOptions) {
    this.#options = options
  }

  /**
   * Asks for a decision, and waits until it is made, by a person or by its default. Null if the session goes on: the
   * template has the answer in the state, or a person has asked for a change of plan first.
   */
  async ask(wanted: Decision): Promise<SessionOutcome | null> {
    const { log, asked, budget } = this.#options
    const { endedBy } = asked
    if (endedBy !== null) return { kind: 'interrupted', by: endedBy }
    if (budget.timeLeftMs <= 0) return { kind: 'limit', limit: 'time' }
    this.#begin(inTemplate(log.state.template, 'next', () => checkedDecision(wanted)))
    const { decision } = log.state
    return decision === null ? null : await this.#untilMade(decision)
  }

  /** Makes the open decision as a person; `text` null: they say nothing with it. False if the session is over. */
  make(choice: string, text: string | null): boolean {
    const { log } = this.#options
    const { decision, ended } = log.state
    if (decision === null || ended !== null) return false
    log.emit({ type: 'decision-made', id: decision.id, choice, text, by: 'person' })
    this.wake()
    return true
  }

  /** Looks again whether it goes on waiting. */
  wake(): void {
    this.#woken.abort()
  }

  #begin(decision: Decision): void {
    const { log, clock, policy, canAsk } = this.#options
    const { maxWaitMs, decideAfterMs } = policy
    const waitMs = decision.default === null ? maxWaitMs : canAsk ? Math.min(decideAfterMs, maxWaitMs) : 0
    log.emit({ type: 'decision-asked', ...decision, until: new Date(clock.now() + waitMs).toISOString() })
  }

  async #untilMade({ until, default: usual }: OpenDecision): Promise<SessionOutcome | null> {
    const { log, clock, asked, budget } = this.#options
    // A clock that is set back does not prolong it.
    const end = clock.monotonic() + (until - clock.now())
    while (log.state.decision !== null) {
      const { endedBy } = asked
      if (endedBy !== null) return { kind: 'interrupted', by: endedBy }
      const left = Math.min(until - clock.now(), end - clock.monotonic())
      if (left <= 0) return this.#runOut(log.state.decision)
      const timeLeft = budget.timeLeftMs
      if (timeLeft <= 0) return { kind: 'limit', limit: 'time' }
      if (usual !== null) log.live({ type: 'still-waiting', leftMs: left })
      this.#woken = new AbortController()
      await clock.wait(Math.min(left, timeLeft, SLICE_MS), AbortSignal.any([this.#woken.signal, asked.stopping]))
    }
    return null
  }

  /** Nobody has answered in time. */
  #runOut({ id, title, default: usual }: OpenDecision): SessionOutcome | null {
    const { log } = this.#options
    if (usual === null) {
      return {
        kind: 'needs-person',
        reason: `Nobody has decided: ${title}`,
        hint: { do: 'decide', session: log.state.id, title },
        goalOnly: true,
      }
    }
    log.emit({ type: 'decision-made', id, choice: usual, text: null, by: 'default' })
    return null
  }
}
