import { wrapLine } from '../cells.ts'
import { safeText } from '../safe-text.ts'
import type { Role, Theme } from '../theme.ts'
import type { BlockOptions } from './block-options.ts'
import { firstRows } from './first-rows.ts'
import { inlineLines } from './inline-lines.ts'
import { lexInline } from './lex-markdown.ts'

const MOST_LINES = 3
const MOST_CHARACTERS = 72 * 1024
// Of a text that is clipped after three lines, no more is looked at.
const CLIPPED_CHARACTERS = 2000

/** What codex thinks, dimmed: its heading and the lines below; three of them, if not in full. */
export function thoughtLines(text: string, { columns, theme, full }: BlockOptions): string[] {
  const looked = text.trim().slice(0, full ? MOST_CHARACTERS : CLIPPED_CHARACTERS)
  const end = looked.includes('\n') ? looked.indexOf('\n') : looked.length
  const heading = dimmed(looked.slice(0, end), theme, ['emphasis'])
  const lines = dimmed(looked.slice(end), theme).flatMap(line => wrapLine(line, columns))
  return [
    ...heading.flatMap(line => wrapLine(line, columns)),
    ...firstRows(lines, full ? lines.length : MOST_LINES, columns),
  ]
}

/** The last lines of a thought that goes on, dimmed, at most `rows`. */
export function thoughtTail(text: string, { columns, theme, rows }: ThoughtPlace): string[] {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  return dimmed(lines.slice(-rows).join('\n'), theme)
    .flatMap(line => wrapLine(line, columns))
    .slice(-rows)
}

interface ThoughtPlace {
  columns: number
  theme: Theme
  rows: number
}

/** Paragraphs of Markdown as they are meant, dimmed, without the blank lines between them. */
function dimmed(text: string, theme: Theme, roles: readonly Role[] = []): string[] {
  return safeText(text)
    .split(/\n\s*\n/)
    .flatMap(paragraph => inlineLines(lexInline(paragraph), theme, ['dim', ...roles]))
    .filter(line => line.trim() !== '')
}
