import type { SessionState } from '../../session/state.ts'
import { isDelegation } from '../words-for-build.ts'
import { agentLines } from './agent-lines.ts'
import type { LiveItem } from './live-board.ts'
import { type LiveLinesPlace, liveLines } from './live-lines.ts'

/**
 * All that is done just now, in at most `rows` lines: what the round's own agent does, and below it who else is at work.
 * Those take at most half of the lines where there are few.
 */
export function workLines(
  { agents }: Pick<SessionState, 'agents'>,
  live: readonly LiveItem[],
  place: LiveLinesPlace,
): string[] {
  const { rows } = place
  const own = live.filter(({ item, instance }) => instance === undefined && !isDelegation(item))
  const half = own.length === 0 ? rows : Math.max(1, Math.floor(rows / 2))
  const others = agentLines(agents, live, { ...place, rows: Math.min(rows, half) })
  return [...liveLines(own, { ...place, rows: rows - others.length }), ...others]
}
