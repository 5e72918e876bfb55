import type { ServerNotification, ThreadItem } from '../../protocol/codex.ts'
import { toolName } from './tool-name.ts'
import { waitsForNetwork } from './translate.ts'

/** When codex counts as hung. */
export interface SilenceLimits {
  /** Nothing came from codex, and nothing was in progress, for so long, ms. */
  silenceMs: number
  /** A command or tool was in progress, and nothing else was begun or done, for so long, ms. */
  commandMs: number
}

/** Codex waits a minute between its attempts to connect, and each attempt may take its time. */
const NETWORK_SILENCE_MS = 15 * 60_000

/**
 * What codex is doing, as far as its notifications tell, of all threads of a connection. All times are monotonic, ms.
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
  #networkIsAway = false

  constructor(now: number) {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** Whether a command of this turn runs, be it in the background. */
  get hasCommands(): boolean {
    for (const { item } of this.#open.values()) if (item.type === 'commandExecution') return true
    return false
  }

  /** A new turn starts: what an earlier one left open is not of it. */
  beginTurn(now: number): void {
    this.#open.clear()
    this.#networkIsAway = false
    this.restart(now)
  }

  /** Starts all clocks anew. */
  restart(now: number): void {
    this.#heardAt = now
    this.#movedAt = now
  }

  /** Something came, whatever it is. */
  heard(now: number): void {
    this.#heardAt = now
  }

  /** What came. Output, tokens and texts are no steps: they may be of the command that hangs. */
  note(message: ServerNotification, now: number): void {
    switch (message.method) {
      case 'item/started':
        if (isTool(message.params.item))
          this.#open.set(message.params.item.id, { item: message.params.item, since: now })
        this.#move(now)
        break
      case 'item/completed':
        this.#open.delete(message.params.item.id)
        this.#move(now)
        break
      case 'error':
        // Endless by design: the time without a network is nobody's fault.
        if (!waitsForNetwork(message.params)) break
        this.#networkIsAway = true
        this.#movedAt = now
        break
      default:
        break
    }
  }

  /** How long until codex counts as hung if nothing more comes, ms; 0 or less: it does. */
  msLeft(now: number, { silenceMs, commandMs }: SilenceLimits): number {
    if (this.#open.size > 0) return this.#movedAt + commandMs - now
    return this.#heardAt + (this.#networkIsAway ? Math.max(silenceMs, NETWORK_SILENCE_MS) : silenceMs) - now
  }

  /** What is wrong if codex counts as hung at `now`, in one sentence. */
  describe(now: number): string {
    const last = [...this.#open.values()].at(-1)
    if (!last) return `Nothing came from codex for ${spoken(now - this.#heardAt)}.`
    return `${toolName(last.item)} was still running after ${spoken(now - last.since)}.`
  }

  #move(now: number): void {
    this.#movedAt = now
    this.#networkIsAway = false
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
