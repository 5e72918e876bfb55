import { join } from 'node:path'
import * as v from 'valibot'
import { UserError, unreachable } from '../base/errors.ts'
import type { SessionLimits } from '../core/events/outcome.ts'
import { readToml } from '../platform/toml.ts'
import { countingGates, type GateEntry, gateEntries, type LoadedGates } from './gates.ts'
import { type FlagKey, type SettingKey, type Settings, settingInfos, settingsSchema } from './schema.ts'
import { checkEntry, type Entry, entriesOfToml, entryOfText, gatesOfToml, type Layer, subjectOf } from './toml.ts'

/** Where the settings are read from. */
export interface SettingsPlaces {
  /** The work directory. */
  directory: string
  env: NodeJS.ProcessEnv
  /** The folder of the person's configuration files, `~/.config` most of the time. */
  configHome: string
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
export interface LoadedSettings extends LoadedGates {
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
  const ofPerson = await readFileOf(join(places.configHome, 'codemachine', 'config.toml'), 'person')
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

async function readFileOf(
  path: string,
  layer: Layer,
  name = path,
): Promise<{ entries: readonly Entry[]; gates: readonly GateEntry[] }> {
  const file = await readToml(path, { name })
  if (file === null) return { entries: [], gates: [] }
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

/**
 * The entry that counts of all that was written for one setting, the last one unless it is a project's that goes too
 * far. `codemachine.toml` lies where an agent can write and comes with any repository that is cloned; so it may make
 * the sandbox stricter, never looser, does not say which program is run or where anything is sent, lifts no limit that
 * the person wrote, does not switch off what ends a round or a session that gets nowhere, not even where the person
 * wrote nothing, and does not weaken what done is proven by. A limit that is too high is passed over; for what it must
 * not say a `UserError` is thrown.
 */
function countingEntry(entries: readonly Entry[]): Entry | undefined {
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
  maxUsage: 'lower',
  maxWait: 'lower',
  model: 'free',
  effort: 'free',
  sandbox: 'not-looser',
  network: 'not-looser',
  silenceMinutes: 'never-higher',
  commandMinutes: 'never-higher',
  graceMinutes: 'never-higher',
  stallRounds: 'never-higher',
  keepAwake: 'lower',
  review: 'not-off',
  'reviewer.model': 'yields',
  'reviewer.effort': 'yields',
  'notify.command': 'none',
  'notify.webhook': 'none',
  'notify.bell': 'none',
  'notify.events': 'none',
  'screen.theme': 'none',
  'screen.motion': 'none',
  'screen.reader': 'none',
  'agents.atOnce': 'lower',
  codexBin: 'the-same',
  codexHome: 'the-same',
  requestSeconds: 'free',
  endSeconds: 'free',
  port: 'free',
  'logging.level': 'free',
} as const satisfies Record<SettingKey, Right>

type Right = 'free' | 'lower' | 'never-higher' | 'not-off' | 'yields' | 'not-looser' | 'the-same' | 'none'

const SANDBOXES = ['read-only', 'workspace-write', 'danger-full-access']

/** How much a setting gives: the more, the higher. */
function rankOf({ info, value }: Entry): number {
  const parsed = v.parse(info.schema, value)
  return typeof parsed === 'string' ? SANDBOXES.indexOf(parsed) : Number(parsed)
}

function refuse(entry: Entry, what: string): never {
  const { flag, variable } = entry.info
  throw new UserError(
    `${subjectOf(entry)} cannot be ${what} by a project's own file; if you want that, use ${flag ?? variable} or your own config.toml.`,
  )
}

/**
 * The limits of a session. The default of `rounds` is one only where nobody wrote another limit.
 * @param usualRounds another default; left out: that of the settings
 */
export function limitsOf(
  { rounds, maxTime, maxTokens }: Pick<Settings, 'rounds' | 'maxTime' | 'maxTokens'>,
  sources: Pick<SettingSources, 'rounds'>,
  usualRounds = rounds,
): SessionLimits {
  const isLimitedOtherwise = maxTime !== null || maxTokens !== null
  const isDefault = sources.rounds.layer === 'defaults'
  const usual = isLimitedOtherwise ? null : usualRounds
  return { rounds: isDefault ? usual : rounds, timeMs: maxTime, tokens: maxTokens }
}
