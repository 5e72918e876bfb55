import type { Item } from '../session/items.ts'
import { describeItem, type ItemPlace } from './describe-item.ts'
import type { Description } from './description.ts'

/**
 * What a person is told, on one line, of something that an agent did which was given a task; null if nothing: what it
 * says and thinks is not, for its result is told when it ends.
 */
export function describeAgentItem(item: Item, place: ItemPlace): Description | null {
  if (!TOLD.has(item.kind)) return null
  const told = describeItem(item, place)
  if (told === null) return null
  const { text, more, tone } = told
  return { text: item.kind === 'file-change' ? [text, ...more.map(withoutSign)].join(', ') : text, more: [], tone }
}

const TOLD: ReadonlySet<Item['kind']> = new Set([
  'command',
  'file-change',
  'web-search',
  'mcp-tool-call',
  'tool-call',
  'sub-agent',
])

function withoutSign(line: string): string {
  return line.replace(/^✎ /, '')
}
