import type { SessionOutcome } from '../core/events/outcome.ts'
import { checkedDecision, type Decision, type OpenDecision } from '../core/rules/decision.ts'
import { inTemplate } from '../core/template.ts'
import type { Holds, HoldsOptions } from './holds.ts'
import type { RunnerOptions } from './options.ts'

export interface DecisionsOptions extends HoldsOptions, Pick<RunnerOptions, 'canAsk'> {
  holds: Holds
}

/**
 * The decisions of a session that a person makes, one at a time. While one is open no round runs; its time counts as time
 * that is worked on.
 */
export class Decisions {
  readonly #options: DecisionsOptions

  constructor(options: DecisionsOptions) {
    this.#options = options
  }

  /**
   * Asks for a decision, and waits until it is made, by a person or by its default. Null if the session goes on: the
   * template has the answer in the state, or a person has asked for a change of plan first.
   */
  async ask(wanted: Decision): Promise<SessionOutcome | null> {
    const { log, asked, audience, budget } = this.#options
    const { replansAsked } = log.state
    const isAttached = await audience.isAttached()
    const { endedBy } = asked
    if (endedBy !== null) return { kind: 'interrupted', by: endedBy }
    if (budget.timeLeftMs <= 0) return { kind: 'limit', limit: 'time' }
    // Asked for while nobody was waited for yet: the template is asked again.
    if (log.state.replan !== null || log.state.replansAsked !== replansAsked) return null
    this.#begin(
      inTemplate(log.state.template, 'next', () => checkedDecision(wanted)),
      isAttached,
    )
    const { decision } = log.state
    return decision === null ? null : await this.#untilMade(decision)
  }

  /** Makes the open decision as a person; `text` null: they say nothing with it. False if the session is over. */
  make(choice: string, text: string | null): boolean {
    const { log, holds } = this.#options
    const { decision, ended } = log.state
    if (decision === null || ended !== null) return false
    log.emit({ type: 'decision-made', id: decision.id, choice, text, by: 'person' })
    holds.wake()
    return true
  }

  #begin(decision: Decision, isAttached: boolean): void {
    const { log, clock, policy, canAsk, budget } = this.#options
    const { maxWaitMs, decideAfterMs } = policy
    const usualMs = isAttached ? maxWaitMs : canAsk ? Math.min(decideAfterMs, maxWaitMs) : 0
    // Without a default the session ends for want of a person also where its time is used up first.
    const waitMs = decision.default === null ? Math.min(maxWaitMs, budget.timeLeftMs) : usualMs
    log.emit({ type: 'decision-asked', ...decision, until: new Date(clock.now() + waitMs).toISOString() })
  }

  async #untilMade(open: OpenDecision): Promise<SessionOutcome | null> {
    const { log, asked, holds } = this.#options
    if (open.until <= open.since) return this.#runOut(open)
    let isTold = false
    const how = await holds.wait({
      hasDefault: () => open.default !== null,
      isOver: () => log.state.decision === null,
      onEnd: ({ at, how }) => {
        // When it was asked, it was said with that; a limit is no end that a person has to be told of here.
        if (isTold && how !== 'limit') log.emit({ type: 'hold-until', until: new Date(at).toISOString(), how })
        isTold = true
      },
    })
    if (how === 'limit') return { kind: 'limit', limit: 'time' }
    if (how !== 'over') return this.#runOut(open)
    const { endedBy } = asked
    return log.state.decision === null || endedBy === null ? null : { kind: 'interrupted', by: endedBy }
  }

  /** Nobody has answered in time. */
  #runOut({ id, title, default: usual }: OpenDecision): SessionOutcome | null {
    const { log, budget } = this.#options
    if (usual === null) {
      const outOfTime = budget.timeLeftMs <= 0 ? { outOfTime: true as const } : {}
      return {
        kind: 'needs-person',
        reason: `Nobody has decided: ${title}`,
        hint: { do: 'decide', session: log.state.id, title, ...outOfTime },
        goalOnly: true,
      }
    }
    log.emit({ type: 'decision-made', id, choice: usual, text: null, by: 'default' })
    return null
  }
}
