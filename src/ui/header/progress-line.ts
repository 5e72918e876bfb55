import { elapsedMs } from '../../session/standing.ts'
import type { SessionState } from '../../session/state.ts'
import { cutLine, widthOf } from '../cells.ts'
import { formatCount } from '../format-count.ts'
import { formatSpan } from '../format-span.ts'
import type { TaskBoard } from '../task-board.ts'
import type { Theme } from '../theme.ts'

const MINUTE = 60_000
/** Before so many rounds have counted nothing can be told of the pace. */
const ROUNDS_TO_KNOW = 3
const MOST_BAR = 20
const LEAST_BAR = 5

/**
 * How far the tasks are, of a build those too that are only said to be done or are parked, and for how long it will go on at the pace so far: `▓▓▓░░ 7/15 tasks · about 2 h 10 min left`;
 * null if there are none. At most `columns` cells wide.
 */
export function progressLine(
  { state, board }: { state: SessionState; board: TaskBoard | null },
  { columns, theme, now }: { columns: number; theme: Theme; now: number },
): string | null {
  const total = board?.tasks.length ?? 0
  if (board === null || total === 0) return null
  const done = board.tasks.filter(task => task.done).length
  const parked = board.tasks.filter(task => task.parked !== undefined).length
  const claimed = board.tasks.filter(task => task.claimed).length
  const left = msLeft(state, { done: done + claimed, total: total - parked }, now)
  const estimate = left === null ? null : `${roughly(left)} left`
  if (!theme.symbols) {
    const words = `${done} of ${formatCount(total, 'task')} done${also(', ', claimed, parked)}`
    return cutLine(estimate === null ? words : `${words}, ${estimate}`, columns)
  }
  const counted = `${done}/${formatCount(total, 'task')}${also(' · ', claimed, parked)}`
  const words = estimate === null ? counted : `${counted} · ${estimate}`
  const fitting = widthOf(words) + LEAST_BAR + 1 <= columns ? words : counted
  const room = Math.min(MOST_BAR, columns - widthOf(fitting) - 1)
  return room < LEAST_BAR
    ? cutLine(counted, columns)
    : `${bar({ done: done / total, claimed: claimed / total }, room, theme)} ${fitting}`
}

/** The time (ms) that what is left will take if it goes on as before; null if it cannot be told. */
function msLeft(state: SessionState, { done, total }: { done: number; total: number }, now: number): number | null {
  if (done === 0 || done === total || state.roundsUsed < ROUNDS_TO_KNOW) return null
  if (state.ended !== null || state.waiting !== null || state.offlineSince !== null) return null
  return (elapsedMs(state, 'running', now) / done) * (total - done)
}

/** To 5 minutes, and from 10 hours on to the hour: it is no better known. */
function roughly(ms: number): string {
  const step = ms < 10 * 60 * MINUTE ? 5 * MINUTE : 60 * MINUTE
  return ms < step ? `less than ${formatSpan(step)}` : `about ${formatSpan(Math.round(ms / step) * step)}`
}

/** What of a build is neither done nor just open. */
function also(before: string, claimed: number, parked: number): string {
  return `${claimed === 0 ? '' : `${before}${claimed} claimed`}${parked === 0 ? '' : `${before}${parked} parked`}`
}

function bar(share: { done: number; claimed: number }, width: number, theme: Theme): string {
  const cells = (part: number) => (part === 1 ? width : Math.min(width - 1, Math.round(part * width)))
  const done = cells(share.done)
  const claimed = cells(share.done + share.claimed) - done
  const rest = theme.paint('dim', '░'.repeat(width - done - claimed))
  return theme.paint('good', '▓'.repeat(done)) + theme.paint('good', '▒'.repeat(claimed)) + rest
}
