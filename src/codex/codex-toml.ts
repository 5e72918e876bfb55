import { type AST, getStaticTOMLValue, ParseError, parseTOML } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'
import { readBoundedText } from '../platform/bounded-file.ts'

/** A file of codex's configuration: its text, and what stands in it. */
export interface CodexToml {
  text: string
  program: AST.TOMLProgram
}

/** No configuration of a person comes near it. */
const MOST_BYTES = 1024 * 1024

/** Reads one; null if there is none. A `UserError` names the file, the place and the mend if it cannot be read. */
export async function readCodexToml(path: string): Promise<CodexToml | null> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return null
  if ('problem' in read) throw new UserError(`${path} ${read.problem}; mend it or move it away.`)
  return { text: read.text, program: parseCodexToml(read.text, path) }
}

/** What stands in it; `path` is its name in the `UserError` that says where it is not valid. */
export function parseCodexToml(text: string, path: string): AST.TOMLProgram {
  try {
    // Without a last line end the parser gives a value of one digit an empty range.
    return parseTOML(`${text}\n`)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const place = `${path}:${error.lineNumber}:${error.column + 1}`
    throw new UserError(`${place}: not valid TOML (${error.message}); mend this line.`)
  }
}

/** What stands at the top of a file, before and between its tables. */
export function topLevel({ program }: CodexToml): AST.TOMLTopLevelTable['body'] {
  return program.body[0].body
}

/** The path of a key or of a table's name. */
export function keyPath(node: AST.TOMLKeyValue | AST.TOMLTable): readonly string[] {
  return getStaticTOMLValue(node.key).map(String)
}

/** A text as TOML writes it. */
export function tomlText(text: string): string {
  // A JSON string is a TOML basic string, but for the one control character that JSON leaves as it is.
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007f')
}
