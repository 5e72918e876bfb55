import { messageOf } from '../../base/errors.ts'
import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import type { SessionState, SessionStatus } from '../../core/state/state.ts'
import { redactorOfProject } from '../../project/secrets/redactor.ts'
import { followSession } from '../../project/watch/feed.ts'
import type { World } from '../../project/world.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import type { Records } from '../../session/records/records.ts'
import { describeEvent } from '../../tell/words/event.ts'
import type { Description } from '../../tell/words/names.ts'

/** What has happened in a session, as the page draws it. */
export interface StreamRow {
  /** Which of the session's events it is, from 1 on. */
  n: number
  /** ISO 8601 in UTC. */
  at: string
  type: Recorded['type']
  /** The round that it belongs to; null: none. */
  round: number | null
  /** The instance of the agent whose it is; left out: the round's own. */
  instance?: string
  /** What a person is told of it. */
  said: Description
  /** Of an item: the item itself, for what is drawn in full. */
  item?: RecordedItem
}

type RecordedItem = Extract<Recorded, { type: 'item-completed' }>['item']

/** What comes to whoever watches, in order. `n`: how many of the session's events have been told with it. */
export type StreamPart =
  /** What came before is to be dropped: these are the last rows, and the stream goes on from there. */
  | { kind: 'begin'; n: number; rows: readonly StreamRow[]; standing: SessionStatus }
  /** The rows before it stay; what goes on just now is told anew. */
  | { kind: 'goes-on'; n: number }
  | { kind: 'row'; n: number; row: StreamRow }
  | { kind: 'live'; n: number; event: LiveEvent; at: number }
  | { kind: 'ended' | 'gone' | 'cut-off'; n: number }
  | { kind: 'next-session'; n: number; id: string }
  | { kind: 'problem'; n: number; problem: string }

/**
 * Tells `tell` what happens in a session, behind the last rows of its past, until `signal` or the end of the session.
 * @param after how many of its events the reader knows; null: none
 */
export async function streamSession(
  world: Pick<World, 'platform' | 'clock' | 'env' | 'pid'>,
  { records, id }: { records: Records; id: string },
  { after, tell, signal }: { after: number | null; tell(part: StreamPart): Promise<void>; signal: AbortSignal },
): Promise<void> {
  const { clock, platform, pid } = world
  const redactor = redactorOfProject(world, records)
  let n = 0
  let past: StreamRow[] | null = []
  // Whoever has gone is told nothing.
  const onProblem = (problem: string) => void tell({ kind: 'problem', n, problem }).catch(() => {})
  try {
    for await (const update of followSession({ records, id, clock, platform, pid, signal, onProblem })) {
      switch (update.kind) {
        case 'event': {
          n = update.state.events
          const row = rowOf(update.event, update.state, redactor)
          if (row !== null && past !== null) past.push(row)
          else if (row !== null) await tell({ kind: 'row', n, row })
          break
        }
        case 'live':
          await tell({ kind: 'live', n, event: redactor.event(update.event), at: update.at })
          break
        case 'attached':
          n = update.state.events
          for (const part of firstParts(past ?? [], n, update.standing, after)) await tell(part)
          past = null
          break
        case 'next-session':
          return await tell({ kind: 'next-session', n, id: update.id })
        default:
          await tell({ kind: update.kind, n })
      }
    }
  } catch (error) {
    // Whatever it is, it is this session that cannot be followed: who watches asks again.
    onProblem(messageOf(error))
  }
}

/** What a reader is told first who knows `after` events, of the `n` that there are. */
function firstParts(rows: StreamRow[], n: number, standing: SessionStatus, after: number | null): StreamPart[] {
  if (after === null || after > n || after < (rows[0]?.n ?? 1) - 1) return [{ kind: 'begin', n, rows, standing }]
  const missed = rows.filter(row => row.n > after)
  return [...missed.map(row => ({ kind: 'row', n: row.n, row }) as const), { kind: 'goes-on', n }]
}

/** An event as a row; null: nothing is told of it. `state`: the session after it. */
export function rowOf(event: Recorded, state: SessionState, redactor: Redactor): StreamRow | null {
  const said = describeEvent(event, state)
  if (said === null) return null
  const round = 'round' in event && typeof event.round === 'number' ? event.round : (state.running?.round ?? null)
  const instance = 'instance' in event && typeof event.instance === 'string' ? event.instance : undefined
  return redactor.event({
    n: state.events,
    at: event.at,
    type: event.type,
    round,
    ...(instance === undefined ? {} : { instance }),
    said,
    ...(event.type === 'item-completed' ? { item: event.item } : {}),
  })
}
