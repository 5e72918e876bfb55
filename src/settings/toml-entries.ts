import { type AST, getStaticTOMLValue, ParseError, parseTOML } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'
import type { Entry, Layer } from './entries.ts'
import { nearestName } from './nearest-name.ts'
import { settingInfos } from './schema.ts'

/** The settings in the text of a TOML file; `file` is its name in sentences and places. */
export function entriesOfToml(text: string, file: string, layer: Layer): Entry[] {
  return valuesOf(parse(text, file)).map(({ path, line, value }) => {
    const info = settingInfos.find(({ toml }) => toml === path.join('.'))
    if (info === undefined) return refuseUnknown(path, `${file}:${line}`)
    const written = value === null ? 'a table' : text.slice(...value.range)
    return { info, layer, value: value && getStaticTOMLValue(value), written, place: `${file}:${line}` }
  })
}

function parse(text: string, file: string): AST.TOMLProgram {
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

interface TomlValue {
  path: readonly string[]
  line: number
  /** Null for a table that is no table of settings. */
  value: Exclude<AST.TOMLContentNode, AST.TOMLInlineTable> | null
}

function valuesOf(program: AST.TOMLProgram): TomlValue[] {
  return program.body[0].body.flatMap(node => {
    if (node.type === 'TOMLKeyValue') return valuesOfKey(node, [])
    const path = getStaticTOMLValue(node.key)
    if (node.kind === 'array' || !isTable(path)) return [{ path, line: node.loc.start.line, value: null }]
    return node.body.flatMap(inner => valuesOfKey(inner, path))
  })
}

function valuesOfKey(node: AST.TOMLKeyValue, above: readonly string[]): TomlValue[] {
  const path = [...above, ...getStaticTOMLValue(node.key)]
  const line = node.loc.start.line
  if (node.value.type !== 'TOMLInlineTable') return [{ path, line, value: node.value }]
  if (!isTable(path)) return [{ path, line, value: null }]
  return node.value.body.flatMap(inner => valuesOfKey(inner, path))
}

function isTable(path: readonly string[]): boolean {
  return settingInfos.some(({ toml }) => toml.startsWith(`${path.join('.')}.`))
}

function refuseUnknown(path: readonly string[], place: string): never {
  const name = path.join('.')
  const known = settingInfos.map(({ toml }) => toml)
  if (isTable(path)) {
    const inner = known.filter(toml => toml.startsWith(`${name}.`))
    throw new UserError(`${place}: ${name} is a table; write ${inner.join(', ')} instead.`)
  }
  const tables = known.filter(toml => toml.includes('.')).map(toml => toml.slice(0, toml.lastIndexOf('.')))
  const near = nearestName(name, [...known, ...new Set(tables)])
  const mend = near === null ? `the known ones are ${known.join(', ')}.` : `did you mean "${near}"?`
  throw new UserError(`${place}: unknown key "${name}"; ${mend}`)
}
