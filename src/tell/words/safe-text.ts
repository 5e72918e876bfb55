/**
 * Makes a foreign text safe for a terminal. It makes control and reordering characters visible (`␛`, `<U+202E>`), repairs
 * lone surrogates, and turns a tab into two spaces. Newlines stay; CRLF counts as one.
 */
export function safeText(text: string): string {
  return text.toWellFormed().replace(/\r\n/g, '\n').replace(/\t/g, '  ').replace(STEERING, visible)
}

/** Makes a foreign text safe on one line: like `safeText`, newlines shown as ` ⏎ `, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const line = safeText(text.trim().slice(0, limit + 1)).replace(/\n\s*/g, ' ⏎ ')
  return line.length > limit ? `${line.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : line
}

/**
 * Returns a foreign text's title on one line: its first non-empty line, without Markdown, cut at a word to at most `limit`
 * characters. '' for a blank text.
 */
export function titleLine(text: string, limit: number): string {
  const lines = text.slice(0, TITLE_FROM_CHARS).split(/[\r\n\u2028\u2029]+/)
  const said = lines.map(line => withoutMarkdown(line.replace(BULLETS, ''))).find(line => line !== '')
  const title = safeText(said ?? lines.join(' ').trim())
  if (title.length <= limit) return title
  const words = title.slice(0, limit)
  const space = words.lastIndexOf(' ')
  return space > limit / 2 ? `${words.slice(0, space).trimEnd()}…` : oneLine(title, limit)
}

/** Removes a line's Markdown: heading, emphasis, code, links; '' for a fence, a rule or a comment. Not safe. */
export function withoutMarkdown(line: string): string {
  const text = line.trim().replace(/^#{1,6}(?:[ \t]+|$)/, '')
  if (/^(?:```|~~~|<!--)/.test(text) || /^(?:[-*_=][ \t]*){3,}$/.test(text)) return ''
  const parts = text.split(/(`{1,3}[^`]+`{1,3})/)
  return parts
    .map((part, i) => (i % 2 === 1 ? part.replace(/^`+ ?| ?`+$/g, '') : withoutEmphasis(part)))
    .join('')
    .trim()
}

const TITLE_FROM_CHARS = 4000
/** Quotes, bullets, numbers and boxes before a line. */
const BULLETS = /^[ \t]*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?)*/

function withoutEmphasis(text: string): string {
  return text
    .replace(/!?\[([^[\]]*)\]\([^()\s]*\)/g, '$1')
    .replace(/<((?:https?|mailto):[^<>\s]*)>/g, '$1')
    .replace(/(?<![\w*\\])\*{1,3}(?=[^\s*])|(?<=[^\s*\\])\*{1,3}(?![\w*])/g, '')
    .replace(/(?<![\w\\])(_{1,3})(?=[^\s_])([^_]*[^\s_])\1(?!\w)/g, '$2')
    .replace(/~~(?=\S)([^~]*)~~/g, '$1')
    .replace(/\\([\\`*_{}[\]()#+.!~>-])/g, '$1')
}

// Every control character but the newline, the line and paragraph separators, and what Unicode calls Bidi_Control.
const STEERING = /[^\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu

function visible(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return '␡'
  return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
}
