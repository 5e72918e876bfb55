import { safeText } from '../ui/safe-text.ts'

/** A piece of HTML: what it holds of texts from outside is escaped. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Piece = Html | string | number | null | readonly Piece[]

/** A template of HTML: what is put in is escaped, but for what is HTML already; lists are joined, null is nothing. */
export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(parts.map((part, index) => part + textOf(pieces[index] ?? null)).join(''))
}

function textOf(piece: Piece): string {
  if (piece === null) return ''
  if (piece instanceof Html) return piece.text
  if (typeof piece === 'object') return piece.map(textOf).join('')
  return escapeHtml(String(piece))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text as it is shown in HTML; what would reorder a line is made visible. */
export function escapeHtml(text: string): string {
  return safeText(text).replace(/[&<>"']/g, character => ENTITIES[character] ?? '')
}

/** A text as it is shown in Markdown, on one line: nothing in it is a link, an image, a heading, HTML, or a table's edge. */
export function escapeMarkdown(text: string): string {
  return safeText(text)
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replace(SPECIAL, '\\$&')
    .replace(/^(\d+)([.)])/, '$1\\$2')
}

// Also what begins a list, a heading's line or a table's at the beginning, and what would be made a link without asking.
const SPECIAL = /[\\`*[\]<>|~&$#@]|(?<![a-z0-9])_|_(?![a-z0-9])|:(?=\/\/)|(?<=\bwww)\.|^[-+=:]/gi

/** A code span. */
export function codeSpan(text: string): string {
  const line = safeText(text).replace(/\s*\n\s*/g, ' ')
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return longest === 0 ? `${fence}${line}${fence}` : `${fence} ${line} ${fence}`
}
