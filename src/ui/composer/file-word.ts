import { caretLine, type Text } from './text.ts'

/** The word with `@` that the caret is in: where it is in its line (UTF-16 units), and what to search for. */
export interface FileWord {
  readonly start: number
  readonly end: number
  readonly query: string
}

/** The `@` word at the caret, `@"with spaces"` too; null if the caret is in no such word. */
export function fileWordAt(text: Text): FileWord | null {
  const line = caretLine(text)
  const before = /(?:^|\s)@(?:"([^"]*)|([^\s"]*))$/.exec(line.slice(0, text.column))
  if (before === null) return null
  const quoted = before[1] !== undefined
  const query = before[1] ?? before[2] ?? ''
  const after = (quoted ? /^[^"]*"/ : /^\S*/).exec(line.slice(text.column))?.[0] ?? ''
  return { start: text.column - query.length - (quoted ? 2 : 1), end: text.column + after.length, query }
}

/** A path as it stands in the text, with a space behind it. */
export function fileMention(path: string): string {
  return /\s/.test(path) ? `@"${path}" ` : `@${path} `
}
