import { join } from 'node:path'
import * as v from 'valibot'
import { UserError, unreachable } from '../../base/errors.ts'
import type { ModelPrice } from '../../core/rules/cost.ts'
import type { AgentTables } from '../../core/shapes/agent.ts'
import type { ProvidersByName } from '../../core/shapes/provider.ts'
import { SANDBOX_MODES } from '../../core/shapes/sandbox.ts'
import { readToml } from '../../platform/toml.ts'
import { agentTables } from './agents.ts'
import {
  checkEntry,
  type Entry,
  type Layer,
  PRICES,
  PROVIDERS,
  parseTextEntry,
  settingEntries,
  subjectOf,
  type WrittenField,
  writtenFields,
  writtenGates,
} from './entries.ts'
import { effectiveGates, type GateEntry, gateEntries, type LoadedGates } from './gates.ts'
import { DEFAULT_KEYS, type KeySettings, keySettings } from './keys.ts'
import { effectivePrices } from './prices.ts'
import { checkProvider, effectiveProviders } from './providers.ts'
import {
  CHANGE_REVIEWS,
  type FlagKey,
  type SettingKey,
  type Settings,
  type SettingValue,
  settingInfos,
  settingsSchema,
} from './schema.ts'

/** The places that settings are read from. */
export interface SettingsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The folder of the person's configuration files, `~/.config` most of the time. */
  configHome: string
  /** The flags of the command line, as texts or values; undefined: not given. */
  flags: { readonly [Key in FlagKey]?: string | number | boolean | undefined }
  /** Whether the project's file is left out. */
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
  /** Those that `settings.provider` may name, beside `codex`. */
  providers: ProvidersByName
  /** What models cost, in the person's file. */
  prices: readonly ModelPrice[]
  /** Model and effort without the flags: the values that agents' profiles are written with. */
  lasting: Pick<Settings, 'model' | 'effort'>
  /** What both files say of agents, the person's first. */
  agentTables: AgentTables
  /** The keys of the screen, in the person's file. */
  keys: KeySettings
}

/**
 * Reads all layers: defaults, person, project, environment, flags. The last layer that has a value wins, within the
 * limits of a project's file (`effectiveEntry`); gates of all layers add up (`effectiveGates`). Throws a `UserError` of
 * one sentence for the first mistake in any layer, even where a later layer would win.
 */
export async function loadSettings(places: SettingsPlaces): Promise<LoadedSettings> {
  const personFile = await readSettingsFile(join(places.configHome, 'codemachine', 'config.toml'), 'person')
  const projectFile =
    places.withoutProject === true
      ? NOTHING_WRITTEN
      : await readSettingsFile(join(places.directory, PROJECT_FILE), 'project', PROJECT_FILE)
  const entries = [
    ...defaultEntries(places.defaults),
    ...personFile.entries,
    ...projectFile.entries,
    ...environmentEntries(places.env),
    ...flagEntries(places.flags),
  ]
  for (const entry of entries) checkEntry(entry)
  const providers = effectiveProviders(personFile.providers, places.env)

  const winners = winnersOf(entries)
  const settings = settingsOf(winners)
  const sources = sourcesOf(winners)
  checkProvider(settings.provider, sources.provider.place, providers)
  const { executor } = settings.change
  if (executor !== null) checkProvider(executor, sources['change.executor'].place, providers)
  const prices = effectivePrices(personFile.prices)
  const { model, effort } = settingsOf(winnersOf(entries.filter(entry => !countsOnce(entry))))
  const gates = effectiveGates([...personFile.gates, ...projectFile.gates], places.verify ?? [], settings)
  const ofAgents = {
    tables: [...personFile.agents.tables, ...projectFile.agents.tables],
    remarks: projectFile.agents.remarks,
  }
  return {
    settings,
    sources,
    providers,
    prices,
    lasting: { model, effort },
    agentTables: ofAgents,
    keys: personFile.keys,
    ...gates,
  }
}

const PROJECT_FILE = 'codemachine.toml'

const NOTHING_WRITTEN: SettingsFile = {
  entries: [],
  gates: [],
  providers: [],
  prices: [],
  agents: { tables: [], remarks: [] },
  keys: DEFAULT_KEYS,
}

interface SettingsFile {
  entries: readonly Entry[]
  gates: readonly GateEntry[]
  providers: readonly WrittenField[]
  prices: readonly WrittenField[]
  agents: AgentTables
  keys: KeySettings
}

async function readSettingsFile(path: string, layer: 'person' | 'project', name = path): Promise<SettingsFile> {
  const file = await readToml(path, { name })
  if (file === null) return NOTHING_WRITTEN
  return {
    entries: settingEntries(file, layer),
    gates: gateEntries(writtenGates(file), name, layer),
    providers: writtenFields(file, layer, PROVIDERS),
    prices: writtenFields(file, layer, PRICES),
    agents: agentTables(file, layer, path),
    keys: keySettings(file, layer),
  }
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

/** The value that the text of a flag means, as it is in `Settings`; a `UserError` of one sentence if it can have none. */
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

/** The winning entry of each setting. */
function winnersOf(entries: readonly Entry[]): Entry[] {
  return settingInfos.map(({ key }) => {
    const winner = effectiveEntry(entries.filter(entry => entry.info.key === key))
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
 * The winning entry of one setting: the last, unless it is a project's that exceeds its rights. `codemachine.toml` lies where an agent can write and comes with any repository that is cloned; so it may make
 * the sandbox stricter, never looser, does not say which program is run or where anything is sent, lifts no limit that
 * the person wrote, does not switch off what ends a round or a session that gets nowhere, not even where the person
 * wrote nothing, and does not weaken what done is proven by. A limit that is too high is passed over; for what it must
 * not say a `UserError` is thrown.
 */
function effectiveEntry(entries: readonly Entry[]): Entry | undefined {
  const [before, last] = [entries.at(-2), entries.at(-1)]
  if (last?.layer !== 'project') return last
  if (before === undefined) return undefined
  const right = RIGHTS[last.info.key]
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
      return refuse(last, 'set')
    default:
      return unreachable(right)
  }
}

const RIGHTS = {
  mode: 'free',
  rounds: 'lower',
  maxTime: 'lower',
  maxTokens: 'lower',
  maxCost: 'lower',
  maxUsage: 'lower',
  maxWait: 'lower',
  // A default that comes too soon leaves a person no time to answer.
  decideAfter: 'never-lower',
  model: 'free',
  effort: 'free',
  provider: 'none',
  sandbox: 'not-looser',
  network: 'not-looser',
  silenceMinutes: 'never-higher',
  commandMinutes: 'never-higher',
  graceMinutes: 'never-higher',
  stallRounds: 'never-higher',
  keepAwake: 'lower',
  maxFileSize: 'lower',
  review: 'not-off',
  'reviewer.model': 'yields',
  'reviewer.effort': 'yields',
  // A clone would have its own plan carried out unseen, say where the code is sent, or what it costs.
  'change.review': 'not-looser',
  'change.fixAttempts': 'free',
  'change.executor': 'none',
  'change.plannerModel': 'none',
  'change.plannerEffort': 'none',
  // It runs in the sandbox, as a gate of the project's does; what is copied from the checkout is the person's own.
  'worktree.setup': 'free',
  'worktree.setupMinutes': 'never-higher',
  'worktree.copy': 'none',
  'notify.command': 'none',
  'notify.webhook': 'none',
  'notify.bell': 'none',
  'notify.events': 'none',
  'screen.theme': 'none',
  'screen.motion': 'none',
  'screen.reader': 'none',
  'screen.enter': 'none',
  'screen.mouse': 'none',
  'agents.atOnce': 'lower',
  codexBin: 'the-same',
  codexHome: 'the-same',
  requestSeconds: 'free',
  endSeconds: 'free',
  port: 'free',
  // A clone would say where other agents may begin sessions.
  'mcp.dirs': 'none',
  // A clone would say where sessions are sent, and what others may have this machine run.
  'fleet.queue': 'none',
  'fleet.templates': 'none',
  'logging.level': 'free',
} as const satisfies Record<SettingKey, Right>

type Right =
  | 'free'
  | 'lower'
  | 'never-higher'
  | 'never-lower'
  | 'not-off'
  | 'yields'
  | 'not-looser'
  | 'the-same'
  | 'none'

/** How much a value permits: a higher rank permits more. */
function rankOf({ info, value }: Entry): number {
  const parsed = v.parse(info.schema, value)
  if (typeof parsed !== 'string') return Number(parsed)
  const ranked: readonly string[] = info.key === 'change.review' ? CHANGE_REVIEWS : SANDBOX_MODES
  return ranked.indexOf(parsed)
}

function refuse(entry: Entry, what: string): never {
  const { flag, variable } = entry.info
  throw new UserError(
    `${subjectOf(entry)} cannot be ${what} by a project's own file; if you want that, use ${flag ?? variable} or your own config.toml.`,
  )
}
