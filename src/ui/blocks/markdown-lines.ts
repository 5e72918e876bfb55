import type { MarkedToken, Tokens } from 'marked'
import { clipEnd } from '../../base/clip.ts'
import { unreachable } from '../../base/errors.ts'
import { cutLine, wrapLine } from '../cells.ts'
import { safeText } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import { codeLines } from './code-lines.ts'
import { partsOf } from './finished-part.ts'
import { hasColours, inlineLines } from './inline-lines.ts'
import { closed, lexMarkdown } from './lex-markdown.ts'
import { tableLines } from './table-lines.ts'
import { underPrefix } from './under-prefix.ts'

/** Where Markdown is drawn. */
export interface MarkdownPlace {
  columns: number
  theme: Theme
}

const MOST_CHARACTERS = 72 * 1024

/**
 * A Markdown text from outside as lines for the terminal; of more than 72 Ki characters the beginning.
 * @param first whether it is the beginning of a message; else a blank line parts it from what is before, so that parts
 * cut off with `finishedPart` look, one after the other, as the whole does
 */
export function markdownLines(text: string, { first, ...place }: MarkdownPlace & { first: boolean }): string[] {
  const blocks = partsOf(safeText(clipEnd(text, MOST_CHARACTERS))).flatMap(lexMarkdown)
  const lines = blocksLines(blocks, place, true)
  return first || lines.length === 0 ? lines : ['', ...lines]
}

/** Blocks one below the other, with a blank line between them if they are `loose`. */
function blocksLines(blocks: readonly MarkedToken[], place: MarkdownPlace, loose: boolean): string[] {
  const lines: string[] = []
  for (const block of blocks) {
    const drawn = blockLines(block, place)
    if (loose && lines.length > 0 && drawn.length > 0) lines.push('')
    for (const line of drawn) lines.push(line)
  }
  return lines
}

function blockLines(block: MarkedToken, place: MarkdownPlace): string[] {
  const { columns, theme } = place
  switch (block.type) {
    case 'paragraph':
    case 'text':
      return wrapAll(inlineLines(block.tokens ?? [block], theme), columns)
    case 'heading':
      return headingLines(block, place)
    case 'code':
      return codeLines(block.text, languageOf(block.lang), place)
    case 'list':
      return listLines(block, place)
    case 'blockquote':
      return quoteLines(block, place)
    case 'table':
      return tableLines(block, place)
    case 'hr':
      return [theme.paint('dim', theme.symbols ? '─'.repeat(columns) : cutLine('---', columns))]
    case 'html':
      return wrapAll(block.text.trimEnd().split('\n'), columns)
    // What links lead to, and what is between blocks; a list has drawn its boxes itself.
    case 'def':
    case 'space':
    case 'checkbox':
      return []
    // Of text, and never on their own.
    case 'br':
    case 'codespan':
    case 'del':
    case 'em':
    case 'escape':
    case 'image':
    case 'link':
    case 'list_item':
    case 'strong':
      return wrapAll(inlineLines([block], theme), columns)
    default:
      return unreachable(block)
  }
}

function wrapAll(lines: readonly string[], columns: number): string[] {
  return lines.flatMap(line => wrapLine(line, columns))
}

function headingLines({ depth, tokens }: Tokens.Heading, { columns, theme }: MarkdownPlace): string[] {
  const signs = hasColours(theme) ? '' : `${'#'.repeat(depth)} `
  const [first = '', ...rest] = inlineLines(tokens, theme, [depth <= 2 ? 'heading' : 'strong'])
  return wrapAll([signs + first, ...rest], columns)
}

function quoteLines({ tokens }: Tokens.Blockquote, { columns, theme }: MarkdownPlace): string[] {
  const bar = theme.symbols ? theme.paint('quote', '│ ') : '> '
  return underPrefix({ first: bar, repeats: true, columns }, inner =>
    blocksLines(closed(tokens), { theme, columns: inner }, true),
  )
}

function listLines(list: Tokens.List, { columns, theme }: MarkdownPlace): string[] {
  const start = list.start === '' ? 1 : list.start
  const width = list.ordered ? `${start + list.items.length - 1}. `.length : 0
  const items = list.items.map((item, i) => {
    const marker = list.ordered ? `${start + i}. `.padStart(width) : bulletOf(item, theme)
    const box = list.ordered && item.task ? bulletOf(item, theme) : ''
    const prefix = { first: theme.paint('accent', marker) + box, columns }
    return underPrefix(prefix, inner => {
      const lines = blocksLines(closed(item.tokens), { theme, columns: inner }, item.loose)
      return lines.length === 0 ? [''] : lines
    })
  })
  return items.flatMap((lines, i) => (list.loose && i > 0 ? ['', ...lines] : lines))
}

function bulletOf({ task, checked }: Tokens.ListItem, { symbols, paint }: Theme): string {
  if (!task) return symbols ? '• ' : '- '
  if (checked) return symbols ? paint('good', '✔ ') : '[done] '
  return symbols ? '○ ' : '[to do] '
}

/** What a code block says that it is: the first word behind its fence. */
function languageOf(info: string | undefined): string {
  return (info ?? '').trim().split(/[\s,{:]/, 1)[0] ?? ''
}
