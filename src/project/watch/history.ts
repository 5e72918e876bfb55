import type { Recorded } from '../../core/events/events.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState, type SessionState } from '../../core/state/state.ts'
import { eachEvent } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { RoundsSoFar } from '../../tell/report/fold-rounds.ts'
import type { ReportRound } from '../../tell/report/report-data.ts'

/** Some events of a session, each with the state after it. */
interface PastEvents {
  /** Number of the first event, from 1 on; 0: none. */
  first: number
  events: readonly { n: number; event: Recorded; state: SessionState }[]
}

/**
 * Returns events before a number, oldest first: the last `most` that match `isWanted`. Reads the journal from its beginning.
 */
export async function eventsBefore(
  records: Records,
  id: string,
  { before, most, isWanted }: { before: number; most: number; isWanted(event: Recorded, state: SessionState): boolean },
): Promise<PastEvents> {
  let state = emptyState(id)
  let kept: { n: number; event: Recorded; state: SessionState }[] = []
  await eachEvent(records.journal(id), event => {
    if (state.events + 1 >= before) return
    state = fold(state, event, records.templates)
    if (isWanted(event, state)) kept.push({ n: state.events, event, state })
    if (kept.length > 2 * most) kept = kept.slice(-most)
  })
  const events = kept.slice(-most)
  return { first: events[0]?.n ?? 0, events }
}

/** Returns a session's rounds from an index on, counted from 0, and their total. Reads the journal from its beginning. */
export async function roundsFrom(
  records: Records,
  id: string,
  { from, most }: { from: number; most: number },
): Promise<{ total: number; rounds: readonly ReportRound[] }> {
  let state = emptyState(id)
  let total = 0
  const some: ReportRound[] = []
  let so = new RoundsSoFar()
  await eachEvent(records.journal(id), event => {
    state = fold(state, event, records.templates)
    if (event.type === 'round-started') {
      total += 1
      // The collector keeps only the newest of each.
      so = new RoundsSoFar()
    }
    so.add(event, state)
    const index = total - 1 - from
    const row = total === 0 ? null : so.newest
    if (row !== null && index >= 0 && index < most) some[index] = row
  })
  return { total, rounds: some }
}
