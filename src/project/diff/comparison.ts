import { UserError } from '../../base/errors.ts'
import { foldJournal } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { formatNumber } from '../../tell/words/numbers.ts'
import { UNREAD_MODE } from '../../workspace/fingerprint/unread-files.ts'
import { toLatin1 } from '../../workspace/git/git.ts'
import type { FileDifference } from '../../workspace/git/trees.ts'
import { protectedGlobs } from '../../workspace/protected-files.ts'
import type { NamedState } from '../../workspace/savepoints/savepoint-store.ts'
import type { SavepointWriter } from '../../workspace/savepoints/savepoint-writer.ts'
import { carryOutRewind, holdSavepoints, lookAtSavepoints, type OpenSavepoints, planRewindTo } from '../savepoints.ts'
import type { World } from '../world.ts'

/**
 * Two states of the files to compare: two named as for `codemachine diff`, the start and end of a round, or those of an
 * ended session.
 */
export type ComparedStates =
  | { kind: 'between'; from: string; to: string }
  | { kind: 'ended'; session: string }
  | { kind: 'round'; session: string | null; round: number }

/**
 * Parses the argument of `/diff`: nothing (since the start), a round, a savepoint (since that), or two. Throws a `UserError`
 * for more.
 * @param session session on the screen, whose rounds and start are meant; null: that of the newest savepoint
 */
export function statesTyped(typed: string, session: string | null): ComparedStates {
  const [first = 'start', second, third] = typed.split(/\s+/).filter(word => word !== '')
  if (third !== undefined)
    throw new UserError(
      'CM1015',
      '/diff accepts one or two rounds or savepoints, such as /diff 3, /diff start, /diff 2 4.',
    )
  if (second === undefined && /^[1-9]\d{0,8}$/.test(first)) return { kind: 'round', session, round: Number(first) }
  const named = (name: string) => (session !== null && /^(?:\d{1,9}|start)$/.test(name) ? `${session}/${name}` : name)
  return { kind: 'between', from: named(first), to: named(second ?? 'now') }
}

/** Differences between two states of the files. */
export interface Comparison {
  /** A savepoint's id, or `now`. */
  from: string
  to: string
  /** Listed files: the first 5,000 in git's order. */
  files: readonly FileDifference[]
  /** Number of all files, listed or not, and of their lines. */
  count: number
  added: number
  removed: number
}

/** A line of a file's diff. `hunk`: heading of a change; `note`: a remark that is no line of the file. */
export interface DiffLine {
  kind: 'hunk' | 'same' | 'added' | 'removed' | 'note'
  /** Line numbers from 1 before and after the change; null: the line is not in that file. */
  before: number | null
  after: number | null
  /** The line as in the file, without its newline. */
  text: string
}

const MOST_FILES = 5_000
/** Git shows the diff of a file up to 4 MiB, before and after. */
const MOST_BYTES = 16 * 1024 * 1024
const MOST_LINES = 200_000

/** Compares two states of a work directory's files, also while a session runs there. Dispose of it to close it. */
export class OpenComparison implements AsyncDisposable {
  readonly #world: World
  readonly #records: Records
  readonly #states: ComparedStates
  readonly #onWarning: (warning: string) => void
  #look: OpenSavepoints | null = null
  #trees: { before: NamedState; after: NamedState } | null = null
  /** Running work: git does one thing at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(world: World, records: Records, states: ComparedStates, onWarning: (warning: string) => void) {
    this.#world = world
    this.#records = records
    this.#states = states
    this.#onWarning = onWarning
  }

  /** Reads the files again. Throws a `UserError` without these savepoints, `GitStopped` once the signal is aborted. */
  read(signal: AbortSignal): Promise<Comparison> {
    return this.#alone(async () => {
      const open = await this.#open()
      const { before, after } = await this.#resolve(open, signal)
      this.#trees = { before, after }
      const all = await open.savepoints.differences(before.tree, after.tree, signal)
      const sum = (of: (file: FileDifference) => number | null) =>
        all.reduce((lines, file) => lines + (of(file) ?? 0), 0)
      return {
        from: before.name,
        to: after.name,
        files: all.slice(0, MOST_FILES),
        count: all.length,
        added: sum(file => file.added),
        removed: sum(file => file.removed),
      }
    })
  }

  /** Returns the diff of a file from the last read: at most 200,000 lines. The last line then says how many are left out. */
  lines(file: FileDifference, signal: AbortSignal): Promise<DiffLine[]> {
    const remark = whyWithoutLines(file)
    if (remark !== null) return Promise.resolve([noteOf(remark)])
    return this.#alone(async () => {
      if (this.#trees === null) return []
      const { savepoints } = await this.#open()
      const paths = file.from === null ? [file.path] : [file.from, file.path]
      const { before, after } = this.#trees
      const { text } = await savepoints.diff(before.tree, after.tree, { mostBytes: MOST_BYTES, paths, signal })
      return linesOfDiff(text, file, MOST_LINES)
    })
  }

  /** Returns the paths that a gate of the compared session protects; empty if the session is unknown. */
  async protectedPaths(files: readonly FileDifference[]): Promise<ReadonlySet<string>> {
    const session = this.#trees?.before.savepoint?.session ?? (await this.#records.sessions()).at(-1)
    if (session === undefined) return new Set()
    const state = await foldJournal(this.#records, session, 'ends').catch(() => null)
    const globs = protectedGlobs((state?.gates ?? []).flatMap(({ protect }) => protect))
    return new Set(files.map(({ path }) => path).filter(path => globs.covers(path.normalize())))
  }

  /**
   * Checks a file before the screen asks whether to restore it. Returns the name of the later state if the file has changed
   * again since: a restore would undo that too. Null otherwise. Throws a `UserError` with exit code 6 while a session runs
   * here.
   */
  beforePutBack(file: FileDifference, signal: AbortSignal): Promise<string | null> {
    return this.#alone(async () => {
      if ((await readRunner(this.#records.lock, this.#world.platform)) !== null)
        throw new UserError('CM0601', AT_WORK, { exitCode: 6 })
      const after = this.#trees?.after
      if (after === undefined || after.savepoint === null) return null
      const { savepoints, fingerprints } = await this.#open()
      const since = await savepoints.differences(after.tree, await fingerprints.take(signal), signal)
      return since.some(({ bytes }) => bytes.some(path => file.bytes.includes(path))) ? after.name : null
    })
  }

  /** Returns the name of the savepoint from before the last rewind of one or all files; null: none. */
  keptLast(): Promise<string | null> {
    return this.#alone(async () => {
      const all = await (await this.#open()).savepoints.list()
      const kept = all.filter(({ session }) => session === null).sort((a, b) => a.round - b.round)
      return kept.at(-1)?.id ?? null
    })
  }

  /**
   * Restores a file from a state: the earlier state of the comparison, or the named savepoint. Returns the name of the
   * savepoint that undoes it; null if nothing differs. Throws a `UserError`, with exit code 6 while a session runs here.
   */
  putBack(file: FileDifference, to = this.#trees?.before.name): Promise<string | null> {
    return this.#alone(async () => {
      if (to === undefined) return null
      await this.#letGo()
      await using open = await holdSavepoints(this.#world, this.#records, this.#onWarning).catch(whileWorking)
      const planned = await planRewindTo(open, this.#records, to, file.bytes)
      const { write, remove } = planned.plan
      if (write.length + remove.length === 0) return null
      return await carryOutRewind(open, this.#records, planned, this.#world.clock.now())
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => {})
    await this.#letGo()
  }

  #alone<T>(look: () => Promise<T>): Promise<T> {
    const looked = this.#last.then(look)
    this.#last = looked.catch(() => {})
    return looked
  }

  async #open(): Promise<OpenSavepoints> {
    this.#look ??= await lookAtSavepoints(this.#world, this.#records, this.#onWarning)
    if (this.#look !== null) return this.#look
    throw new UserError('CM0515', `No savepoints in ${this.#records.directory} yet.`)
  }

  async #letGo(): Promise<void> {
    const look = this.#look
    this.#look = null
    await look?.[Symbol.asyncDispose]()
  }

  async #resolve({ savepoints, fingerprints }: OpenSavepoints, signal: AbortSignal) {
    const states = this.#states
    const { from, to } = await namesOf(savepoints, states)
    const named = (name: string) => savepoints.resolve(name, () => fingerprints.take(signal))
    return { before: await named(from), after: await named(to) }
  }
}

/** Says the same as a rewind, but on one line of a screen. */
function whileWorking(error: unknown): never {
  if (!(error instanceof UserError) || error.exitCode !== 6) throw error
  throw new UserError('CM0601', AT_WORK, { exitCode: 6, cause: error })
}

const AT_WORK = 'A session is running here. Restore files after it has ended.'

async function namesOf(savepoints: SavepointWriter, states: ComparedStates): Promise<{ from: string; to: string }> {
  switch (states.kind) {
    case 'between':
      return states
    case 'round':
      return await statesOfRound(savepoints, states)
    case 'ended':
      return await statesOfSession(savepoints, states.session)
  }
}

/** Returns the states around a session: its start, and its last savepoint, else the next session's start, else now. */
async function statesOfSession(savepoints: SavepointWriter, session: string): Promise<{ from: string; to: string }> {
  const all = (await savepoints.list()).sort((a, b) => a.at - b.at)
  const own = all.filter(each => each.session === session).sort((a, b) => a.round - b.round)
  const last = own.findLast(({ round }) => round > 0)
  const began = own[0]?.at ?? Number.POSITIVE_INFINITY
  const next = all.find(each => each.session !== null && each.session !== session && each.at > began)
  return { from: `${session}/start`, to: (last ?? next)?.id ?? 'now' }
}

/** Returns the start and end of a round: the savepoint before it, and its own, or the files now while it runs. */
async function statesOfRound(
  savepoints: SavepointWriter,
  { session, round }: Extract<ComparedStates, { kind: 'round' }>,
): Promise<{ from: string; to: string }> {
  const all = await savepoints.list()
  const meant = session ?? (await savepoints.newestSession(all))
  const kept = all.filter(each => each.session === meant).sort((a, b) => a.round - b.round)
  const before = kept.findLast(each => each.round < round)
  const after = kept.find(each => each.round === round)
  const newest = kept.at(-1)?.round
  if (before !== undefined && after !== undefined) return { from: before.id, to: after.id }
  if (before !== undefined && newest === round - 1) return { from: before.id, to: 'now' }
  throw new UserError('CM0515', `Round ${round}${meant === null ? '' : ` of ${meant}`} has no savepoint.`, {
    hint:
      newest === undefined
        ? 'No session has made a savepoint in this directory yet, or all of them were pruned.'
        : `The newest savepoint is of round ${newest}; codemachine savepoints lists all.`,
  })
}

/** Returns a sentence why a file shows no lines; null: it shows some. */
function whyWithoutLines({ modeBefore, modeAfter, added, bytes }: FileDifference): string | null {
  if (modeBefore === UNREAD_MODE || modeAfter === UNREAD_MODE)
    return 'Its content was not read: it is too large, not a regular file, or contains a secret.'
  if (added === null) return 'It is not text, or larger than 4 MiB. It differs; no lines are shown.'
  // Git gets paths as text.
  if (bytes.some(path => toLatin1(Buffer.from(path, 'latin1').toString('utf8')) !== path))
    return 'Its name is not UTF-8: codemachine diff --no-pager shows its lines.'
  return null
}

function noteOf(text: string): DiffLine {
  return { kind: 'note', before: null, after: null, text }
}

const HUNK = /^@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@/

/** Returns the lines of one file in a unified diff that may contain other files: at most `most`, and a note on the rest. */
export function linesOfDiff(
  text: string,
  file: Pick<FileDifference, 'modeBefore' | 'modeAfter' | 'added' | 'removed'>,
  most: number,
): DiffLine[] {
  // Git shows a file that became a link, or the reverse, as removed and added.
  const kinds = new Set([file.modeBefore, file.modeAfter].map(mode => mode.slice(0, 3)))
  let left = kinds.size === 2 && !kinds.has('000') ? 2 : 1
  const lines: DiffLine[] = []
  const numbers: LineNumbers = { before: 0, after: 0, isInHunk: false }
  for (let at = 0; at < text.length && lines.length < most; ) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(at, end)
    at = end + 1
    if (line.startsWith('diff --git ')) {
      if (left-- === 0) break
      numbers.isInHunk = false
    }
    const read = readLine(line, numbers)
    if (read !== null) lines.push(read)
  }
  const all = (file.added ?? 0) + (file.removed ?? 0)
  const more = all - lines.filter(({ kind }) => kind === 'added' || kind === 'removed').length
  if (more <= 0) return lines
  const words = `${formatNumber(more)} of its ${formatNumber(all)} changed lines are not shown here`
  return [...lines, noteOf(`… ${words}; codemachine diff --no-pager prints them.`)]
}

/** Numbers of the next line before and after the change. */
interface LineNumbers {
  before: number
  after: number
  /** False in a file's headings. */
  isInHunk: boolean
}

/** Parses a line of the diff; null for a heading of its file. */
function readLine(line: string, numbers: LineNumbers): DiffLine | null {
  const hunk = line.startsWith('@@') ? HUNK.exec(line) : null
  if (hunk !== null) {
    Object.assign(numbers, { before: Number(hunk[1]), after: Number(hunk[2]), isInHunk: true })
    return { kind: 'hunk', before: numbers.before, after: numbers.after, text: line }
  }
  if (!numbers.isInHunk) return null
  const text = line.slice(1)
  switch (line[0]) {
    case '+':
      return { kind: 'added', before: null, after: numbers.after++, text }
    case '-':
      return { kind: 'removed', before: numbers.before++, after: null, text }
    case ' ':
      return { kind: 'same', before: numbers.before++, after: numbers.after++, text }
    case '\\':
      return noteOf(text.trim())
    default:
      return null
  }
}
