import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { promptOf } from '../../agents/roster.ts'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import type { Agent, AgentRoster, AgentTable } from '../../core/contracts/agent.ts'
import type { EventOf } from '../../core/events/events.ts'
import type { SessionLimits } from '../../core/events/outcome.ts'
import { limitsOnceChanged, NOTHING_USED, type RunAllowance } from '../../core/rules/run-limits.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { LoadedSettings } from '../../settings/load.ts'
import type { SettingKey, Settings } from '../../settings/schema.ts'
import { costAsTyped, countAsTyped, durationAsTyped } from '../../words/commands.ts'

/** What a running session takes over of the settings files. */
type Taken = EventOf<'settings-taken'>

export interface LiveSettingsOptions {
  /** As the run began with them. */
  loaded: LoadedSettings
  /** The same with the model of the provider. */
  settings: Settings
  roster: AgentRoster
  /** The files as they were before these were read. */
  stamps: readonly string[]
  /** The person's settings file and the project's, absolute. */
  files: readonly [string, string]
  /** Reads the settings again. `withoutProject`: but for the project's file. */
  load(how?: { withoutProject: boolean }): Promise<LoadedSettings>
  /** Whose ways to the person may become others. */
  notifier: { change(notify: Settings['notify']): void }
  /** Told a sentence for the person. */
  onRemark(remark: string): void
}

/** The limits that are taken over, and how each is written. */
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

/** Those that a session and its run count. */
const COUNTED = { rounds: 'rounds', maxTime: 'timeMs', maxTokens: 'tokens', maxCost: 'cost' } as const

/** What of a run follows the settings files while it lasts. */
export class LiveSettings {
  readonly #options: LiveSettingsOptions
  readonly #settings: Settings
  #stamps: readonly string[]
  #prompts: ReadonlyMap<string, Agent>
  /** The tables that say where prompts are. */
  #tables: readonly AgentTable[]
  #promptPaths: readonly string[]
  /** What the project's file says of limits, as far as that counts. */
  readonly #ofProject = new Map<LimitKey, { value: number; place: string }>()
  /** What was said of the files when they were read last; said again only once it is something else. */
  #said: ReadonlySet<string> = new Set()
  #toSay = new Set<string>()

  constructor(options: LiveSettingsOptions) {
    this.#options = options
    const { loaded, settings, roster, stamps } = options
    this.#settings = { ...settings }
    this.#stamps = stamps
    this.#tables = loaded.agentTables.tables
    this.#prompts = new Map(roster.sub.filter(({ source }) => source?.prompt).map(agent => [agent.name, agent]))
    this.#promptPaths = pathsOf(this.#prompts)
    for (const key of LIMIT_KEYS) {
      const value = loaded.settings[key]
      const { layer, place } = loaded.sources[key]
      if (layer === 'project' && value !== null) this.#ofProject.set(key, { value, place })
    }
  }

  /** The settings as they count now: one object, of which limits and notifications change. */
  get settings(): Settings {
    return this.#settings
  }

  /** An agent with its prompt as it counts now. */
  withPrompt(agent: Agent): Agent {
    const prompt = this.#prompts.get(agent.name)?.source?.prompt
    return agent.source?.prompt && prompt ? { ...agent, source: { ...agent.source, prompt } } : agent
  }

  /**
   * What is to be taken over by a session before its next round; null if nothing is. Where no file has changed since, only
   * their states are looked at. While the files cannot be used, what counted last counts.
   */
  async look(state: SessionState): Promise<Taken | null> {
    const stamps = await stampsOf([...this.#options.files, ...this.#promptPaths])
    if (isDeepStrictEqual(stamps, this.#stamps)) return null
    this.#stamps = stamps
    try {
      return await this.#take(state)
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      this.#say(`${error.message} Until that is mended, the settings count that were read last.`)
      return null
    } finally {
      for (const sentence of this.#toSay) if (!this.#said.has(sentence)) this.#options.onRemark(sentence)
      this.#said = this.#toSay
      this.#toSay = new Set()
    }
  }

  async #take(state: SessionState): Promise<Taken | null> {
    const own = await this.#options.load({ withoutProject: true })
    // What an agent has broken keeps nothing of the person's from counting.
    const full = await this.#options.load().catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error
      this.#say(`${error.message} Until that is mended, what was read last counts of that file.`)
      return null
    })
    const changes: Taken['changes'][number][] = []
    const prompts = await this.#promptsNow((full ?? own).agentTables.tables, full === null)
    const next = this.#limitsNow(state, own, full)
    for (const key of LIMIT_KEYS) {
      if (next[key].value === this.#settings[key]) continue
      const typed = (value: number | null) => (value === null ? null : LIMITS[key](value))
      const to = typed(next[key].value)
      changes.push({ setting: snake(key), from: typed(this.#settings[key]), to, place: next[key].place })
    }
    changes.push(...changesOfNotify(this.#settings.notify, own, this.#options.files[0]), ...prompts.changes)
    if (changes.length === 0) return null

    const changed = LIMIT_KEYS.filter(key => next[key].value !== this.#settings[key])
    const limits = Object.fromEntries(LIMIT_KEYS.map(key => [key, next[key].value]))
    const { notify } = own.settings
    if (!isDeepStrictEqual(notify, this.#settings.notify)) this.#options.notifier.change(notify)
    Object.assign(this.#settings, limits, { notify })
    this.#prompts = prompts.now
    this.#promptPaths = pathsOf(prompts.now)
    const { maxUsage } = this.#settings
    return {
      type: 'settings-taken',
      round: state.roundsUsed + 1,
      changes,
      ...this.#countedNow(state, changed, own),
      ...(maxUsage === null ? {} : { maxUsage }),
    }
  }

  /** The limits of the session and of its run, once some of them are others. */
  #countedNow(
    state: SessionState,
    changed: readonly LimitKey[],
    own: LoadedSettings,
  ): { limits: SessionLimits; run?: RunAllowance } {
    const names = Object.entries(COUNTED).filter(([key]) => changed.includes(key as LimitKey))
    if (names.length === 0) return { limits: state.limits, ...(state.run === null ? {} : { run: state.run }) }
    const before = state.run ?? { limits: state.limits, used: NOTHING_USED }
    const isUsual = (this.#ofProject.get('rounds') ?? null) === null && own.sources.rounds.layer === 'defaults'
    const limits: Record<string, number | null> = { ...before.limits }
    for (const [key, name] of names) {
      const value = this.#noMoreThanBefore(key as keyof typeof COUNTED, state, before)
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
    const usual = state.limits.rounds ?? state.kind?.defaultRounds({}) ?? own.settings.rounds
    return { limits: limitsOnceChanged(state, run, usual), run }
  }

  /** A counted limit as it is now; a project's is never more than the run has, also where that began before this process. */
  #noMoreThanBefore(key: keyof typeof COUNTED, { limits }: SessionState, before: RunAllowance): number | null {
    const value = this.#settings[key]
    if (value === null || this.#ofProject.get(key)?.value !== value) return value
    const most = before.limits[COUNTED[key]] ?? (key === 'rounds' ? limits.rounds : null)
    return Math.min(value, most ?? Number.POSITIVE_INFINITY)
  }

  /** Each limit as it counts now, and where that is said. `full`: null if the project's file cannot be used. */
  #limitsNow(
    state: SessionState,
    own: LoadedSettings,
    full: LoadedSettings | null,
  ): Record<LimitKey, { value: number | null; place: string }> {
    const entries = LIMIT_KEYS.map(key => {
      const { layer } = own.sources[key]
      const isSaid = layer === 'flag' || layer === 'environment' || state.said.limits?.includes(key) === true
      const stays = { value: this.#settings[key], place: '' }
      if (isSaid) return [key, stays] as const
      const counts = this.#limitOfFiles(key, own, full)
      const isUncounted = key === 'maxCost' && counts.value !== null && counts.value !== stays.value && !canCount(state)
      if (isUncounted)
        this.#say('max_cost is not taken over: of what this session uses, or has used, nobody knows the price.')
      else if (full !== null) this.#tellIgnored(key, counts.value, full)
      return [key, isUncounted ? stays : counts] as const
    })
    return Object.fromEntries(entries) as Record<LimitKey, { value: number | null; place: string }>
  }

  /** A limit as both files have it: what the project's may say of it is kept. */
  #limitOfFiles(
    key: LimitKey,
    own: LoadedSettings,
    full: LoadedSettings | null,
  ): { value: number | null; place: string } {
    const { layer, place } = own.sources[key]
    const isPersons = layer === 'person'
    const base = own.settings[key]
    const now = loosenessOf(key, this.#settings[key])
    const most = isPersons ? Math.max(now, loosenessOf(key, base)) : now
    const wanted = full?.sources[key].layer === 'project' ? full.settings[key] : null
    if (wanted !== null && full !== null && loosenessOf(key, wanted) < most) {
      this.#ofProject.set(key, { value: wanted, place: full.sources[key].place })
    }
    const project = this.#ofProject.get(key)
    if (project && (!isPersons || loosenessOf(key, project.value) < loosenessOf(key, base))) return project
    return { value: base, place: isPersons ? place : this.#options.files[0] }
  }

  /** Says once that the project's file would have more than counts. */
  #tellIgnored(key: LimitKey, counts: number | null, full: LoadedSettings): void {
    const wanted = full.settings[key]
    if (counts === null || loosenessOf(key, wanted) <= loosenessOf(key, counts)) return
    const stays = LIMITS[key](counts)
    this.#say(
      `codemachine.toml would raise ${snake(key)}, which it can only lower while a run goes on; ${stays} stays.`,
    )
  }

  /** The prompts of agents of the settings as they are now. `isBroken`: those of the project stay. */
  async #promptsNow(
    tables: readonly AgentTable[],
    isBroken: boolean,
  ): Promise<{ now: ReadonlyMap<string, Agent>; changes: Taken['changes'][number][] }> {
    const now = new Map(this.#prompts)
    const changes: Taken['changes'][number][] = []
    if (!isBroken) this.#tables = tables
    for (const [name, agent] of this.#prompts) {
      const { source } = agent
      const table = this.#tables.find(each => each.name === name && each.of === source?.of)
      if (source?.prompt === undefined || table === undefined) continue
      const prompt = await this.#promptOf(table)
      if (prompt === undefined || prompt.text === source.prompt.text) continue
      now.set(name, { ...agent, source: { ...source, prompt } })
      changes.push({
        setting: `agents.${name}.prompt`,
        from: hashOf(source.prompt.text),
        to: hashOf(prompt.text),
        place: prompt.path,
      })
    }
    return { now, changes }
  }

  /** A prompt of the project's that cannot be used is said, and stays as it was. */
  async #promptOf(table: AgentTable): ReturnType<typeof promptOf> {
    try {
      return await promptOf(table)
    } catch (error) {
      if (table.of === 'person' || !(error instanceof UserError)) throw error
      this.#say(`${error.message} Until that is mended, the prompt counts that was read last.`)
      return undefined
    }
  }

  #say(sentence: string): void {
    this.#toSay.add(sentence)
  }
}

function pathsOf(prompts: ReadonlyMap<string, Agent>): string[] {
  return [...prompts.values()].flatMap(({ source }) => source?.prompt?.path ?? [])
}

/** Whether a limit of cost can be kept in a session. */
function canCount({ prices, cost }: SessionState): boolean {
  return prices.length > 0 && cost.unpriced === 0
}

/** How much a limit permits; none permits all. A default that comes later permits less. */
function loosenessOf(key: LimitKey, value: number | null): number {
  if (value === null) return Number.POSITIVE_INFINITY
  return key === 'decideAfter' ? -value : value
}

/** Values that may hold a secret are not told. */
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

/** The settings of a run, read so that they can be followed. */
export async function readToFollow(
  configHome: string,
  directory: string,
  load: (how?: { withoutProject: boolean }) => Promise<LoadedSettings>,
): Promise<Pick<LiveSettingsOptions, 'loaded' | 'stamps' | 'files' | 'load'>> {
  const files = [join(configHome, 'codemachine', 'config.toml'), join(directory, 'codemachine.toml')] as const
  const stamps = await stampsOf(files)
  return { loaded: await load(), stamps, files, load }
}

/** The state of files, by which a change is seen without reading them. */
async function stampsOf(files: readonly string[]): Promise<string[]> {
  return await Promise.all(
    files.map(async file => {
      try {
        const { ino, size, mtimeMs, ctimeMs } = await lstat(file)
        return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
      } catch (error) {
        if (systemErrorCode(error) === null) throw error
        return 'gone'
      }
    }),
  )
}
