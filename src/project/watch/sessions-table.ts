import { lstat } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import type { Recorded, RecordedOf } from '../../core/events/events.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import {
  elapsedMs,
  type SessionState,
  type SessionStatus,
  sessionStatusOf,
  sessionTokens,
} from '../../core/state/state.ts'
import { eachEvent, firstEvent, foldJournal, JOURNAL_START, problemOfSession } from '../../session/records/journal.ts'
import { allRecords, bySessionId, fleetSessionOf, type Records } from '../../session/records/records.ts'
import { askWhoRuns, type Runner } from '../../session/records/run-lock.ts'
import { activityOf } from '../../tell/words/outcome.ts'
import { directoryOfRecords } from '../environment/directory-of-records.ts'
import { placesAround } from '../worktrees/find.ts'
import type { World } from '../world.ts'

/** A session in a table. */
export interface SessionRow {
  /** Unique over all directories. */
  key: string
  id: string
  /** Records of its directory; that is empty if unknown. */
  records: Records
  /** Its worktree; null: the directory itself. */
  worktree: string | null
  /** Its first line. */
  goal: string
  /** Template name of a call; else null. */
  call: string | null
  standing: SessionStatus | 'broken'
  /** For a running one; else null. */
  activity: ReturnType<typeof activityOf> | null
  outcome: SessionOutcome | null
  rounds: number
  tokens: number
  /** In the currency of the person's prices; null: there are none. */
  cost: number | null
  /** Its work time at `readAt`, in ms. */
  durationMs: number
  /** Unix time, ms. */
  createdAt: number
  readAt: number
  /** Why it is unreadable, a sentence; null: readable. */
  problem: string | null
}

/** Which sessions to show: of a directory and its worktrees, or of all this person's directories. */
export type SessionsScope = 'here' | 'all'

interface SessionsTableOptions {
  world: Pick<World, 'platform' | 'clock' | 'env' | 'home' | 'templates'>
  /** Records of the directory, if only its sessions are shown. */
  records: Records | null
  scope: SessionsScope
  /** Ends the reading. */
  signal: AbortSignal
  /** Called when rows change or are added, and when all were read once. */
  onChange(): void
  /** Receives a sentence for each unreadable place. */
  onProblem(problem: string): void
}

/** How many journals to read at a time, and after how many rows to show them. */
const AT_ONCE = 8
const BATCH = 64
/** Time between two looks for changes, in ms. */
const LOOK_MS = 2_000
/** Most ended sessions to check again in one look. */
const MOST_LOOKED = 400

/**
 * The sessions of one or all directories, newest first. It reads one at a time, from the journal's ends if that suffices,
 * and repeats while somebody watches.
 */
export class SessionsTable {
  readonly #options: SessionsTableOptions
  readonly #known = new Map<string, { row: SessionRow | null; place: Place; id: string; stamp: string }>()
  #rows: readonly SessionRow[] = []
  #isWhole = false
  #looked = 0

  constructor(options: SessionsTableOptions) {
    this.#options = options
  }

  /** The rows read so far, newest first; the same array until one changes or is added. */
  get rows(): readonly SessionRow[] {
    return this.#rows
  }

  /** Whether all were read once. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** Reads all of them, and repeats until the signal aborts. */
  async follow(): Promise<void> {
    const { signal } = this.#options
    const { clock } = this.#options.world
    while (!signal.aborted) {
      await this.#look().catch((error: unknown) => this.#passOver(error))
      await clock.wait(LOOK_MS, signal)
    }
  }

  /** Retry unreadable ones at the next look. */
  #passOver(error: unknown): void {
    if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
    this.#options.onProblem(`The sessions cannot be read now: ${messageOf(error)}`)
  }

  async #look(): Promise<void> {
    const { signal } = this.#options
    const places = await this.#places()
    const found = places.flatMap(place => place.ids.map(id => ({ place, id, key: `${place.records.key}/${id}` })))
    found.sort((a, b) => bySessionId(b.id, a.id))
    const there = new Set(found.map(({ key }) => key))
    const gone = [...this.#known.keys()].filter(key => !there.has(key))
    for (const key of gone) this.#known.delete(key)
    const due = found.filter(({ key }) => this.#isDue(key))
    // Check the others in turn: an ended session may be resumed.
    const ended = found.filter(({ key }) => this.#known.has(key) && !this.#isDue(key))
    const from = ended.length === 0 ? 0 : this.#looked % ended.length
    this.#looked = from + MOST_LOOKED
    const again = [...ended.slice(from, from + MOST_LOOKED)]
    let hasChanged = gone.length > 0
    let since = 0
    const queue = [...due, ...again]
    const readOn = async () => {
      for (let next = queue.shift(); next !== undefined && !signal.aborted; next = queue.shift()) {
        hasChanged = (await this.#read(next)) || hasChanged
        since += 1
        // Show the first screen at once.
        if (!hasChanged || (this.#rows.length > 0 && since % BATCH !== 0)) continue
        hasChanged = false
        this.#show()
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, readOn))
    if (signal.aborted) return
    const wasWhole = this.#isWhole
    this.#isWhole = true
    if (hasChanged || !wasWhole) this.#show()
  }

  /** Returns whether it is unread, or was not ended when it was read. */
  #isDue(key: string): boolean {
    const row = this.#known.get(key)?.row ?? null
    return row === null || !isOver(row)
  }

  #show(): void {
    this.#rows = [...this.#known.values()]
      .flatMap(({ row }) => (row === null ? [] : [row]))
      .sort((a, b) => b.createdAt - a.createdAt || bySessionId(b.id, a.id))
    this.#options.onChange()
  }

  /** Reads one row; returns true if it changed. */
  async #read({ place, id, key }: { place: Place; id: string; key: string }): Promise<boolean> {
    const stamp = await stampOf(place.records.journal(id))
    const known = this.#known.get(key)
    const isSameRunner = runnerKey(known?.place.runner ?? null) === runnerKey(place.runner)
    // Only its own lock says whether a call runs.
    const isKnown = known?.row == null || isOver(known.row) || (known.row.call === null && isSameRunner)
    if (known?.stamp === stamp && isKnown) return false
    const row = await readRow(place, id, key, this.#options.world)
    this.#known.set(key, { row, place, id, stamp })
    return true
  }

  async #places(): Promise<Place[]> {
    const { records, scope, world, onProblem } = this.#options
    const found =
      scope === 'all' || records === null
        ? (await allRecords(world)).map(each => ({ worktree: null, records: each }))
        : await placesAround(records, () => {})
    const places: Place[] = []
    for (const { worktree, records } of found) {
      const place = await this.#place(worktree, records).catch((error: unknown) => {
        if (!(error instanceof UserError) && systemErrorCode(error) === null) throw error
        if (systemErrorCode(error) !== 'ENOTDIR') onProblem(`${records.folder} cannot be read: ${messageOf(error)}`)
        return null
      })
      if (place !== null) places.push(place)
    }
    return eachOnce(places)
  }

  async #place(worktree: string | null, records: Records | Omit<Records, 'directory'>): Promise<Place | null> {
    const { platform } = this.#options.world
    const ids = await records.sessions()
    if (ids.length === 0) return null
    const runner = await askWhoRuns(records.lock, platform, () => {})
    if ('directory' in records && records.directory !== '') return { worktree, records, ids, runner }
    const known = [...this.#known.values()].find(({ place }) => place.records.key === records.key)
    const directory =
      known?.place.records.directory ?? (await directoryOfRecords(records, ids.slice(-1), platform)) ?? ''
    return { worktree, records: { ...records, directory }, ids, runner }
  }
}

/** Removes duplicates of a fleet: a session that this machine's worker runs shows as it is, any other as its copy. */
function eachOnce(places: readonly Place[]): Place[] {
  const found = places.map(place => ({ place, session: fleetSessionOf(place.records) }))
  const copied = new Set(found.flatMap(({ session }) => (session?.isCopy === true ? [session.id] : [])))
  const runHere = new Set(
    found.flatMap(({ place, session }) => (session?.isCopy === false && place.runner !== null ? [session.id] : [])),
  )
  return found
    .filter(({ place, session }) => {
      if (session === null) return true
      return session.isCopy ? !runHere.has(session.id) : place.runner !== null || !copied.has(session.id)
    })
    .map(({ place }) => place)
}

function isOver({ standing }: SessionRow): boolean {
  return standing === 'ended' || standing === 'broken'
}

/** A directory with shown sessions, and its runner now. */
interface Place {
  worktree: string | null
  records: Records
  ids: readonly string[]
  runner: Runner
}

function runnerKey(runner: Place['runner']): string {
  return runner === null || runner === 'unknown' ? String(runner) : `${runner.pid} ${runner.at}`
}

async function stampOf(path: string): Promise<string> {
  const found = await lstat(path).catch(() => null)
  return found === null ? 'none' : `${found.size} ${found.mtimeMs}`
}

/** Null: its journal holds no session. */
async function readRow(
  { records, worktree, runner }: Place,
  id: string,
  key: string,
  world: { clock: Pick<Clock, 'now'>; platform: NodeJS.Platform },
): Promise<SessionRow | null> {
  const readAt = world.clock.now()
  const place = { key, id, records, worktree, readAt }
  try {
    const ended = await readEnds(records, id)
    if (ended !== null) return { ...place, ...ended }
    const state = await foldJournal(records, id, 'ends')
    if (state === null) return null
    const isCall = state.kind?.isCall ?? false
    const by = isCall ? await askWhoRuns(records.callLock(id), world.platform, () => {}) : runner
    return { ...place, ...ofState(state, sessionStatusOf(state, by), readAt) }
  } catch (error) {
    const problem = systemErrorCode(error) === null ? problemOfSession(id, error) : `${messageOf(error)}.`
    return {
      ...place,
      ...NOT_READ,
      createdAt: dayOf(id),
      problem: problem.replaceAll(records.journal(id), 'its journal'),
    }
  }
}

const NOT_READ = {
  goal: '',
  call: null,
  standing: 'broken',
  activity: null,
  outcome: null,
  rounds: 0,
  tokens: 0,
  cost: null,
  durationMs: 0,
  problem: null,
} as const

type RowFacts = Omit<SessionRow, 'key' | 'id' | 'records' | 'worktree' | 'readAt'>

function ofState(state: SessionState, standing: SessionStatus, now: number): RowFacts {
  const { goal, template, kind, ended, roundsUsed, prices, cost, createdAt } = state
  return {
    goal: firstLine(goal),
    call: kind?.isCall ? template : null,
    standing,
    activity: standing === 'running' ? activityOf(state) : null,
    outcome: ended?.outcome ?? null,
    rounds: roundsUsed,
    tokens: sessionTokens(state),
    cost: prices.length === 0 ? null : cost.amount,
    durationMs: elapsedMs(state, standing, now),
    createdAt,
    problem: null,
  }
}

/** Almost always larger than a session's last event. */
const END_BYTES = 8 * 1024

/** Reads an ended session from the journal's first and last events; null: they are not enough. */
async function readEnds(records: Records, id: string): Promise<RowFacts | null> {
  const path = records.journal(id)
  const { size } = await lstat(path).catch(() => ({ size: 0 }))
  let last: Recorded | null = null
  const look = (event: Recorded) => {
    if (event.type === 'session-ended' || GOES_ON.has(event.type)) last = event
  }
  await eachEvent(path, look, { from: { ...JOURNAL_START, bytes: Math.max(0, size - END_BYTES) } })
  const ended = last as Recorded | null
  if (ended?.type !== 'session-ended') return null
  const created = await firstEvent(path)
  if (created?.type !== 'session-created') return null
  const kind = records.templates.get(created.template)
  // The fold reports an unknown template.
  return kind === undefined ? null : ofEnds(created, ended, kind.isCall === true)
}

/** Events after which a session is not ended. */
const GOES_ON: ReadonlySet<Recorded['type']> = new Set(['session-created', 'session-resumed', 'round-started'])

function ofEnds(created: RecordedOf<'session-created'>, ended: RecordedOf<'session-ended'>, isCall: boolean): RowFacts {
  const { outcome, rounds, tokens, cost, durationMs } = ended
  return {
    ...NOT_READ,
    goal: firstLine(created.goal),
    call: isCall ? created.template : null,
    standing: 'ended',
    outcome,
    rounds,
    tokens,
    cost: cost ?? null,
    durationMs,
    createdAt: Date.parse(created.at),
  }
}

const GOAL_CHARS = 300

function firstLine(goal: string): string {
  return (/\S[^\r\n]*/.exec(goal.slice(0, 4_000))?.[0] ?? '').slice(0, GOAL_CHARS).toWellFormed()
}

/** Returns the local noon of an id's day; Unix time, ms. */
function dayOf(id: string): number {
  return new Date(Number(id.slice(0, 4)), Number(id.slice(4, 6)) - 1, Number(id.slice(6, 8)), 12).getTime()
}
