import { type FileHandle, rm, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import { codeId } from '../../base/package.ts'
import type { SessionState } from '../../core/state/state.ts'
import { openRegularFile, replaceFile, sha256Of } from '../../platform/files.ts'
import type { Records } from './records.ts'

/** How far a journal was read. */
export interface JournalRead {
  /** Where its last whole line ends, in bytes from its beginning. */
  bytes: number
  /** The lines before that which are not JSON, without blank ones, and whether the last one is among them. */
  rubbish: number
  isLastRubbish: boolean
}

/**
 * What a session and its report had come to when its journal had been read so far: the fold of a part of the journal, kept
 * beside it so that the rest alone has to be read. The journal stays what counts: a snapshot that is not of its beginning, or
 * that another code has made, is none.
 */
export interface Snapshot {
  state: SessionState
  /** What the report had come to: data, of which only it knows the shape; null if that was not kept. Parsed when it is asked for. */
  report(): unknown
  /** How much of the journal is in it. */
  read: JournalRead
  /** The session some hundred events before, for who shows the last ones too; null if that was not kept. */
  earlier(): EarlierState | null
  /** SHA-256 of each block of the journal in it, in hex. */
  blocks: readonly string[]
}

/** The session at an earlier place of its journal. */
interface EarlierState {
  state: SessionState
  read: JournalRead
}

/**
 * What is asked before a snapshot is believed. `ends`: the journal begins and goes on as the one that was folded; that is for
 * what is only shown, and takes the same time however long it is. `whole`: each byte of it is the same.
 */
export type SnapshotCheck = 'ends' | 'whole'

/** The folder of one session's records, and the templates by which it is folded. */
type Place = Pick<Records, 'journal' | 'templates'>

const FORMAT = 'codemachine-snapshot'
const VERSION = 1
/** Of what was folded; it is bounded, and hardly ever comes near it. */
const MOST_CHARS = 8 * 1024 * 1024
const MOST_BYTES = 7 * MOST_CHARS
/** A journal is hashed in blocks: two at a time, beside all else. */
const BLOCK_BYTES = 1024 * 1024
/** At the beginning stand the session and when it began, at the end what came last: no other journal has both. */
const ENDS_BYTES = 16 * 1024

/** What stands in a snapshot beside what was folded. */
interface Head {
  /** Whose code has folded it. */
  code: string
  template: string
  read: JournalRead
  earlier: JournalRead | null
  blocks: readonly string[]
  /** SHA-256 of its first and of its last bytes, in hex. */
  ends: readonly string[]
}

/** The snapshot of a session; null if there is none that can be believed. Never rejects. */
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
    // Whatever is wrong with it: all that it says stands in the journal.
    return null
  }
}

/**
 * Puts a snapshot in the place of the one there was, mode 0600; only where all of it is data that comes back from JSON as it
 * was, and its template says so of its state.
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
  // It need not outlive a power cut: one that is torn is known by its hash.
  await rm(temporary, { force: true })
  await writeFile(temporary, `${first}\n${content}`, { mode: 0o600, flag: 'wx' })
  await replaceFile(temporary, snapshotPath(path))
  return true
}

/** Where the snapshot of a journal lies. */
export function snapshotPath(journal: string): string {
  return `${journal}.snapshot`
}

function temporaryPath(journal: string): string {
  return `${snapshotPath(journal)}.tmp`
}

/** Removes the snapshot of a journal, and what is left of one that was being written: by whoever runs the session. */
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

/** The hashes of its first and of its last bytes. */
async function endsOf(journal: FileHandle, bytes: number): Promise<string[]> {
  const content = Buffer.allocUnsafe(Math.min(bytes, ENDS_BYTES))
  await fill(content, journal, 0)
  const first = sha256Of(content)
  await fill(content, journal, bytes - content.length)
  return [first, sha256Of(content)]
}

/** The hashes of the blocks of its first bytes. @param known those of the first blocks, which are not read */
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
      // Not on this thread, unlike that of `createHash`.
      const hash = await crypto.subtle.digest('SHA-256', content)
      blocks[block] = Buffer.from(hash).toString('hex')
    }
  }
  await Promise.all(count - next > 1 ? [hashOn(), hashOn()] : [hashOn()])
  return blocks
}

/** The hashes of the blocks that a snapshot has whole. Throws if the one after them has become another before it was whole. */
async function filledBlocks(journal: FileHandle, { blocks, read }: Snapshot): Promise<readonly string[]> {
  const filled = blocks.slice(0, Math.floor(read.bytes / BLOCK_BYTES))
  if (isDeepStrictEqual(await blocksOf(journal, read.bytes, filled), blocks)) return filled
  throw new Error('The journal is not what was folded.')
}

/** Reads what stands there; throws if it is less. */
async function fill(bytes: Buffer, journal: FileHandle, at: number): Promise<void> {
  for (let filled = 0; filled < bytes.length; ) {
    const { bytesRead } = await journal.read(bytes, filled, bytes.length - filled, at + filled)
    if (bytesRead === 0) throw new Error('The journal has become shorter.')
    filled += bytesRead
  }
}
