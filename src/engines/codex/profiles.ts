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
  /** Codemachine's own home of codex, which exists. Absolute. */
  codexHome: string
  agents: readonly AgentProfile[]
  /** Names of agents without a profile: codemachine's parts of their files are removed. */
  without: readonly string[]
  /** True to keep the models of existing profiles, because the offered models are unknown. */
  keepModels: boolean
}

/** The profiles after an update. */
export interface UpdatedProfiles {
  /** Sentences for the person. */
  remarks: readonly string[]
  /** Profiles by the person, as tables of `config.toml` or files: codemachine writes none of these names. */
  byHand: ReadonlyMap<string, AgentProfile>
  /** Names for which `--profile NAME` works. */
  usable: ReadonlySet<string>
  /** Profiles with an unreadable file, and why: codex cannot use them. */
  unreadable: ReadonlyMap<string, UserError>
}

/**
 * Writes the agents' profiles into codex's home, one `NAME.config.toml` each (docs/inside/codex.md). Keeps the person's text
 * byte by byte. A file that cannot be written, or a profile that cannot be read, becomes a remark. Throws a `UserError` with
 * the place for an unreadable `config.toml`.
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

/** Tables by earlier versions for a codex before 0.134; a newer codex does not start with them. */
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

/** Updates a profile; returns null or a problem. Adds a person's profile to `byHand`, and keeps its file. */
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

/** Removes codemachine's text from an agent's file. An unreadable one is left to the person; it is harmless. */
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

/** A person's additions to the profile of an agent, besides model and effort. */
export interface ProfileExtras {
  /** `key=value` pairs for codex's `-c`. */
  overrides: readonly string[]
  /** Developer instructions; null: none. */
  developerInstructions: string | null
}

/** Reads these additions: an app-server has no `--profile`. A `UserError` with the place for an unreadable file. */
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
    // The target may be the person's own configuration of codex.
    if (isLink) return `${path} is a link, so codemachine does not update the agents' profiles there.`
    if (text === null) await rm(path)
    else await writeWholeFile(path, before !== null && (await beginsWithBom(path)) ? `${BOM}${text}` : text)
    return null
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return `${path} could not be written, so a profile in it is outdated: ${messageOf(error)}.`
  }
}

/** End of a message about a file of codex's configuration. */
const MEND = 'fix it or move it away'

/** The profile of an agent: its model and effort; null: codex's own choice. */
export interface AgentProfile {
  /** Lower-case letters, digits and dashes; it names a file and a table. */
  name: string
  model: string | null
  modelReasoningEffort: string | null
}

/** Returns the keys of a profile in codex's configuration with the agent's values. */
function profileValues({ model, modelReasoningEffort }: AgentProfile): [key: string, value: string | null][] {
  return [
    ['model', model],
    ['model_reasoning_effort', modelReasoningEffort],
  ]
}

/**
 * Returns the two keys of a `NAME.config.toml` if they are the person's. That needs one of them, in a file that codemachine
 * did not create. Null: codemachine may write them.
 */
function profileByHand(file: TomlFile, name: string): AgentProfile | null {
  if (headerIn(file.text, name) !== '' || ownLines(file).length === 0) return null
  return { name, model: textIn(file, 'model'), modelReasoningEffort: textIn(file, 'model_reasoning_effort') }
}

/**
 * Returns the updated text of `NAME.config.toml`. The top-level lines of the profile's two keys are codemachine's; all
 * others stay byte by byte. `before`: null for no file; never a file of `profileByHand`.
 */
function renderProfileFile(before: TomlFile | null, agent: AgentProfile): string {
  let text = before?.text ?? ''
  const lineEnd = text.includes('\r\n') ? '\r\n' : '\n'
  const missing: string[] = []
  // Replace the last one first, so that earlier positions stay valid.
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
 * Returns the file without codemachine's lines; null if nothing else is left. Keeps a file that codemachine did not create.
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

/** Returns codemachine's first line with its line end, which an editor may have changed to CRLF; empty if absent. */
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
