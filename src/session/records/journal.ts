import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { diskFull, isNoRoom, systemErrorCode, TemplateError, UserError } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import { LineSplitter } from '../../base/text.ts'
import { isEvent, upgradeEvent } from '../../core/events/checks.ts'
import type { Recorded } from '../../core/events/events.ts'
import { fold } from '../../core/state/fold.ts'
import { emptyState, type SessionState } from '../../core/state/state.ts'
import { FolderChanges, NotAFile, openRegularFile } from '../../platform/files.ts'
import type { Records } from './records.ts'
import { type JournalRead, readSnapshot, type SnapshotCheck } from './snapshot.ts'

const FORMAT = 'codemachine-journal'
const VERSION = 1
const CHUNK_BYTES = 64 * 1024
/** Longest line that is read, in bytes. Texts in events are bounded, so no event is nearly as long. */
const MAX_LINE_BYTES = 16 * 1024 * 1024

/** The append-only record of one session. One owner; `append` returns when the operating system has the line. */
export interface Journal extends AsyncDisposable {
  append(event: Recorded): void
  /** Resolves when all appended events are on disk. */
  sync(): Promise<void>
}

/**
 * Opens a journal for appending. A new journal gets a first line with format and version. After a torn last line it adds the
 * missing newline, so that the next event has its own line.
 */
export function openJournal(path: string): Journal {
  const fd = openSync(path, 'a+', 0o600)
  const { size } = fstatSync(fd)
  let torn = size > 0 && lastByte(fd, size) !== NEWLINE
  let failed = false
  const failure = (error: unknown) => {
    failed = true
    return isNoRoom(error) ? diskFull(path, error) : error
  }
  const write = (value: unknown) => {
    const bytes = Buffer.from(`${torn ? '\n' : ''}${JSON.stringify(value)}\n`)
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(fd, bytes, written)
      torn = false
    } catch (error) {
      // Remove the partial line, so that it does not tear the journal once there is room again.
      if (written > 0) ftruncateSync(fd, fstatSync(fd).size - written)
      throw failure(error)
    }
  }
  const sync = async () => {
    try {
      await promisify(fdatasync)(fd)
    } catch (error) {
      throw failure(error)
    }
  }
  try {
    if (size === 0) write({ format: FORMAT, v: VERSION })
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return {
    append: write,
    sync,
    async [Symbol.asyncDispose]() {
      // Report only the first failure: a second error would hide it.
      const toldBefore = failed
      try {
        await sync()
      } catch (error) {
        if (!toldBefore) throw error
      } finally {
        closeSync(fd)
      }
    },
  }
}

const NEWLINE = 0x0a

function lastByte(fd: number, size: number): number | undefined {
  const buffer = Buffer.alloc(1)
  readSync(fd, buffer, 0, 1, size - 1)
  return buffer[0]
}

/**
 * Yields the events of a journal in order, read in bounded chunks. Skips blank, torn and invalid lines and unknown event
 * types. A missing file yields none. Throws a `UserError` for a newer or foreign format, a file that is not regular, or a
 * read error. Returns the read position.
 */
export async function* readJournal(path: string, options: ReadOptions = {}): AsyncGenerator<Recorded, JournalRead> {
  const lines = new JournalLines(path, options)
  for await (const piece of piecesOf(path, lines, options)) yield* piece
  return lines.read
}

/** Yields the events of a journal, one array per chunk of the file. */
async function* piecesOf(
  path: string,
  lines: JournalLines,
  { from = JOURNAL_START, wholeLines = false, chunkBytes = CHUNK_BYTES, signal }: ReadOptions,
): AsyncGenerator<Recorded[]> {
  try {
    for await (const chunk of chunksOf(path, from.bytes, chunkBytes)) {
      if (signal?.aborted) return
      yield lines.push(chunk)
    }
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return
    throw unreadable(path, error)
  }
  if (!wholeLines) yield lines.end()
}

/** Yields the bytes of a file from a position, in chunks. A stream would load all of Node's streams. */
async function* chunksOf(path: string, start: number, mostBytes: number): AsyncGenerator<Buffer> {
  await using file = await openRegularFile(path)
  for (let position = start; ; ) {
    // The receiver keeps the buffer.
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(mostBytes), position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Read position at the start of a journal. */
export const JOURNAL_START: JournalRead = { bytes: 0, rubbish: 0, isLastRubbish: false }

/** Options of a read; undefined: the whole journal. */
interface ReadOptions {
  /** Start position: the result of an earlier read. */
  from?: JournalRead
  /** Skips a last line without a newline, which may still change. */
  wholeLines?: boolean
  /** Skips lines without this word, such as a type, as a whole string; invalid lines are then not counted. */
  only?: string
  /** Size of a chunk, in bytes. */
  chunkBytes?: number
  /** Ends the read after the current chunk. */
  signal?: AbortSignal
}

/**
 * Calls `onEvent` for each event of a journal, as `readJournal` yields them. Resolves with the read position. Faster for
 * long journals: awaiting each event takes as long as folding it.
 */
export async function eachEvent(
  path: string,
  onEvent: (event: Recorded) => void,
  options: ReadOptions = {},
): Promise<JournalRead> {
  const lines = new JournalLines(path, options)
  for await (const piece of piecesOf(path, lines, options)) piece.forEach(onEvent)
  return lines.read
}

/** Parses the bytes of a journal into events. Throws a `UserError` at the first line of a newer or foreign format. */
class JournalLines {
  readonly #splitter: LineSplitter
  #ready: Recorded[] = []
  #bytes: number
  #rubbish: number
  #isLastRubbish: boolean
  #first: boolean

  constructor(path: string, { from = JOURNAL_START, only }: Pick<ReadOptions, 'from' | 'only'> = {}) {
    const named = only === undefined ? '' : `"${only}"`
    this.#bytes = from.bytes
    this.#rubbish = from.rubbish
    this.#isLastRubbish = from.isLastRubbish
    this.#first = from.bytes === 0
    this.#splitter = new LineSplitter(line => {
      if (this.#first) refuseForeign(path, line)
      this.#first = false
      // A search in a line takes a tenth of the time to parse it.
      if (!line.includes(named)) return
      const value = parsedOrNull(line)
      const isRubbish = value === null
      if (isRubbish && line.trim() === '') return
      this.#isLastRubbish = isRubbish
      if (isRubbish) this.#rubbish += 1
      if (isRecorded(value)) this.#ready.push(upgradeEvent(value))
    }, MAX_LINE_BYTES)
  }

  /** Read position after the last complete line. */
  get read(): JournalRead {
    const bytes = this.#bytes - this.#splitter.unfinished
    return { bytes, rubbish: this.#rubbish, isLastRubbish: this.#isLastRubbish }
  }

  /** Returns the events of the lines that are complete now. */
  push(chunk: Buffer): Recorded[] {
    this.#bytes += chunk.length
    this.#splitter.push(chunk)
    return this.#take()
  }

  /** Returns the event of a last line without a newline. */
  end(): Recorded[] {
    this.#splitter.end()
    return this.#take()
  }

  #take(): Recorded[] {
    const ready = this.#ready
    this.#ready = []
    return ready
  }
}

/** Returns a sentence on why a journal cannot be read; null if it can, or does not exist. */
export async function problemOfJournal(path: string): Promise<string | null> {
  try {
    // A problem of the whole journal shows in its first line.
    await firstEvent(path)
    return null
  } catch (error) {
    if (error instanceof UserError) return error.message
    throw error
  }
}

/** True if a journal has an event. Throws as `readJournal` does. */
export async function hasEvents(path: string): Promise<boolean> {
  return (await firstEvent(path)) !== null
}

/** Returns the first event of a journal; null if it has none. Throws as `readJournal` does. */
export async function firstEvent(path: string): Promise<Recorded | null> {
  for await (const event of readJournal(path, { chunkBytes: FIRST_BYTES })) return event
  return null
}

/** Chunk size for the first event, in bytes: small, because later events are not needed. */
const FIRST_BYTES = 4 * 1024

/** Returns if a session is a call, by its journal's first event; null if it has none. Throws as `readJournal` does. */
export async function isCallSession(
  { journal, templates }: Pick<Records, 'journal' | 'templates'>,
  id: string,
): Promise<boolean | null> {
  const first = await firstEvent(journal(id))
  if (first === null) return null
  return first.type === 'session-created' && (templates.get(first.template)?.isCall ?? false)
}

/**
 * True if a session only replayed recordings and left no work. Its first event says so, or all its rounds were replays and
 * it ran and wrote nothing itself. False before any work. Throws as `readJournal` does.
 */
export async function isReplayedSession({ journal }: Pick<Records, 'journal'>, id: string): Promise<boolean> {
  let hasReplayed = false
  for await (const event of readJournal(journal(id))) {
    if (event.type === 'session-created' && event.replayed === true) return true
    if (event.type === 'command-ran' || event.type === 'wrote') return false
    if (event.type !== 'round-started') continue
    if (event.replayed !== true) return false
    hasReplayed = true
  }
  return hasReplayed
}

/** Returns the lock of a session's runner: a call's own, or the work directory's. Throws as `readJournal`. */
export async function lockOfSession(
  records: Pick<Records, 'journal' | 'templates' | 'lock' | 'callLock'>,
  id: string,
): Promise<string> {
  return (await isCallSession(records, id)) ? records.callLock(id) : records.lock
}

/** Throws for a file of another program or a newer version. A first line without a format is a torn line. */
function refuseForeign(path: string, firstLine: string): void {
  const header = parsedOrNull(firstLine)
  if (!isObject(header) || !('format' in header)) return
  const { format, v = VERSION } = header
  if (format === FORMAT && v === VERSION) return
  if (format === FORMAT && typeof v === 'number' && v > VERSION)
    throw new UserError('CM0606', `${path} was written by a newer codemachine (journal format ${v}); use that version.`)
  const named = `${JSON.stringify(format).slice(0, 60)}${format === FORMAT ? `, version ${JSON.stringify(v).slice(0, 20)}` : ''}`
  throw new UserError('CM0607', `${path} is not a journal of codemachine (its format is ${named}); restore the file.`)
}

function unreadable(path: string, cause: unknown): unknown {
  if (cause instanceof NotAFile)
    return new UserError('CM0607', `${path} cannot be read: it is ${cause.what}; restore the journal.`, {
      cause,
    })
  const code = systemErrorCode(cause)
  if (code === null) return cause
  return new UserError('CM0607', `${path} cannot be read: ${code}; make it readable.`, { cause })
}

function isRecorded(value: unknown): value is Recorded {
  return isObject(value) && isEvent(value)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/**
 * Returns the state of the session `id`, folded from its journal or from a snapshot of its beginning; null: no session.
 * @param check how strictly to check that snapshot
 */
export async function foldJournal(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  check: SnapshotCheck = 'whole',
): Promise<SessionState | null> {
  return (await foldAndCount(records, id, check)).state
}

/**
 * Like `foldJournal`, with the number of lines that are not JSON, except blank lines and a torn last one. `hasSnapshot`: a
 * snapshot replaced the beginning.
 */
export async function foldAndCount(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  check: SnapshotCheck = 'whole',
): Promise<{ state: SessionState | null; rubbish: number; hasSnapshot: boolean }> {
  const snapshot = await readSnapshot(records, id, check)
  let state = snapshot?.state ?? emptyState(id)
  const add = (event: Recorded) => {
    state = fold(state, event, records.templates)
  }
  const { rubbish, isLastRubbish } = await eachEvent(records.journal(id), add, {
    from: snapshot?.read ?? JOURNAL_START,
  })
  return {
    state: state.createdAt === 0 ? null : state,
    rubbish: isLastRubbish ? rubbish - 1 : rubbish,
    hasSnapshot: snapshot !== null,
  }
}

/** The state of a session, and its last events, each with the state after it. */
export interface RecentPast {
  state: SessionState
  events: readonly { event: Recorded; state: SessionState }[]
  /** Read position in the journal. */
  read: JournalRead
}

/** Returns a session's last events, at most `most`, read from a snapshot if possible. Throws as `readJournal`. */
export async function recentPast(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  { most, ...options }: { most: number; wholeLines?: boolean; signal?: AbortSignal },
): Promise<RecentPast> {
  const earlier = (await readSnapshot(records, id, 'ends'))?.earlier() ?? null
  let state = earlier?.state ?? emptyState(id)
  let events: RecentPast['events'][number][] = []
  const add = (event: Recorded) => {
    state = fold(state, event, records.templates)
    events.push({ event, state })
    if (events.length > 2 * most) events = events.slice(-most)
  }
  const from = earlier?.read ?? JOURNAL_START
  const read = await eachEvent(records.journal(id), add, { ...options, from })
  return { state, events: events.slice(-most), read }
}

export interface FollowOptions {
  clock: Clock
  /** Ends the iteration. */
  signal: AbortSignal
  /** Called after all written events have been yielded; true: nothing more follows. */
  isOver(): Promise<boolean>
}

/**
 * Yields the events of a journal that is still being written, from the first. An event counts once its line is complete.
 * Ends after `isOver` or with `signal`.
 */
export async function* followJournal(path: string, options: FollowOptions): AsyncGenerator<Recorded> {
  const { signal, isOver } = options
  using changes = new FolderChanges([dirname(path)], options)
  let read = JOURNAL_START
  while (!signal.aborted) {
    read = yield* readJournal(path, { from: read, wholeLines: true, signal })
    if (await isOver()) {
      yield* readJournal(path, { from: read, wholeLines: true })
      return
    }
    await changes.next(POLL_MS)
  }
}

/** Poll interval, ms: a network drive reports no changes. */
const POLL_MS = 1000

/**
 * Returns the sessions of a work directory, the oldest first, and a sentence for each unreadable journal or failing
 * template. A session with a failing template is listed like one of an unknown template.
 */
export async function readSessions(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
): Promise<{ sessions: SessionState[]; problems: string[] }> {
  const sessions: SessionState[] = []
  const problems: string[] = []
  const read = async (id: string, from: Pick<Records, 'journal' | 'templates'>) => {
    // `ends` is enough for the list, and for the started prompts of the queue, which the first event names.
    const state = await foldJournal(from, id, 'ends')
    if (state !== null) sessions.push(state)
  }
  for (const id of await records.sessions()) {
    try {
      await read(id, records)
    } catch (error) {
      problems.push(problemOfSession(id, error))
      // Its result is known anyway, and the count of started prompts needs it.
      if (error instanceof TemplateError) await read(id, { journal: records.journal, templates: new Map() })
    }
  }
  return { sessions, problems }
}

/** Returns a sentence for an error of a fold; throws bugs of codemachine again. */
export function problemOfSession(id: string, error: unknown): string {
  if (error instanceof UserError) return error.message
  if (error instanceof TemplateError) return `${id} cannot continue until its template is fixed: ${error.message}.`
  throw error
}
