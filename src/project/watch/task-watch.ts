import { basename, dirname, join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import type { TaskBoard } from '../../core/state/plan.ts'
import { type SessionState, sessionStatusOf, sharesPlan } from '../../core/state/state.ts'
import { FolderChanges } from '../../platform/files.ts'
import type { Redactor } from '../../secrets/redactor.ts'
import { foldJournal } from '../../session/records/journal.ts'
import type { Records } from '../../session/records/records.ts'
import type { LockHolder } from '../../session/records/run-lock.ts'
import { fileState, findObstacle, readTextFile } from '../../workspace/files/inside-directory.ts'
import type { BoardMain } from '../../workspace/memory/main-file.ts'
import { planPaths, scopeFolder, sessionFolder } from '../../workspace/memory/memory-paths.ts'
import { type BoardTask, currentTask, parseBoardTasks } from '../../workspace/memory/tasks-file.ts'
import { latestSession } from '../find.ts'
import { redactorOfProject } from '../secrets/redactor.ts'
import type { World } from '../world.ts'

/** Folder of a session's memory, and the work directory around it. Absolute paths. */
export interface BoardPlace {
  folder: string
  directory: string
  /** Removes secrets from their text: a board is shown. */
  redactor: Redactor
  /** Returns the files of the current work; null: not known yet; left out: those in the folder. */
  work?: () => WorkFiles | null
}

/** Files of the current work: of a session, its plan, or its scope. */
interface WorkFiles {
  main: string
  tasks: string
}

/**
 * Returns the places of a session's memory in this work directory.
 * @param redactor removes the secrets that its viewer must not see
 */
export function boardPlaceOf(
  { directory, sessionFolder: folderOf }: Records,
  id: string,
  redactor: Redactor,
  state: () => Known,
): BoardPlace {
  const place = sessionFolder({ directory, id, records: folderOf(id) })
  const { folder, main } = place
  const work = () => {
    const known = state()
    if (known?.id !== id) return null
    if (known.scope !== null) return scopeFolder(place, known.scope.name)
    return { main, tasks: sharesPlan(known) ? planPaths(directory).tasks : place.tasks }
  }
  return { folder, directory, redactor, work }
}

type Known = Pick<SessionState, 'id' | 'kind' | 'scope'> | null

/**
 * Reads a session's memory; empty where it is missing or incomplete.
 * @param part `tasks`: skips `MAIN.md`, so there is no title, and the current task is the first open one
 */
export async function readTaskBoard(place: BoardPlace, part: BoardPart = 'all'): Promise<TaskBoard> {
  return await new BoardFiles(place, null, part).read()
}

/** Returns the session's plan files as they are now, without secrets; skips unreadable ones. */
export async function readPlanFiles({
  directory,
  redactor,
  work,
}: BoardPlace): Promise<{ file: string; text: string }[]> {
  const files = work?.() ?? null
  const texts: { file: string; text: string }[] = []
  for (const [path, most] of files === null
    ? []
    : ([
        [files.main, MAIN_BYTES],
        [files.tasks, TASKS_BYTES],
      ] as const)) {
    if ((await findObstacle(directory, relative(directory, dirname(path)))) !== null) continue
    const read = await readTextFile(path, most)
    if (read.kind === 'text') texts.push({ file: basename(path), text: redactor.text(read.text) })
  }
  return texts
}

type BoardPart = 'all' | 'tasks'

interface TaskWatchOptions extends BoardPlace {
  clock: Clock
  /** Ends the watching. */
  signal: AbortSignal
  /** Receives the memory's content, first and after each change. */
  onBoard: (board: TaskBoard) => void
}

/** Watches a session's memory until `signal`. For a missing or half-written file its last complete content counts. */
export async function watchTasks(options: TaskWatchOptions): Promise<void> {
  const { folder, directory, clock, signal, onBoard } = options
  const files = new BoardFiles(options, clock)
  let shown: TaskBoard | null = null
  using changes = new FolderChanges([folder, planPaths(directory).folder], options)
  while (!signal.aborted) {
    const board = await files.read()
    if (!isDeepStrictEqual(board, shown)) onBoard(board)
    shown = board
    await changes.next(options.work?.() === null ? PACE_MS : POLL_MS)
    await clock.wait(PACE_MS, signal)
  }
}

/** Catches changes that a watcher missed, or where no watcher works. */
const POLL_MS = 2000
/** An agent writes several files at a time. */
const PACE_MS = 100
/** A file system's stamps may be too coarse to show a second write at the same moment. */
const COARSEST_STAMP_MS = 2000

/** A goal of up to 1 MiB, and as much again from agents. */
const MAIN_BYTES = 2 * 1024 * 1024
const TASKS_BYTES = 4 * 1024 * 1024

class BoardFiles {
  readonly #place: BoardPlace
  readonly #main: FileOfBoard<BoardMain>
  readonly #clock: Clock | null
  readonly #part: BoardPart
  /** Files of the session, or of its scope. */
  #work: FileOfBoard<BoardMain> | null = null
  #tasks: FileOfBoard<readonly BoardTask[]> | null = null

  constructor(place: BoardPlace, clock: Clock | null, part: BoardPart = 'all') {
    this.#place = place
    this.#clock = clock
    this.#part = part
    this.#main = this.#mainAt(join(place.folder, 'MAIN.md'))
  }

  async read(): Promise<TaskBoard> {
    await this.#look().catch(error => {
      // Retry an unreadable file next time (such as: too many open files).
      if (systemErrorCode(error) === null) throw error
    })
    const [main, work, tasks] = [this.#main.file.good, this.#work?.file.good, this.#tasks?.file.good ?? []]
    return { title: main?.title ?? null, tasks, current: currentTask(tasks, work?.inProgress ?? []) }
  }

  async #look(): Promise<void> {
    this.#follow()
    const { directory } = this.#place
    const mains = this.#part === 'all' ? [this.#main, this.#work] : []
    for (const each of new Set([...mains, this.#tasks])) {
      if (each === null || (await findObstacle(directory, relative(directory, dirname(each.path)))) !== null) continue
      await each.file.look()
    }
  }

  /** The current work may have moved to other files. */
  #follow(): void {
    const { folder, work } = this.#place
    const now = work === undefined ? { main: this.#main.path, tasks: join(folder, 'tasks.json') } : work()
    if (now === null) return
    if (now.main === this.#main.path) this.#work = this.#main
    else if (now.main !== this.#work?.path) this.#work = this.#mainAt(now.main)
    if (now.tasks === this.#tasks?.path) return
    const parse = (text: string) => parseBoardTasks(text, each => this.#place.redactor.text(each))
    this.#tasks = { path: now.tasks, file: new BoardFile(now.tasks, TASKS_BYTES, parse, this.#clock) }
  }

  #mainAt(path: string): FileOfBoard<BoardMain> {
    const parse = async (text: string) => {
      // Loaded only for an existing file: it needs the YAML parser.
      const { parseBoardMain } = await import('../../workspace/memory/main-file.ts')
      return parseBoardMain(text, each => this.#place.redactor.text(each))
    }
    return { path, file: new BoardFile(path, MAIN_BYTES, parse, this.#clock) }
  }
}

interface FileOfBoard<T> {
  path: string
  file: BoardFile<T>
}

/** Parses a text; null if it is incomplete. */
type Parse<T> = (text: string) => T | null | Promise<T | null>

/** A memory file that an agent may be writing. */
class BoardFile<T> {
  readonly #path: string
  readonly #limit: number
  readonly #parse: Parse<T>
  readonly #clock: Clock | null
  #key: string | null = null
  /** Its last complete content. */
  good: T | null = null

  /** @param clock null: read only once */
  constructor(path: string, limit: number, parse: Parse<T>, clock: Clock | null) {
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
    this.good = (await this.#parse(file.text)) ?? this.good
    this.#key = this.#isSettled(file.state.changedAt) ? file.state.key : null
  }

  #isSettled(changedAt: number): boolean {
    return this.#clock !== null && changedAt < this.#clock.now() - COARSEST_STAMP_MS
  }
}

/** Returns the runner's current session as in `statusLine`; null: none now. */
export async function runningInOneLine(
  records: Records,
  runner: LockHolder,
  { clock, env }: Pick<World, 'clock' | 'env'>,
): Promise<string | null> {
  const id = await latestSession(records, () => {})
  if (id === null) return null
  const state = await foldJournal(records, id, 'ends')
  if (state === null || sessionStatusOf(state, runner) !== 'running') return null
  // Loaded only for a running session: measuring texts in cells is slow to load.
  const { statusLine } = await import('../../tell/words/doing.ts')
  const place = boardPlaceOf(records, id, redactorOfProject({ env, clock }, records), () => state)
  return statusLine(state, await readTaskBoard(place), clock.now())
}
