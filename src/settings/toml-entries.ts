import { type AST, getStaticTOMLValue } from 'toml-eslint-parser'
import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/nearest-name.ts'
import type { Entry, Layer } from './entries.ts'
import { settingInfos } from './schema.ts'
import { GATES, HOW_TO_BEGIN, tellsOfGates } from './toml-gates.ts'

/** A parsed TOML file. */
export interface TomlFile {
  /** Its name in sentences and places. */
  name: string
  text: string
  program: AST.TOMLProgram
}

/** The settings in a TOML file, its gates left out. */
export function entriesOfToml({ name, text, program }: TomlFile, layer: Layer): Entry[] {
  return valuesOf(program).map(({ path, line, value }) => {
    const place = `${name}:${line}`
    const info = settingInfos.find(({ toml }) => toml === path.join('.'))
    if (info === undefined) return refuseUnknown(path, place)
    // No setting is an object, and some may be null.
    if (value === null) return { info, layer, value: {}, written: 'a table', place }
    return { info, layer, value: getStaticTOMLValue(value), written: text.slice(...value.range), place }
  })
}

interface TomlValue {
  path: readonly string[]
  line: number
  /** Null for a table that is no table of settings. */
  value: Exclude<AST.TOMLContentNode, AST.TOMLInlineTable> | null
}

function valuesOf(program: AST.TOMLProgram): TomlValue[] {
  return program.body[0].body.flatMap(node => {
    if (tellsOfGates(node)) return []
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
  if (name === 'verify') throw new UserError(`${place}: unknown key "verify"; ${HOW_TO_BEGIN}`)
  const near = nearestName(name, [...known, ...new Set(tables), GATES])
  const mend = near === null ? `the known ones are ${known.join(', ')}, ${GATES}.` : `did you mean "${near}"?`
  throw new UserError(`${place}: unknown key "${name}"; ${mend}`)
}
