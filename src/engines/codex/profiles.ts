import { lstat, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AST } from 'toml-eslint-parser'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { writeWholeFile } from '../../platform/files.ts'
import {
  keyPath,
  parseToml,
  readToml,
  type TomlFile,
  tomlInline,
  tomlString,
  tomlTree,
  tomlValue,
  topLevel,
} from '../../platform/toml.ts'
import { stringMember } from './wire.ts'

interface ProfilesOptions {
  /** Codex's home that is codemachine's own, which exists. Absolute. */
  codexHome: string
  agents: readonly AgentProfile[]
  /** Names of agents that have no profile: what codemachine has written of one goes. */
  without: readonly string[]
  /** Keep the models of existing profiles: it is not known which models are offered. */
  keepModels: boolean
}

/** The profiles after an update. */
export interface UpdatedProfiles {
  /** Sentences for the person. */
  remarks: readonly string[]
  /** The profiles that the person wrote, as tables of `config.toml` or files: codemachine writes none of these names. */
  byHand: ReadonlyMap<string, AgentProfile>
  /** The names that `--profile NAME` works for. */
  usable: ReadonlySet<string>
  /** The profiles whose file cannot be read, and why: codex cannot run with them. */
  unreadable: ReadonlyMap<string, UserError>
}

/**
 * Writes the agents' profiles into codex's home, one `NAME.config.toml` each (docs/inside/codex.md). What the person wrote
 * stays, byte by byte. A file that cannot be written, or a profile that cannot be read, becomes a remark; throws a
 * `UserError` with the place for a `config.toml` that cannot be read.
 */
export async function updateProfiles(wanted: ProfilesOptions): Promise<UpdatedProfiles> {
  const { codexHome, agents } = wanted
  const path = join(codexHome, 'config.toml')
  const config = await readToml(path, { name: path, mend: MEND })
  const text = config?.text.replace(EARLIER_BLOCK, '') ?? NOTHING_YET
  const tables = profilesIn(parseToml(text, { name: path, mend: MEND }))
  const byHand = new Map([...tables].filter(([name]) => agents.some(agent => agent.name === name)))
  const problems = [await changeFile(path, config?.text ?? null, text)]
  const usable = new Set<string>()
  const unreadable = new Map<string, UserError>()
  const filesByHand = new Map<string, AgentProfile>()
  for (const agent of agents.filter(({ name }) => !byHand.has(name))) {
    const problem = await changeProfile(agent, wanted, filesByHand).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error
      unreadable.set(agent.name, error)
      return `codemachine does not change the profile of ${agent.name}: ${error.message}`
    })
    problems.push(problem)
    if (problem === null) usable.add(agent.name)
  }
  for (const name of wanted.without) problems.push(await removeProfile(codexHome, name))
  return {
    remarks: [
      ...remarksOn([...byHand.keys()], path),
      ...[...filesByHand.keys()].map(name => remarkOnFile(profilePath(codexHome, name))),
      ...problems.filter(each => each !== null),
    ],
    byHand: new Map([...byHand, ...filesByHand]),
    usable,
    unreadable,
  }
}

const NOTHING_YET = `# Codex's configuration where codemachine runs it with a login of its own. What you write here stays.\n`

/** The tables that earlier versions wrote for a codex before 0.134, with which a newer one does not start. */
const EARLIER_BLOCK =
  /^# codemachine: profiles of the agents begin.*\n(?:(?:\[profiles\.|model).*\n)*# codemachine: profiles of the agents end\n?/m

function remarksOn(byHand: readonly string[], path: string): string[] {
  if (byHand.length === 0) return []
  const tables = byHand.map(name => `[profiles.${name}]`).join(', ')
  return [`${path} has ${tables}, so that agent uses it instead of config/*.agents.js.`]
}

function remarkOnFile(path: string): string {
  return `${path} has a model or an effort of your own, so that agent uses these instead of config/*.agents.js.`
}

function profilePath(codexHome: string, name: string): string {
  return join(codexHome, `${name}.config.toml`)
}

/** Null, or the problem as a sentence. Adds a profile that the person wrote to `byHand`, and leaves its file alone. */
async function changeProfile(
  agent: AgentProfile,
  { codexHome, keepModels }: ProfilesOptions,
  byHand: Map<string, AgentProfile>,
): Promise<string | null> {
  const path = profilePath(codexHome, agent.name)
  const before = await readToml(path, { name: path, mend: MEND })
  const theirs = before === null ? null : profileByHand(before, agent.name)
  if (theirs !== null) {
    byHand.set(agent.name, theirs)
    return null
  }
  const model = keepModels && before !== null ? textIn(before, 'model') : agent.model
  return await changeFile(path, before?.text ?? null, renderProfileFile(before, { ...agent, model }))
}

/** Takes out of an agent's file what codemachine has written. One that cannot be read is the person's to mend; without its agent it harms nothing. */
async function removeProfile(codexHome: string, name: string): Promise<string | null> {
  const path = profilePath(codexHome, name)
  try {
    const before = await readToml(path, { name: path, mend: MEND })
    return before === null ? null : await changeFile(path, before.text, withoutProfile(before, name))
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return null
  }
}

/** What a person has written into the profile of an agent beside its model and effort. */
export interface ProfileExtras {
  /** `key=value` pairs for codex's `-c`. */
  overrides: readonly string[]
  /** Null if there are none. */
  developerInstructions: string | null
}

/**
 * Reads them, for an app-server takes no `--profile`. Throws a `UserError` with the place for a file that cannot be read.
 */
export async function readProfileExtras(codexHome: string, name: string): Promise<ProfileExtras> {
  const path = profilePath(codexHome, name)
  const file = await readToml(path, { name: path, mend: MEND })
  const {
    model: _model,
    model_reasoning_effort: _effort,
    developer_instructions: instructions,
    ...rest
  }: Record<string, unknown> = Object(file === null ? {} : tomlValue(tomlTree(file)))
  return {
    overrides: Object.entries(rest).map(([key, value]) => `${key}=${tomlInline(value)}`),
    developerInstructions: typeof instructions === 'string' ? instructions : null,
  }
}

const BOM = '\uFEFF'

async function beginsWithBom(path: string): Promise<boolean> {
  await using file = await open(path, 'r')
  const { buffer, bytesRead } = await file.read(Buffer.alloc(3), 0, 3, 0)
  return buffer.subarray(0, bytesRead).equals(Buffer.from(BOM))
}

async function changeFile(path: string, before: string | null, text: string | null): Promise<string | null> {
  if (text === before) return null
  try {
    const isLink = before !== null && (await lstat(path)).isSymbolicLink()
    // It may be the person's own configuration for all of codex.
    if (isLink) return `${path} is a link, so codemachine does not update the agents' profiles there.`
    if (text === null) await rm(path)
    else await writeWholeFile(path, before !== null && (await beginsWithBom(path)) ? `${BOM}${text}` : text)
    return null
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return `${path} could not be written, so a profile in it is outdated: ${messageOf(error)}.`
  }
}

/** The end of a message about a file of codex's configuration. */
const MEND = 'fix it or move it away'

/** The profile of an agent: the model and effort that codex runs it with; null: codex's own choice. */
export interface AgentProfile {
  /** Lower-case letters, digits and dashes: it names a file and a table. */
  name: string
  model: string | null
  modelReasoningEffort: string | null
}

/** The keys of a profile in codex's configuration, with the agent's values. */
function profileValues({ model, modelReasoningEffort }: AgentProfile): [key: string, value: string | null][] {
  return [
    ['model', model],
    ['model_reasoning_effort', modelReasoningEffort],
  ]
}

/**
 * What a `NAME.config.toml` says of the two keys if these lines are the person's: codemachine has not begun the file, and
 * at least one of them is there. Null if they are codemachine's to write.
 */
function profileByHand(file: TomlFile, name: string): AgentProfile | null {
  if (headerIn(file.text, name) !== '' || ownLines(file).length === 0) return null
  return { name, model: textIn(file, 'model'), modelReasoningEffort: textIn(file, 'model_reasoning_effort') }
}

/**
 * The text of `NAME.config.toml`, brought up to date: the lines of a profile's two keys at its top level are codemachine's,
 * all others stay as they are, byte by byte. `before`: null if there is no such file; none of which `profileByHand`
 * says something.
 */
function renderProfileFile(before: TomlFile | null, agent: AgentProfile): string {
  let text = before?.text ?? ''
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  const missing: string[] = []
  // The last one first, so that what is found before it stays where it is.
  const found = before === null ? [] : ownLines(before).reverse()
  for (const { key, node } of found) {
    const value = profileValues(agent).find(([name]) => name === key)?.[1] ?? null
    text = value === null ? withoutLine(text, node) : splice(text, node.value.range, tomlString(value))
  }
  for (const [key, value] of profileValues(agent)) {
    if (value !== null && !found.some(each => each.key === key)) missing.push(`${key} = ${tomlString(value)}${lineEnd}`)
  }
  const header = headerIn(text, agent.name)
  return (header || headerOf(agent.name) + lineEnd) + missing.join('') + text.slice(header.length)
}

/**
 * The same file without what codemachine wrote into it; null if nothing else is in it. A file that codemachine did not
 * begin stays as it is.
 */
function withoutProfile(before: TomlFile, name: string): string | null {
  if (headerIn(before.text, name) === '') return before.text
  let text = before.text
  for (const { node } of ownLines(before).reverse()) text = withoutLine(text, node)
  const rest = text.slice(headerIn(text, name).length)
  return rest.trim() === '' ? null : rest
}

function textIn(file: TomlFile, name: string): string | null {
  return stringMember(tomlValue(tomlTree(file)), name)
}

function headerOf(name: string): string {
  return `# codemachine writes model and model_reasoning_effort of the agent ${name} here; all other lines are yours.`
}

/** Codemachine's first line, with its end, which an editor may have made one of Windows; empty if it is not there. */
function headerIn(text: string, name: string): string {
  const header = headerOf(name)
  const rest = text.startsWith(header) ? text.slice(header.length) : null
  const [lineEnd] = /^\r?\n/.exec(rest ?? '') ?? []
  return lineEnd === undefined ? '' : header + lineEnd
}

function ownLines(file: TomlFile): { key: string; node: AST.TOMLKeyValue }[] {
  return topLevel(file).flatMap(node => {
    if (node.type !== 'TOMLKeyValue') return []
    const path = keyPath(node)
    const key = path.length === 1 ? path[0] : undefined
    return key === 'model' || key === 'model_reasoning_effort' ? [{ key, node }] : []
  })
}

function withoutLine(text: string, { range }: AST.TOMLKeyValue): string {
  const start = text.lastIndexOf('\n', range[0] - 1) + 1
  const end = text.indexOf('\n', range[1])
  return splice(text, [start, end === -1 ? text.length : end + 1], '')
}

function splice(text: string, [start, end]: AST.Range, value: string): string {
  return text.slice(0, start) + value + text.slice(end)
}

function profilesIn(config: TomlFile): Map<string, AgentProfile> {
  const { profiles }: { profiles?: unknown } = Object(tomlValue(tomlTree(config)))
  if (typeof profiles !== 'object' || profiles === null) return new Map()
  return new Map(
    Object.entries(profiles).map(([name, profile]) => [
      name,
      {
        name,
        model: stringMember(profile, 'model'),
        modelReasoningEffort: stringMember(profile, 'model_reasoning_effort'),
      },
    ]),
  )
}
