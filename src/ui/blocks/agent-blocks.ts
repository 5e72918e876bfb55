import type { RecordedOf } from '../../session/events.ts'
import type { Item } from '../../session/items.ts'
import type { SessionState } from '../../session/state.ts'
import { cutLine, wrapLine } from '../cells.ts'
import { describeAgentItem } from '../describe-agent-item.ts'
import { agentEndInWords, agentFacts, requestInWords } from '../describe-build.ts'
import { oneLine, safeText } from '../safe-text.ts'
import type { Role } from '../theme.ts'
import { agentLabel, agentOf } from '../words-for-build.ts'
import type { BlockOptions } from './block-options.ts'
import { clipText } from './clip-text.ts'
import { roleOf } from './described-lines.ts'
import { firstRows } from './first-rows.ts'
import { itemLines } from './item-lines.ts'
import { markdownLines } from './markdown-lines.ts'
import { underPrefix } from './under-prefix.ts'

const NAME_CHARS = 300
const CLIPPED_CHARS = 1500
const RESULT_ROWS = 12
const REQUEST_ROWS = 2

/** An agent that was given a task: who, and what; in full all that it was asked for. */
export function agentStartLines(event: RecordedOf<'agent-started'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const label = full ? oneLine(event.instance, NAME_CHARS) : agentOf(event.instance)
  const first = theme.symbols ? theme.paint('accent', '▸ ') : ''
  const words = `${theme.paint('strong', label)}${theme.symbols ? '  ' : ' starts: '}`
  const request = full ? safeText(event.request).split('\n') : [requestInWords(event.tasks, event.request)]
  return underPrefix({ first, columns }, inner => {
    const rows = request.flatMap((line, i) => wrapLine(i === 0 ? words + line : line, inner))
    if (!full) return firstRows(rows, REQUEST_ROWS, inner)
    const facts = agentFacts(event)
    return facts === '' ? rows : [...rows, ...wrapLine(theme.paint('dim', facts), inner)]
  })
}

const SIGNS: Readonly<Record<RecordedOf<'agent-ended'>['status'], { sign: string; role: Role }>> = {
  completed: { sign: '✔ ', role: 'good' },
  error: { sign: '✘ ', role: 'bad' },
  terminated: { sign: '– ', role: 'warning' },
}

/** The end of an agent's work, and below it its result: the beginning of it, in full all. */
export function agentEndLines(event: RecordedOf<'agent-ended'>, options: BlockOptions): string[] {
  const { columns, theme, full } = options
  const { sign, role } = SIGNS[event.status]
  const label = theme.paint('strong', full ? oneLine(event.instance, NAME_CHARS) : agentOf(event.instance))
  const heading = `${theme.symbols ? theme.paint(role, sign) : ''}${label}  ${theme.paint(role, agentEndInWords(event))}`
  const result = full ? event.result.trim() : clipText(event.result.trim(), CLIPPED_CHARS)
  return [
    ...wrapLine(heading, columns),
    ...underPrefix({ first: '  ', columns }, inner => {
      const rows = result === '' ? [] : markdownLines(result, { columns: inner, theme, first: true })
      return full ? rows : firstRows(rows, RESULT_ROWS, inner)
    }),
  ]
}

/** What such an agent did, on one line behind its name; in full as what any agent did, below it. */
export function agentItemLines(
  { item, session }: { item: Item; session: string },
  instance: string,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const { columns, theme, full } = options
  const place = { session, directory: state.directory }
  if (full) {
    const lines = underPrefix({ first: theme.symbols ? theme.paint('dim', '┃ ') : '', repeats: true, columns }, inner =>
      itemLines(item, place, { ...options, columns: inner }),
    )
    return lines.length === 0 ? [] : [...wrapLine(theme.paint('dim', oneLine(instance, NAME_CHARS)), columns), ...lines]
  }
  const told = describeAgentItem(item, place)
  if (told === null) return []
  return [
    cutLine(
      `${theme.paint('dim', agentLabel(instance, state))}  ${theme.paint(roleOf(told.tone), told.text)}`,
      columns,
    ),
  ]
}
