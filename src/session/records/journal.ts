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
/** The longest line that is read. No event comes near it: texts in events are bounded. */
const MAX_LINE_BYTES = 16 * 1024 * 1024

/** The append-only record of one session. One owner; a line has reached the operating system when `append` returns. */
export interface Journal extends AsyncDisposable {
  append(event: Recorded): void
  /** Resolves when everything appended before is on the disk. */
  sync(): Promise<void>
}

/**
 * Opens a journal for appending. A new one gets its first line, which names the format and its version; one whose last
 * line was torn gets the missing newline, so that the next event stands on a line of its own.
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
      // Taken back, the part of a line is no tear in the middle once there is room for more.
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
      // What has failed before is what the person is told: a second error would stand in front of it.
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
 * The events of a journal in their order, read in pieces of bounded size. Blank, torn and rubbish lines are passed over;
 * so are events of a type that this version does not know. A file that is not there gives none; a `UserError` if it is
 * of a newer or foreign format, no regular file, or cannot be read. Returns how far it was read.
 */
export async function* readJournal(path: string, options: ReadOptions = {}): AsyncGenerator<Recorded, JournalRead> {
  const lines = new JournalLines(path, options)
  for await (const piece of piecesOf(path, lines, options)) yield* piece
  return lines.read
}

/** The events of a journal, as many at a time as a piece of the file has. */
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

/** The bytes of a file from a place on, at most so many at a time. A stream would bring all of Node's streams with it, which a look does without. */
async function* chunksOf(path: string, start: number, mostBytes: number): AsyncGenerator<Buffer> {
  await using file = await openRegularFile(path)
  for (let position = start; ; ) {
    // Whoever gets a piece keeps it.
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(mostBytes), position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Nothing of a journal. */
export const JOURNAL_START: JournalRead = { bytes: 0, rubbish: 0, isLastRubbish: false }

/** What is read of a journal; left out: all of it. */
interface ReadOptions {
  /** Where to begin: how far it was read before. */
  from?: JournalRead
  /** Leaves out a last line without its newline, which may yet become another. */
  wholeLines?: boolean
  /** Passes over lines in which this word, such as a type, does not stand as a whole string; those that are rubbish are not counted then. */
  only?: string
  /** How long the pieces are that are read at once. */
  chunkBytes?: number
  /** Ends the reading behind such a piece. */
  signal?: AbortSignal
}

/**
 * Tells `onEvent` each event of a journal, as `readJournal` does, and resolves with how far it was read: for the whole of a
 * long one, where waiting for each event takes as long as folding it.
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

/** Cuts the bytes of a journal into its events. Throws a `UserError` at the first line of a newer or foreign format. */
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
      // To look for a word in a line takes a tenth of the time that it takes to parse it.
      if (!line.includes(named)) return
      const value = parsedOrNull(line)
      const isRubbish = value === null
      if (isRubbish && line.trim() === '') return
      this.#isLastRubbish = isRubbish
      if (isRubbish) this.#rubbish += 1
      if (isRecorded(value)) this.#ready.push(upgradeEvent(value))
    }, MAX_LINE_BYTES)
  }

  /** How far the lines that are whole reach. */
  get read(): JournalRead {
    const bytes = this.#bytes - this.#splitter.unfinished
    return { bytes, rubbish: this.#rubbish, isLastRubbish: this.#isLastRubbish }
  }

  /** The events whose lines have become whole. */
  push(chunk: Buffer): Recorded[] {
    this.#bytes += chunk.length
    this.#splitter.push(chunk)
    return this.#take()
  }

  /** The event of a last line without its newline. */
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

/** Why a journal cannot be read, as a sentence; null if it can, and if there is none. */
export async function problemOfJournal(path: string): Promise<string | null> {
  try {
    // What is wrong with the whole of it shows at its beginning.
    await firstEvent(path)
    return null
  } catch (error) {
    if (error instanceof UserError) return error.message
    throw error
  }
}

/** True if a journal holds an event. Throws as `readJournal` does. */
export async function hasEvents(path: string): Promise<boolean> {
  return (await firstEvent(path)) !== null
}

/** The first event of a journal; null if it holds none. Throws as `readJournal` does. */
export async function firstEvent(path: string): Promise<Recorded | null> {
  for await (const event of readJournal(path, { chunkBytes: FIRST_BYTES })) return event
  return null
}

/** What comes after the first event is not parsed for nothing. */
const FIRST_BYTES = 4 * 1024

/** Whether a session is a call, by the first event of its journal; null if it holds none. Throws as `readJournal` does. */
export async function isCallSession(
  { journal, templates }: Pick<Records, 'journal' | 'templates'>,
  id: string,
): Promise<boolean | null> {
  const first = await firstEvent(journal(id))
  if (first === null) return null
  return first.type === 'session-created' && (templates.get(first.template)?.isCall ?? false)
}

/**
 * Whether all that a session has done was to replay recordings, so that it left no work: its first event says so, or each of its
 * rounds was replayed, and it has run and written nothing by itself. False of one that has done nothing yet. Throws as
 * `readJournal` does.
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

/** The lock of whoever runs a session: its own if it is a call, else that of the work directory. Throws as `readJournal` does. */
export async function lockOfSession(
  records: Pick<Records, 'journal' | 'templates' | 'lock' | 'callLock'>,
  id: string,
): Promise<string> {
  return (await isCallSession(records, id)) ? records.callLock(id) : records.lock
}

/** Refuses what another program, or a newer version, has written. A first line that names no format is one that was torn. */
function refuseForeign(path: string, firstLine: string): void {
  const header = parsedOrNull(firstLine)
  if (!isObject(header) || !('format' in header)) return
  const { format, v = VERSION } = header
  if (format === FORMAT && v === VERSION) return
  if (format === FORMAT && typeof v === 'number' && v > VERSION)
    throw new UserError('CM0606', `${path} was written by a newer codemachine (journal format ${v}); use that version.`)
  const named = `${JSON.stringify(format).slice(0, 60)}${format === FORMAT ? `, version ${JSON.stringify(v).slice(0, 20)}` : ''}`
  throw new UserError(
    'CM0607',
    `${path} is not a journal of codemachine (its format is ${named}); restore the journal.`,
  )
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
 * The state of the session `id`, folded from its journal, of which a snapshot may stand for the beginning; null if the journal
 * holds no session. @param check what is asked of that snapshot
 */
export async function foldJournal(
  records: Pick<Records, 'journal' | 'templates'>,
  id: string,
  check: SnapshotCheck = 'whole',
): Promise<SessionState | null> {
  return (await foldAndCount(records, id, check)).state
}

/**
 * The same, with the number of lines in the journal that are not JSON, without blank ones and a torn last one, and whether a
 * snapshot stood for its beginning.
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

/** What a session has come to, and its last events, each with the session after it. */
export interface RecentPast {
  state: SessionState
  events: readonly { event: Recorded; state: SessionState }[]
  /** How far the journal was read. */
  read: JournalRead
}

/** The last events of a session, at most `most`: read from a snapshot on, where there is one. Throws as `readJournal` does. */
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
  /** Ends the following. */
  signal: AbortSignal
  /** Asked whenever all that is written has been yielded: whether nothing more will come. */
  isOver(): Promise<boolean>
}

/**
 * The events of a journal that is still being written, from its first on. An event is yielded when its line is whole,
 * so a torn last line counts once it is completed. Ends after `isOver` or with `signal`.
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

/** A network drive tells nothing of what changes on it. */
const POLL_MS = 1000

/**
 * The sessions of a work directory, the oldest first, and a sentence for each whose journal cannot be read, or whose
 * template throws: that one is among them as a session of an unknown template is.
 */
export async function readSessions(
  records: Pick<Records, 'sessions' | 'journal' | 'templates'>,
): Promise<{ sessions: SessionState[]; problems: string[] }> {
  const sessions: SessionState[] = []
  const problems: string[] = []
  const read = async (id: string, from: Pick<Records, 'journal' | 'templates'>) => {
    // For the list, and for what was begun of the queue, which stands in its first event.
    const state = await foldJournal(from, id, 'ends')
    if (state !== null) sessions.push(state)
  }
  for (const id of await records.sessions()) {
    try {
      await read(id, records)
    } catch (error) {
      problems.push(problemOfSession(id, error))
      // What came of it is known all the same; whoever counts what was begun has to see it.
      if (error instanceof TemplateError) await read(id, { journal: records.journal, templates: new Map() })
    }
  }
  return { sessions, problems }
}

/** Why a session cannot be folded, a sentence, of what was thrown; a bug of codemachine is thrown on. */
export function problemOfSession(id: string, error: unknown): string {
  if (error instanceof UserError) return error.message
  if (error instanceof TemplateError) return `${id} cannot continue until its template is fixed: ${error.message}.`
  throw error
}
