import type { SessionState } from '../../session/state.ts'
import { cutLine } from '../cells.ts'
import type { LiveItem } from '../live/live-board.ts'
import type { TaskBoard } from '../task-board.ts'
import { taskAtWork } from './task-at-work.ts'
import { titleOf } from './title-of.ts'
import { type Doing, doing } from './words-for-doing.ts'

const MOST_CELLS = 80
const DOING_CELLS = 36

const SYMBOLS: Readonly<Record<Doing['kind'], string>> = {
  'at-work': '▸ ',
  waiting: '⏳ ',
  held: '⏸ ',
  done: '✔ ',
  ended: '✖ ',
}

/**
 * What the terminal's window is called: `▸ R4 T2/15 npm test — linkcheck`. One line without control characters, at
 * most 80 cells wide; words alone if `symbols` is false. It says no time, so that it changes only when something does.
 */
export function windowTitle(
  { state, board, live }: { state: SessionState; board: TaskBoard | null; live: readonly LiveItem[] },
  { symbols, now }: { symbols: boolean; now: number },
): string {
  const { kind, words, short } = doing(state, live, now)
  const at = board && state.ended === null ? taskAtWork(board) : null
  const facts = [
    ...(state.running === null ? [] : [symbols ? `R${state.running.round}` : `round ${state.running.round}`]),
    ...(at ? [at.shortPlace] : []),
    cutLine(symbols ? short : words, DOING_CELLS),
  ]
  const title = titleOf(state, board)
  const line = `${symbols ? SYMBOLS[kind] : ''}${facts.join(' ')}${title === '' ? '' : ` — ${title}`}`
  return cutLine(line, MOST_CELLS)
}
