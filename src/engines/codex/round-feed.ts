import type { ServerNotification, ThreadItem } from '../../../protocol/codex.ts'
import type { Clock } from '../../base/clock.ts'
import { truncate } from '../../base/text.ts'
import type { EngineEvent, ModelInUse, RoundRun } from '../../core/engine.ts'
import { LONGEST_WAIT_MS } from './app-server.ts'
import { translate, UsedTokens, waitsForNetwork } from './translate.ts'
import { isCut } from './translate-item.ts'

/**
 * Delivers the events and raw lines of a round to the caller of `run`. What comes while the round is not being run is held
 * until it is.
 *
 *     held ──open()──▶ open ──hold()──▶ held … ──close()──▶ closed
 */
export class RoundFeed {
  readonly #clock: Clock
  readonly #log: (message: string) => void
  readonly #seenUnknown = new Set<string>()
  readonly #notices = new RetryNotices()
  /** Used tokens by thread. */
  readonly #tokens = new Map<string, UsedTokens>()
  #held: (() => void)[] = []
  #run: RoundRun | null = null
  #state: 'held' | 'open' | 'closed' = 'held'

  constructor({ clock, log }: { clock: Clock; log(message: string): void }) {
    this.#clock = clock
    this.#log = log
  }

  open(run: RoundRun): void {
    if (this.#state === 'closed') return
    this.#run = run
    this.#state = 'open'
    for (const action of this.#held.splice(0)) action()
  }

  hold(): void {
    if (this.#state === 'open') this.#state = 'held'
  }

  close(): void {
    this.#state = 'closed'
    this.#held = []
  }

  /** Calls the action now, or once the round is run. */
  whenOpen(action: () => void): void {
    if (this.#state === 'open') action()
    else if (this.#state === 'held') this.#held.push(action)
  }

  /** Delivers a raw line of codex, unless it is a delta. */
  line(line: string, message: object): void {
    const method: unknown = Reflect.get(message, 'method')
    if (typeof method === 'string' && (method.endsWith('Delta') || method.endsWith('delta'))) return
    if (this.#state === 'open') this.#run?.onRecord(line)
    else this.whenOpen(() => this.#run?.onRecord(line))
  }

  /**
   * Delivers the event of a notification while the feed is open. False for an unknown method.
   * @param inUse model and effort, as codex named them at the start of the thread
   */
  notification(message: ServerNotification, inUse: ModelInUse): boolean {
    const run = this.#run
    if (!run || this.#state !== 'open') return true
    if (message.method === 'item/completed' || message.method === 'turn/started') this.#notices.forget()
    if (message.method === 'item/completed') tellLongMessage(message.params.item, run)
    const translation = translate(message, run.round, inUse)
    switch (translation.kind) {
      case 'event':
        if (this.#isTold(translation.event)) run.onEvent(this.#counted(translation.event))
        break
      case 'live':
        run.onLive(translation.event)
        break
      case 'unknown':
        this.#logUnknown(message.method)
        return false
      case 'ignored':
        break
    }
    return true
  }

  requestAnswered(method: string, { subject, answer }: { subject: string; answer: string }): void {
    this.#event(round => ({ type: 'request-answered', round, method, subject, answer }))
  }

  machineSlept(ms: number): void {
    this.#event(round => ({ type: 'machine-slept', round, ms }))
  }

  #event(of: (round: number) => EngineEvent): void {
    this.whenOpen(() => this.#run?.onEvent(of(this.#run.round)))
  }

  #counted(event: EngineEvent): EngineEvent {
    if (event.type !== 'usage') return event
    const tokens = this.#tokens.get(event.thread) ?? new UsedTokens()
    this.#tokens.set(event.thread, tokens)
    return tokens.count(event)
  }

  #isTold(event: EngineEvent): boolean {
    return event.type !== 'error' || !event.willRetry || this.#notices.isNews(event, this.#clock.monotonic())
  }

  #logUnknown(method: string): void {
    if (this.#seenUnknown.has(method)) return
    this.#seenUnknown.add(method)
    this.#log(`codex sends ${method}, which this version of codemachine does not know and ignores.`)
  }
}

/** Passes on the whole text of a message that its event cuts: the caller may need it for an answer or an output. */
function tellLongMessage(item: ThreadItem, run: RoundRun): void {
  if (item.type === 'agentMessage' && isCut(item.text)) run.onLongMessage?.(item.id, item.text)
}

/** Interval after which the same notice is passed on again if nothing else happens, ms. */
const AGAIN_MS = 5 * 60_000
/** Most different notices that are remembered. */
const MOST_NOTICES = 100

/**
 * Limits codex's retry notices. Without a network, codex repeats one every few seconds for hours. Each is passed on once,
 * then every five minutes, to keep the journal small.
 */
export class RetryNotices {
  readonly #told = new Map<string, number>()

  /** True if this notice, received at `now` (monotonic, ms), must be passed on. */
  isNews({ message, waitsForNetwork }: Extract<EngineEvent, { type: 'error' }>, now: number): boolean {
    const cause = waitsForNetwork ? 'network' : message
    const last = this.#told.get(cause)
    if (last !== undefined && now - last < AGAIN_MS) return false
    if (this.#told.size >= MOST_NOTICES) this.#told.clear()
    this.#told.set(cause, now)
    return true
  }

  /** Forgets all notices after progress of the turn: later ones are new again. */
  forget(): void {
    if (this.#told.size > 0) this.#told.clear()
  }
}

/** Times after which codex counts as hung. */
export interface SilenceLimits {
  /** Time without a message while nothing is in progress, ms. */
  silenceMs: number
  /** Time with a command or tool in progress and no other start or end, ms. */
  commandMs: number
}

/** Longest network wait of a turn whose agent has done nothing, ms: a retry then loses nothing. */
const NETWORK_AT_START_MS = 15_000
/** Longest network wait after the agent has worked, ms: the turn's thoughts end with it. */
const NETWORK_MS = 2 * 60_000

/**
 * Returns a turn's longest network wait (`EngineSetup.networkMs`), a part of `maxWaitMs` (for all failures in a row). A wait
 * of codemachine with a known end follows.
 */
export function networkLimit(maxWaitMs: number): number {
  return Math.min(NETWORK_MS, maxWaitMs / 4)
}

/** Silence limit during a network wait, ms: codex pauses a minute between attempts, and each may take long. */
const NETWORK_SILENCE_MS = 15 * 60_000

/**
 * Tracks codex's work in all threads of a connection by its notifications. All times are monotonic, ms. A begun message or
 * thought without an end is not in progress: an interrupted stream leaves such. Work of the provider (a search, a picture, a
 * compaction) is part of the stream, whose silence codex watches.
 */
export class Activity {
  /** Running commands and tools of this turn, the newest last. */
  readonly #open = new Map<string, { item: ThreadItem; since: number }>()
  #heardAt: number
  /** Time of the last start or end. */
  #movedAt: number
  #networkAwaySince: number | null = null
  #hasWorked = false

  constructor(now: number) {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** True if a command of this turn runs, even in the background. */
  get hasCommands(): boolean {
    for (const { item } of this.#open.values()) if (item.type === 'commandExecution') return true
    return false
  }

  /** Start of codex's current wait for the network; null: it does not wait. */
  get networkAwaySince(): number | null {
    return this.#networkAwaySince
  }

  /** True if a message of a turn arrived within the last `withinMs` and codex does not wait for the network. */
  isServed(now: number, withinMs: number): boolean {
    return this.#networkAwaySince === null && now - this.#heardAt <= withinMs
  }

  /** Returns the part of `limitMs` that codex may wait for the network now. */
  networkMs(limitMs: number): number {
    return this.#hasWorked ? limitMs : Math.min(limitMs, NETWORK_AT_START_MS)
  }

  /** Starts a new turn and forgets open items of earlier ones. */
  beginTurn(now: number): void {
    this.#open.clear()
    this.#networkAwaySince = null
    this.restart(now)
  }

  /** Restarts all clocks. */
  restart(now: number): void {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** Notes that a message was received. */
  heard(now: number): void {
    this.#heardAt = now
  }

  /** Notes a notification. Output, tokens and texts are not progress: a hung command may send them. */
  note(message: ServerNotification, now: number): void {
    switch (message.method) {
      case 'item/started':
        if (isTool(message.params.item))
          this.#open.set(message.params.item.id, { item: message.params.item, since: now })
        this.#move(now)
        break
      case 'item/completed':
        this.#open.delete(message.params.item.id)
        this.#hasWorked ||= message.params.item.type !== 'userMessage'
        this.#move(now)
        break
      case 'error':
        // Endless by design: time without a network does not count against the round.
        if (!waitsForNetwork(message.params)) break
        this.#networkAwaySince ??= now
        this.#movedAt = now
        break
      default:
        break
    }
  }

  /** Returns the time until codex counts as hung without a further message, ms; 0 or less: it is hung. */
  msLeft(now: number, { silenceMs, commandMs }: SilenceLimits): number {
    if (this.#open.size > 0) return this.#movedAt + commandMs - now
    return this.#heardAt + (this.#networkAwaySince !== null ? Math.max(silenceMs, NETWORK_SILENCE_MS) : silenceMs) - now
  }

  /** Returns a sentence on the problem if codex counts as hung at `now`. */
  describe(now: number): string {
    const last = [...this.#open.values()].at(-1)
    if (!last) return `Nothing came from codex for ${spoken(now - this.#heardAt)}.`
    return `${toolName(last.item)} was still running after ${spoken(now - last.since)}.`
  }

  #move(now: number): void {
    this.#movedAt = now
    this.#networkAwaySince = null
  }
}

/** Bounds a round's waits for the network: codex waits forever for a missing server. */
export class NetworkWaits {
  readonly #activity: Activity
  readonly #options: { clock: Clock; networkMs?: number }
  /** Start of the wait that was followed last. */
  #since: number | null = null

  /** @param options `networkMs` as in `EngineSetup` */
  constructor(activity: Activity, options: { clock: Clock; networkMs?: number }) {
    this.#activity = activity
    this.#options = options
  }

  /**
   * Call it for each wait notice of codex. Resolves with true if codex does nothing else for the allowed time. Resolves with
   * false if it does, if there is no limit, or if the same wait is followed already.
   * @param over aborted when the round is
   */
  async lastsTooLong(over: AbortSignal): Promise<boolean> {
    const { clock, networkMs } = this.#options
    const since = this.#activity.networkAwaySince
    if (networkMs === undefined || since === this.#since) return false
    this.#since = since
    await clock.wait(Math.min(this.#activity.networkMs(networkMs), LONGEST_WAIT_MS), over)
    return !over.aborted && this.#activity.networkAwaySince === since
  }
}

/** Items that are not commands or tools; unknown items of a later codex count as tools. */
const NO_TOOLS: ReadonlySet<string> = new Set<ThreadItem['type']>([
  'userMessage',
  'hookPrompt',
  'agentMessage',
  'functionCallOutput',
  'plan',
  'reasoning',
  'subAgentActivity',
  'webSearch',
  'imageView',
  'imageGeneration',
  'enteredReviewMode',
  'exitedReviewMode',
  'contextCompaction',
])

function isTool({ type }: ThreadItem): boolean {
  return !NO_TOOLS.has(type)
}

/** Returns "90 seconds" or "6 minutes"; hours are in minutes, as in the settings. */
function spoken(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const [count, unit] = seconds < 120 && seconds !== 60 ? [seconds, 'second'] : [Math.round(seconds / 60), 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Returns the name of a tool or command for a sentence: "`npm test`", "The tool `server.name`"; one short line. */
function toolName(item: ThreadItem): string {
  switch (item.type) {
    case 'commandExecution':
      return quoted(commandOf(item))
    case 'mcpToolCall':
      return `The tool ${quoted(`${item.server}.${item.tool}`)}`
    case 'dynamicToolCall':
    case 'collabAgentToolCall':
      return `The tool ${quoted(item.tool)}`
    default:
      return `The tool ${quoted(String(item.type))}`
  }
}

const MOST_CHARACTERS = 80

function quoted(text: string): string {
  return `\`${truncate(text.replace(/\s+/g, ' ').trim(), MOST_CHARACTERS)}\``
}

/** Returns the command as the agent gave it: codex wraps it in a login shell, and reports how it parsed it. */
function commandOf({ command, commandActions }: Extract<ThreadItem, { type: 'commandExecution' }>): string {
  const [action, ...others] = Array.isArray(commandActions) ? commandActions : []
  if (action && others.length === 0 && typeof action.command === 'string') return action.command
  const [, inner] = /^\S*sh -l?c (['"])([\s\S]*)\1$/.exec(command)?.slice(1) ?? []
  return inner ?? command
}

interface SilenceWatchOptions extends SilenceLimits {
  activity: Activity
  clock: Clock
  /** Called after the machine slept for about `ms`; the clocks have been restarted. */
  onSlept(ms: number): void
  /** Called once when codex counts as hung, with a sentence; the watch ends. */
  onSilent(message: string): void
}

/** Interval between checks for a sleep of the machine, ms. */
const LOOK_MS = 30_000
/** Shortest wait, ms. */
const LEAST_WAIT_MS = 1_000
/** Delay of a check, or lead of the wall clock, after which the machine counts as having slept, ms. */
const SLEEP_MS = 30_000

/**
 * Calls `onSilent` when codex counts as hung, until `stop` is called. During a sleep of the machine, monotonic time and
 * timers stop (Linux) or continue (macOS, Windows). So either the wall clock gets ahead, or a check is far too late. The
 * time of a sleep does not count against codex.
 */
export function watchForSilence(options: SilenceWatchOptions): { stop(): void } {
  const { activity, clock, onSlept, onSilent } = options
  const stopped = new AbortController()
  void watch()
  return { stop: () => stopped.abort() }

  async function watch(): Promise<void> {
    for (;;) {
      const [wall, steady] = [clock.now(), clock.monotonic()]
      const waitMs = Math.max(LEAST_WAIT_MS, Math.min(LOOK_MS, activity.msLeft(steady, options)))
      await clock.wait(waitMs, stopped.signal)
      if (stopped.signal.aborted) return
      const now = clock.monotonic()
      const missedMs = Math.max(clock.now() - wall, now - steady) - waitMs
      if (missedMs > SLEEP_MS) {
        activity.restart(now)
        onSlept(Math.round(missedMs))
      } else if (activity.msLeft(now, options) <= 0) {
        onSilent(activity.describe(now))
        return
      }
    }
  }
}
