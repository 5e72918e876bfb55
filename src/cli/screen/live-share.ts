import type { Clock } from '../../base/clock.ts'
import type { Redactor } from '../../base/redactor.ts'
import type { Recorded } from '../../session/events.ts'
import type { Item } from '../../session/items.ts'
import type { LiveEvent } from '../../session/live-events.ts'
import type { SessionState } from '../../session/state.ts'
import type { View } from '../../session/view.ts'
import { LiveBoard, type LiveItem, liveKey } from '../../ui/live/live-board.ts'
import { removeLiveSnapshot, type SharedItem, writeLiveSnapshot } from './live-snapshot.ts'
import { SharedText } from './shared-text.ts'

export interface LiveShareOptions {
  /** Where the snapshot is written. */
  path: string
  /** The run; `startTime` as of `startTimeOf`. */
  owner: { pid: number; startTime: string | null }
  redactor: Redactor
  clock: Clock
}

/** How long one `watch` holds, ms. */
const WATCHED_MS = 60_000
/** Between two snapshots, ms. */
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

  /** Somebody watches. */
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
    // One of a run that was killed may be there too.
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
      // What cannot be written (no room, say) costs those who watch their view, never the run.
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

/** What an item holds as it starts is in its streamed text already. */
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
