import { clipEnd } from '../base/clip.ts'
import type { Recorded } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { describeOutcome } from '../ui/describe-outcome.ts'
import { formatSpan } from '../ui/format-span.ts'
import { isPlanShown } from '../ui/words-for-build.ts'
import { wordsForCause } from '../ui/words-for-cause.ts'
import { wordsForRemedy, wordsForStall } from '../ui/words-for-stall.ts'
import { wordsForWindDown } from '../ui/words-for-wind-down.ts'
import { FirstAndLast } from './first-and-last.ts'
import type { ReportTrouble } from './report-data.ts'
import type { Shortened } from './shortened.ts'

const CAUSE_CHARS = 500

/** What a report says of waits, failures, and other times in which the work did not get on. */
export class TroubleSoFar {
  readonly #entries = new FirstAndLast<ReportTrouble>({ first: 30, last: 120 })
  #waitedMs = 0
  #wait: ReportTrouble | null = null
  #offline: ReportTrouble | null = null
  #held: ReportTrouble | null = null

  /** @param before the session before the event, and `after` it */
  add(event: Recorded, before: SessionState, after: SessionState): void {
    this.#followNetwork(event, before, after)
    switch (event.type) {
      case 'waiting':
        this.#wait = this.#begin('wait', event, wordsForCause(event.cause))
        break
      case 'wait-ended':
        this.#endWait(event.at)
        break
      case 'held':
        this.#held ??= this.#begin('held', { at: event.at }, causeOfHold(after))
        break
      case 'unpaused':
        this.#endHold(event.at)
        break
      case 'machine-slept':
        this.#add('slept', event, {
          from: new Date(Date.parse(event.at) - event.ms).toISOString(),
          cause: `the machine slept for ${formatSpan(event.ms)}`,
        })
        break
      case 'round-ended':
        if (event.outcome.class === 'worked') break
        this.#add(event.outcome.class === 'interrupted' ? 'stopped' : 'failure', event, {
          from: new Date(Date.parse(event.at) - event.durationMs).toISOString(),
          cause: `round ${event.round}: ${wordsForCause(event.outcome)}`,
        })
        break
      case 'review-ended':
        if (event.outcome.class === 'worked') break
        this.#add('failure', event, {
          from: new Date(Date.parse(event.at) - event.durationMs).toISOString(),
          cause: `review ${event.review}: ${wordsForCause(event.outcome)}`,
        })
        break
      case 'turn-continued':
        this.#begin('failure', event, `${wordsForCause(event.cause)}; the turn went on`)
        break
      case 'stuck':
        this.#begin('stuck', event, `${wordsForStall(event.why, event.rounds)}: ${wordsForRemedy(event.remedy)}`)
        break
      case 'winding-down':
        this.#begin('limit', event, `${wordsForWindDown(event.limit, after)}: the round came to a safe stop`)
        break
      case 'session-resumed':
        this.#resume(event, before)
        break
      case 'session-ended':
        this.#endWait(event.at)
        this.#endHold(event.at)
        break
      default:
        break
    }
  }

  /** How long was waited; until `now` where it still is (Unix time, ms). */
  waitedMs(now: number): number {
    return this.#waitedMs + (this.#wait === null ? 0 : Math.max(0, now - Date.parse(this.#wait.from)))
  }

  result(): Shortened<ReportTrouble> {
    const { entries, ...rest } = this.#entries.shortened()
    return { entries: entries.map(entry => ({ ...entry })), ...rest }
  }

  #begin(kind: ReportTrouble['kind'], { at, round = null }: { at: string; round?: number | null }, cause: string) {
    const entry: ReportTrouble = { kind, round, from: at, to: null, cause: clipEnd(cause, CAUSE_CHARS) }
    this.#entries.add(entry)
    return entry
  }

  #add(
    kind: ReportTrouble['kind'],
    event: { at: string; round?: number | null },
    was: { from: string; cause: string },
  ) {
    const entry = this.#begin(kind, event, was.cause)
    entry.from = was.from
    entry.to = event.at
  }

  #endWait(at: string): void {
    this.#waitedMs = this.waitedMs(Date.parse(at))
    if (this.#wait !== null) this.#wait.to = at
    this.#wait = null
  }

  #endHold(at: string): void {
    if (this.#held !== null) this.#held.to = at
    this.#held = null
  }

  #followNetwork(event: Recorded, before: SessionState, after: SessionState): void {
    if (before.offlineSince === null && after.offlineSince !== null) {
      const round = after.running?.round ?? null
      this.#offline = this.#begin('failure', { at: event.at, round }, 'the network was away; codex kept trying')
    }
    if (after.offlineSince !== null || this.#offline === null) return
    this.#offline.to = event.at
    this.#offline = null
  }

  /** From its last sign of life until a person went on with it. */
  #resume({ at }: { at: string }, before: SessionState): void {
    const from = new Date(before.updatedAt).toISOString()
    this.#endWait(from)
    this.#endHold(from)
    if (before.ended === null) {
      this.#add('cut-off', { at }, { from, cause: 'codemachine was cut off, and resumed' })
    } else {
      const { short } = describeOutcome(before.ended.outcome)
      this.#add('stopped', { at }, { from, cause: `${short}; resumed by a person` })
    }
  }
}

/** Whether a person wanted it to pause, or it stands still so that they look at what is planned. */
function causeOfHold(after: SessionState): string {
  return after.replan === null && isPlanShown(after) ? 'the plan was shown' : 'paused by a person'
}
