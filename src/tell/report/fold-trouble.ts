import { clipEnd } from '../../base/text.ts'
import type { Recorded } from '../../core/events/events.ts'
import type { SessionState } from '../../core/state/state.ts'
import { wordsForCause } from '../words/names.ts'
import { formatSpan } from '../words/numbers.ts'
import { describeOutcome, wordsForRemedy, wordsForStall, wordsForWindDown } from '../words/outcome.ts'
import { isPlanShown } from '../words/plan.ts'
import { FirstAndLast, type KeptList } from './fold-rounds.ts'
import type { ReportTrouble, Shortened } from './report-data.ts'

const CAUSE_CHARS = 500

/** One of the entries that goes on: which one it is, and what it says; `at` -1: it was left out. */
interface KeptOpen {
  at: number
  entry: ReportTrouble
}

/** Collects waits, failures, and other times in which no work was done. */
export class TroubleSoFar {
  readonly #entries: FirstAndLast<ReportTrouble>
  #waitedMs: number
  #wait: ReportTrouble | null
  #offline: ReportTrouble | null
  #held: ReportTrouble | null

  /** @param kept what it goes on from; left out: nothing */
  constructor(kept?: ReturnType<TroubleSoFar['kept']>) {
    this.#entries = new FirstAndLast({ first: 30, last: 120 }, undefined, kept?.entries)
    const { entries } = this.#entries.shortened()
    const opened = (open: KeptOpen | null | undefined) => (open == null ? null : (entries[open.at] ?? open.entry))
    this.#waitedMs = kept?.waitedMs ?? 0
    this.#wait = opened(kept?.wait)
    this.#offline = opened(kept?.offline)
    this.#held = opened(kept?.held)
  }

  /** All that it has collected, as data. */
  kept(): {
    entries: KeptList<ReportTrouble>
    waitedMs: number
    wait: KeptOpen | null
    offline: KeptOpen | null
    held: KeptOpen | null
  } {
    const { entries } = this.#entries.shortened()
    const open = (entry: ReportTrouble | null) => entry && { at: entries.indexOf(entry), entry }
    return {
      entries: this.#entries.kept(),
      waitedMs: this.#waitedMs,
      wait: open(this.#wait),
      offline: open(this.#offline),
      held: open(this.#held),
    }
  }

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
      case 'engine-changed':
        this.#add('limit', event, { from: event.at, cause: `${event.to} took over from ${event.from}: ${event.why}` })
        break
      case 'held':
        this.#held ??= this.#begin('held', { at: event.at }, causeOfHold(after))
        break
      case 'decision-asked':
        // Where nobody can be asked, nobody is waited for.
        if (event.until > event.at) this.#held ??= this.#begin('held', { at: event.at }, causeOfHold(after))
        break
      case 'decision-made':
        if (after.heldSince === null) this.#endHold(event.at)
        break
      case 'unpaused':
        this.#endHold(event.at, event.by === 'default' ? '; it continued by itself' : '')
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
        this.#begin('failure', event, `${wordsForCause(event.cause)}; the turn continued`)
        break
      case 'stuck':
        this.#begin('stuck', event, `${wordsForStall(event.why, event.rounds)}: ${wordsForRemedy(event.remedy)}`)
        break
      case 'winding-down':
        this.#begin('limit', event, `${wordsForWindDown(event.limit, after)}: the round stopped safely`)
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

  /** The sum of all waits, ms. One that goes on counts until `now` (Unix time, ms). */
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

  #endHold(at: string, how = ''): void {
    if (this.#held !== null) {
      this.#held.to = at
      this.#held.cause += how
    }
    this.#held = null
  }

  #followNetwork(event: Recorded, before: SessionState, after: SessionState): void {
    if (before.offlineSince === null && after.offlineSince !== null) {
      const round = after.running?.round ?? null
      this.#offline = this.#begin('failure', { at: event.at, round }, 'the network was down; codex kept trying')
    }
    if (after.offlineSince !== null || this.#offline === null) return
    this.#offline.to = event.at
    this.#offline = null
  }

  /** The time from the last event before the resume until the resume. */
  #resume({ at }: { at: string }, before: SessionState): void {
    const from = new Date(before.updatedAt).toISOString()
    this.#endWait(from)
    this.#endHold(from)
    if (before.ended === null) {
      this.#add('cut-off', { at }, { from, cause: 'codemachine was killed, and the session was resumed later' })
    } else {
      const { short } = describeOutcome(before.ended.outcome)
      this.#add('stopped', { at }, { from, cause: `${short}; resumed by a person` })
    }
  }
}

/** Why a session is held: a person paused it, or is to decide something, such as whether its plan is carried out. */
function causeOfHold(after: SessionState): string {
  if (after.decision !== null && !isPlanShown(after)) return `waited for your decision: ${after.decision.title}`
  return after.replan === null && isPlanShown(after) ? 'waited for you to accept the plan' : 'paused by a person'
}
