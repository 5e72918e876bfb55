import { dirname, join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import type { Redactor } from '../../base/redactor.ts'
import { fold } from '../../core/state/fold.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import { emptyState, type SessionState, sessionStatusOf, sharesPlan } from '../../core/state/state.ts'
import { FolderChanges } from '../../platform/files.ts'
import { readJournal } from '../../records/journal.ts'
import type { Records } from '../../records/records.ts'
import type { LockHolder } from '../../records/run-lock.ts'
import { fileState, findObstacle, readTextFile } from '../../workspace/files/inside-directory.ts'
import { planPaths } from '../../workspace/memory/plan-files.ts'
import { sessionFolder } from '../../workspace/memory/session-folder.ts'
import {
  type BoardMain,
  type BoardTask,
  currentTask,
  parseBoardMain,
  parseBoardTasks,
} from '../../workspace/memory/tasks-file.ts'
import { latestSession } from '../find.ts'
import { redactorOfEnvironment, type World } from '../world.ts'

/** Where a session's memory lies: its folder, and the work directory with that folder in it. Absolute paths. */
export interface BoardPlace {
  folder: string
  directory: string
  /** Takes the secrets out of what is read there: a board is for showing. */
  redactor: Redactor
  /** Where its `tasks.json` lies; null: that is not known yet; left out: in the folder. */
  tasks?: () => string | null
}

/** Where the memory of a session in this work directory lies. @param redactor of who is shown it */
export function boardPlaceOf(
  { directory, sessionFolder: folderOf }: Records,
  id: string,
  redactor: Redactor,
  state: () => Known,
): BoardPlace {
  const { folder } = sessionFolder({ directory, id, records: folderOf(id) })
  const tasks = () => {
    const known = state()
    if (known?.id !== id) return null
    return sharesPlan(known) ? planPaths(directory).tasks : join(folder, TASKS)
  }
  return { folder, directory, redactor, tasks }
}

type Known = Pick<SessionState, 'id' | 'kind'> | null

const TASKS = 'tasks.json'

/** What the memory of a session says now; empty as far as it is not there, or not whole. */
export async function readTaskBoard(place: BoardPlace): Promise<TaskBoard> {
  return await new BoardFiles(place, null).read()
}

export interface TaskWatchOptions extends BoardPlace {
  clock: Clock
  /** Ends the watching. */
  signal: AbortSignal
  /** Told what the memory says, first and whenever that has changed. */
  onBoard: (board: TaskBoard) => void
}

/**
 * Watches the memory of a session until `signal`. A file that is only half written, or gone, counts as what it said
 * when it was whole.
 */
export async function watchTasks(options: TaskWatchOptions): Promise<void> {
  const { folder, directory, clock, signal, onBoard } = options
  const files = new BoardFiles(options, clock)
  let shown: TaskBoard | null = null
  using changes = new FolderChanges([folder, planPaths(directory).folder], options)
  while (!signal.aborted) {
    const board = await files.read()
    if (!isDeepStrictEqual(board, shown)) onBoard(board)
    shown = board
    await changes.next(options.tasks?.() === null ? PACE_MS : POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
}

/** For what a watcher has missed, or where there can be none. */
const POLL_MS = 2000
/** An agent writes more than one file at a time. */
const PACE_MS = 100
/** A file system's stamps are too coarse to tell a second write in the same moment from the first. */
const COARSEST_STAMP_MS = 2000

/** A goal of up to 1 MiB, and as much again of what agents write. */
const MAIN_BYTES = 2 * 1024 * 1024
const TASKS_BYTES = 4 * 1024 * 1024

class BoardFiles {
  readonly #place: BoardPlace
  readonly #main: BoardFile<BoardMain>
  readonly #clock: Clock | null
  #tasks: { path: string; file: BoardFile<readonly BoardTask[]> } | null = null

  constructor(place: BoardPlace, clock: Clock | null) {
    this.#place = place
    const redact = (text: string) => place.redactor.text(text)
    const path = join(place.folder, 'MAIN.md')
    this.#main = new BoardFile(path, MAIN_BYTES, text => parseBoardMain(text, redact), clock)
    this.#clock = clock
  }

  async read(): Promise<TaskBoard> {
    await this.#look().catch(error => {
      // What cannot be read now (too many open files, say) is read the next time.
      if (systemErrorCode(error) === null) throw error
    })
    const [main, tasks] = [this.#main.good, this.#tasks?.file.good ?? []]
    return { title: main?.title ?? null, tasks, current: currentTask(tasks, main?.inProgress ?? []) }
  }

  async #look(): Promise<void> {
    const { directory, folder } = this.#place
    if ((await findObstacle(directory, relative(directory, folder))) === null) await this.#main.look()
    const tasks = this.#tasksNow()
    if (tasks === null || (await findObstacle(directory, relative(directory, dirname(tasks.path)))) !== null) return
    await tasks.file.look()
  }

  #tasksNow(): { path: string; file: BoardFile<readonly BoardTask[]> } | null {
    const { folder, tasks } = this.#place
    const path = tasks === undefined ? join(folder, TASKS) : tasks()
    if (path !== null && path !== this.#tasks?.path) {
      const parse = (text: string) => parseBoardTasks(text, each => this.#place.redactor.text(each))
      this.#tasks = { path, file: new BoardFile(path, TASKS_BYTES, parse, this.#clock) }
    }
    return this.#tasks
  }
}

/** A memory file that an agent may be writing. */
class BoardFile<T> {
  readonly #path: string
  readonly #limit: number
  readonly #parse: (text: string) => T | null
  readonly #clock: Clock | null
  #key: string | null = null
  /** What it said when it was whole last. */
  good: T | null = null

  /** @param clock null: it is read only once */
  constructor(path: string, limit: number, parse: (text: string) => T | null, clock: Clock | null) {
    this.#path = path
    this.#limit = limit
    this.#parse = parse
    this.#clock = clock
  }

  async look(): Promise<void> {
    const state = await fileState(this.#path)
    if (this.#key !== null && state?.key === this.#key) return
    const file = await readTextFile(this.#path, this.#limit)
    if (file.kind !== 'text') return
    this.good = this.#parse(file.text) ?? this.good
    this.#key = this.#isSettled(file.state.changedAt) ? file.state.key : null
  }

  #isSettled(changedAt: number): boolean {
    return this.#clock !== null && changedAt < this.#clock.now() - COARSEST_STAMP_MS
  }
}

/** The session that the runner is at, as `statusLine` says it; null if it is at none just now. */
export async function runningInOneLine(
  records: Records,
  runner: LockHolder,
  { clock, env }: Pick<World, 'clock' | 'env'>,
): Promise<string | null> {
  const id = await latestSession(records, () => {})
  if (id === null) return null
  let state = emptyState(id)
  for await (const event of readJournal(records.journal(id))) state = fold(state, event, records.templates)
  if (state.createdAt === 0 || sessionStatusOf(state, runner) !== 'running') return null
  // Loaded only for a session that runs: what measures texts in cells takes long to load.
  const { statusLine } = await import('../../words/doing.ts')
  const place = boardPlaceOf(records, id, redactorOfEnvironment({ env }), () => state)
  return statusLine(state, await readTaskBoard(place), clock.now())
}
