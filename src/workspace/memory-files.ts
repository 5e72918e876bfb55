import { realpath } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import { diskFull, isNoRoom } from '../base/disk-full.ts'
import { systemErrorCode } from '../base/errors.ts'
import { findObstacle, type Obstacle, pathInside, setAside } from './inside-directory.ts'
import { parseMainFile, withoutClaim } from './main-file.ts'
import {
  claimsDone,
  type MainFile,
  type Memory,
  type MemoryProblem,
  type MemorySnapshot,
  type Task,
  type TaskMark,
} from './memory.ts'
import { type LostFolder, MemoryFile } from './memory-file.ts'
import { memoryFingerprint } from './memory-fingerprint.ts'
import { makeMemoryFolder, memoryHome } from './memory-home.ts'
import { withMarks } from './task-marks.ts'
import { parseTasksFile } from './tasks-file.ts'

// A goal of up to 1 MiB, and as much again of what agents write.
const mainKind = { name: 'MAIN.md', limit: 2 * 1024 * 1024, parse: parseMainFile }
const tasksKind = { name: 'tasks.json', limit: 4 * 1024 * 1024, parse: parseTasksFile }

/** Where the memory of a session lies; absolute paths. */
interface MemoryPlace {
  /** Folder of `MAIN.md`, in the work directory. */
  folder: string
  /** `tasks.json`; left out: it lies there, too. */
  tasks?: string
  directory: string
  /** Folder of the last good copies, in the records. */
  lastGood: string
  clock?: Clock
}

/** Opens the memory of a session. */
export function openMemory(options: MemoryPlace): Memory {
  const folder = pathInside(options.directory, options.folder)
  const tasksFolder = options.tasks === undefined ? folder : dirname(pathInside(options.directory, options.tasks))
  let memory: SessionMemory | null = null
  const opened = async (): Promise<SessionMemory> => {
    memory ??= new SessionMemory(
      await realpath(options.directory),
      { folder, tasksFolder },
      options.lastGood,
      options.clock ?? systemClock,
    )
    return memory
  }
  // One at a time: two readings at once would both set a broken file aside.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: (memory: SessionMemory) => Promise<T>): Promise<T> => {
    const result = turn.then(async () => work(await opened()))
    turn = result.catch(() => {})
    return result
  }
  return {
    read: () => inTurn(memory => memory.read()),
    withdrawClaim: () => inTurn(memory => memory.withdrawClaim()),
    markTasks: marks => inTurn(memory => memory.markTasks(marks)),
  }
}

/** A file of the memory, and its folder (relative to the root). */
interface Kept<T> {
  folder: string
  file: MemoryFile<T>
}

class SessionMemory {
  readonly #root: string
  readonly #main: Kept<MainFile>
  readonly #tasks: Kept<readonly Task[]>
  /** Found while a claim was withdrawn, and not told yet. */
  #problems: MemoryProblem[] = []

  constructor(root: string, folders: { folder: string; tasksFolder: string }, lastGood: string, clock: Clock) {
    const { folder, tasksFolder } = folders
    this.#root = root
    this.#main = { folder, file: new MemoryFile(mainKind, { root, folder, lastGood, clock }) }
    this.#tasks = {
      folder: tasksFolder,
      file: new MemoryFile(tasksKind, { root, folder: tasksFolder, lastGood, clock }),
    }
  }

  async read(): Promise<MemorySnapshot> {
    await this.#refresh()
    const problems = this.#problems
    this.#problems = []
    const kb = join(this.#root, memoryHome, 'kb')
    const [main, tasks] = [this.#main.file, this.#tasks.file]
    const texts = { main: main.text, tasks: tasks.text }
    const fingerprint = memoryFingerprint([texts.main, texts.tasks], kb)
    return { main: main.value, tasks: tasks.value, problems, fingerprint, texts }
  }

  async withdrawClaim(): Promise<void> {
    await this.#refresh()
    const { file } = this.#main
    if (!claimsDone(file.value)) return
    const text = withoutClaim(file.text)
    if (!text.ok) throw new Error(`A done claim cannot be withdrawn: ${text.problem}`)
    await file.replace(text.value)
  }

  async markTasks(marks: readonly TaskMark[]): Promise<void> {
    await this.#refresh()
    const { file } = this.#tasks
    const text = withMarks(file.text, marks)
    if (text !== file.text) await file.replace(text)
  }

  async #refresh(): Promise<void> {
    const [mainStays, tasksStay] = await Promise.all([this.#main.file.isUnchanged(), this.#tasks.file.isUnchanged()])
    if (mainStays && tasksStay) return
    const lost = new Map<string, LostFolder | null>()
    for (const { folder, file } of [this.#main, this.#tasks]) {
      if (!lost.has(folder)) lost.set(folder, await this.#mendFolder(folder))
      const problem = await file.read(lost.get(folder) ?? null)
      if (problem !== null) this.#problems.push(problem)
    }
  }

  /** Makes sure of a folder of the memory; answers what had become of it, null if it is as it should be. */
  async #mendFolder(folder: string): Promise<LostFolder | null> {
    let lost: LostFolder | null = null
    try {
      for (;;) {
        const obstacle = await findObstacle(this.#root, folder)
        if (obstacle === null) return lost
        lost ??= { problem: `its folder ${describe(obstacle)}; leave the folder where it is.`, setAside: null }
        if (obstacle.kind === 'missing') {
          await makeMemoryFolder(this.#root, folder)
        } else {
          const aside = await setAside(this.#root, obstacle.path)
          lost = { ...lost, setAside: relative(folder, aside) }
        }
      }
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === null) throw error
      if (isNoRoom(error)) throw diskFull(join(this.#root, folder), error)
      return (
        lost ?? {
          problem: `its folder cannot be used (${code}); make it a folder that can be written to.`,
          setAside: null,
        }
      )
    }
  }
}

function describe({ path, kind }: Obstacle): string {
  switch (kind) {
    case 'missing':
      return `${path} was gone`
    case 'link':
      return `${path} was a link`
    case 'not-a-directory':
      return `${path} was not a folder`
  }
}
