import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { diskFull, isNoRoom, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { problemOfPromptSize } from '../../base/text.ts'
import type { FolderFiles, Memory, ScopeFiles } from '../../core/shapes/memory.ts'
import {
  findObstacle,
  makeFolderInside,
  readRegularFile,
  relativeInside,
  renameAsBroken,
  whatIsThere,
  writeFileInside,
} from '../files/inside-directory.ts'
import { isPlainPath } from '../files/write-all.ts'
import { newMainFile } from './main-file.ts'
import { type SessionFolder, scopeFolder } from './memory-paths.ts'
import { NO_TASKS, writeLastGood } from './session-folder.ts'
import { type OwnMemory, openMemory } from './session-memory.ts'

interface ScopedMemoryOptions {
  /** Paths of the session's memory. */
  place: SessionFolder
  /** The work directory. */
  directory: string
  /** Its goal in the journal. */
  goal: string
  /** Returns the current scope of the session with its goal in the journal; null: none. */
  scope(): { name: string; goal: string } | null
  /** Returns the commit and branch for a new `MAIN.md`. */
  head(): Promise<{ commit: string | null; branch: string | null }>
  /** Removes secrets from a text. */
  redact(text: string): string
}

/** Opens the memory of a session: its own files, or its scope's during a scope, and its folder for other files. */
export function openScopedMemory(options: ScopedMemoryOptions): {
  memory: Memory
  scopes: ScopeFiles
  folder: FolderFiles
} {
  const { place, directory, goal, scope } = options
  const own = openMemory({ ...place, directory, goal })
  const opened = new Map<string, { goal: string; memory: OwnMemory }>()
  const ofScope = (name: string, goal: string): OwnMemory => {
    const known = opened.get(name)
    if (known?.goal === goal) return known.memory
    const { folder, lastGood } = scopeFolder(place, name)
    const memory = openMemory({ folder, directory, lastGood, goal })
    opened.set(name, { goal, memory })
    return memory
  }
  const present = (): Memory => {
    const now = scope()
    return now === null ? own : ofScope(now.name, now.goal)
  }
  return {
    memory: {
      read: () => present().read(),
      withdrawClaim: () => present().withdrawClaim(),
      markDone: () => own.markDone(),
      markTasks: marks => present().markTasks(marks),
      replaceTexts: texts => present().replaceTexts(texts),
    },
    scopes: {
      async make({ name, goal }) {
        const isThere = await hasFiles(name, options)
        if (!isThere) await keepFirstCopies(name, goal, options)
        const memory = ofScope(name, goal)
        await memory.withdrawClaim()
        // A scope that is entered again may have another goal.
        await memory.takeGoal()
        // `read` creates missing files; do not report that they were missing.
        if (!isThere) await memory.read()
      },
      withdrawOfSession: () => own.withdrawClaim(),
    },
    folder: {
      async write(file, text) {
        const problem = problemOfFile(file, place)
        if (problem !== null) return { problem }
        const bytes = Buffer.from(text)
        const path = join(relativeInside(directory, place.folder), file)
        const isTasks = file === TASKS
        const wrong = isTasks
          ? await own.writeTasks(text)
          : await writeForPeople(await realpath(directory), path, bytes)
        if (wrong !== null) return { problem: wrong }
        return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
      },
      async writeGoal(text) {
        const now = scope()
        const { folder } = now === null ? place : scopeFolder(place, now.name)
        const path = join(relativeInside(directory, folder), GOAL)
        const isWritten = await writeInPlace(await realpath(directory), path, Buffer.from(text))
        return isWritten ? path.split(sep).join('/') : null
      },
    },
  }
}

/** File beside a `MAIN.md` with the person's words, if a round's input has no room for them. */
const GOAL = 'GOAL.md'

const TASKS = 'tasks.json'
/** Codemachine's own files there, compared in lower case. */
const OWN_FILES: ReadonlySet<string> = new Set(['main.md', 'goal.md', TASKS, 'report.md', 'report.html', 'done.json'])
/** Folder of the scopes' memory. */
const SCOPES = 'steps'

/** Returns a sentence if a file may not be stored in the session's folder; null: it may. */
function problemOfFile(file: string, { folder, tasks }: SessionFolder): string | null {
  const name = JSON.stringify(file.slice(0, 200))
  if (!isPlainPath(file)) return `${name} is no path of a file in the folder of a session, such as "plan/v1.md".`
  if (file === TASKS && tasks === join(folder, TASKS)) return null
  const [first = '', ...others] = file.toLowerCase().split('/')
  if (OWN_FILES.has(first) || first === SCOPES || others.includes('main.md') || others.includes('goal.md'))
    return `${name} is a file of codemachine's own, which no template keeps.`
  return null
}

/** Writes a file atomically; `path`: relative to the root. Resolves with a sentence on the obstacle; null on success. */
async function writeForPeople(root: string, path: string, bytes: Buffer): Promise<string | null> {
  try {
    const obstacle = await makeFolderInside(root, dirname(path))
    if (obstacle !== null) return `${path} cannot be written: ${obstacle.path} ${whatIsThere(obstacle)}.`
    const there = await readRegularFile(join(root, path), bytes.length)
    if (there.kind === 'bytes' && there.bytes.equals(bytes)) return null
    await writeFileInside(root, path, bytes)
    return null
  } catch (error) {
    if (isNoRoom(error)) throw diskFull(join(root, path), error)
    if (error instanceof UserError) return error.message
    const code = systemErrorCode(error)
    if (code === null) throw error
    return `${path} cannot be written (${code}).`
  }
}

/** Writes a file below `root` atomically, and renames obstacles; false if that fails. */
export async function writeInPlace(root: string, path: string, bytes: Buffer): Promise<boolean> {
  try {
    for (let tries = 0; tries < MOST_OBSTACLES; tries++) {
      const obstacle = await makeFolderInside(root, dirname(path))
      if (obstacle !== null) await renameAsBroken(root, obstacle.path)
      else if ((await readRegularFile(join(root, path), bytes.length)).kind !== 'broken') break
      else await renameAsBroken(root, path)
    }
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return false
  }
  return (await writeForPeople(root, path, bytes)) === null
}

/** More than the number of folders above a memory file. */
const MOST_OBSTACLES = 10

/** True if a scope has memory files: good copies and a folder. */
async function hasFiles(name: string, { place, directory }: ScopedMemoryOptions): Promise<boolean> {
  const { folder, lastGood } = scopeFolder(place, name)
  if (!['MAIN.md', 'tasks.json'].every(file => existsSync(join(lastGood, file)))) return false
  return (await findObstacle(await realpath(directory), relativeInside(directory, folder)))?.kind !== 'missing'
}

/** Writes the good copies of new memory files, the source of the files; keeps existing ones. */
async function keepFirstCopies(name: string, goal: string, options: ScopedMemoryOptions): Promise<void> {
  const { place, directory, head, redact } = options
  const { folder, lastGood } = scopeFolder(place, name)
  if (existsSync(join(lastGood, 'tasks.json'))) return
  const problem = problemOfPromptSize(goal)
  if (problem !== null) throw new UserError('CM0107', problem)
  await setAside(await realpath(directory), relativeInside(directory, folder))
  const main = newMainFile(loadPrompt('MAIN.template'), { goal, git: await head() }, redact)
  // The last one proves that all are there.
  await writing(lastGood, () => writeLastGood(lastGood, { 'MAIN.md': main, 'tasks.json': NO_TASKS }))
}

/** Renames foreign entries in the place of a new folder and of its parents. */
async function setAside(root: string, folder: string): Promise<void> {
  for (;;) {
    const obstacle = await findObstacle(root, folder)
    if (obstacle?.kind === 'missing') return
    await renameAsBroken(root, obstacle?.path ?? folder)
  }
}
