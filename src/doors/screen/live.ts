import type { LiveItem } from '../../core/events/live-board.ts'
import type { AgentAtWork } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { cutLine, padLine, widthOf } from '../../tell/words/cells.ts'
import { wordsForItem } from '../../tell/words/doing.ts'
import { formatClock } from '../../tell/words/numbers.ts'
import { agentOf, idsOf, isDelegation } from '../../tell/words/plan.ts'
import { liveItemLines } from './blocks/item-lines.ts'
import { type LiveOptions, underPrefix } from './blocks/layout.ts'
import type { Theme } from './terminal/theme.ts'

/** `agentsKey`: the key that opens the list of agents, as it is written; left out or empty: it has none. */
type WorkOptions = LiveOptions & { agentsKey?: string }

/**
 * The work that runs now, on at most `rows` lines. First come the items of the agent of the round; then what the delegated
 * agent says that began to speak last. Below them stand the delegated agents, on at most half of the rows.
 */
export function workLines(
  { agents }: Pick<SessionState, 'agents'>,
  live: readonly LiveItem[],
  options: WorkOptions,
): string[] {
  const { rows } = options
  const own = live.filter(({ item, instance }) => instance === undefined && !isDelegation(item))
  const spoken = spokenLines(agents, live, {
    ...options,
    rows: Math.min(SPOKEN_ROWS, Math.floor(rows / ROWS_PER_SPOKEN)),
  })
  const left = rows - spoken.length
  const half = own.length === 0 ? left : Math.max(1, Math.floor(rows / 2))
  const others = agentLines(agents, live, { ...options, rows: Math.min(left, half) })
  return [...liveLines(own, { ...options, rows: left - others.length }), ...spoken, ...others]
}

const SPOKEN_ROWS = 3
/** A row of words for so many rows in all. */
const ROWS_PER_SPOKEN = 4

/** The last words of the agent that has begun to speak or think last, behind its name. */
function spokenLines(agents: readonly AgentAtWork[], live: readonly LiveItem[], options: LiveOptions): string[] {
  const { columns, rows, theme } = options
  if (rows < 1) return []
  const isSaid = ({ item, instance, text }: LiveItem) =>
    (item.kind === 'agent-message' || item.kind === 'reasoning') &&
    agents.some(agent => agent.instance === instance) &&
    text.trim() !== ''
  const latest = live.findLast(isSaid)
  if (latest?.instance === undefined) return []
  const first = `${theme.paint('dim', cutLine(agentOf(latest.instance), NAME_CELLS))}  `
  return underPrefix({ first, columns }, inner => liveItemLines(latest, { ...options, columns: inner }).slice(-rows))
}

/** The rows of an item that is not the main one: its heading and its last line. */
const MINOR_ROWS = 2

/**
 * The running items, the latest last, on at most `rows` lines: a line for each if there are enough, and most of the rest for
 * the latest message or command.
 */
export function liveLines(items: readonly LiveItem[], { columns, rows, theme, now }: LiveOptions): string[] {
  if (rows <= 0) return []
  const linesOf = (live: LiveItem, most: number) => liveItemLines(live, { columns, theme, rows: most, now })
  // Each has at least one line, so older items would not be shown.
  const latest = items.slice(-rows).map(live => ({ live, lines: linesOf(live, rows) }))
  const drawn = latest.filter(({ lines }) => lines.length > 0)
  const isCut = items.length > latest.length && rows > 2
  const shares = sharesOf(drawn, isCut ? rows - 1 : rows)
  const shown = drawn.flatMap(({ live, lines }, i) => {
    const share = shares[i] ?? 0
    if (lines.length <= share) return lines
    return share === 0 ? [] : linesOf(live, share).slice(0, share)
  })
  if (!isCut) return shown
  const left = items.length - shares.filter(share => share > 0).length
  return [theme.paint('dim', cutLine(`${theme.symbols ? '… ' : ''}${left} more running`, columns)), ...shown]
}

/** The number of rows that each item gets. */
function sharesOf(drawn: readonly { live: LiveItem; lines: readonly string[] }[], rows: number): number[] {
  const shares = drawn.map(() => 0)
  let left = rows
  const give = (at: number, most: number) => {
    const more = Math.max(0, Math.min(left, Math.min(most, drawn[at]?.lines.length ?? 0) - (shares[at] ?? 0)))
    shares[at] = (shares[at] ?? 0) + more
    left -= more
  }
  const latestFirst = drawn.map((_, at) => at).reverse()
  const main = drawn.findLastIndex(({ live }) => live.item.kind === 'agent-message' || live.item.kind === 'command')
  for (const at of latestFirst) give(at, 1)
  give(main, Math.ceil(rows / 2))
  for (const at of latestFirst) give(at, MINOR_ROWS)
  give(main, rows)
  for (const at of latestFirst) give(at, rows)
  return shares
}

const MOST_ROWS = 6
/** The width from which on two agents stand side by side. */
const COLUMNS_FOR_TWO = 100
/** The width of an agent from which on names and tasks are aligned in columns. */
const CELLS_FOR_ALIGNED = 44
const GAP = 2
const NAME_CELLS = 22
const IDS_CELLS = 12

/**
 * The agents that work on a task of another agent: `● frontend-dev  T2  running npm test 0:12`. At most six lines, and at
 * most `rows`; from 100 columns on two agents on a line.
 */
export function agentLines(
  agents: readonly AgentAtWork[],
  live: readonly LiveItem[],
  { columns, rows, theme, now, agentsKey = '' }: WorkOptions,
): string[] {
  const most = Math.min(MOST_ROWS, rows)
  if (agents.length === 0 || most < 1) return []
  const onLine = columns >= COLUMNS_FOR_TWO && agents.length > 1 ? 2 : 1
  const cells = Math.floor((columns - (onLine - 1) * GAP) / onLine)
  const room = most * onLine
  const shown = agents.slice(0, agents.length <= room ? room : room - 1)
  const left = agents.length - shown.length
  const leads = agentsKey === '' ? '' : ` · ${agentsKey}`
  const words = `${shown.length === 0 ? `${left} agents at work` : `+${left} more`}${leads}`
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
  const widest = (part: 'name' | 'ids') => Math.max(...named.map(each => widthOf(each[part])))
  const nameCells = Math.min(NAME_CELLS, widest('name'))
  const idCells = Math.min(IDS_CELLS, widest('ids'))
  const isAligned = cells >= CELLS_FOR_ALIGNED
  const inCells = isAligned ? padLine : cutLine
  return named.map(({ agent, name, ids }) => {
    const { words, time } = workOf(agent, live, now)
    const head = [
      theme.symbols ? theme.paint('accent', '●') : '',
      theme.paint('strong', inCells(name, nameCells)),
      theme.paint('accent', inCells(ids, idCells)),
    ].filter(part => widthOf(part) > 0)
    const begin = `${head[0]} ${head.slice(1).join(isAligned ? '  ' : ' ')}  `
    const end = time === null ? '' : ` ${time}`
    const room = cells - widthOf(begin) - widthOf(end)
    return room < LEAST_WORDS ? cutLine(begin.trimEnd(), cells) : begin + cutLine(words, room) + theme.paint('dim', end)
  })
}

const LEAST_WORDS = 6

/** The current activity of an agent, and how long it has lasted (null for one that is not timed). */
export function workOf(
  { instance }: Pick<AgentAtWork, 'instance'>,
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
