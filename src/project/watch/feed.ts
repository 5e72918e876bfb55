import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import type { LiveEvent, Recorded } from '../../core/events/events.ts'
import { ENDS_WHAT_RUNS, liveKey } from '../../core/events/live-board.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState, type SessionState, type SessionStatus, sessionStatusOf } from '../../core/state/state.ts'
import { FolderChanges } from '../../platform/files.ts'
import { type ProcessIdentity, startTimeOf } from '../../platform/processes.ts'
import { sendCommand } from '../../session/records/control.ts'
import { eachEvent, isCallSession, JOURNAL_START, lockOfSession, recentPast } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { lookout, type Runner } from '../../session/records/run-lock.ts'
import { fileState } from '../../workspace/files/inside-directory.ts'
import { latestSession } from '../find.ts'
import type { WatchUpdate } from '../library.ts'
import { type LiveSnapshot, readLiveSnapshot, type SharedItem } from './live-share.ts'

/**
 * Yields updates of a session in another process, and of those that its run continues with, from the last past events on.
 * Ends when no process runs any more, or with `signal`; at once for an earlier session while another one works. Any number
 * of followers may run. Throws a `UserError` for an unreadable journal.
 */
export async function* followSession(options: FeedOptions): AsyncGenerator<WatchUpdate> {
  const { records } = options
  const nextBegun = await sessionsAhead(records)
  await using attendance = new Attendance(records.control, options)
  const lock = await lockOfSession(records, options.id)
  const isCall = lock !== records.lock
  const following = { ...options, look: lookout(lock, options), attendance, nextBegun, isCall }
  let next = yield* followOne(options.id, false, following)
  while (next !== null) {
    yield { kind: 'next-session', id: next }
    next = yield* followOne(next, true, following)
  }
}

/** Catches changes that a watcher missed. */
const POLL_MS = 1000
/** Time between two looks, ms: it groups events that come close together. */
const PACE_MS = 25

interface Following extends FeedOptions {
  /** Whether the session is a call: it accepts no commands, and nothing follows it. */
  isCall: boolean
  look: ReturnType<typeof lookout>
  attendance: Attendance
  nextBegun: () => Promise<string | null>
}

/**
 * Follows one session; returns the next one of its run, null: none.
 * @param isNew it has just begun, and has no past events
 */
async function* followOne(
  id: string,
  isNew: boolean,
  following: Following,
): AsyncGenerator<WatchUpdate, string | null> {
  const { records, clock, signal, look, attendance, nextBegun, isCall } = following
  const session = new FollowedSession(id, following)
  using changes = new FolderChanges([records.folder, records.sessionFolder(id)], following)
  const isLast = !isNew && (yield* attach(session, following))
  let hasRun = isNew
  while (!signal.aborted) {
    const runner = await look()
    if (runner !== null && !isCall && !following.unattended) attendance.keep()
    yield* session.news(runner)
    const standing = sessionStatusOf(session.state, runner)
    hasRun ||= standing === 'running'
    if (runner === null || isLast) {
      if (standing !== 'ended') yield { kind: hasRun ? 'gone' : 'cut-off' }
      return null
    }
    const next = isOver(standing) && !isCall ? await nextBegun() : null
    if (next !== null) return next
    await changes.next(POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
  return null
}

/** Yields the past; returns whether to stop there: another session is at work. */
async function* attach(session: FollowedSession, following: Following): AsyncGenerator<WatchUpdate, boolean> {
  // Read the lock before the journal: a session that ends meanwhile must not look cut off.
  const runner = await following.look()
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
  /** This process, which shows it to somebody. */
  pid: number
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** Set: no person sees the updates, so the run must not count them as a watcher. Left out: one does. */
  unattended?: true
  /** Receives a sentence once, if it is unknown whether a process runs. */
  onProblem: (problem: string) => void
}

/** For a run, "somebody still watches" is valid for a minute. */
const BEAT_MS = 30_000
/** A run that is still opening accepts no commands yet. */
const SOON_MS = 2000
const MOST_SOON = 3
const REPLY_MS = 2000

/** Tells a run that somebody watches it. Disposing of it removes unread messages. */
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

  /** Sends the message if it is due. Call it while the run exists; nothing awaits the reply. */
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
    // An older version will never know it.
    if (reply?.code === 'unknown-command') {
      this.#due = Number.POSITIVE_INFINITY
      return
    }
    const isTaken = reply?.code === 'done'
    this.#missed = isTaken ? 0 : this.#missed + 1
    if (!isTaken && this.#missed <= MOST_SOON) this.#due = this.#clock.monotonic() + SOON_MS
  }
}

/** Number of past events to yield; earlier ones are only in the state. */
const RECENT_EVENTS = 200

/** One session: its journal, and what its run shares of it. */
class FollowedSession {
  readonly #options: FeedOptions
  readonly #changes = new LiveChanges()
  #read = JOURNAL_START
  #liveKey: string | null = null
  #isEndTold = false
  state: SessionState

  constructor(id: string, options: FeedOptions) {
    this.#options = options
    this.state = emptyState(id)
  }

  /** Yields the last journaled events. */
  async *past(): AsyncGenerator<WatchUpdate> {
    const { records, signal } = this.#options
    const past = await recentPast(records, this.state.id, { most: RECENT_EVENTS, wholeLines: true, signal })
    this.#read = past.read
    for (const { event, state } of past.events) yield this.#told(event, state)
    this.state = past.state
  }

  /** Yields everything new since the last call. */
  async *news(runner: Runner): AsyncGenerator<WatchUpdate> {
    const { records, clock, signal } = this.#options
    // Read the snapshot before the journal: its events are already journaled.
    const snapshot = await this.#shared(runner)
    const events: Recorded[] = []
    const options = { from: this.#read, wholeLines: true, signal }
    this.#read = await eachEvent(records.journal(this.state.id), event => events.push(event), options)
    for (const event of events) yield this.#told(event, fold(this.state, event, records.templates))
    if (snapshot?.session === this.state.id) {
      for (const passing of this.#changes.in(snapshot, clock.now())) yield { kind: 'live', ...passing }
    }
    const hasEnded = this.state.ended !== null
    if (hasEnded && !this.#isEndTold) yield { kind: 'ended' }
    this.#isEndTold = hasEnded
  }

  #told(event: Recorded, state: SessionState): WatchUpdate {
    this.state = state
    this.#changes.event(event, state.events)
    return { kind: 'event', event, state }
  }

  /** Returns the run's snapshot if it changed since the last call; not one that a dead run left. */
  async #shared(runner: Runner): Promise<LiveSnapshot | null> {
    const path = this.#options.records.live
    if (runner === null || runner === 'unknown') return null
    const key = (await fileState(path))?.key ?? null
    if (key === null || key === this.#liveKey) return null
    const snapshot = await readLiveSnapshot(path)
    if (snapshot?.pid !== runner.pid || snapshot.startTime !== runner.startTime) return null
    this.#liveKey = key
    return snapshot
  }
}

/** A live event and its time; Unix time, ms. */
export interface Passing {
  event: LiveEvent
  at: number
}

/** Turns the differences between two snapshots of a run into events. */
export class LiveChanges {
  readonly #told = new Map<string, { item: SharedItem['item']; end: number }>()
  /** Number of the session event that completed each item, by key: a snapshot may be older. */
  readonly #completed = new Map<string, number>()
  /** Number of the event that ended each agent, by instance. */
  readonly #ended = new Map<string, number>()
  #clearedAt = 0

  /** @param index number of the session's event, from 1 on */
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

  /** Returns the number of the event that ended it; 0: none. */
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

/**
 * Returns a function that finds sessions which begin later: the first new one since the last call; null: none yet. Sessions
 * that exist now do not count.
 */
async function sessionsAhead(records: Records): Promise<() => Promise<string | null>> {
  // An unreadable session does not count, and nothing follows a call.
  const hasBegun = (id: string) =>
    isCallSession(records, id).then(
      isCall => isCall === false,
      () => false,
    )
  const ids = await records.sessions()
  const known = new Set(ids)
  const newest = ids.at(-1)
  if (newest !== undefined && !(await hasBegun(newest))) known.delete(newest)
  return async () => {
    for (const id of await records.sessions()) {
      if (known.has(id) || !(await hasBegun(id))) continue
      known.add(id)
      return id
    }
    return null
  }
}
