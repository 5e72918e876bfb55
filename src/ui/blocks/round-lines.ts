import type { RecordedOf } from '../../session/events.ts'
import type { SessionState } from '../../session/state.ts'
import { widthOf } from '../cells.ts'
import { describeEvent } from '../describe-event.ts'
import { type Description, describe } from '../description.ts'
import { KEY_HINTS } from '../hints.ts'
import { oneLine } from '../safe-text.ts'
import type { BlockOptions } from './block-options.ts'
import { describedLines, roleOf } from './described-lines.ts'

const PATH_CHARS = 300

/** The beginning or end of a round as a light line; in full with what the agent was told, or what was changed. */
export function roundLines(
  event: RecordedOf<'round-started' | 'round-ended'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  const rule = ruleLines(describeEvent(event, state, KEY_HINTS), options)
  if (!options.full) return rule
  const more = event.type === 'round-started' ? event.input.trim() : changedFiles(event)
  return more === '' ? rule : [...rule, ...describedLines(describe(more, 'quiet'), options)]
}

function changedFiles({ changed, changedCount }: RecordedOf<'round-ended'>): string {
  const left = changedCount - changed.length
  return [...changed.map(path => oneLine(path, PATH_CHARS)), ...(left > 0 ? [`… and ${left} more`] : [])].join('\n')
}

const LEAD = '── '
const LONGEST = 100

/** A description in a line across the screen; without the line where there is no room for it. */
function ruleLines(description: Description | null, options: BlockOptions): string[] {
  const { columns, theme } = options
  if (description === null) return []
  const { text, tone } = description
  const room = Math.min(columns, LONGEST) - LEAD.length - widthOf(text) - 1
  if (!theme.symbols || room < 2) return describedLines(description, options)
  return [`${theme.paint('dim', LEAD)}${theme.paint(roleOf(tone), text)} ${theme.paint('dim', '─'.repeat(room))}`]
}
