import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, join, parse } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { GoalChange, PersonsFiles } from '../../core/shapes/memory.ts'
import { isItself } from '../../platform/files.ts'
import {
  findObstacle,
  readRegularFile,
  relativeInside,
  renameAsBroken,
  writeFileInside,
} from '../files/inside-directory.ts'
import { isSameText } from './goal-section.ts'
import { writeInPlace } from './scope-memory.ts'

interface PersonsFilesOptions {
  /** The work directory. */
  directory: string
  /** Session's folder in it, for the versions that a round has written. */
  folder: string
  /** Folder of the records for copies during a round. */
  copies: string
}

/** Largest file, in bytes: no person writes a larger one. */
const MOST_BYTES = 1024 * 1024
const MOST_FILES = 10
/** Flushed, so that a power cut leaves no empty copy to restore. */
const AS_COPY = { mode: 0o600, flush: true }
/** Longest reported text of a changed file, in characters. */
const MOST_FOUND = 2_000

/**
 * Opens the person's files that no round may change. The records have copies during a round, so changes of an interrupted
 * round are undone too. A person's change meanwhile is undone with it; both versions are kept.
 */
export function openPersonsFiles({ directory, folder, copies }: PersonsFilesOptions): PersonsFiles {
  const index = join(copies, 'index.json')
  return {
    // Synchronous: nothing may be awaited just before a round, and some KiB take under a millisecond.
    before(paths) {
      const root = paths.length === 0 ? '' : realpathSync(directory)
      const held = paths.slice(0, MOST_FILES).flatMap(path => {
        const bytes = readAtOnce(root, path)
        return bytes === null ? [] : [{ path, bytes }]
      })
      if (held.length === 0) return
      mkdirSync(copies, { recursive: true, mode: 0o700 })
      for (const [nth, { bytes }] of held.entries()) writeFileSync(join(copies, `${nth}`), bytes, AS_COPY)
      writeFileSync(`${index}.new`, JSON.stringify(held.map(({ path }) => path)), AS_COPY)
      renameSync(`${index}.new`, index)
    },
    async after() {
      if (!existsSync(index)) return []
      const root = await realpath(directory)
      const paths: readonly string[] = JSON.parse(readFileSync(index, 'utf8'))
      const changes: GoalChange[] = []
      for (const [nth, path] of paths.entries()) {
        const copy = join(copies, `${nth}`)
        // A run that was killed while it removed the copies had put all files back.
        if (!existsSync(copy)) continue
        const change = await putBack(root, path, readFileSync(copy), relativeInside(directory, folder))
        if (change !== null) changes.push(change)
      }
      // First the index: without it, no later start undoes what a person has changed since.
      rmSync(index)
      rmSync(copies, { recursive: true, force: true })
      return changes
    },
  }
}

/** Returns the content of a file that a person may have written; null: none, or missing. */
function readAtOnce(root: string, path: string): Buffer | null {
  const file = join(root, path)
  try {
    if (!lstatSync(file).isFile() || !isItself(dirname(file), realpathSync(dirname(file)))) return null
    // It may have become a link since, or a pipe at which a plain open would wait forever.
    const fd = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
    try {
      const stat = fstatSync(fd)
      if (!stat.isFile() || stat.size > MOST_BYTES) return null
      const bytes = Buffer.alloc(stat.size)
      return bytes.subarray(0, readSync(fd, bytes, 0, stat.size, 0))
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/** Restores the earlier content of a file; null if it is unchanged. */
async function putBack(root: string, path: string, before: Buffer, folder: string): Promise<GoalChange | null> {
  const isBehindLink = (await findObstacle(root, dirname(path))) !== null
  const now = isBehindLink ? ({ kind: 'gone' } as const) : await readRegularFile(join(root, path), MOST_BYTES)
  if (now.kind === 'bytes' && isSame(now.bytes, before)) return null
  const how = now.kind === 'gone' ? 'removed' : 'changed'
  const found = now.kind === 'bytes' ? clipEnd(now.bytes.toString().replaceAll('\0', '\uFFFD'), MOST_FOUND) : null
  try {
    const setAside =
      now.kind === 'bytes'
        ? await keepBeside(root, folder, path, now.bytes)
        : now.kind === 'gone'
          ? null
          : await renameAsBroken(root, path)
    const restored = await writeInPlace(root, path, before)
    return { file: path, how, found, setAside, restored }
  } catch (error) {
    if (systemErrorCode(error) === null && !(error instanceof UserError)) throw error
    return { file: path, how, found, setAside: null, restored: false }
  }
}

function isSame(now: Buffer, before: Buffer): boolean {
  return now.equals(before) || isSameText(now.toString(), before.toString())
}

/** Stores the changed version of a file in the session's folder, which no agent is told to read; resolves with its path. */
async function keepBeside(root: string, folder: string, path: string, bytes: Buffer): Promise<string | null> {
  if ((await findObstacle(root, folder)) !== null) return null
  const { name, ext } = parse(path)
  let nth = 1
  while (lstatSync(join(root, folder, `${name}.changed-${nth}${ext}`), { throwIfNoEntry: false }) !== undefined)
    nth += 1
  const kept = join(folder, `${name}.changed-${nth}${ext}`)
  await writeFileInside(root, kept, bytes)
  return kept
}
