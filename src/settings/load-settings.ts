import { isAbsolute, join } from 'node:path'
import * as v from 'valibot'
import { UserError } from '../base/errors.ts'
import { readBoundedText } from '../platform/bounded-file.ts'
import { checkEntry, type Entry, entryOfText, type Layer } from './entries.ts'
import { refuseLooser } from './project-rights.ts'
import { type SettingKey, type Settings, settingInfos, settingsSchema } from './schema.ts'
import { entriesOfToml } from './toml-entries.ts'

/** Where the settings are read from. */
export interface SettingsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The person's home directory. */
  home: string
  /** What the command line says, texts or values; undefined counts as not said. */
  flags: { readonly [Key in SettingKey]?: string | number | boolean | undefined }
  /** The default export of `settings.js`. */
  defaults: unknown
}

/** Where the setting that counts was written: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`, `settings.js`. */
export type SettingSources = Record<SettingKey, { layer: Layer; place: string }>

/**
 * Reads all layers: defaults, person, project, environment, flags; the last one that says something counts. Throws a
 * `UserError` of one sentence for the first mistake in any of them, whether or not a later one would count.
 */
export async function loadSettings(places: SettingsPlaces): Promise<{ settings: Settings; sources: SettingSources }> {
  const entries = [
    ...entriesOfDefaults(places.defaults),
    ...(await entriesOfFile(personFile(places), 'person')),
    ...(await entriesOfFile(join(places.directory, PROJECT_FILE), 'project', PROJECT_FILE)),
    ...entriesOfEnvironment(places.env),
    ...entriesOfFlags(places.flags),
  ]
  for (const entry of entries) checkEntry(entry)

  const winners = settingInfos.map(({ key }) => {
    const written = entries.filter(entry => entry.info.key === key)
    refuseLooser(written)
    const winner = written.at(-1)
    if (winner === undefined) throw new Error(`settings.js has no ${key}.`)
    return winner
  })
  return { settings: settingsOf(winners), sources: sourcesOf(winners) }
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

async function entriesOfFile(path: string, layer: Layer, name = path): Promise<Entry[]> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing') return []
  if ('problem' in read) throw new UserError(`${name} ${read.problem}.`)
  return entriesOfToml(read.text, name, layer)
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
  return settingInfos.flatMap(info => {
    const value = flags[info.key]
    return value === undefined ? [] : [entryOfText(info, 'flag', info.flag, String(value))]
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
