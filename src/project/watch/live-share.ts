import { rm, writeFile } from 'node:fs/promises'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { isEvent } from '../../core/events/checks.ts'
import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import type { Item } from '../../core/events/items.ts'
import { LiveBoard, type LiveItem, liveKey } from '../../core/events/live-board.ts'
import type { SessionState, View } from '../../core/state/state.ts'
import { replaceFile } from '../../platform/files.ts'
import { isStillRunning, type ProcessIdentity } from '../../platform/processes.ts'
import { cutUnfinished, type Redactor } from '../../secrets/redactor.ts'
import type { Audience } from '../../session/options.ts'
import { readTextFile } from '../../workspace/files/inside-directory.ts'

interface LiveShareOptions {
  /** Path of the snapshot. */
  path: string
  /** The run; `startTime` as of `startTimeOf`. */
  owner: { pid: number; startTime: string | null }
  redactor: Redactor
  clock: Clock
}

/** How long one `watch` is valid, in ms. */
const WATCHED_MS = 60_000
/** Most processes that count as watchers at one time. */
const MOST_WATCHERS = 100

/** Watchers of a run: its own screen while it lasts, and living processes that reported in the last minute. */
export class Watchers implements Audience {
  #isForGood: boolean
  readonly #options: { clock: Clock; platform: NodeJS.Platform }
  /** By pid; `until` on the monotonic clock, ms. */
  readonly #known = new Map<number, ProcessIdentity & { until: number }>()
  #changed = new AbortController()

  /** @param hasScreen whether the run has a screen of its own */
  constructor(hasScreen: boolean, options: { clock: Clock; platform: NodeJS.Platform }) {
    this.#isForGood = hasScreen
    this.#options = options
  }

  get changed(): AbortSignal {
    return this.#changed.signal
  }

  get isForGood(): boolean {
    return this.#isForGood
  }

  /** Marks that the run's own screen is gone. */
  letGo(): void {
    this.#isForGood = false
    this.#change()
  }

  /** Registers a process that shows the run to somebody. An older version sends no pid, and is not counted. */
  watched({ pid, startTime = null }: { pid?: number; startTime?: string | null }): void {
    if (pid === undefined) return
    const isNew = !this.#known.has(pid)
    const now = this.#options.clock.monotonic()
    for (const each of this.#known.values()) if (each.until <= now) this.#known.delete(each.pid)
    if (isNew && this.#known.size >= MOST_WATCHERS) return
    this.#known.set(pid, { pid, startTime, until: now + WATCHED_MS })
    if (isNew) this.#change()
  }

  #change(): void {
    const changed = this.#changed
    this.#changed = new AbortController()
    changed.abort()
  }

  async isAttached(): Promise<boolean> {
    if (this.#isForGood) return true
    const { clock, platform } = this.#options
    for (const watcher of this.#known.values()) {
      const { pid, until } = watcher
      if (until > clock.monotonic() && (await isStillRunning(watcher, platform))) return true
      if (this.#known.get(pid) === watcher) this.#known.delete(pid)
    }
    return false
  }
}
/** Time between two snapshots, in ms. */
const PACE_MS = 250

/**
 * Shares what a run does just now with those who watch it from other processes: while somebody does, a snapshot in a
 * file is kept up to date, at most four times a second. A view, so that it sees what is shown; it holds no secret that
 * the journal would not. Disposing of it takes the file away.
 *
 *     nobody watches ── watched() ──→ shared ── 60 s without another ──→ nobody watches
 */
export class LiveShare implements View, AsyncDisposable {
  readonly #options: LiveShareOptions
  readonly #board = new LiveBoard()
  readonly #texts = new Map<string, SharedText>()
  readonly #closing = new AbortController()
  #session: string | null = null
  #round = 0
  #events = 0
  #until = Number.NEGATIVE_INFINITY
  #sequence = 0
  #isChanged = false
  #changed = new AbortController()
  #sharing: Promise<void> | null = null

  constructor(options: LiveShareOptions) {
    this.#options = options
  }

  event(event: Recorded, state: SessionState): void {
    this.#events = state.events
    if (event.type === 'round-started') this.#round = event.round
    const { revision } = this.#board
    this.#board.event(event)
    if (this.#board.items.length === 0) this.#texts.clear()
    if (this.#board.revision === revision && event.session === this.#session) return
    this.#session = event.session
    this.#change()
  }

  live(event: LiveEvent): void {
    const { revision } = this.#board
    this.#board.live(event, this.#options.clock.now())
    if (this.#board.revision !== revision) this.#change()
  }

  /** Marks that somebody watches. */
  watched(): void {
    if (this.#closing.signal.aborted) return
    this.#until = this.#options.clock.monotonic() + WATCHED_MS
    this.#sharing ??= this.#share().finally(() => {
      this.#sharing = null
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    this.#changed.abort()
    await this.#sharing
    // A killed run may have left one.
    await removeLiveSnapshot(this.#options.path).catch(() => {})
  }

  #change(): void {
    this.#isChanged = true
    this.#changed.abort()
  }

  get #leftMs(): number {
    return this.#closing.signal.aborted ? 0 : this.#until - this.#options.clock.monotonic()
  }

  async #share(): Promise<void> {
    const { clock, path } = this.#options
    this.#isChanged = true
    while (this.#leftMs > 0) {
      this.#changed = new AbortController()
      // A write error, such as a full disk, breaks only the watchers' view, never the run.
      if (this.#isChanged) await this.#write().catch(() => {})
      await clock.wait(PACE_MS, this.#closing.signal)
      if (!this.#isChanged) await clock.wait(this.#leftMs, this.#changed.signal)
    }
    await removeLiveSnapshot(path).catch(() => {})
  }

  async #write(): Promise<void> {
    const { path, owner } = this.#options
    this.#isChanged = false
    if (this.#session === null) return
    this.#sequence += 1
    const { items } = this.#board
    const running = new Set(items.map(keyOf))
    for (const key of this.#texts.keys()) if (!running.has(key)) this.#texts.delete(key)
    await writeLiveSnapshot(path, {
      ...owner,
      session: this.#session,
      events: this.#events,
      sequence: this.#sequence,
      items: items.map(each => this.#shared(each)),
    })
  }

  #shared(live: LiveItem): SharedItem {
    const { item, startedAt, instance } = live
    let text = this.#texts.get(keyOf(live))
    if (!text) {
      text = new SharedText(this.#options.redactor)
      this.#texts.set(keyOf(live), text)
    }
    text.follow(live)
    const shared = { round: this.#round, item: withoutWords(item), startedAt, text: text.text, dropped: text.dropped }
    return instance === undefined ? shared : { ...shared, instance }
  }
}

function keyOf({ item, instance }: LiveItem): string {
  return liveKey(item.id, instance)
}

/** The text at an item's start is already in its streamed text. */
function withoutWords(item: Item): Item {
  switch (item.kind) {
    case 'agent-message':
    case 'reasoning':
    case 'plan':
      return { ...item, text: '' }
    case 'command':
      return { ...item, output: '' }
    default:
      return item
  }
}

/** Current work of codex, and its streamed text. */
export interface SharedItem {
  round: number
  item: Item
  /** Unix time, ms. */
  startedAt: number
  /** End of the streamed text; it grows at its end, and loses its beginning. */
  text: string
  /** Number of characters dropped before `text`. */
  dropped: number
  /** Its agent, if not the round's own. */
  instance?: string
}

/** Current work of a run, for watchers in other processes: the text of `live.json`. */
export interface LiveSnapshot {
  /** The run that wrote it; `startTime` as of `startTimeOf`. */
  pid: number
  startTime: string | null
  session: string
  /** Number of the session's events so far. */
  events: number
  /** Increases by one with each snapshot of a run. */
  sequence: number
  items: readonly SharedItem[]
}

/** Replaces the snapshot, mode 0600. It need not survive a crash, so it does not wait for the disk. */
export async function writeLiveSnapshot(path: string, snapshot: LiveSnapshot): Promise<void> {
  const temporary = `${path}.tmp`
  await writeFile(temporary, JSON.stringify(snapshot), { mode: 0o600 })
  await replaceFile(temporary, path)
}

/** Removes the snapshot, if there is one. */
async function removeLiveSnapshot(path: string): Promise<void> {
  for (const each of [path, `${path}.tmp`]) await rm(each, { force: true })
}

/** Reads the snapshot of a file; null: missing or invalid. */
export async function readLiveSnapshot(path: string): Promise<LiveSnapshot | null> {
  const file = await readTextFile(path, MOST_BYTES)
  if (file.kind !== 'text') return null
  try {
    const value: unknown = JSON.parse(file.text)
    return v.is(snapshotSchema, value) ? value : null
  } catch {
    return null
  }
}

/** Far more than parallel work needs. */
const MOST_BYTES = 32 * 1024 * 1024

const snapshotSchema = v.object({
  pid: v.number(),
  startTime: v.nullable(v.string()),
  session: v.string(),
  events: v.number(),
  sequence: v.number(),
  items: v.array(
    v.object({
      round: v.number(),
      item: v.custom<Item>(isItem),
      startedAt: v.number(),
      text: v.string(),
      dropped: v.number(),
      instance: v.exactOptional(v.string()),
    }),
  ),
})

function isItem(item: unknown): boolean {
  // The journal's schema defines a valid item.
  return isEvent({ type: 'item-completed', at: new Date(0).toISOString(), item }) && typeof Object(item).id === 'string'
}

const MOST_CHARACTERS = 64 * 1024
const MOST_OUTPUT_CHARACTERS = 16 * 1024

/**
 * The text of a live item without secrets. A piece may hold only part of a secret, so it is held back while it may be the
 * beginning of one. Released text never changes.
 */
export class SharedText {
  readonly #redactor: Redactor
  /** Number of characters read of the item's text, from its beginning. */
  #taken = 0
  #held = ''
  text = ''
  dropped = 0

  constructor(redactor: Redactor) {
    this.#redactor = redactor
  }

  /** Adds the item's new text since the last call. */
  follow({ item, text, dropped }: Pick<LiveItem, 'item' | 'text' | 'dropped'>): void {
    // An output keeps its end, everything else its start.
    const isOutput = item.kind === 'command'
    const start = isOutput ? dropped : 0
    const isGap = start > this.#taken
    const more = isGap ? withoutFirstWord(text) : text.slice(this.#taken - start)
    this.#taken = start + text.length
    if (more === '') return
    this.#append(this.#letOut(isGap ? more : this.#held + more), isOutput ? MOST_OUTPUT_CHARACTERS : MOST_CHARACTERS)
  }

  #letOut(text: string): string {
    const { whole, held } = cutUnfinished(this.#redactor, text)
    this.#held = held
    return this.#redactor.text(whole)
  }

  #append(more: string, most: number): void {
    const text = this.text + more
    this.dropped += Math.max(0, text.length - most)
    this.text = text.slice(-most)
  }
}

/** It may be the end of a secret. */
function withoutFirstWord(text: string): string {
  return text.slice(Math.max(0, text.search(/\s/)))
}
