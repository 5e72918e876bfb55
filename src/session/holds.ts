import type { SessionOutcome } from '../core/events/outcome.ts'
import { endOfHold, type HoldEnd } from '../core/rules/decision.ts'
import type { RunnerOptions } from './options.ts'
import type { Budget } from './retry-policy.ts'

export interface HoldsOptions extends Pick<RunnerOptions, 'log' | 'clock' | 'asked' | 'policy' | 'audience'> {
  budget: Budget
}

/** What is waited for a person with. */
export interface PersonWait {
  /** Whether the session goes on by itself if nobody says anything. */
  hasDefault(): boolean
  /** Whether the person has said what was waited for. */
  isOver(): boolean
  /** Told when it will end by itself, and each time that this moves; Unix time, ms. */
  onEnd(end: HoldEnd): void
}

/** A machine that slept wakes up late; so the time of day is looked at this often. */
const SLICE_MS = 60_000
/** A watcher that goes away is noticed within this time, ms. */
const LOOK_MS = 5000
/** An end that moves by less than this is the same one, ms. */
const SAME_MS = 1000

/** The waits of a session for a person: each counts against its time, and ends by itself at some time. */
export class Holds {
  readonly #options: HoldsOptions
  #woken = new AbortController()

  constructor(options: HoldsOptions) {
    this.#options = options
  }

  /**
   * Holds the session until a person lets it go on or wants its plan changed, until its default is taken, or it ends.
   * Null if it goes on. What was paused has no default.
   */
  async hold(): Promise<SessionOutcome | null> {
    const { log, asked } = this.#options
    log.emit({ type: 'held' })
    const how = await this.wait({
      hasDefault: () => !asked.isHeldByPause,
      isOver: () => !asked.isPaused || log.state.replan !== null,
      onEnd: ({ at, how }) => log.emit({ type: 'hold-until', until: new Date(at).toISOString(), how }),
    })
    if (how === 'limit') return { kind: 'limit', limit: 'time' }
    if (how === 'needs-person') return { kind: 'needs-person', reason: STILL_PAUSED, hint: null }
    if (how === 'goes-on') {
      log.emit({ type: 'unpaused', by: 'default' })
      asked.unpause()
    }
    return null
  }

  /** Waits for a person; how it ended by itself, or `over`: they have said it, or the session is to end. */
  async wait({ hasDefault, isOver, onEnd }: PersonWait): Promise<'over' | HoldEnd['how']> {
    const { log, clock, asked, policy, audience, budget } = this.#options
    const [since, sinceDay] = [clock.monotonic(), clock.now()]
    // Neither a machine that slept nor a clock that was set back prolongs it.
    const passed = () => Math.max(clock.monotonic() - since, clock.now() - sinceDay)
    let aloneSince: number | null = null
    let told: HoldEnd | null = null
    for (;;) {
      // Taken before anything is looked at: what comes meanwhile ends the wait at once.
      this.#woken = new AbortController()
      const woken = AbortSignal.any([this.#woken.signal, asked.changed, audience.changed, asked.stopping])
      const isAttached = await audience.isAttached()
      if (isOver() || asked.endedBy !== null) return 'over'
      const now = passed()
      aloneSince = isAttached ? null : (aloneSince ?? now)
      const limitAt = now + budget.timeLeftMs
      const end = endOfHold({ ...policy, now, limitAt, aloneSince, hasDefault: hasDefault() })
      const left = end.at - now
      if (left <= 0) return end.how
      const at = clock.now() + left
      if (told === null || told.how !== end.how || Math.abs(told.at - at) >= SAME_MS) {
        told = { at, how: end.how }
        onEnd(told)
      }
      if (end.how === 'goes-on') log.live({ type: 'still-waiting', leftMs: left })
      await clock.wait(Math.min(left, isAttached && !audience.isForGood ? LOOK_MS : SLICE_MS), woken)
    }
  }

  /** Looks again whether it goes on waiting. */
  wake(): void {
    this.#woken.abort()
  }
}

const STILL_PAUSED = 'It was paused, and nobody has let it go on.'
