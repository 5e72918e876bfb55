import type { Clock } from '../../base/clock.ts'
import type { LiveEvent, Recorded } from '../../session/events.ts'
import { fold } from '../../session/fold.ts'
import { holdsEvents } from '../../session/journal.ts'
import type { Records } from '../../session/records.ts'
import { askWhoRuns, type LockHolder } from '../../session/run-lock.ts'
import { type Standing, standingOf } from '../../session/standing.ts'
import { emptyState, type SessionState } from '../../session/state.ts'
import { fileState } from '../../workspace/read-text-file.ts'
import { latestSession } from '../find-session.ts'
import { FolderChanges } from '../folder-changes.ts'
import { GrowingJournal } from '../growing-journal.ts'
import { Attendance } from './feed-attendance.ts'
import { LiveChanges } from './feed-live.ts'
import { type LiveSnapshot, readLiveSnapshot } from './live-snapshot.ts'

/** What a screen is fed with that watches a session of another process. */
export type Fed =
  /** `state`: the session after the event. */
  | { kind: 'event'; event: Recorded; state: SessionState }
  /** `at`: Unix time, ms. */
  | { kind: 'live'; event: LiveEvent; at: number }
  /** The past has been told; from now on it comes as it happens. */
  | { kind: 'attached'; state: SessionState; standing: Standing }
  | { kind: 'ended' }
  /** The run goes on with this session: what follows is of it, from its first event on. */
  | { kind: 'next-session'; id: string }
  /** Nobody runs it any more, and it has not come to its end. The last that is fed. */
  | { kind: 'gone' }
  /** The same, of one that nobody ran when it was looked at first. The last that is fed. */
  | { kind: 'cut-off' }

export interface FeedOptions {
  records: Records
  id: string
  platform: NodeJS.Platform
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** How many events of the past are fed, the last ones; those before are folded into the state. */
  recent?: number
  /** Told once, as a sentence, if it cannot be known whether somebody runs. */
  onProblem?: (problem: string) => void
}

/**
 * Feeds a screen with a session that another process runs, and with those that its run goes on with, from the past on.
 * Ends when nobody runs any more, or with `signal`; at once for a session of before, while another one is at work. Any
 * number may follow at a time. A `UserError` if a journal cannot be read.
 */
export async function* followSession(options: FeedOptions): AsyncGenerator<Fed> {
  const { records, clock } = options
  const sessions = new SessionsAhead(records)
  await sessions.remember()
  await using attendance = new Attendance(records.control, clock)
  const following = { ...options, run: new RunLookout(options), attendance, sessions }
  let next = yield* followOne(options.id, options.recent ?? RECENT_EVENTS, following)
  while (next !== null) {
    yield { kind: 'next-session', id: next }
    next = yield* followOne(next, null, following)
  }
}

const RECENT_EVENTS = 200
/** For what a watcher has missed. */
const POLL_MS = 1000
/** Between two looks, ms: events that come close together are fed together. */
const PACE_MS = 25

interface Following extends FeedOptions {
  run: RunLookout
  attendance: Attendance
  sessions: SessionsAhead
}

/**
 * Follows one session; answers the next one that its run goes on with, null if there will be none.
 * @param recent as in the options; null: it has just begun, and nobody has to be told what is past
 */
async function* followOne(id: string, recent: number | null, following: Following): AsyncGenerator<Fed, string | null> {
  const { records, clock, signal, run, attendance, sessions } = following
  await using session = new FollowedSession(id, following)
  using changes = new FolderChanges([records.folder, records.sessionFolder(id)], following)
  const isLast = recent !== null && (yield* attach(session, recent, following))
  let hasRun = recent === null
  while (!signal.aborted) {
    const runner = await run.look()
    if (runner !== null) attendance.keep()
    yield* session.news(runner)
    const standing = standingOf(session.state, runner)
    hasRun ||= standing === 'running'
    if (runner === null || isLast) {
      if (standing !== 'ended') yield { kind: hasRun ? 'gone' : 'cut-off' }
      return null
    }
    const next = isOver(standing) ? await sessions.next() : null
    if (next !== null) return next
    await changes.next(POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
  return null
}

/** Tells the past; answers whether that is all: another session is at work. */
async function* attach(session: FollowedSession, recent: number, following: Following): AsyncGenerator<Fed, boolean> {
  // Before the journal: a session that ends while it is read must not look cut off.
  const runner = await following.run.look()
  yield* session.past(recent)
  const standing = standingOf(session.state, runner)
  yield { kind: 'attached', state: session.state, standing }
  if (runner === null || !isOver(standing)) return false
  return (await latestSession(following.records, () => {})) !== session.state.id
}

function isOver(standing: Standing): boolean {
  return standing === 'ended' || standing === 'cut-off'
}

class FollowedSession implements AsyncDisposable {
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
  async *past(recent: number): AsyncGenerator<Fed> {
    let last: Fed[] = []
    for await (const fed of this.#recorded()) {
      last.push(fed)
      if (last.length > 2 * recent) last = last.slice(last.length - recent)
    }
    yield* last.slice(Math.max(0, last.length - recent))
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

type Runner = LockHolder | null | 'unknown'

/** Who runs in the work directory, looked up at most once a second. */
class RunLookout {
  readonly #options: FeedOptions
  #lookedAt = Number.NEGATIVE_INFINITY
  #runner: Runner = null
  #isTold = false

  constructor(options: FeedOptions) {
    this.#options = options
  }

  async look(): Promise<Runner> {
    const { records, platform, clock } = this.#options
    const now = clock.monotonic()
    if (now - this.#lookedAt < POLL_MS) return this.#runner
    this.#lookedAt = now
    this.#runner = await askWhoRuns(records.lock, platform, problem => this.#tell(problem))
    return this.#runner
  }

  #tell(problem: string): void {
    if (!this.#isTold) this.#options.onProblem?.(problem)
    this.#isTold = true
  }
}

/** The sessions that come to be while one is followed. */
class SessionsAhead {
  readonly #records: Records
  #known: ReadonlySet<string> = new Set()

  constructor(records: Records) {
    this.#records = records
  }

  /** What is there now is no session to come. */
  async remember(): Promise<void> {
    const ids = await this.#records.sessions()
    const newest = ids.at(-1)
    const known = new Set(ids)
    if (newest !== undefined && !(await this.#hasBegun(newest))) known.delete(newest)
    this.#known = known
  }

  /** The first one that has begun since; null if there is none yet. */
  async next(): Promise<string | null> {
    for (const id of await this.#records.sessions()) {
      if (this.#known.has(id) || !(await this.#hasBegun(id))) continue
      this.#known = new Set([...this.#known, id])
      return id
    }
    return null
  }

  /** One that cannot be read is nobody's. */
  #hasBegun(id: string): Promise<boolean> {
    return holdsEvents(this.#records.journal(id)).catch(() => false)
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
