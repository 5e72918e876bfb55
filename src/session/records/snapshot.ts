import { type FileHandle, rm, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { codeId } from '../../base/package.ts'
import type { SessionState } from '../../core/state/state.ts'
import { openRegularFile, replaceFile, sha256Of } from '../../platform/files.ts'
import type { Records } from './records.ts'

/** Read position in a journal. */
export interface JournalRead {
  /** End of the last complete line, in bytes from the start. */
  bytes: number
  /** Number of earlier lines that are not JSON, except blank ones, and if the last line is among them. */
  rubbish: number
  isLastRubbish: boolean
}

/**
 * A stored fold of a journal's beginning, for the session and its report, so that only the rest is read. The journal remains
 * the truth: a snapshot of another beginning or by other code is ignored.
 */
export interface Snapshot {
  state: SessionState
  /** Returns the state of the report, in its own format; null if not stored. Parsed on demand. */
  report(): unknown
  /** Read position up to which it contains the journal. */
  read: JournalRead
  /** Returns the session some hundred events before, for views of recent events; null if not stored. */
  earlier(): EarlierState | null
  /** SHA-256 of each contained block of the journal, in hex. */
  blocks: readonly string[]
}

/** The session at an earlier position of its journal. */
interface EarlierState {
  state: SessionState
  read: JournalRead
}

/**
 * The check of a snapshot before use. `ends`: the first and last bytes match; enough for views, and equally fast for any
 * length. `whole`: each byte matches.
 */
export type SnapshotCheck = 'ends' | 'whole'

/** Journals of the sessions, and the templates to fold them. */
type Place = Pick<Records, 'journal' | 'templates'>

const FORMAT = 'codemachine-snapshot'
const VERSION = 1
/** Longest folded data, in characters; it is bounded and rarely near this. */
const MOST_CHARS = 8 * 1024 * 1024
const MOST_BYTES = 7 * MOST_CHARS
/** Size of a hashed block of the journal, in bytes; two are hashed at a time. */
const BLOCK_BYTES = 1024 * 1024
/** Compared bytes at each end: the session is at the start, its last events at the end; no other journal has both. */
const ENDS_BYTES = 16 * 1024

/** First line of a snapshot. */
interface Head {
  /** Identifies the code that folded it. */
  code: string
  template: string
  read: JournalRead
  earlier: JournalRead | null
  blocks: readonly string[]
  /** SHA-256 of its first and last bytes, in hex. */
  ends: readonly string[]
}

/** Returns the snapshot of a session; null if there is no trustworthy one. Never rejects. */
export async function readSnapshot(place: Place, id: string, check: SnapshotCheck): Promise<Snapshot | null> {
  try {
    const path = place.journal(id)
    const kept = await readKept(snapshotPath(path))
    if (kept === null) return null
    const { head, state, earlier, report } = kept
    const kind = place.templates.get(head.template)
    if (head.code !== codeId || kind?.hasPlainState !== true) return null
    await using journal = await openRegularFile(path)
    if ((await journal.stat()).size < head.read.bytes) return null
    const { blocks, read } = head
    if (!isDeepStrictEqual(await endsOf(journal, read.bytes), head.ends)) return null
    if (check === 'whole' && !isDeepStrictEqual(await blocksOf(journal, read.bytes, []), blocks)) return null
    const stateOf = (text: string): SessionState => ({ ...JSON.parse(text), kind })
    return {
      state: stateOf(state),
      report: () => JSON.parse(report),
      read,
      earlier: () => head.earlier && { state: stateOf(earlier), read: head.earlier },
      blocks,
    }
  } catch {
    // Ignore any problem: the journal has all of its content.
    return null
  }
}

/**
 * Replaces the snapshot, mode 0600, if all data survives JSON unchanged and the template allows that for its state.
 * @param before the one that it goes on from, whose part of the journal is not read once more. Rejects if the last block of
 * that is not what was folded
 * @returns whether it was written
 */
export async function writeSnapshot(
  place: Place,
  id: string,
  { state, report, read, earlier }: EarlierState & { report: unknown; earlier: EarlierState | null },
  before: Snapshot | null,
): Promise<boolean> {
  const { kind, ...plain } = state
  const { kind: _, ...plainBefore } = earlier?.state ?? { kind: null }
  if (kind?.hasPlainState !== true || place.templates.get(kind.name) !== kind) return false
  const texts = [plain, plainBefore, report].map(value => ({ value, text: JSON.stringify(value) }))
  if (!texts.every(({ value, text }) => text.length < MOST_CHARS && isDeepStrictEqual(JSON.parse(text), value)))
    return false
  const path = place.journal(id)
  await using journal = await openRegularFile(path)
  const head: Head = {
    code: codeId,
    template: kind.name,
    read,
    earlier: earlier?.read ?? null,
    blocks: await blocksOf(journal, read.bytes, before === null ? [] : await filledBlocks(journal, before)),
    ends: await endsOf(journal, read.bytes),
  }
  const content = [JSON.stringify(head), ...texts.map(({ text }) => text)].join('\n')
  const first = JSON.stringify({ format: FORMAT, v: VERSION, sha256: sha256Of(content) })
  const temporary = temporaryPath(path)
  // It need not survive a power cut: its hash shows a torn file.
  await rm(temporary, { force: true })
  await writeFile(temporary, `${first}\n${content}`, { mode: 0o600, flag: 'wx' })
  await replaceFile(temporary, snapshotPath(path))
  return true
}

/** Returns the path of a journal's snapshot. */
export function snapshotPath(journal: string): string {
  return `${journal}.snapshot`
}

function temporaryPath(journal: string): string {
  return `${snapshotPath(journal)}.tmp`
}

/** Removes the snapshot of a journal and any unfinished one; for the runner of the session. */
export async function removeSnapshot(journal: string): Promise<void> {
  for (const path of [snapshotPath(journal), temporaryPath(journal)]) await rm(path, { force: true })
}

/** The lines of a snapshot, without the first one. */
interface Kept {
  head: Head
  state: string
  earlier: string
  report: string
}

async function readKept(path: string): Promise<Kept | null> {
  await using file = await openRegularFile(path)
  if ((await file.stat()).size > MOST_BYTES) return null
  const bytes = await file.readFile()
  const end = bytes.indexOf('\n')
  const { format, v, sha256: hash } = JSON.parse(bytes.subarray(0, end).toString())
  const content = bytes.subarray(end + 1)
  if (format !== FORMAT || v !== VERSION || hash !== sha256Of(content)) return null
  const [head = '', state = '', earlier = '', report = ''] = content.toString().split('\n')
  return { head: JSON.parse(head), state, earlier, report }
}

/** Returns the hashes of the first and last bytes. */
async function endsOf(journal: FileHandle, bytes: number): Promise<string[]> {
  const content = Buffer.allocUnsafe(Math.min(bytes, ENDS_BYTES))
  await fill(content, journal, 0)
  const first = sha256Of(content)
  await fill(content, journal, bytes - content.length)
  return [first, sha256Of(content)]
}

/** Returns the hashes of the blocks of the first bytes. @param known those of the first blocks, which are not read */
async function blocksOf(journal: FileHandle, bytes: number, known: readonly string[]): Promise<string[]> {
  const blocks = [...known]
  const count = Math.ceil(bytes / BLOCK_BYTES)
  let next = known.length
  const hashOn = async () => {
    const buffer = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, bytes))
    for (let block = next++; block < count; block = next++) {
      const at = block * BLOCK_BYTES
      const content = buffer.subarray(0, Math.min(BLOCK_BYTES, bytes - at))
      await fill(content, journal, at)
      // `digest` runs on another thread, unlike `createHash`.
      const hash = await crypto.subtle.digest('SHA-256', content)
      blocks[block] = Buffer.from(hash).toString('hex')
    }
  }
  await Promise.all(count - next > 1 ? [hashOn(), hashOn()] : [hashOn()])
  return blocks
}

/** Returns the hashes of a snapshot's complete blocks. Throws if the incomplete block after them has changed. */
async function filledBlocks(journal: FileHandle, { blocks, read }: Snapshot): Promise<readonly string[]> {
  const filled = blocks.slice(0, Math.floor(read.bytes / BLOCK_BYTES))
  if (isDeepStrictEqual(await blocksOf(journal, read.bytes, filled), blocks)) return filled
  throw new Error('The journal is not what was folded.')
}

/** Fills the buffer from a position; throws if the file is shorter. */
async function fill(bytes: Buffer, journal: FileHandle, at: number): Promise<void> {
  for (let filled = 0; filled < bytes.length; ) {
    const { bytesRead } = await journal.read(bytes, filled, bytes.length - filled, at + filled)
    if (bytesRead === 0) throw new Error('The journal has become shorter.')
    filled += bytesRead
  }
}
