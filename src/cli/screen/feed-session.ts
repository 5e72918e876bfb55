import type { Clock } from '../../base/clock.ts'
import { fold } from '../../session/fold.ts'
import { emptyState, type SessionState } from '../../session/state.ts'
import { fileState } from '../../workspace/read-text-file.ts'
import { GrowingJournal } from '../growing-journal.ts'
import type { Fed, FeedOptions } from './fed.ts'
import { LiveChanges } from './feed-live.ts'
import type { Runner } from './feed-runner.ts'
import { type LiveSnapshot, readLiveSnapshot } from './live-snapshot.ts'

/** Of the past; those before are folded into the state. */
const RECENT_EVENTS = 200

/** One session: what is journaled of it, and what its run shares of it. */
export class FollowedSession implements AsyncDisposable {
  readonly #journal: GrowingJournal
  readonly #live: SharedLive
  readonly #changes = new LiveChanges()
  readonly #clock: Clock
  readonly #signal: AbortSignal
  #state: SessionState
  #isEndTold = false

  constructor(id: string, { records, clock, signal }: FeedOptions) {
    this.#journal = new GrowingJournal(records.journal(id))
    this.#live = new SharedLive(records.live)
    this.#clock = clock
    this.#signal = signal
    this.#state = emptyState(id)
  }

  get state(): SessionState {
    return this.#state
  }

  /** The last events of what is written; all of it is folded. */
  async *past(): AsyncGenerator<Fed> {
    let last: Fed[] = []
    for await (const fed of this.#recorded()) {
      last.push(fed)
      if (last.length > 2 * RECENT_EVENTS) last = last.slice(-RECENT_EVENTS)
    }
    yield* last.slice(-RECENT_EVENTS)
  }

  /** What has come since the last time. */
  async *news(runner: Runner): AsyncGenerator<Fed> {
    // Before the journal: what a snapshot builds on has been journaled.
    const snapshot = await this.#live.next(runner)
    yield* this.#recorded()
    if (snapshot?.session === this.#state.id) {
      for (const passing of this.#changes.in(snapshot, this.#clock.now())) yield { kind: 'live', ...passing }
    }
    const hasEnded = this.#state.ended !== null
    if (hasEnded && !this.#isEndTold) yield { kind: 'ended' }
    this.#isEndTold = hasEnded
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#journal[Symbol.asyncDispose]()
  }

  async *#recorded(): AsyncGenerator<Extract<Fed, { kind: 'event' }>> {
    for await (const event of this.#journal.readOn(this.#signal)) {
      this.#state = fold(this.#state, event)
      this.#changes.event(event, this.#state.events)
      yield { kind: 'event', event, state: this.#state }
    }
  }
}

/** What a run shares of what it does just now. */
class SharedLive {
  readonly #path: string
  #key: string | null = null

  constructor(path: string) {
    this.#path = path
  }

  /** The snapshot, if it is another than the last time; not one that a dead run has left. */
  async next(runner: Runner): Promise<LiveSnapshot | null> {
    if (runner === null || runner === 'unknown') return null
    const key = (await fileState(this.#path))?.key ?? null
    if (key === null || key === this.#key) return null
    const snapshot = await readLiveSnapshot(this.#path)
    if (snapshot?.pid !== runner.pid || snapshot.startTime !== runner.startTime) return null
    this.#key = key
    return snapshot
  }
}
