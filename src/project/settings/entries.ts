import type { AST } from 'toml-eslint-parser'
import * as v from 'valibot'
import { UserError } from '../../base/errors.ts'
import { nearestName } from '../../base/text.ts'
import { keyPath, type TomlFile, type TomlNode, tomlValue, topLevel } from '../../platform/toml.ts'
import { KEYS } from './keys.ts'
import { type SettingInfo, settingInfos } from './schema.ts'

/** The settings of a TOML file, without its gates. Throws a `UserError` for a key that is no setting. */
export function settingEntries(file: TomlFile, layer: Layer): Entry[] {
  const { name, text } = file
  return valuesOf(file).map(({ path, line, value }) => {
    const place = `${name}:${line}`
    const info = settingInfos.find(({ toml }) => toml === path.join('.'))
    if (info === undefined) return refuseUnknown(path, place)
    // No setting is an object, and some may be null.
    if (value === null) return { info, layer, value: {}, written: 'a table', place }
    return { info, layer, value: tomlValue(value), written: text.slice(...value.range), place }
  })
}

interface TomlValue {
  path: readonly string[]
  line: number
  /** Null for a table with a name that no table of settings has. */
  value: Exclude<AST.TOMLContentNode, AST.TOMLInlineTable> | null
}

function valuesOf(file: TomlFile): TomlValue[] {
  return topLevel(file).flatMap(node => {
    if (belongsToGates(node) || OWN_TABLES.has(keyPath(node)[0] ?? '')) return []
    if (node.type === 'TOMLTable' && isAgent(keyPath(node))) return []
    if (node.type === 'TOMLKeyValue') return valuesOfKey(node, [])
    const path = keyPath(node)
    if (node.kind === 'array' || !isTable(path)) return [{ path, line: node.loc.start.line, value: null }]
    return node.body.flatMap(inner => valuesOfKey(inner, path))
  })
}

function valuesOfKey(node: AST.TOMLKeyValue, above: readonly string[]): TomlValue[] {
  const path = [...above, ...keyPath(node)]
  const line = node.loc.start.line
  if (isAgent(path) && (path.length > 2 || node.value.type === 'TOMLInlineTable')) return []
  if (node.value.type !== 'TOMLInlineTable') return [{ path, line, value: node.value }]
  if (!isTable(path)) return [{ path, line, value: null }]
  return node.value.body.flatMap(inner => valuesOfKey(inner, path))
}

/** True for `agents.NAME` and what is in it. */
function isAgent([first, second]: readonly string[]): boolean {
  return first === AGENTS && second !== undefined && !settingInfos.some(({ toml }) => toml === `${AGENTS}.${second}`)
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
  if (['run', 'protect', 'required', 'every_round'].includes(name))
    throw new UserError(`${place}: "${name}" belongs to a gate; ${HOW_TO_BEGIN}`)
  const near = nearestName(name, [...known, ...new Set(tables), GATES, PROVIDERS, PRICES, KEYS])
  const mend =
    near === null
      ? `the known ones are ${known.join(', ')}, ${GATES}, ${PROVIDERS}, ${PRICES}, ${KEYS}.`
      : `did you mean "${near}"?`
  throw new UserError(`${place}: unknown key "${shortened(name)}"; ${mend}`)
}

/** The kind of place that a setting comes from; later ones win. */
export type Layer = 'defaults' | 'person' | 'project' | 'environment' | 'flag'

/** The value of one setting in one place, not checked yet. */
export interface Entry {
  info: SettingInfo
  layer: Layer
  value: unknown
  /** The value as written, for messages. */
  written: string
  /** Where it was written: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`. */
  place: string
}

/**
 * A setting of a place that has only texts (environment, flags): parsed as the text, number, boolean or JSON array that
 * the setting accepts.
 */
export function parseTextEntry(info: SettingInfo, layer: Layer, place: string, text: string): Entry {
  const number = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  const truth = text === 'true' ? true : text === 'false' ? false : text
  const value = [text, number, truth, listIn(text)].find(meaning => v.is(info.schema, meaning)) ?? text
  return { info, layer, value, written: JSON.stringify(text), place }
}

/** Throws a `UserError` of one sentence if the setting cannot have this value. */
export function checkEntry(entry: Entry): void {
  if (v.is(entry.info.schema, entry.value)) return
  throw new UserError(`${subjectOf(entry)} ${wrongValue(entry.info.schema, entry.written)}`)
}

/** The end of a sentence about a value that does not fit a schema, which is not shown if it may be a secret. */
export function wrongValue(schema: v.GenericSchema, written: string): string {
  const is = v.getMetadata(schema).secret === true ? 'wrong (not shown, as it may hold a secret)' : shortened(written)
  return `is ${is}; use ${v.getDescription(schema)}.`
}

/** The start of a message about an entry: its place, in a file followed by its key. */
export function subjectOf({ layer, info, place }: Entry): string {
  switch (layer) {
    case 'defaults':
      return `${place}: ${info.key}`
    case 'person':
    case 'project':
      return `${place}: ${info.toml}`
    case 'environment':
    case 'flag':
      return place
  }
}

function listIn(text: string): unknown {
  if (!text.trimStart().startsWith('[')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A text on one line of at most 60 characters, for messages. */
export function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}

/** The name of the tables of gates. */
export const GATES = 'gates'

/** How a gate is written, the end of a sentence. */
const HOW_TO_BEGIN = `begin each gate with a line [[${GATES}]], and write run = "…" below it.`

/** A gate of a TOML file, unchecked: its keys and values, with their lines from 1. */
export interface WrittenGate {
  line: number
  fields: readonly { key: string; line: number; value: unknown; written: string }[]
}

/** True for a table or key of the gates. */
function belongsToGates(node: TomlNode): boolean {
  return keyPath(node)[0] === GATES
}

/** The gates of a TOML file, in order, unchecked. Throws a `UserError` if they are not an array of tables. */
export function writtenGates(file: TomlFile): WrittenGate[] {
  return topLevel(file)
    .filter(belongsToGates)
    .flatMap(node => {
      const { line } = node.loc.start
      const path = keyPath(node)
      if (node.type === 'TOMLKeyValue') {
        const tables = path.length === 1 ? inlineTables(node.value) : null
        if (tables === null) return refuseShape(`${file.name}:${line}`, path)
        return tables.map(table => gateOf(file.text, table.loc.start.line, table.body))
      }
      if (path.length > 1 || node.kind !== 'array') return refuseShape(`${file.name}:${line}`, path)
      return [gateOf(file.text, line, node.body)]
    })
}

/** `[{ run = "npm test" }]`; null if it is anything else. */
function inlineTables(value: AST.TOMLContentNode): AST.TOMLInlineTable[] | null {
  if (value.type !== 'TOMLArray') return null
  const tables = value.elements.filter(element => element.type === 'TOMLInlineTable')
  return tables.length === value.elements.length ? tables : null
}

function gateOf(text: string, line: number, body: readonly AST.TOMLKeyValue[]): WrittenGate {
  const fields = body.map(node => ({
    key: keyPath(node).join('.'),
    line: node.loc.start.line,
    value: tomlValue(node.value),
    written: node.value.type === 'TOMLInlineTable' ? 'a table' : text.slice(...node.value.range),
  }))
  return { line, fields }
}

function refuseShape(place: string, path: readonly string[]): never {
  const what = path.length === 1 ? `${GATES} is a list of tables` : `${shortened(path.join('.'))} is in no gate`
  throw new UserError(`${place}: ${what}; ${HOW_TO_BEGIN}`)
}

/** The name of the tables of providers. */
export const PROVIDERS = 'providers'

/** The name of the tables of prices. */
export const PRICES = 'prices'

/** Tables that hold no settings of one value. */
const OWN_TABLES: ReadonlySet<string> = new Set([PROVIDERS, PRICES, KEYS])

/** The name of the tables of agents, beside the settings of that table. */
export const AGENTS = 'agents'

/** How a table of each is begun. */
const TABLES = {
  [PROVIDERS]: `begin one with a line [${PROVIDERS}.NAME], and write base_url = "…" below it.`,
  [AGENTS]: `begin one with a line [${AGENTS}.NAME], and write prompt = "…" below it.`,
  [PRICES]: `begin one with a line [${PRICES}."MODEL"], and write in = …, cached = … and out = … per million tokens below it.`,
}

/** One field of a provider, a price or an agent, unchecked. */
export interface WrittenField {
  /** The name of the provider, the model or the agent. */
  table: string
  key: string
  value: unknown
  /** The value as written, for messages. */
  written: string
  /** Where it was written: a file with its line from 1, or a variable. */
  place: string
  layer: Layer
}

/**
 * What a TOML file says of providers, or of prices, unchecked. Throws a `UserError` if it is not in tables, or if it is a
 * project's file: a clone would name where the code is sent, or lift a limit of cost.
 */
export function writtenFields(file: TomlFile, layer: Layer, name: typeof PROVIDERS | typeof PRICES): WrittenField[] {
  return topLevel(file)
    .filter(node => keyPath(node)[0] === name)
    .flatMap(node => {
      const { line } = node.loc.start
      if (layer === 'project') {
        throw new UserError(
          `${file.name}:${line}: ${name} cannot be set by a project's own file; if you want that, use your own config.toml.`,
        )
      }
      return fieldsOf(file, node, layer, name)
    })
}

/**
 * What a TOML file says of agents, unchecked. Throws a `UserError` for what is in no table; of a project's file, which an
 * agent can write, it is passed over, and `onProblem` is told.
 */
export function writtenAgents(file: TomlFile, layer: Layer, onProblem: (error: UserError) => void): WrittenField[] {
  return topLevel(file)
    .filter(node => keyPath(node)[0] === AGENTS)
    .flatMap(node => {
      try {
        return fieldsOf(file, node, layer, AGENTS)
      } catch (error) {
        if (layer !== 'project' || !(error instanceof UserError)) throw error
        onProblem(error)
        return []
      }
    })
}

function fieldsOf(file: TomlFile, node: TomlNode, layer: Layer, name: keyof typeof TABLES): WrittenField[] {
  if (node.type === 'TOMLKeyValue') return fieldsIn(file, node, [], layer)
  const path = keyPath(node)
  const isEmpty = node.body.length === 0 && (name !== AGENTS || path.length > 1)
  if (node.kind === 'array' || isEmpty) return refuseTable(`${file.name}:${node.loc.start.line}`, name)
  return node.body.flatMap(inner => fieldsIn(file, inner, path, layer))
}

function fieldsIn(file: TomlFile, node: AST.TOMLKeyValue, above: readonly string[], layer: Layer): WrittenField[] {
  const path = [...above, ...keyPath(node)]
  const place = `${file.name}:${node.loc.start.line}`
  const isTable = node.value.type === 'TOMLInlineTable'
  if (node.value.type === 'TOMLInlineTable' && path.length < 3 && node.value.body.length > 0) {
    return node.value.body.flatMap(inner => fieldsIn(file, inner, path, layer))
  }
  const [name, table, key, ...more] = path
  // A setting of that table, or what is none.
  if (name === AGENTS && (!isAgent(path) || (key === undefined && !isTable))) return []
  if (table === undefined || key === undefined) return refuseTable(place, kindOf(name))
  const written = isTable ? 'a table' : file.text.slice(...node.value.range)
  return [{ table, key: [key, ...more].join('.'), value: tomlValue(node.value), written, place, layer }]
}

function kindOf(name: string | undefined): keyof typeof TABLES {
  return name === PRICES || name === AGENTS ? name : PROVIDERS
}

function refuseTable(place: string, name: keyof typeof TABLES): never {
  throw new UserError(`${place}: ${name} has a table for each; ${TABLES[name]}`)
}
