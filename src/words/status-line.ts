import type { TaskBoard } from '../core/state/plan.ts'
import type { SessionState } from '../core/state/state.ts'
import { cutLine } from './cells.ts'
import { doing, taskAtWork, titleOf, usedWindow } from './doing.ts'
import { formatCount, shortMoment } from './numbers.ts'
import { boardNow } from './plan.ts'
import { oneLine } from './safe-text.ts'
import { statusOfWork } from './work.ts'

const MOST_CELLS = 100
const TITLE_CELLS = 24
const WORK_CELLS = 24
const WORK_CHARS = 120

/**
 * A running session on one short line for the status bar of tmux: `linkcheck · R4/10 · T2/15 · working · resets 05:02`.
 * No colours; each `#` is doubled, for to tmux a single one is a command.
 */
export function statusLine(state: SessionState, board: TaskBoard | null, now: number): string {
  const { running, limits, roundsUsed } = state
  const { words, time, next } = doing(state, null, now)
  const tasks = boardNow(board, state)
  const task = tasks && taskAtWork(tasks)
  const work = statusOfWork(state)
  const window = usedWindow(state, now)
  const most = limits.rounds === null ? '' : `/${limits.rounds}`
  const facts = [
    cutLine(titleOf(state, board), TITLE_CELLS),
    `R${running?.round ?? roundsUsed}${most}`,
    work === null ? (task?.shortPlace ?? '') : cutLine(oneLine(work, WORK_CHARS), WORK_CELLS),
    time === null ? words : `${words} ${time}`,
    next ?? '',
    // What it does is said by them already.
    state.agents.length === 0 || words.endsWith('at work') ? '' : formatCount(state.agents.length, 'agent'),
    state.questions === 0 ? '' : formatCount(state.questions, 'question'),
    window === null || window.resetsAt === null
      ? ''
      : `${Math.round(window.usedPercent)} %, resets ${shortMoment(window.resetsAt, now)}`,
  ]
  return cutLine(facts.filter(fact => fact !== '').join(' · '), MOST_CELLS).replaceAll('#', '##')
}
