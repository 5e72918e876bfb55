import { lstat, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../base/errors.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import { parseCodexToml, readCodexToml } from './codex-toml.ts'
import { capabilitiesOf } from './codex-version.ts'
import { type AgentProfile, modelIn, profileByHand, renderProfileFile, withoutProfile } from './profile-file.ts'
import { type ProfileTables, takeTablesOut, withTables } from './profile-tables.ts'

export interface ProfilesWanted {
  /** Codex's home, codemachine's own; it is there. Absolute. */
  codexHome: string
  codexVersion: string
  agents: readonly AgentProfile[]
  /** Whether the models in profiles that are there already stay: nobody has asked which are offered. */
  keepModels: boolean
}

/** The profiles as they now are. */
export interface ProfilesUpToDate {
  /** Sentences for the person. */
  remarks: readonly string[]
  /** Those that the person wrote, as tables of `config.toml` or files: they count, and codemachine has left its own out. */
  byHand: ReadonlyMap<string, AgentProfile>
  /** Those that `--profile NAME` leads to. */
  usable: ReadonlySet<string>
  /** By name those whose file cannot be read, and why: codex can run nothing by such a profile. */
  unreadable: ReadonlyMap<string, UserError>
}

/**
 * Brings the agents' profiles in codex's home up to date, in the form that the installed version reads (docs/profiles.md),
 * and takes them out of the other form. What the person wrote stays, byte by byte. A file that cannot be written is told
 * in a remark, and so is a profile that cannot be read; a `UserError` names the place in a `config.toml` that cannot be.
 */
export async function bringProfilesUpToDate(wanted: ProfilesWanted): Promise<ProfilesUpToDate> {
  const { codexHome, codexVersion, agents } = wanted
  const path = join(codexHome, 'config.toml')
  const config = await readCodexToml(path)
  const found = config === null ? NOTHING_YET : takeTablesOut(config, path)
  const byHand = new Map([...found.byHand].filter(([name]) => agents.some(agent => agent.name === name)))
  const names = agents.map(({ name }) => name)
  const ours = agents.filter(({ name }) => !byHand.has(name))
  const { profileFiles } = capabilitiesOf(codexVersion)
  const tables = profileFiles ? [] : ours.map(agent => withModel(agent, wanted, found.own.get(agent.name)?.model))
  const problems = [await changeConfig(path, config?.text ?? null, withTables(found.rest, tables))]
  const usable = new Set(profileFiles || problems[0] !== null ? [] : names)
  const unreadable = new Map<string, UserError>()
  const filesByHand = new Map<string, AgentProfile>()
  for (const agent of ours) {
    const problem = await changeProfile(agent, wanted, profileFiles, filesByHand).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error
      unreadable.set(agent.name, error)
      return `The profile of ${agent.name} is left as it is: ${error.message}`
    })
    problems.push(problem)
    if (profileFiles && problem === null) usable.add(agent.name)
  }
  if (!profileFiles) for (const name of byHand.keys()) usable.add(name)
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

const NOTHING_YET: ProfileTables = {
  rest: `# Codex's configuration where codemachine runs it with a login of its own. What you write here stays.\n`,
  byHand: new Map(),
  own: new Map(),
}

function remarksOn(byHand: readonly string[], path: string): string[] {
  if (byHand.length === 0) return []
  const tables = byHand.map(name => `[profiles.${name}]`).join(', ')
  return [`${path} has ${tables}, which counts for that agent in the place of what config/*.agents.js says.`]
}

function remarkOnFile(path: string): string {
  return `${path} has a model or an effort of your own, which count for that agent in the place of what config/*.agents.js says.`
}

function profilePath(codexHome: string, name: string): string {
  return join(codexHome, `${name}.config.toml`)
}

function withModel(agent: AgentProfile, { keepModels }: ProfilesWanted, before: string | null | undefined) {
  return keepModels && before !== undefined ? { ...agent, model: before } : agent
}

/** Null, or what was in the way, as a sentence. */
async function changeConfig(path: string, before: string | null, text: string): Promise<string | null> {
  try {
    parseCodexToml(text, path)
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return `The agents have no profiles, for ${path} writes \`profiles\` in another form; make tables [profiles.NAME] of it.`
  }
  return await changeFile(path, before, text)
}

/** Adds to `byHand` what the person wrote into the file, which then stays as it is. */
async function changeProfile(
  agent: AgentProfile,
  wanted: ProfilesWanted,
  isFile: boolean,
  byHand: Map<string, AgentProfile>,
): Promise<string | null> {
  const path = profilePath(wanted.codexHome, agent.name)
  const before = await readCodexToml(path)
  if (isFile) {
    const theirs = before === null ? null : profileByHand(before, agent.name)
    if (theirs !== null) {
      byHand.set(agent.name, theirs)
      return null
    }
    const text = renderProfileFile(before, withModel(agent, wanted, before === null ? undefined : modelIn(before)))
    return await changeFile(path, before?.text ?? null, text)
  }
  return before === null ? null : await changeFile(path, before.text, withoutProfile(before, agent.name))
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
    if (isLink) return `${path} is a link, so the agents' profiles are not brought up to date there.`
    if (text === null) await rm(path)
    else await writeWholeFile(path, before !== null && (await beginsWithBom(path)) ? `${BOM}${text}` : text)
    return null
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return `${path} could not be written, so a profile in it is not up to date: ${messageOf(error)}.`
  }
}
