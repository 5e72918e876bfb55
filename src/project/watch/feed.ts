import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import { ENDS_WHAT_RUNS, liveKey } from '../../core/events/live-board.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState, type SessionState, type SessionStatus, sessionStatusOf } from '../../core/state/state.ts'
import type { TemplateKinds } from '../../core/template.ts'
import { FolderChanges } from '../../platform/files.ts'
import { type ProcessIdentity, startTimeOf } from '../../platform/processes.ts'
import { sendCommand } from '../../session/records/control.ts'
import { GrowingJournal, isCallSession, lockOfSession } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { askWhoRuns, type LockHolder } from '../../session/records/run-lock.ts'
import { readSnapshot } from '../../session/records/snapshot.ts'
import { fileState } from '../../workspace/files/inside-directory.ts'
import { latestSession } from '../find.ts'
import type { WatchUpdate } from '../library.ts'
import { type LiveSnapshot, readLiveSnapshot, type SharedItem } from './live-share.ts'

/**
 * Feeds a screen with a session that another process runs, and with those that its run goes on with, from the last
 * events of the past on. Ends when nobody runs any more, or with `signal`; at once for a session of before, while another
 * one is at work. Any number may follow at a time. A `UserError` if a journal cannot be read.
 */
export async function* followSession(options: FeedOptions): AsyncGenerator<WatchUpdate> {
  const { records } = options
  const sessions = new SessionsAhead(records)
  await sessions.remember()
  await using attendance = new Attendance(records.control, options)
  const lock = await lockOfSession(records, options.id)
  const isCall = lock !== records.lock
  const following = { ...options, run: new RunLookout(lock, options), attendance, sessions, isCall }
  let next = yield* followOne(options.id, false, following)
  while (next !== null) {
    yield { kind: 'next-session', id: next }
    next = yield* followOne(next, true, following)
  }
}

/** For what a watcher has missed. */
const POLL_MS = 1000
/** Between two looks, ms: events that come close together are fed together. */
const PACE_MS = 25

interface Following extends FeedOptions {
  /** Whether the session is a call: nobody takes commands for it, and nothing follows it. */
  isCall: boolean
  run: RunLookout
  attendance: Attendance
  sessions: SessionsAhead
}

/**
 * Follows one session; answers the next one that its run goes on with, null if there will be none.
 * @param isNew it has just begun, and nothing of it is past
 */
async function* followOne(
  id: string,
  isNew: boolean,
  following: Following,
): AsyncGenerator<WatchUpdate, string | null> {
  const { records, clock, signal, run, attendance, sessions, isCall } = following
  await using session = new FollowedSession(id, following)
  using changes = new FolderChanges([records.folder, records.sessionFolder(id)], following)
  const isLast = !isNew && (yield* attach(session, following))
  let hasRun = isNew
  while (!signal.aborted) {
    const runner = await run.look()
    if (runner !== null && !isCall && !following.unattended) attendance.keep()
    yield* session.news(runner)
    const standing = sessionStatusOf(session.state, runner)
    hasRun ||= standing === 'running'
    if (runner === null || isLast) {
      if (standing !== 'ended') yield { kind: hasRun ? 'gone' : 'cut-off' }
      return null
    }
    const next = isOver(standing) && !isCall ? await sessions.next() : null
    if (next !== null) return next
    await changes.next(POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
  return null
}

/** Tells the past; answers whether that is all: another session is at work. */
async function* attach(session: FollowedSession, following: Following): AsyncGenerator<WatchUpdate, boolean> {
  // Before the journal: a session that ends while it is read must not look cut off.
  const runner = await following.run.look()
  yield* session.past()
  const standing = sessionStatusOf(session.state, runner)
  yield { kind: 'attached', state: session.state, standing }
  if (runner === null || !isOver(standing)) return false
  return (await latestSession(following.records, () => {})) !== session.state.id
}

function isOver(standing: SessionStatus): boolean {
  return standing === 'ended' || standing === 'cut-off'
}

export interface FeedOptions {
  records: Records
  id: string
  platform: NodeJS.Platform
  /** This process, in which somebody sees it. */
  pid: number
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** Whether no person sees what is told: the run does not take that for somebody who watches. Left out: one does. */
  unattended?: true
  /** Told once, as a sentence, if it cannot be known whether somebody runs. */
  onProblem: (problem: string) => void
}

/** What a run takes as "somebody still watches" holds for a minute. */
const BEAT_MS = 30_000
/** A run that opens does not take commands yet. */
const SOON_MS = 2000
const MOST_SOON = 3
const REPLY_MS = 2000

/** Lets a run know that somebody watches it. Disposing of it takes back what has not been taken yet. */
export class Attendance implements AsyncDisposable {
  readonly #control: string
  readonly #clock: Clock
  readonly #identity: () => Promise<ProcessIdentity>
  #due = Number.NEGATIVE_INFINITY
  #missed = 0
  readonly #leaving = new AbortController()
  #sending: Promise<void> = Promise.resolve()

  /** @param control the directory of the run's commands */
  constructor(control: string, { clock, pid, platform }: Pick<FeedOptions, 'clock' | 'pid' | 'platform'>) {
    this.#control = control
    this.#clock = clock
    this.#identity = async () => ({ pid, startTime: await startTimeOf(pid, platform) })
  }

  /** Says so if it is time to. Call it while somebody runs; nothing waits for the answer. */
  keep(): void {
    const now = this.#clock.monotonic()
    if (now < this.#due) return
    this.#due = now + BEAT_MS
    this.#sending = this.#send()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort()
    await this.#sending
  }

  async #send(): Promise<void> {
    const at = new Date(this.#clock.now()).toISOString()
    const how = { clock: this.#clock, timeoutMs: REPLY_MS, signal: this.#leaving.signal }
    const sent = sendCommand(this.#control, { type: 'watch', ...(await this.#identity()), at }, how)
    const reply = await sent.catch(() => null)
    // An older version: it will never know.
    if (reply?.code === 'unknown-command') {
      this.#due = Number.POSITIVE_INFINITY
      return
    }
    const isTaken = reply?.code === 'done'
    this.#missed = isTaken ? 0 : this.#missed + 1
    if (!isTaken && this.#missed <= MOST_SOON) this.#due = this.#clock.monotonic() + SOON_MS
  }
}

/** Who runs the session; `unknown`: that cannot be told. */
type Runner = LockHolder | null | 'unknown'

/** A run that goes away is noticed within this time, ms. */
const LOOK_MS = 1000

/** Who holds the lock of what is followed, looked up at most once a second. */
class RunLookout {
  readonly #lock: string
  readonly #options: FeedOptions
  #lookedAt = Number.NEGATIVE_INFINITY
  #runner: Runner = null
  #isTold = false

  constructor(lock: string, options: FeedOptions) {
    this.#lock = lock
    this.#options = options
  }

  async look(): Promise<Runner> {
    const { platform, clock } = this.#options
    const now = clock.monotonic()
    if (now - this.#lookedAt < LOOK_MS) return this.#runner
    this.#lookedAt = now
    this.#runner = await askWhoRuns(this.#lock, platform, problem => this.#tell(problem))
    return this.#runner
  }

  #tell(problem: string): void {
    if (!this.#isTold) this.#options.onProblem(problem)
    this.#isTold = true
  }
}

/** Of the past; those before are folded into the state. */
const RECENT_EVENTS = 200

/** One session: what is journaled of it, and what its run shares of it. */
class FollowedSession implements AsyncDisposable {
  readonly #records: Records
  readonly #id: string
  #journal: GrowingJournal
  readonly #live: SharedLive
  readonly #changes = new LiveChanges()
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #templates: TemplateKinds
  #state: SessionState
  #isEndTold = false

  constructor(id: string, { records, clock, signal }: FeedOptions) {
    this.#records = records
    this.#id = id
    this.#journal = new GrowingJournal(records.journal(id))
    this.#live = new SharedLive(records.live)
    this.#clock = clock
    this.#signal = signal
    this.#templates = records.templates
    this.#state = emptyState(id)
  }

  get state(): SessionState {
    return this.#state
  }

  /** The last events of what is written; all of it is folded, or what comes after a snapshot. */
  async *past(): AsyncGenerator<WatchUpdate> {
    const earlier = (await readSnapshot(this.#records, this.#id, 'ends'))?.earlier() ?? null
    if (earlier !== null) {
      this.#state = earlier.state
      this.#journal = new GrowingJournal(this.#records.journal(this.#id), earlier.read)
    }
    let last: WatchUpdate[] = []
    for await (const fed of this.#recorded()) {
      last.push(fed)
      if (last.length > 2 * RECENT_EVENTS) last = last.slice(-RECENT_EVENTS)
    }
    yield* last.slice(-RECENT_EVENTS)
  }

  /** What has come since the last time. */
  async *news(runner: Runner): AsyncGenerator<WatchUpdate> {
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

  async *#recorded(): AsyncGenerator<Extract<WatchUpdate, { kind: 'event' }>> {
    for await (const event of this.#journal.readOn(this.#signal)) {
      this.#state = fold(this.#state, event, this.#templates)
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

/** Something that passes by, and when it did; Unix time, ms. */
export interface Passing {
  event: LiveEvent
  at: number
}

/** What one snapshot of a run says that the one before did not, as the events by which it came about. */
export class LiveChanges {
  readonly #told = new Map<string, { item: SharedItem['item']; end: number }>()
  /** By key, which of the session's events completed it, for a snapshot may be older than that. */
  readonly #completed = new Map<string, number>()
  /** By instance of an agent, which of the events ended it. */
  readonly #ended = new Map<string, number>()
  #clearedAt = 0

  /** @param index which of the session's events it is, from 1 on */
  event(event: Recorded, index: number): void {
    if (event.type === 'item-completed') this.#complete(liveKey(event.item.id, event.instance), index)
    else if (event.type === 'agent-ended') this.#ended.set(event.instance, index)
    else if (ENDS_WHAT_RUNS.has(event.type)) this.#clear(index)
  }

  *in(snapshot: LiveSnapshot, now: number): Generator<Passing> {
    if (snapshot.events < this.#clearedAt) return
    for (const shared of snapshot.items) {
      if (snapshot.events >= this.#endOf(shared)) yield* this.#changesOf(shared, now)
    }
    for (const [key, index] of this.#completed) if (index <= snapshot.events) this.#completed.delete(key)
  }

  /** Which of the events ended it; 0: none did. */
  #endOf({ item, instance }: SharedItem): number {
    const ended = instance === undefined ? 0 : (this.#ended.get(instance) ?? 0)
    return Math.max(ended, this.#completed.get(liveKey(item.id, instance)) ?? 0)
  }

  *#changesOf(shared: SharedItem, now: number): Generator<Passing> {
    const { item, round, text, dropped, startedAt, instance } = shared
    const key = liveKey(item.id, instance)
    const of = instance === undefined ? {} : { instance }
    const told = this.#told.get(key) ?? { item: null, end: 0 }
    const end = dropped + text.length
    this.#told.set(key, { item, end: Math.max(end, told.end) })
    if (!isDeepStrictEqual(item, told.item))
      yield { event: { type: 'item-started', round, item, ...of }, at: startedAt }
    if (end <= told.end) return
    const event = deltaOf(shared, text.slice(Math.max(0, told.end - dropped)))
    if (event !== null) yield { event: { ...event, ...of }, at: now }
  }

  #complete(key: string, index: number): void {
    this.#told.delete(key)
    this.#completed.set(key, index)
    const [oldest] = this.#completed.keys()
    if (this.#completed.size > MOST_REMEMBERED && oldest !== undefined) this.#completed.delete(oldest)
  }

  #clear(index: number): void {
    this.#told.clear()
    this.#completed.clear()
    this.#ended.clear()
    this.#clearedAt = index
  }
}

const MOST_REMEMBERED = 1000

type Delta = Extract<LiveEvent, { type: 'text-delta' | 'output-delta' }>

function deltaOf({ item, round }: SharedItem, text: string): Delta | null {
  switch (item.kind) {
    case 'agent-message':
    case 'reasoning':
    case 'plan':
      return { type: 'text-delta', round, item: item.id, source: item.kind, text }
    case 'command':
      return { type: 'output-delta', round, item: item.id, text }
    default:
      return null
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

  /** One that cannot be read is nobody's, and none follows a call. */
  #hasBegun(id: string): Promise<boolean> {
    return isCallSession(this.#records, id).then(
      isCall => isCall === false,
      () => false,
    )
  }
}
