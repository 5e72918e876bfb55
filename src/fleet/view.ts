import { appendFile, mkdir, open, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, nullIfUserError, systemErrorCode, UserError } from '../base/errors.ts'
import type { Reply } from '../core/shapes/reply.ts'
import { writeWholeFile } from '../platform/files.ts'
import { certificatePath } from '../project/proof/verify.ts'
import { placesOf, type World } from '../project/world.ts'
import { type Command, watchCommands } from '../session/records/control.ts'
import { firstEvent } from '../session/records/journal.ts'
import {
  copiesIn,
  isSessionId,
  openRecords,
  openRecordsRoot,
  type Records,
  recordsOf,
} from '../session/records/records.ts'
import { type RunLock, readRunLock, takeRunLock } from '../session/records/run-lock.ts'
import type { Database } from './database.ts'
import { type FleetSession, leftBySession, linesAfter, sessionOf, sessionsToFollow } from './look.ts'
import { askSession } from './tell.ts'

/** A fleet session for local readers: its journal in the records of its own directory. */
interface Copied {
  id: string
  /** Absolute path of its empty "work directory". */
  directory: string
  records: Records
}

/** Interval between two checks for news, and after a failed one, ms. */
const LOOK_MS = 1_000
const AGAIN_MS = 5_000
/** Longest wait for the first check, ms. */
const FIRST_LOOK_MS = 5_000
/** Limits of the followed sessions of a whole fleet. */
const FOLLOWED = { days: 2, most: 200 }
/** Age since its last write at which a copy is removed, and the interval of that check, ms. */
const KEPT_MS = 7 * 24 * 3_600_000
const PRUNE_MS = 3_600_000
/** Timeout of a worker's reply to a control command, ms: the sender waits for 20 s. */
const REPLY_MS = 15_000
const JOURNAL_HEAD = '{"format":"codemachine-journal","v":1}'
const NEWLINE = 0x0a

/**
 * Copies of fleet sessions. One process at a time writes a copy and holds its `copy.lock`. While the session runs on a
 * worker, that process also holds the lock of its records and forwards control commands. So local readers see and steer it
 * like a local session.
 */
export class FleetCopies implements AsyncDisposable {
  readonly #world: World
  readonly #database: Database
  readonly #ending = new AbortController()
  readonly #copies = new Map<string, Copy>()

  constructor(world: World, database: Database) {
    this.#world = world
    this.#database = database
  }

  /** Updates the copies of these sessions that no other process writes, and releases all others. */
  async sync(sessions: readonly FleetSession[]): Promise<void> {
    const wanted = new Set(sessions.map(({ id }) => id))
    for (const [id, copy] of this.#copies) {
      if (wanted.has(id)) continue
      this.#copies.delete(id)
      await copy[Symbol.asyncDispose]()
    }
    for (const session of sessions) {
      if (this.#ending.signal.aborted) return
      await (await this.#copyOf(session)).sync(session)
    }
  }

  /** Returns the updated copy of a session; waits five seconds for one that another process writes. */
  async copied(session: FleetSession): Promise<Copied> {
    const copy = await this.#copyOf(session)
    await copy.sync(session)
    const { clock, signal } = this.#world
    for (let tries = 0; tries < 50 && !signal.aborted && !(await copy.has(session.events)); tries += 1)
      await clock.wait(LOOK_MS / 10, signal)
    return copy
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await Promise.all([...this.#copies.values()].map(copy => copy[Symbol.asyncDispose]()))
  }

  async #copyOf(session: FleetSession): Promise<Copy> {
    const known = this.#copies.get(session.id)
    if (known !== undefined) return known
    const copy = await Copy.open(this.#world, this.#database, session, this.#ending.signal)
    this.#copies.set(session.id, copy)
    return copy
  }
}

/** The copy of one session. */
class Copy implements Copied, AsyncDisposable {
  readonly id: string
  readonly records: Records
  readonly #world: World
  readonly #database: Database
  readonly #signal: AbortSignal
  /** Lock while this process writes it. */
  #held: RunLock | null = null
  /** Marks it as a running session. */
  #running: AsyncDisposable | null = null
  /** Number of events that this process has written to it. */
  #have = 0
  /** State at which nothing more was left to do. */
  #settled = ''

  private constructor(
    world: World,
    database: Database,
    { id, records }: Pick<Copied, 'id' | 'records'>,
    signal: AbortSignal,
  ) {
    this.#world = world
    this.#database = database
    this.id = id
    this.records = records
    this.#signal = signal
  }

  static async open(
    world: World,
    database: Database,
    { id, repo }: Pick<FleetSession, 'id' | 'repo'>,
    signal: AbortSignal,
  ): Promise<Copy> {
    // Anybody who may submit may have written any text into the database.
    if (!isSessionId(id))
      throw new UserError('CM1113', `The fleet has a session with an invalid id: ${JSON.stringify(id).slice(0, 80)}.`)
    const root = await openRecordsRoot(placesOf(world, world.cwd))
    const directory = join(copiesIn(root), id, nameOf(repo))
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const records = await openRecords(placesOf(world, directory))
    await mkdir(records.sessionFolder(id), { recursive: true, mode: 0o700 })
    return new Copy(world, database, { id, records }, signal)
  }

  get directory(): string {
    return this.records.directory
  }

  /** Resolves with true if it has so many events, from any process. */
  async has(events: number): Promise<boolean> {
    return (this.#held !== null ? this.#have : (await countEvents(this.records.journal(this.id))).events) >= events
  }

  async sync(session: FleetSession): Promise<void> {
    const { state, epoch, events } = session
    const standing = `${state} ${epoch} ${events}`
    if (standing === this.#settled || !(await this.#hold())) return
    await this.#copyOn(events)
    const isOver = state !== 'running' && state !== 'waiting'
    if (isOver) await this.#takeCertificate()
    await this.#setRunning(state === 'running' && this.#have > 0)
    if (state === 'running') return
    this.#settled = standing
    await this.#letGo()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#letGo()
  }

  /** Takes the lock to write it; false: another process has it. */
  async #hold(): Promise<boolean> {
    if (this.#held !== null) return true
    const path = join(this.records.folder, 'copy.lock')
    const { platform, pid, clock } = this.#world
    const lock = await readRunLock(path, platform)
    if (lock.state !== 'free' && lock.state !== 'stale') return false
    this.#held = await takeRunLock(path, { platform, pid, now: new Date(clock.now()) }).catch(nullIfUserError)
    if (this.#held === null) return false
    this.#have = await openForWriting(this.records.journal(this.id))
    return true
  }

  async #copyOn(events: number): Promise<void> {
    while (this.#have < events && !this.#signal.aborted) {
      const lines = await linesAfter(this.#database.sql, this.id, this.#have)
      if (lines.length === 0) return
      // A line break inside of a line would break the count of all later lines.
      await appendFile(this.records.journal(this.id), lines.map(line => `${line.replaceAll('\n', ' ')}\n`).join(''))
      this.#have += lines.length
    }
  }

  async #takeCertificate(): Promise<void> {
    const { certificate } = await leftBySession(this.#database.sql, this.id)
    if (certificate !== null)
      await writeWholeFile(certificatePath(this.records, this.id), `${JSON.stringify(certificate, null, 2)}\n`)
  }

  async #setRunning(runs: boolean): Promise<void> {
    if (runs === (this.#running !== null)) return
    if (!runs) {
      await this.#running?.[Symbol.asyncDispose]()
      this.#running = null
      return
    }
    const { platform, pid, clock } = this.#world
    const { lock: path, control, directory } = this.records
    const lock = await takeRunLock(path, { platform, pid, now: await this.#begunAt(), directory }).catch(
      nullIfUserError,
    )
    if (lock === null) return
    const door = await watchCommands(control, command => this.#handOn(command), clock)
    this.#running = {
      [Symbol.asyncDispose]: async () => {
        await door[Symbol.asyncDispose]()
        await lock[Symbol.asyncDispose]()
      },
    }
  }

  /** Returns the first event's time: a session with an event since its lock's time counts as running (same clock). */
  async #begunAt(): Promise<Date> {
    return new Date((await firstEvent(this.records.journal(this.id)))?.at ?? 0)
  }

  /** Forwards a local person's request to the worker. */
  async #handOn(command: Command): Promise<Reply> {
    const { at: _, ...ask } = command
    if (ask.type === 'watch') return { code: 'done', message: 'Only its worker knows what it does right now.' }
    if (ask.type === 'secret')
      return { code: 'refused', message: 'Secrets are never sent: store it on the machine of its worker.' }
    const reply = await askSession(this.#database, this.#world.clock, this.id, ask, {
      mostMs: REPLY_MS,
      signal: this.#signal,
    })
    return (
      reply ?? {
        code: 'no-answer',
        message: 'Its worker has not answered yet; the worker gets this the next time it asks the database.',
      }
    )
  }

  async #letGo(): Promise<void> {
    await this.#setRunning(false)
    await this.#held?.[Symbol.asyncDispose]()
    this.#held = null
  }
}

/** Returns the name of a repository by its address, valid as a folder name. */
function nameOf(repo: string): string {
  const [name = ''] = /[^/:\\]+$/.exec(repo.replace(/(\.git)?\/*$/, '')) ?? []
  return (
    name
      .replace(/[^\w.-]+/g, '-')
      .replace(/^[.-]+/, '')
      .slice(0, 60) || 'repository'
  )
}

/** Returns the events in a copied journal, and the end of its last whole line in bytes; both 0 if it is missing. */
async function countEvents(path: string): Promise<{ events: number; bytes: number; isTorn: boolean }> {
  let [lines, bytes, read] = [0, 0, 0]
  try {
    await using file = await open(path)
    const buffer = Buffer.allocUnsafe(256 * 1024)
    for (;;) {
      const { bytesRead } = await file.read(buffer, { position: read })
      if (bytesRead === 0) break
      for (let at = buffer.indexOf(NEWLINE); at !== -1 && at < bytesRead; at = buffer.indexOf(NEWLINE, at + 1)) {
        lines += 1
        bytes = read + at + 1
      }
      read += bytesRead
    }
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
  return { events: Math.max(0, lines - 1), bytes, isTorn: bytes !== read }
}

/** Creates a copy's journal, or removes a killed process's partial line; returns the number of events. */
async function openForWriting(path: string): Promise<number> {
  const { events, bytes, isTorn } = await countEvents(path)
  if (bytes === 0) await writeWholeFile(path, `${JOURNAL_HEAD}\n`)
  else if (isTorn) {
    await using file = await open(path, 'r+')
    await file.truncate(bytes)
  }
  return events
}

/** Options to follow a fleet. */
interface FollowOptions {
  /** Opens its initialized database; throws a `UserError` if that fails. */
  open(): Promise<Database>
  /** Called with a problem, a sentence; not repeated until it changes. */
  onProblem(problem: string): void
}

/** Follows a fleet until disposal. */
export interface FollowedFleet extends AsyncDisposable {
  /** Resolves after the first check, successful or not, at the latest after five seconds. */
  readonly looked: Promise<void>
}

/**
 * Keeps copies of fleet sessions that run or ended within two days, until disposal. Retries an unreachable database; the
 * copies stay meanwhile.
 */
export function followFleet(world: World, { open, onProblem }: FollowOptions): FollowedFleet {
  const { clock } = world
  const ending = new AbortController()
  const signal = AbortSignal.any([world.signal, ending.signal])
  const { promise: first, resolve: onLooked } = Promise.withResolvers<void>()
  let said = ''
  let prunedAt = Number.NEGATIVE_INFINITY
  /** Returns true on success; reports a failure once. */
  const tried = async (work: () => Promise<void>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch (error) {
      const problem = `The list of fleet sessions is out of date: ${messageOf(error)}`
      if (problem !== said && !signal.aborted) onProblem(problem)
      said = problem
      onLooked()
      return false
    }
  }
  const followIn = async (database: Database): Promise<void> => {
    await using copies = new FleetCopies(world, database)
    while (!signal.aborted) {
      const isThere = await tried(async () => await copies.sync(await sessionsToFollow(database.sql, FOLLOWED)))
      if (isThere) said = ''
      onLooked()
      if (clock.monotonic() - prunedAt > PRUNE_MS) {
        prunedAt = clock.monotonic()
        await pruneCopies(world)
      }
      await clock.wait(isThere ? LOOK_MS : AGAIN_MS, signal)
    }
  }
  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      await tried(async () => {
        await using database = await open()
        await followIn(database)
      })
      await clock.wait(AGAIN_MS, signal)
    }
  }
  const following = follow()
  following.catch(error => onProblem(`codemachine no longer follows the fleet: ${messageOf(error)}`))
  const bound = new AbortController()
  void first.then(() => bound.abort())
  return {
    looked: Promise.race([first, clock.wait(FIRST_LOOK_MS, AbortSignal.any([signal, bound.signal]))]),
    [Symbol.asyncDispose]: async () => {
      ending.abort()
      await following.catch(() => {})
    },
  }
}

/** Removes the copies without a write for a week. */
async function pruneCopies(world: World): Promise<void> {
  const { clock, platform, templates } = world
  const root = await openRecordsRoot(placesOf(world, world.cwd))
  for (const id of (await readdir(copiesIn(root)).catch(() => [])).filter(isSessionId)) {
    const folder = join(copiesIn(root), id)
    const [name] = await readdir(folder).catch(() => [])
    if (name === undefined) continue
    const records = recordsOf({ root, templates }, await realpath(join(folder, name)))
    const { mtimeMs } = await stat(records.journal(id)).catch(() => stat(folder))
    const lock = await readRunLock(join(records.folder, 'copy.lock'), platform)
    if (clock.now() - mtimeMs < KEPT_MS || (lock.state !== 'free' && lock.state !== 'stale')) continue
    await rm(records.folder, { recursive: true, force: true })
    await rm(folder, { recursive: true, force: true })
  }
}

/** One session that is followed to its end. Disposal stops that. */
interface FollowedCopy extends AsyncDisposable {
  readonly copied: Copied
  /** Resolves with true if it has ended and is copied completely. */
  isOver(): Promise<boolean>
}

/**
 * Follows one fleet session, waiting or on any worker.
 * @param onProblem told once until it is over why the database cannot be asked
 */
export async function followCopy(
  world: World,
  database: Database,
  session: FleetSession,
  onProblem: (problem: string) => void,
): Promise<FollowedCopy> {
  const copies = new FleetCopies(world, database)
  const copied = await copies.copied(session)
  const ending = new AbortController()
  const signal = AbortSignal.any([world.signal, ending.signal])
  let isOver = isFinal(session)
  let said = false
  const follow = async () => {
    while (!signal.aborted && !isOver) {
      await world.clock.wait(LOOK_MS, signal)
      try {
        const now = await sessionOf(database.sql, session.id)
        await copies.copied(now)
        isOver = isFinal(now)
        said = false
      } catch (error) {
        if (!said) onProblem(messageOf(error))
        said = true
      }
    }
  }
  const following = follow()
  return {
    copied,
    isOver: async () => isOver,
    [Symbol.asyncDispose]: async () => {
      ending.abort()
      await following
      await copies[Symbol.asyncDispose]()
    },
  }
}

function isFinal({ state }: FleetSession): boolean {
  return state === 'ended' || state === 'cancelled' || state === 'dead'
}
