import { join } from 'node:path'
import * as v from 'valibot'
import { UserError, unreachable } from '../../base/errors.ts'
import type { ModelPrice } from '../../core/rules/cost.ts'
import type { AgentTables } from '../../core/shapes/agent.ts'
import type { Hook } from '../../core/shapes/hook.ts'
import type { ProvidersByName } from '../../core/shapes/provider.ts'
import { SANDBOX_MODES } from '../../core/shapes/sandbox.ts'
import { valueProblem } from '../../platform/toml-check.ts'
import { agentTables } from './agents.ts'
import { effectiveEngines, type NamedEngines } from './engines.ts'
import { effectiveGates, gateEntries, type LoadedGates } from './gates.ts'
import { hooksOf } from './hooks.ts'
import { type KeySettings, keySettings } from './keys.ts'
import { checkProvider, effectiveProviders } from './providers.ts'
import {
  CHANGE_REVIEWS,
  type FlagKey,
  rightOf,
  type SettingInfo,
  type SettingKey,
  type Settings,
  type SettingValue,
  settingInfos,
  settingsSchema,
  VERIFY_ALWAYS,
} from './schema.ts'
import { type Entry, LAYERS, type Layer, personFile, readSettingsFile, type SettingsFile } from './settings-file.ts'

/** Places of the settings. */
export interface SettingsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** Folder of the person's configuration files, usually `~/.config`. */
  configHome: string
  /** The flags of the command line, as texts or values; undefined: not given. */
  flags: { readonly [Key in FlagKey]?: string | number | boolean | undefined }
  /** Whether to skip the project's file. */
  withoutProject?: boolean
  /** The commands of `--verify`. */
  verify?: readonly string[] | undefined
  /** The default export of `settings.js`. */
  defaults: unknown
}

/** Where the value of each setting comes from: `codemachine.toml:3`, `CODEMACHINE_ROUNDS`, `--rounds`, `settings.js`. */
export type SettingSources = Record<SettingKey, { layer: Layer; place: string }>

/** The settings of a run. */
export interface LoadedSettings extends LoadedGates {
  settings: Settings
  sources: SettingSources
  /** Providers that `settings.provider` may name, apart from `codex`. */
  providers: ProvidersByName
  /** Other makers' engines that a run may name. */
  engines: NamedEngines
  /** Prices of models from the person's file. */
  prices: readonly ModelPrice[]
  /** Model and effort without the flags: agents' profiles hold these. */
  lasting: Pick<Settings, 'model' | 'effort'>
  /** Agents of both files, the person's first. */
  agentTables: AgentTables
  /** Hooks of both files. */
  hooks: readonly Hook[]
  /** Screen keys from the person's file. */
  keys: KeySettings
}

/**
 * Reads all layers: defaults, person, project, environment, flags. The last layer with a value wins, within the limits of a
 * project's file (`effectiveEntry`); gates of all layers add up (`effectiveGates`). Throws a `UserError` of one sentence for
 * the first mistake in any layer, even if a later layer would win.
 */
export async function loadSettings(places: SettingsPlaces): Promise<LoadedSettings> {
  const ofPerson = await readSettingsFile(personFile(places), 'person')
  const ofProject = await readSettingsFile(
    places.withoutProject === true ? null : join(places.directory, PROJECT_FILE),
    'project',
    PROJECT_FILE,
  )
  const inTexts = [...defaultEntries(places.defaults), ...environmentEntries(places.env), ...flagEntries(places.flags)]
  for (const entry of inTexts) checkEntry(entry)
  const entries = [...ofPerson.entries, ...ofProject.entries, ...inTexts]
  const providers = effectiveProviders(ofPerson, places.env)
  const engines = effectiveEngines(ofPerson)

  const winners = winnersOf(entries)
  const settings = settingsOf(winners)
  const sources = sourcesOf(winners)
  checkProvider(settings.provider, sources.provider.place, providers)
  const { executor } = settings.change
  if (executor !== null) checkProvider(executor, sources['change.executor'].place, providers)
  const { model, effort } = settingsOf(winnersOf(entries.filter(entry => !countsOnce(entry))))
  const gates = effectiveGates([ofPerson, ofProject].flatMap(gateEntries), places.verify ?? [], settings)
  const agents = [ofPerson, ofProject].map(agentTables)
  return {
    settings,
    sources,
    providers,
    engines,
    prices: pricesOf(ofPerson),
    lasting: { model, effort },
    agentTables: {
      tables: agents.flatMap(({ tables }) => tables),
      remarks: agents.flatMap(({ remarks }) => remarks),
    },
    keys: keySettings(ofPerson),
    hooks: hooksOf([ofPerson, ofProject], settings),
    ...gates,
  }
}

const PROJECT_FILE = 'codemachine.toml'

/** Returns the prices of models. Without its own price, cached input costs the same as other input. */
function pricesOf({ value }: SettingsFile): ModelPrice[] {
  return Object.entries(value.prices ?? {}).map(([model, { in: input = 0, out = 0, cached = input }]) => ({
    model,
    in: input,
    cached,
    out,
  }))
}

/** Throws a `UserError` of one sentence if the setting cannot have this value. */
function checkEntry(entry: Entry): void {
  const problem = valueProblem(entry.info.schema, entry.value, entry.written)
  if (problem !== null) throw new UserError('CM0202', `${subjectOf(entry)} ${problem}.`)
}

/** Returns the start of a message about an entry: its place, and its name if the place lacks it. */
function subjectOf({ layer, info, place }: Entry): string {
  if (layer === 'environment' || layer === 'flag') return place
  return `${place}: ${layer === 'defaults' ? info.key : info.toml}`
}

function defaultEntries(defaults: unknown): Entry[] {
  return settingInfos.flatMap(info => {
    const value = info.key.split('.').reduce(memberOf, defaults)
    if (value === undefined) return []
    return [{ info, layer: 'defaults' as const, value, written: JSON.stringify(value), place: 'settings.js' }]
  })
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** An empty variable counts as not set. */
function environmentEntries(env: NodeJS.ProcessEnv): Entry[] {
  return settingInfos.flatMap(info => {
    const text = env[info.variable]
    return text ? [parseTextEntry(info, 'environment', info.variable, text)] : []
  })
}

function flagEntries(flags: SettingsPlaces['flags']): Entry[] {
  const said: { readonly [Key in SettingKey]?: string | number | boolean | undefined } = flags
  return settingInfos.flatMap(info => {
    const value = said[info.key]
    if (info.flag === null || value === undefined) return []
    return [parseTextEntry(info, 'flag', info.flag, String(value))]
  })
}

/**
 * Parses a setting from a text-only place (environment, flags): as the text, number, boolean or JSON array that it accepts.
 */
function parseTextEntry(info: SettingInfo, layer: Layer, place: string, text: string): Entry {
  const number = /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
  const truth = text === 'true' ? true : text === 'false' ? false : text
  const value = [text, number, truth, listIn(text)].find(meaning => v.is(info.schema, meaning)) ?? text
  return { info, layer, value, written: JSON.stringify(text), place }
}

function listIn(text: string): unknown {
  if (!text.trimStart().startsWith('[')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns the value of a flag's text as in `Settings`. Throws a `UserError` of one sentence if it is invalid. */
export function flagValue<Key extends FlagKey>(key: Key, text: string): NonNullable<SettingValue<Key>> {
  const info = settingInfos.find(each => each.key === key)
  if (info === undefined || info.flag === null) throw new Error(`${key} has no flag.`)
  const entry = parseTextEntry(info, 'flag', info.flag, text)
  checkEntry(entry)
  return v.parse(info.schema, entry.value) as NonNullable<SettingValue<Key>>
}

function countsOnce({ layer, info }: Entry): boolean {
  return layer === 'flag' && (info.key === 'model' || info.key === 'effort')
}

/** Returns the winning entry of each setting. */
function winnersOf(entries: readonly Entry[]): Entry[] {
  return settingInfos.map(({ key }) => {
    const written = LAYERS.flatMap(layer => entries.filter(entry => entry.info.key === key && entry.layer === layer))
    const winner = effectiveEntry(written)
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

/**
 * Returns the winning entry of one setting: the last, unless it exceeds a project's rights. Skips a limit that is too high;
 * throws a `UserError` for a forbidden value.
 */
function effectiveEntry(entries: readonly Entry[]): Entry | undefined {
  const [before, last] = [entries.at(-2), entries.at(-1)]
  if (last?.layer !== 'project') return last
  if (before === undefined) return undefined
  const right = rightOf(last.info.schema)
  switch (right) {
    case 'free':
      return last
    case 'lower':
      return before.layer === 'person' && rankOf(last) >= rankOf(before) ? before : last
    case 'never-higher':
      return rankOf(last) >= rankOf(before) ? before : last
    case 'never-lower':
      return rankOf(last) <= rankOf(before) ? before : last
    case 'not-off':
      return rankOf(last) < rankOf(before) ? before : last
    case 'yields':
      return before.layer === 'person' ? before : last
    case 'not-looser':
      return rankOf(last) > rankOf(before) ? refuse(last, last.written) : last
    case 'the-same':
      return last.value === before.value ? last : refuse(last, last.written)
    case 'none':
    case null:
      return refuse(last, 'set')
    default:
      return unreachable(right)
  }
}

/** Returns how much a value permits: a higher rank permits more. */
function rankOf({ info, value }: Entry): number {
  const parsed = v.parse(info.schema, value)
  if (typeof parsed !== 'string') return Number(parsed)
  const ranked: readonly string[] = RANKED[info.key] ?? SANDBOX_MODES
  return ranked.indexOf(parsed)
}

const RANKED: { readonly [Key in SettingKey]?: readonly string[] } = {
  'change.review': CHANGE_REVIEWS,
  verify: VERIFY_ALWAYS,
}

function refuse(entry: Entry, what: string): never {
  const { flag, variable } = entry.info
  throw new UserError(
    'CM0203',
    `${subjectOf(entry)} cannot be ${what} by a project's own file; if you want that, use ${flag ?? variable} or your own config.toml.`,
  )
}
