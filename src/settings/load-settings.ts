import { isAbsolute, join } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { readBoundedText } from '../platform/bounded-file.ts'
import { checkEntry, type Entry, entryOfText, type Layer } from './entries.ts'
import { type GateEntry, gateEntries } from './gate-entries.ts'
import { countingGates, type Gates } from './gates.ts'
import { countingEntry } from './project-rights.ts'
import { type FlagKey, type SettingKey, type Settings, settingInfos, settingsSchema } from './schema.ts'
import { entriesOfToml } from './toml-entries.ts'
import { parseTomlFile } from './toml-file.ts'
import { gatesOfToml } from './toml-gates.ts'

/** Where the settings are read from. */
export interface SettingsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The person's home directory. */
  home: string
  /** What the command line says, texts or values; undefined counts as not said. */
  flags: { readonly [Key in FlagKey]?: string | number | boolean | undefined }
  /** What `--verify` says, each a command that has to pass. */
  verify?: readonly string[] | undefined
  /** The default export of `settings.js`. */
  defaults: unknown
}

/** Where the setting that counts was written: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`, `settings.js`. */
export type SettingSources = Record<SettingKey, { layer: Layer; place: string }>

/** The settings of a run. */
export interface LoadedSettings extends Gates {
  settings: Settings
  sources: SettingSources
  /** What agents are to have beyond this one command line, as if no flag said anything of it. */
  lasting: Pick<Settings, 'model' | 'effort'>
}

/**
 * Reads all layers: defaults, person, project, environment, flags; the last one that says something counts, except that
 * a project's file cannot go too far (`countingEntry`). Gates add up (`countingGates`). Throws a `UserError` of one
 * sentence for the first mistake in any of them, whether or not a later one would count.
 */
export async function loadSettings(places: SettingsPlaces): Promise<LoadedSettings> {
  const ofPerson = await readFileOf(personFile(places), 'person')
  const ofProject = await readFileOf(join(places.directory, PROJECT_FILE), 'project', PROJECT_FILE)
  const entries = [
    ...entriesOfDefaults(places.defaults),
    ...ofPerson.entries,
    ...ofProject.entries,
    ...entriesOfEnvironment(places.env),
    ...entriesOfFlags(places.flags),
  ]
  for (const entry of entries) checkEntry(entry)

  const winners = winnersOf(entries)
  const settings = settingsOf(winners)
  const { model, effort } = settingsOf(winnersOf(entries.filter(entry => !isForOnce(entry))))
  const gates = countingGates([...ofPerson.gates, ...ofProject.gates], places.verify ?? [], settings)
  return { settings, sources: sourcesOf(winners), lasting: { model, effort }, ...gates }
}

const PROJECT_FILE = 'codemachine.toml'
const MOST_BYTES = 1024 * 1024

/**
 * The same rule on every platform. (`xdg-basedir` looks at the environment of the process when it is imported, so it
 * cannot be asked about another one.) A relative XDG_CONFIG_HOME is to be ignored, says the XDG base directory specification.
 */
function personFile({ env, home }: SettingsPlaces): string {
  const config = env.XDG_CONFIG_HOME
  const folder = config !== undefined && isAbsolute(config) ? config : join(home, '.config')
  return join(folder, 'codemachine', 'config.toml')
}

async function readFileOf(
  path: string,
  layer: Layer,
  name = path,
): Promise<{ entries: readonly Entry[]; gates: readonly GateEntry[] }> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return { entries: [], gates: [] }
  if ('problem' in read) throw new UserError(`${name} ${read.problem}.`)
  const file = { name, text: read.text, program: parseTomlFile(read.text, name) }
  return { entries: entriesOfToml(file, layer), gates: gateEntries(gatesOfToml(file), name, layer) }
}

function entriesOfDefaults(defaults: unknown): Entry[] {
  return settingInfos.flatMap(info => {
    const value = info.key.split('.').reduce(memberOf, defaults)
    if (value === undefined) return []
    return [{ info, layer: 'defaults' as const, value, written: JSON.stringify(value), place: 'settings.js' }]
  })
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** A variable that is set to nothing counts as not set. */
function entriesOfEnvironment(env: NodeJS.ProcessEnv): Entry[] {
  return settingInfos.flatMap(info => {
    const text = env[info.variable]
    return text ? [entryOfText(info, 'environment', info.variable, text)] : []
  })
}

function entriesOfFlags(flags: SettingsPlaces['flags']): Entry[] {
  const said: { readonly [Key in SettingKey]?: string | number | boolean | undefined } = flags
  return settingInfos.flatMap(info => {
    const value = said[info.key]
    if (info.flag === null || value === undefined) return []
    return [entryOfText(info, 'flag', info.flag, String(value))]
  })
}

function isForOnce({ layer, info }: Entry): boolean {
  return layer === 'flag' && (info.key === 'model' || info.key === 'effort')
}

/** The entry that counts of each setting. */
function winnersOf(entries: readonly Entry[]): Entry[] {
  return settingInfos.map(({ key }) => {
    const winner = countingEntry(entries.filter(entry => entry.info.key === key))
    if (winner === undefined) throw new Error(`settings.js has no ${key}.`)
    return winner
  })
}

function settingsOf(entries: readonly Entry[]): Settings {
  const settings: Record<string, unknown> = {}
  for (const { info, value } of entries) {
    const [first = '', second] = info.key.split('.')
    settings[first] = second === undefined ? value : { ...Object(settings[first]), [second]: value }
  }
  return v.parse(settingsSchema, settings)
}

function sourcesOf(entries: readonly Entry[]): SettingSources {
  return Object.fromEntries(entries.map(({ info, layer, place }) => [info.key, { layer, place }])) as SettingSources
}
