import { realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import { systemErrorCode } from '../base/errors.ts'
import { findObstacle, type Obstacle, pathInside, setAside } from './inside-directory.ts'
import { parseMainFile, withoutClaim } from './main-file.ts'
import { claimsDone, type MainFile, type Memory, type MemoryProblem, type MemorySnapshot, type Task } from './memory.ts'
import { type LostFolder, MemoryFile } from './memory-file.ts'
import { makeMemoryFolder } from './memory-home.ts'
import { parseTasksFile } from './tasks-file.ts'

// A goal of up to 1 MiB, and as much again of what agents write.
const mainKind = { name: 'MAIN.md', limit: 2 * 1024 * 1024, parse: parseMainFile }
const tasksKind = { name: 'tasks.json', limit: 4 * 1024 * 1024, parse: parseTasksFile }

/**
 * Opens the memory of a session. Absolute paths: the session's folder in the work directory, the work directory, and
 * the folder of the last good copies in the records.
 */
export function openMemory(options: { folder: string; directory: string; lastGood: string; clock?: Clock }): Memory {
  const folder = pathInside(options.directory, options.folder)
  let memory: SessionMemory | null = null
  const opened = async (): Promise<SessionMemory> => {
    memory ??= new SessionMemory(
      await realpath(options.directory),
      folder,
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
  return { read: () => inTurn(memory => memory.read()), withdrawClaim: () => inTurn(memory => memory.withdrawClaim()) }
}

class SessionMemory {
  readonly #root: string
  readonly #folder: string
  readonly #main: MemoryFile<MainFile>
  readonly #tasks: MemoryFile<readonly Task[]>
  /** Found while a claim was withdrawn, and not told yet. */
  #problems: MemoryProblem[] = []

  constructor(root: string, folder: string, lastGood: string, clock: Clock) {
    this.#root = root
    this.#folder = folder
    this.#main = new MemoryFile(mainKind, { root, folder, lastGood, clock })
    this.#tasks = new MemoryFile(tasksKind, { root, folder, lastGood, clock })
  }

  async read(): Promise<MemorySnapshot> {
    await this.#refresh()
    const problems = this.#problems
    this.#problems = []
    return { main: this.#main.value, tasks: this.#tasks.value, problems }
  }

  async withdrawClaim(): Promise<void> {
    await this.#refresh()
    if (!claimsDone(this.#main.value)) return
    const text = withoutClaim(this.#main.text)
    if (!text.ok) throw new Error(`A done claim cannot be withdrawn: ${text.problem}`)
    await this.#main.replace(text.value)
  }

  async #refresh(): Promise<void> {
    const [mainStays, tasksStay] = await Promise.all([this.#main.isUnchanged(), this.#tasks.isUnchanged()])
    if (mainStays && tasksStay) return
    const lost = await this.#mendFolder()
    for (const file of [this.#main, this.#tasks]) {
      const problem = await file.read(lost)
      if (problem !== null) this.#problems.push(problem)
    }
  }

  /** Makes sure of the session's folder; answers what had become of it, null if it is as it should be. */
  async #mendFolder(): Promise<LostFolder | null> {
    let lost: LostFolder | null = null
    try {
      for (;;) {
        const obstacle = await findObstacle(this.#root, this.#folder)
        if (obstacle === null) return lost
        lost ??= { problem: `its folder ${describe(obstacle)}; leave the folder where it is.`, setAside: null }
        if (obstacle.kind === 'missing') {
          await makeMemoryFolder(this.#root, this.#folder)
        } else {
          const aside = await setAside(this.#root, obstacle.path)
          lost = { ...lost, setAside: relative(this.#folder, aside) }
        }
      }
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === null) throw error
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
