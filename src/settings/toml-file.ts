import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'

/** What stands in a TOML file; `file` is its name in sentences. A `UserError` with the place if it is not valid. */
export function parseTomlFile(text: string, file: string): AST.TOMLProgram {
  try {
    // Without a last line end the parser gives a value of one digit an empty range.
    return parseTOML(`${text}\n`)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const { line, column, problem } = explain(error, text)
    throw new UserError(`${file}:${line}:${column}: not valid TOML: ${problem}.`)
  }
}

/** Line and column are from 1. The parser notices what is missing at a line's end only on a later line. */
function explain(error: ParseError, text: string): { line: number; column: number; problem: string } {
  const before = text.slice(0, error.index)
  const lines = before.trimEnd().split('\n')
  const end = { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
  const here = { line: error.lineNumber, column: error.column + 1 }
  const problem = error.message.charAt(0).toLowerCase() + error.message.slice(1)
  if (/=\s*\n\s*$/.test(before)) return { ...end, problem: 'there is no value after "="' }
  if (/=[ \t]*$/.test(before)) return { ...here, problem: `${problem}; a text stands in quotes` }
  return { ...(error.message.includes('same line') ? end : here), problem }
}
