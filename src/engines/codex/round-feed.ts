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
  /** Of each thread. */
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

  /** Delivers a line as codex wrote it, unless it is a delta. */
  line(line: string, message: object): void {
    const method: unknown = Reflect.get(message, 'method')
    if (typeof method === 'string' && (method.endsWith('Delta') || method.endsWith('delta'))) return
    if (this.#state === 'open') this.#run?.onRecord(line)
    else this.whenOpen(() => this.#run?.onRecord(line))
  }

  /**
   * Delivers the event of a notification, while the feed is open. False if its method is not known.
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

/** Of what is cut in the event of a message, the caller may need all: an answer, or what is kept. */
function tellLongMessage(item: ThreadItem, run: RoundRun): void {
  if (item.type === 'agentMessage' && isCut(item.text)) run.onLongMessage?.(item.id, item.text)
}

/** After how long the same notice is passed on again while nothing else happens, ms. */
const AGAIN_MS = 5 * 60_000
/** Different notices that are remembered. */
const MOST_NOTICES = 100

/**
 * Limits codex's retry notices. While the network is down codex sends the same one every few seconds, for hours; each is
 * passed on once, then every five minutes, so that it does not fill the journal.
 */
export class RetryNotices {
  readonly #told = new Map<string, number>()

  /** True if this notice, received at `now` (monotonic, ms), is to be passed on. */
  isNews({ message, waitsForNetwork }: Extract<EngineEvent, { type: 'error' }>, now: number): boolean {
    const cause = waitsForNetwork ? 'network' : message
    const last = this.#told.get(cause)
    if (last !== undefined && now - last < AGAIN_MS) return false
    if (this.#told.size >= MOST_NOTICES) this.#told.clear()
    this.#told.set(cause, now)
    return true
  }

  /** The turn goes on: what comes after this is news again. */
  forget(): void {
    if (this.#told.size > 0) this.#told.clear()
  }
}

/** When codex counts as hung. */
export interface SilenceLimits {
  /** Nothing came from codex, and nothing was in progress, for so long, ms. */
  silenceMs: number
  /** A command or tool was in progress, and nothing else was begun or done, for so long, ms. */
  commandMs: number
}

/** How long a turn may wait for the network while its agent has done nothing, ms: then nothing is lost by another try. */
const NETWORK_AT_START_MS = 15_000
/** The same once it has, ms: what it has in mind ends with its turn. */
const NETWORK_MS = 2 * 60_000

/**
 * How long a turn may wait for the network (`EngineSetup.networkMs`) where failures in a row may take `maxWaitMs` in all: a
 * part of that, so that what follows is a wait of ours with a moment at which it ends.
 */
export function networkLimit(maxWaitMs: number): number {
  return Math.min(NETWORK_MS, maxWaitMs / 4)
}

/** Codex waits a minute between its attempts to connect, and each attempt may take its time. */
const NETWORK_SILENCE_MS = 15 * 60_000

/**
 * What codex is doing, by its notifications, in all threads of a connection. All times are monotonic, ms.
 *
 * A message or thought that was begun and is never completed is not in progress: a stream that breaks off leaves such.
 * What the provider does itself (a search, a picture, a compaction) is part of the stream, whose silence codex watches.
 */
export class Activity {
  /** Commands and tools of this turn that have started and not ended, the newest last. */
  readonly #open = new Map<string, { item: ThreadItem; since: number }>()
  #heardAt: number
  /** When anything was last begun or done. */
  #movedAt: number
  #networkAwaySince: number | null = null
  #hasWorked = false

  constructor(now: number) {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** Whether a command of this turn runs, be it in the background. */
  get hasCommands(): boolean {
    for (const { item } of this.#open.values()) if (item.type === 'commandExecution') return true
    return false
  }

  /** Since when codex has waited for the network, and done nothing else; null: it does not. */
  get networkAwaySince(): number | null {
    return this.#networkAwaySince
  }

  /** Whether anything of a turn came within the last so many ms, and codex does not wait for the network. */
  isServed(now: number, withinMs: number): boolean {
    return this.#networkAwaySince === null && now - this.#heardAt <= withinMs
  }

  /** The part of `limitMs` that codex may wait for the network now. */
  networkMs(limitMs: number): number {
    return this.#hasWorked ? limitMs : Math.min(limitMs, NETWORK_AT_START_MS)
  }

  /** A new turn starts: what an earlier one left open is not of it. */
  beginTurn(now: number): void {
    this.#open.clear()
    this.#networkAwaySince = null
    this.restart(now)
  }

  /** Starts all clocks anew. */
  restart(now: number): void {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** Anything was received. */
  heard(now: number): void {
    this.#heardAt = now
  }

  /** A notification was received. Output, tokens and texts are no progress: a command that hangs may send them. */
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
        // Endless by design: the time without a network is nobody's fault.
        if (!waitsForNetwork(message.params)) break
        this.#networkAwaySince ??= now
        this.#movedAt = now
        break
      default:
        break
    }
  }

  /** How long until codex counts as hung if nothing more comes, ms; 0 or less: it does. */
  msLeft(now: number, { silenceMs, commandMs }: SilenceLimits): number {
    if (this.#open.size > 0) return this.#movedAt + commandMs - now
    return this.#heardAt + (this.#networkAwaySince !== null ? Math.max(silenceMs, NETWORK_SILENCE_MS) : silenceMs) - now
  }

  /** What is wrong if codex counts as hung at `now`, in one sentence. */
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

/** Bounds the waits of a round for the network: codex waits for ever for a server that is not there. */
export class NetworkWaits {
  readonly #activity: Activity
  readonly #options: { clock: Clock; networkMs?: number }
  /** The wait that was followed last. */
  #since: number | null = null

  /** @param options `networkMs` as in `EngineSetup` */
  constructor(activity: Activity, options: { clock: Clock; networkMs?: number }) {
    this.#activity = activity
    this.#options = options
  }

  /**
   * To be called with each notice that codex waits. Resolves with true if it has done nothing else once it has waited for as long
   * as it may; with false if it has, if nothing bounds it, or if the same wait is followed already.
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

/** Items that are no commands or tools of their own; what a later codex may have counts as a tool. */
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

/** "90 seconds", "6 minutes": hours are said in minutes, as the settings are. */
function spoken(ms: number): string {
  const seconds = Math.round(ms / 1000)
  const [count, unit] = seconds < 120 && seconds !== 60 ? [seconds, 'second'] : [Math.round(seconds / 60), 'minute']
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** How a sentence names a tool or command: "`npm test`", "The tool `server.name`"; one short line. */
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

/** The command as the agent gave it: codex runs it by a login shell, and tells what it understood of it. */
function commandOf({ command, commandActions }: Extract<ThreadItem, { type: 'commandExecution' }>): string {
  const [action, ...others] = Array.isArray(commandActions) ? commandActions : []
  if (action && others.length === 0 && typeof action.command === 'string') return action.command
  const [, inner] = /^\S*sh -l?c (['"])([\s\S]*)\1$/.exec(command)?.slice(1) ?? []
  return inner ?? command
}

interface SilenceWatchOptions extends SilenceLimits {
  activity: Activity
  clock: Clock
  /** The machine slept for about so long, ms; the clocks have been started anew. */
  onSlept(ms: number): void
  /** Codex counts as hung, for this reason, a sentence. Called once; nothing is watched after it. */
  onSilent(message: string): void
}

/** How often it is looked whether the machine slept, ms. */
const LOOK_MS = 30_000
/** A shorter wait is not worth it. */
const LEAST_WAIT_MS = 1_000
/** What a look may come too late, or the wall clock gain on the other, before the machine counts as having slept, ms. */
const SLEEP_MS = 30_000

/**
 * Calls `onSilent` when codex counts as hung, until `stop` is called.
 *
 * In a machine that sleeps, monotonic time and timers stand still (Linux) or go on (macOS, Windows): either the wall
 * clock gains on the other, or a look comes far too late. What codex could not do meanwhile is not held against it.
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
