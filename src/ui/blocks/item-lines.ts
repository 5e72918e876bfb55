import { unreachable } from '../../base/errors.ts'
import type { Item } from '../../session/items.ts'
import { wrapLine } from '../cells.ts'
import { describeItem, type ItemPlace } from '../describe-item.ts'
import { type Description, describe } from '../description.ts'
import { safeText } from '../safe-text.ts'
import type { BlockOptions } from './block-options.ts'
import { changeLines } from './change-lines.ts'
import { commandLines } from './command-lines.ts'
import { describedLines } from './described-lines.ts'
import { markdownLines } from './markdown-lines.ts'
import { thoughtLines } from './thought-lines.ts'

/** Something that codex did, drawn. */
export function itemLines(item: Item, place: ItemPlace, options: BlockOptions): string[] {
  const { columns, theme } = options
  switch (item.kind) {
    case 'agent-message':
      return markdownLines(item.text, { columns, theme, first: true })
    case 'reasoning':
      return thoughtLines(item.text, options)
    case 'command':
      return commandLines(item, options)
    case 'file-change':
      return changeLines(item, place.directory, options)
    case 'plan':
      return [
        ...wrapLine(theme.paint('strong', 'plan'), columns),
        ...markdownLines(item.text, { columns, theme, first: true }),
      ]
    // What codemachine or a person wrote; it is told as the round's beginning, or as `steered`.
    case 'user-message':
      return []
    case 'sub-agent':
      return options.full && item.prompt !== null
        ? withMore(describeItem({ ...item, prompt: null }, place), item.prompt, options)
        : describedLines(describeItem(item, place), options)
    case 'mcp-tool-call':
      return options.full && item.error !== null
        ? withMore(describeItem({ ...item, error: null }, place), item.error, options)
        : describedLines(describeItem(item, place), options)
    case 'web-search':
    case 'tool-call':
    case 'image':
    case 'compaction':
    case 'unknown':
      return describedLines(describeItem(item, place), options)
    default:
      return unreachable(item)
  }
}

/** A description, and below it a text from outside, whole. */
function withMore(description: Description | null, text: string, options: BlockOptions): string[] {
  const { text: first, tone } = description ?? describe('')
  return describedLines({ text: first, more: safeText(text.trim()).split('\n'), tone }, options)
}
