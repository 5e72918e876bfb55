import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { promptOf } from '../../agents/roster.ts'
import { UserError } from '../../base/errors.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { RunAllowance, SessionLimits } from '../../core/events/outcome.ts'
import { limitsOnceChanged, NOTHING_USED } from '../../core/rules/run-limits.ts'
import type { Agent, AgentRoster, AgentTable } from '../../core/shapes/agent.ts'
import type { SessionState } from '../../core/state/state.ts'
import { stampOf } from '../../platform/files.ts'
import { costAsTyped, countAsTyped, durationAsTyped } from '../../tell/words/commands.ts'
import type { LoadedSettings } from '../settings/load.ts'
import type { SettingKey, Settings } from '../settings/schema.ts'
import { personFile } from '../settings/settings-file.ts'

/** Changes of the settings files that a running session applies. */
type Taken = EventOf<'settings-taken'>

/** Total limits that a person sets for a running session; left out: unchanged. `timeMs`: ms. */
export interface AskedLimits {
  rounds?: number
  timeMs?: number
  tokens?: number
  cost?: number
}

interface LiveSettingsOptions {
  /** Settings at the beginning of the run. */
  loaded: LoadedSettings
  /** The same, with the provider's model. */
  settings: Settings
  roster: AgentRoster
  /** File states from before these were read. */
  stamps: Stamps
  /** The person's settings file and the project's, absolute. */
  files: readonly [string, string]
  /** Reads the settings again. `withoutProject`: skips the project's file. */
  load(how?: { withoutProject: boolean }): Promise<LoadedSettings>
  /** Notifier with changeable settings. */
  notifier: { change(notify: Settings['notify']): void }
  /** Receives a sentence for the person. */
  onRemark(remark: string): void
}

/** Changeable limits, and how to write each. */
const LIMITS = {
  rounds: String,
  maxTime: durationAsTyped,
  maxTokens: countAsTyped,
  maxCost: costAsTyped,
  maxUsage: percent => `${percent}%`,
  maxWait: durationAsTyped,
  decideAfter: durationAsTyped,
  graceMinutes: String,
  stallRounds: String,
} satisfies { [Key in SettingKey]?: (value: number) => string }

type LimitKey = keyof typeof LIMITS

const LIMIT_KEYS = Object.keys(LIMITS) as LimitKey[]

/** Limits that a session and its run count. */
const COUNTED = { rounds: 'rounds', maxTime: 'timeMs', maxTokens: 'tokens', maxCost: 'cost' } as const

/** Settings of a run that follow their files. */
export class LiveSettings {
  readonly #options: LiveSettingsOptions
  readonly #settings: Settings
  #stamps: Stamps
  /** The person's agents with their own prompts. A project's prompts are fixed, because agents can write them. */
  #prompts: ReadonlyMap<string, Agent>
  #promptPaths: readonly string[]
  /** Whether the number of rounds is the default: then it applies to each session, if there is no other limit. */
  #hasUsualRounds: boolean
  /** Limits from the project's file, as far as they apply. */
  readonly #ofProject = new Map<LimitKey, { value: number; place: string }>()
  /** Remarks on the files at the last read; repeated only if they change. */
  #said: ReadonlySet<string> = new Set()
  #toSay = new Set<string>()
  #asked: AskedLimits | null = null

  constructor(options: LiveSettingsOptions) {
    this.#options = options
    const { loaded, settings, roster, stamps } = options
    this.#settings = { ...settings }
    this.#stamps = stamps
    this.#hasUsualRounds = loaded.sources.rounds.layer === 'defaults'
    const ofPerson = roster.sub.filter(({ source }) => source?.of === 'person' && source.prompt !== undefined)
    this.#prompts = new Map(ofPerson.map(agent => [agent.name, agent]))
    this.#promptPaths = ofPerson.flatMap(({ source }) => source?.prompt?.path ?? [])
    for (const key of LIMIT_KEYS) {
      const value = loaded.settings[key]
      const { layer, place } = loaded.sources[key]
      if (layer === 'project' && value !== null) this.#ofProject.set(key, { value, place })
    }
  }

  /** The current settings: one object, whose limits and notifications change. */
  get settings(): Settings {
    return this.#settings
  }

  /** Returns an agent with its current prompt. */
  withPrompt(agent: Agent): Agent {
    const prompt = this.#prompts.get(agent.name)?.source?.prompt
    return agent.source?.prompt && prompt ? { ...agent, source: { ...agent.source, prompt } } : agent
  }

  /**
   * Returns the changes for a session before its next round; null: none. It reads only files with a new state. While files
   * are unusable, the last values apply.
   */
  async look(state: SessionState): Promise<Taken | null> {
    const taken = await this.#lookAtFiles(state)
    const asked = this.#asked
    this.#asked = null
    return asked === null ? taken : this.#withAsked(state, asked, taken)
  }

  /** Sets a session's total limits from its next round on. */
  ask(wanted: AskedLimits): void {
    this.#asked = { ...this.#asked, ...wanted }
  }

  async #lookAtFiles(state: SessionState): Promise<Taken | null> {
    const stamps = stampsOf([...this.#options.files, ...this.#promptPaths])
    if (isDeepStrictEqual(stamps, this.#stamps)) return null
    const byPerson = stamps[0] !== this.#stamps[0]
    this.#stamps = stamps
    try {
      return await this.#take(state, byPerson)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#say(`${error.message} Until you fix it, the session keeps its current settings.`)
      return null
    } finally {
      for (const sentence of this.#toSay) if (!this.#said.has(sentence)) this.#options.onRemark(sentence)
      this.#said = this.#toSay
      this.#toSay = new Set()
    }
  }

  /** Applies the requested limits to the session. Its run gets the same, plus what earlier sessions used. */
  #withAsked(state: SessionState, asked: AskedLimits, taken: Taken | null): Taken {
    const { maxUsage } = this.#settings
    const before: Taken = taken ?? {
      type: 'settings-taken',
      round: state.roundsUsed + 1,
      changes: [],
      limits: state.limits,
      ...(state.run === null ? {} : { run: state.run }),
      ...(maxUsage === null ? {} : { maxUsage }),
    }
    const changes = [...before.changes]
    const limits: SessionLimits = { ...before.limits }
    const ofRun = before.run === undefined ? null : { ...before.run.limits }
    for (const [key, name] of Object.entries(COUNTED)) {
      const wanted = asked[name]
      if (wanted === undefined) continue
      const typed = LIMITS[key as keyof typeof COUNTED]
      const had = limits[name] ?? null
      const place = 'as a person asked while it ran'
      changes.push({ setting: snake(key), from: had === null ? null : typed(had), to: typed(wanted), place })
      limits[name] = wanted
      const most = ofRun?.[name] ?? null
      if (ofRun !== null && most !== null) ofRun[name] = Math.max(most, wanted + (before.run?.used[name] ?? 0))
    }
    const run = before.run === undefined || ofRun === null ? {} : { run: { ...before.run, limits: ofRun } }
    return { ...before, changes, limits, ...run }
  }

  /** @param byPerson whether the person's file has changed */
  async #take(state: SessionState, byPerson: boolean): Promise<Taken | null> {
    const own = await this.#options.load({ withoutProject: true })
    // A file that an agent broke must not block the person's values.
    const full = await this.#options.load().catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error
      this.#say(`${error.message} Until you fix it, the earlier version applies.`)
      return null
    })
    const changes: Taken['changes'][number][] = []
    const prompts = await this.#promptsNow(own.agentTables.tables)
    const next = this.#limitsNow({ state, byPerson }, own, full)
    const hasUsual = own.sources.rounds.layer === 'defaults' && !this.#ofProject.has('rounds')
    // Ten rounds by default differ from ten rounds that somebody named.
    const isNamed = hasUsual !== this.#hasUsualRounds
    const changed = LIMIT_KEYS.filter(
      key => next[key].value !== this.#settings[key] || (key === 'rounds' && isNamed && next[key].place !== ''),
    )
    for (const key of changed) {
      const typed = (value: number | null, usual: boolean) =>
        value === null || (usual && key === 'rounds') ? null : LIMITS[key](value)
      const [from, to] = [typed(this.#settings[key], this.#hasUsualRounds), typed(next[key].value, hasUsual)]
      changes.push({ setting: snake(key), from, to, place: next[key].place })
    }
    changes.push(...changesOfNotify(this.#settings.notify, own, this.#options.files[0]), ...prompts.changes)
    if (changes.length === 0) return null

    const limits = Object.fromEntries(LIMIT_KEYS.map(key => [key, next[key].value]))
    const { notify } = own.settings
    if (!isDeepStrictEqual(notify, this.#settings.notify)) this.#options.notifier.change(notify)
    Object.assign(this.#settings, limits, { notify })
    this.#hasUsualRounds = hasUsual
    this.#prompts = prompts.now
    const { maxUsage } = this.#settings
    return {
      type: 'settings-taken',
      round: state.roundsUsed + 1,
      changes,
      ...this.#countedNow(state, changed, own),
      ...(maxUsage === null ? {} : { maxUsage }),
    }
  }

  /** Returns the changed limits of the session and its run. */
  #countedNow(
    state: SessionState,
    changed: readonly LimitKey[],
    own: LoadedSettings,
  ): { limits: SessionLimits; run?: RunAllowance } {
    const names = Object.entries(COUNTED).filter(([key]) => changed.includes(key as LimitKey))
    if (names.length === 0) return { limits: state.limits, ...(state.run === null ? {} : { run: state.run }) }
    const before = state.run ?? { limits: state.limits, used: NOTHING_USED }
    const isUsual = this.#hasUsualRounds
    const limits: Record<string, number | null> = { ...before.limits }
    for (const [key, name] of names) {
      const value = this.#settings[key as keyof typeof COUNTED]
      if (name === 'cost' && value === null) delete limits.cost
      else limits[name] = name === 'rounds' && isUsual ? null : value
    }
    const isFreed = (['maxTime', 'maxTokens', 'maxCost'] as const).some(
      key => own.settings[key] !== null || this.#options.loaded.settings[key] !== null,
    )
    const { keepsUsual: _, ...kept } = before
    const run: RunAllowance = {
      ...kept,
      limits: limits as unknown as SessionLimits,
      ...(isUsual && !isFreed ? { keepsUsual: true } : {}),
    }
    const hasUsual = before.limits.rounds === null ? state.limits.rounds : null
    const usual = hasUsual ?? state.kind?.defaultRounds({}) ?? own.settings.rounds
    return { limits: limitsOnceChanged(state, run, usual), run }
  }

  /** Returns each current limit, and its place. `full`: null if the project's file is unusable. */
  #limitsNow(
    { state, byPerson }: { state: SessionState; byPerson: boolean },
    own: LoadedSettings,
    full: LoadedSettings | null,
  ): Record<LimitKey, { value: number | null; place: string }> {
    const entries = LIMIT_KEYS.map(key => {
      const { layer } = own.sources[key]
      const isSaid = layer === 'flag' || layer === 'environment' || state.said.limits?.includes(key) === true
      const stays = { value: this.#settings[key], place: '' }
      if (isSaid) return [key, stays] as const
      const most = byPerson && layer === 'person' ? null : mostOf(key, state)
      const counts = this.#limitOfFiles(key, own, full, most)
      const isUncounted = key === 'maxCost' && counts.value !== null && counts.value !== stays.value && !canCount(state)
      if (isUncounted) this.#say('max_cost does not apply: this session uses models without a known price.')
      else if (full !== null) this.#tellIgnored(key, counts.value, full)
      return [key, isUncounted ? stays : counts] as const
    })
    return Object.fromEntries(entries) as Record<LimitKey, { value: number | null; place: string }>
  }

  /**
   * Returns a limit by both files, and stores the project's share.
   * @param most the run's value, which the project's file never raises; null: the person's file decides
   */
  #limitOfFiles(
    key: LimitKey,
    own: LoadedSettings,
    full: LoadedSettings | null,
    most: number | null,
  ): { value: number | null; place: string } {
    const { layer, place } = own.sources[key]
    const isPersons = layer === 'person'
    const base = own.settings[key]
    const loosest = loosenessOf(key, this.#ofProject.get(key)?.value ?? base)
    const wanted = full?.sources[key].layer === 'project' ? full.settings[key] : null
    if (wanted !== null && full !== null && loosenessOf(key, wanted) < loosest) {
      this.#ofProject.set(key, { value: wanted, place: full.sources[key].place })
    }
    const project = this.#ofProject.get(key)
    if (project && (!isPersons || loosenessOf(key, project.value) < loosenessOf(key, base)))
      return { ...project, value: most === null ? project.value : Math.min(project.value, most) }
    return { value: base, place: isPersons ? place : this.#options.files[0] }
  }

  /** Reports once that the project's file asks for more than applies. */
  #tellIgnored(key: LimitKey, counts: number | null, full: LoadedSettings): void {
    const wanted = full.settings[key]
    if (counts === null || loosenessOf(key, wanted) <= loosenessOf(key, counts)) return
    const stays = LIMITS[key](counts)
    this.#say(`codemachine.toml would raise ${snake(key)}, which it can only lower during a run; ${stays} stays.`)
  }

  /** Returns the current prompts of the person's agents. */
  async #promptsNow(
    tables: readonly AgentTable[],
  ): Promise<{ now: ReadonlyMap<string, Agent>; changes: Taken['changes'][number][] }> {
    const now = new Map(this.#prompts)
    const changes: Taken['changes'][number][] = []
    const known = tables.filter(({ name, of }) => of === 'person' && this.#prompts.has(name))
    // Include missing files: they may be written later.
    this.#promptPaths = known.flatMap(({ folder, prompt }) => (prompt === undefined ? [] : [join(folder, prompt)]))
    for (const table of known) {
      const agent = this.#prompts.get(table.name)
      const prompt = await promptOf(table)
      const before = agent?.source?.prompt
      if (agent?.source === undefined || before === undefined || prompt === undefined) continue
      if (prompt.text === before.text) continue
      now.set(table.name, { ...agent, source: { ...agent.source, prompt } })
      changes.push({
        setting: `agents.${table.name}.prompt`,
        from: hashOf(before.text),
        to: hashOf(prompt.text),
        place: prompt.path,
      })
    }
    return { now, changes }
  }

  #say(sentence: string): void {
    this.#toSay.add(sentence)
  }
}

/** Returns the run's value of a counted limit, even from an earlier process; null: unlimited, or not counted. */
function mostOf(key: LimitKey, { run, limits }: SessionState): number | null {
  const isCounted = (name: LimitKey): name is keyof typeof COUNTED => name in COUNTED
  if (!isCounted(key)) return null
  return (run ?? { limits }).limits[COUNTED[key]] ?? (key === 'rounds' ? limits.rounds : null)
}

/** Returns whether a session can enforce a cost limit. */
function canCount({ prices, cost }: SessionState): boolean {
  return prices.length > 0 && cost.unpriced === 0
}

/** Returns how much a limit permits; null permits everything. A later default permits less. */
function loosenessOf(key: LimitKey, value: number | null): number {
  if (value === null) return Number.POSITIVE_INFINITY
  return key === 'decideAfter' ? -value : value
}

/** Do not show values that may hold a secret. */
function changesOfNotify(
  before: Settings['notify'],
  { settings: { notify }, sources }: LoadedSettings,
  file: string,
): Taken['changes'][number][] {
  return (['command', 'webhook', 'bell', 'events'] as const).flatMap(name => {
    if (isDeepStrictEqual(before[name], notify[name])) return []
    const { layer, place } = sources[`notify.${name}`]
    const isShown = name === 'bell' || name === 'events'
    const typed = (value: unknown) => (isShown ? JSON.stringify(value) : null)
    const where = layer === 'defaults' ? file : place
    return [{ setting: `notify.${name}`, from: typed(before[name]), to: typed(notify[name]), place: where }]
  })
}

function snake(key: string): string {
  return key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}

/** Reads the settings of a run so that they can be followed. */
export async function readToFollow(
  configHome: string,
  directory: string,
  load: (how?: { withoutProject: boolean }) => Promise<LoadedSettings>,
): Promise<Pick<LiveSettingsOptions, 'loaded' | 'stamps' | 'files' | 'load'>> {
  const files = [personFile({ configHome }), join(directory, 'codemachine.toml')] as const
  const stamps = stampsOf(files)
  return { loaded: await load(), stamps, files, load }
}

/** Returns the states of files, also through a link: a change shows without a read. */
function stampsOf(files: readonly string[]): Stamps {
  return files.map(stampOf)
}

/** States by `stampOf` of the person's settings file, the project's, and prompts. */
type Stamps = readonly (string | null)[]
