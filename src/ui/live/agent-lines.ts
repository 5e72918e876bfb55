import type { AgentAtWork } from '../../session/build-state.ts'
import { cutLine, padLine, widthOf } from '../cells.ts'
import { formatClock } from '../header/format-clock.ts'
import { wordsForItem } from '../header/words-for-item.ts'
import type { Theme } from '../theme.ts'
import { agentOf, idsOf } from '../words-for-build.ts'
import type { LiveItem } from './live-board.ts'
import type { LiveLinesPlace } from './live-lines.ts'

const MOST_ROWS = 6
/** From so many columns on, two agents stand side by side. */
const COLUMNS_FOR_TWO = 100
/** From so many cells on, what they do stands below each other. */
const CELLS_FOR_ALIGNED = 44
const GAP = 2
const MOST_NAME = 22
const MOST_IDS = 12

/**
 * Who is at work because another agent has given it a task, and on what: `● frontend-dev  T2  running npm test 0:12`. At
 * most six lines, and at most `rows`; two agents on a line where there is room.
 */
export function agentLines(
  agents: readonly AgentAtWork[],
  live: readonly LiveItem[],
  { columns, rows, theme, now }: LiveLinesPlace,
): string[] {
  const most = Math.min(MOST_ROWS, rows)
  if (agents.length === 0 || most < 1) return []
  const onLine = columns >= COLUMNS_FOR_TWO && agents.length > 1 ? 2 : 1
  const cells = Math.floor((columns - (onLine - 1) * GAP) / onLine)
  const room = most * onLine
  const shown = agents.slice(0, agents.length <= room ? room : room - 1)
  const left = agents.length - shown.length
  const words = shown.length === 0 ? `${left} agents at work` : `+${left} more`
  const drawn = [
    ...drawAgents(shown, live, { cells, theme, now }),
    ...(left === 0 ? [] : [theme.paint('dim', cutLine(words, cells))]),
  ]
  return onLine === 1 ? drawn : sideBySide(drawn, cells)
}

function drawAgents(
  agents: readonly AgentAtWork[],
  live: readonly LiveItem[],
  { cells, theme, now }: { cells: number; theme: Theme; now: number },
): string[] {
  const named = agents.map(agent => ({ agent, name: agentOf(agent.instance), ids: idsOf(agent.tasks) }))
  const widest = (of: readonly string[], most: number) => Math.min(most, Math.max(...of.map(widthOf)))
  const isAligned = cells >= CELLS_FOR_ALIGNED
  const nameCells = widest(
    named.map(({ name }) => name),
    MOST_NAME,
  )
  const idCells = widest(
    named.map(({ ids }) => ids),
    MOST_IDS,
  )
  return named.map(({ agent, name, ids }) => {
    const { words, time } = workOf(agent, live, now)
    const head = [
      theme.symbols ? theme.paint('accent', '●') : '',
      theme.paint('strong', isAligned ? padLine(name, nameCells) : cutLine(name, nameCells)),
      theme.paint('accent', isAligned ? padLine(ids, idCells) : cutLine(ids, idCells)),
    ].filter(part => widthOf(part) > 0)
    const begin = `${head[0]} ${head.slice(1).join(isAligned ? '  ' : ' ')}  `
    const end = time === null ? '' : ` ${time}`
    const room = cells - widthOf(begin) - widthOf(end)
    return room < LEAST_WORDS ? cutLine(begin.trimEnd(), cells) : begin + cutLine(words, room) + theme.paint('dim', end)
  })
}

const LEAST_WORDS = 6

/** What an agent does just now, and since when if that is worth saying. */
function workOf(
  { instance }: AgentAtWork,
  live: readonly LiveItem[],
  now: number,
): { words: string; time: string | null } {
  const latest = live.findLast(each => each.instance === instance)
  if (latest === undefined) return { words: 'thinking', time: null }
  const { words, isTimed } = wordsForItem(latest.item)
  return { words, time: isTimed ? formatClock(now - latest.startedAt) : null }
}

function sideBySide(drawn: readonly string[], cells: number): string[] {
  const lines: string[] = []
  for (let at = 0; at < drawn.length; at += 2) {
    const [left = '', right] = [drawn[at], drawn[at + 1]]
    lines.push(right === undefined ? left : padLine(left, cells) + ' '.repeat(GAP) + right)
  }
  return lines
}
