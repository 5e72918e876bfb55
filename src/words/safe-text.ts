/**
 * A text from outside as it may be shown on a terminal: what would steer the terminal or reorder the line is made
 * visible (`␛`, `<U+202E>`), lone surrogates are repaired, a tab is two spaces. Newlines stay; CRLF counts as one.
 */
export function safeText(text: string): string {
  return text.toWellFormed().replace(/\r\n/g, '\n').replace(/\t/g, '  ').replace(STEERING, visible)
}

/** A text from outside on one line: as `safeText`, newlines shown as ` ⏎ `, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  const line = safeText(text.trim().slice(0, limit + 1)).replace(/\n\s*/g, ' ⏎ ')
  return line.length > limit ? `${line.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/, '')}…` : line
}

// Every control character but the newline, the line and paragraph separators, and what Unicode calls Bidi_Control.
const STEERING = /[^\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu

function visible(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  if (code === 0x7f) return '␡'
  return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
}
