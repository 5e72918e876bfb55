import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { diskFull, isNoRoom, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { loadPrompt } from '../../base/package.ts'
import { problemOfPromptSize } from '../../base/text.ts'
import type { FolderFiles, Memory, ScopeFiles } from '../../core/contracts/memory.ts'
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
import { openMemory } from './session-memory.ts'

export interface ScopedMemoryOptions {
  /** Where the memory of the session lies. */
  place: SessionFolder
  /** The work directory. */
  directory: string
  /** The scope that the session is in just now; null: it is in none. */
  scope(): string | null
  /** The commit and the branch that a new `MAIN.md` names. */
  head(): Promise<{ commit: string | null; branch: string | null }>
  /** Takes the secrets out of a text. */
  redact(text: string): string
}

/** Opens the memory of a session: its own files, and while it is in a scope those of the scope; and its folder for others. */
export function openScopedMemory(options: ScopedMemoryOptions): {
  memory: Memory
  scopes: ScopeFiles
  folder: FolderFiles
} {
  const { place, directory, scope } = options
  const own = openMemory({ ...place, directory })
  const opened = new Map<string, Memory>()
  const ofScope = (name: string): Memory => {
    const { folder, lastGood } = scopeFolder(place, name)
    const memory = opened.get(name) ?? openMemory({ folder, directory, lastGood })
    opened.set(name, memory)
    return memory
  }
  const present = (): Memory => {
    const name = scope()
    return name === null ? own : ofScope(name)
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
        const memory = ofScope(name)
        await memory.withdrawClaim()
        // What is missing is put there; that it was missing is nothing to be told.
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
    },
  }
}

const TASKS = 'tasks.json'
/** What codemachine itself writes there, in whatever letters. */
const OWN_FILES: ReadonlySet<string> = new Set(['main.md', TASKS, 'report.md', 'report.html', 'done.json'])
/** Where the memory of scopes lies. */
const SCOPES = 'steps'

/** Why a file of the session's folder is none that can be kept there, a sentence; null if it can. */
function problemOfFile(file: string, { folder, tasks }: SessionFolder): string | null {
  const name = JSON.stringify(file.slice(0, 200))
  if (!isPlainPath(file)) return `${name} is no path of a file in the folder of a session, such as "plan/v1.md".`
  if (file === TASKS && tasks === join(folder, TASKS)) return null
  const [first = '', ...others] = file.toLowerCase().split('/')
  if (OWN_FILES.has(first) || first === SCOPES || others.includes('main.md'))
    return `${name} is a file of codemachine's own, which no template keeps.`
  return null
}

/** Writes a file as a whole; `path`: relative to the root. Resolves with what is in the way, a sentence; null on success. */
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

/** Whether a scope has memory files: good copies of them, and a folder for them. */
async function hasFiles(name: string, { place, directory }: ScopedMemoryOptions): Promise<boolean> {
  const { folder, lastGood } = scopeFolder(place, name)
  if (!['MAIN.md', 'tasks.json'].every(file => existsSync(join(lastGood, file)))) return false
  return (await findObstacle(await realpath(directory), relativeInside(directory, folder)))?.kind !== 'missing'
}

/** Keeps the good copies of new memory files, from which the files are made; those that are there already stay. */
async function keepFirstCopies(name: string, goal: string, options: ScopedMemoryOptions): Promise<void> {
  const { place, directory, head, redact } = options
  const { folder, lastGood } = scopeFolder(place, name)
  if (existsSync(join(lastGood, 'tasks.json'))) return
  const problem = problemOfPromptSize(goal)
  if (problem !== null) throw new UserError(problem)
  await setAside(await realpath(directory), relativeInside(directory, folder))
  const main = newMainFile(loadPrompt('MAIN.template'), { goal, git: await head() }, redact)
  // The last of them says that all are there.
  await writing(lastGood, () => writeLastGood(lastGood, { 'MAIN.md': main, 'tasks.json': NO_TASKS }))
}

/** Renames what somebody else has put in the place of a folder that is to be new, and of the folders that it lies in. */
async function setAside(root: string, folder: string): Promise<void> {
  for (;;) {
    const obstacle = await findObstacle(root, folder)
    if (obstacle?.kind === 'missing') return
    await renameAsBroken(root, obstacle?.path ?? folder)
  }
}
