import { realpath } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Clock, systemClock } from '../../base/clock.ts'
import { diskFull, isNoRoom, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import {
  claimsDone,
  type GoalChange,
  type MainFile,
  type Memory,
  type MemoryProblem,
  type MemorySnapshot,
  type MemoryTexts,
  type Parsed,
  type Task,
  type TaskMark,
} from '../../core/shapes/memory.ts'
import { writeWholeFile } from '../../platform/files.ts'
import {
  type FileState,
  fileState,
  findObstacle,
  type Obstacle,
  readTextFile,
  relativeInside,
  renameAsBroken,
  writeFileInside,
} from '../files/inside-directory.ts'
import { parseMainFile, typedGoal, withDone, withGoal, withoutClaim } from './main-file.ts'
import { memoryFingerprint } from './memory-fingerprint.ts'
import { IgnoreRules, makeMemoryFolder, writingInside } from './memory-folder.ts'
import { memoryRoot } from './memory-paths.ts'
import { applyTaskMarks, parseTasksFile } from './tasks-file.ts'

// A goal of up to 1 MiB, and as much text of agents.
const mainKind = { name: 'MAIN.md', limit: 2 * 1024 * 1024, parse: parseMainFile, accept: parseMainFile }
const tasksKind = { name: 'tasks.json', limit: 4 * 1024 * 1024, parse: parseTasksFile, accept: acceptTasks }

/** Most tasks after a round: codemachine judges each and keeps the result in the session's state. */
const MOST_TASKS = 2_000

function acceptTasks(text: string): Parsed<readonly Task[]> {
  const parsed = parseTasksFile(text)
  if (!parsed.ok || parsed.value.length <= MOST_TASKS) return parsed
  return { ok: false, problem: `tasks has ${parsed.value.length} entries; write at most ${MOST_TASKS}.` }
}

/** Locations of a session's memory; absolute paths. */
interface MemoryOptions {
  /** Folder of `MAIN.md`, in the work directory. */
  folder: string
  /** Path of `tasks.json`; in `folder` if left out. */
  tasks?: string
  directory: string
  /** Folder of the last good copies, in the records. */
  lastGood: string
  /** Goal in the journal, which `MAIN.md` must have; undefined: not checked. */
  goal?: string
  clock?: Clock
}

/** The memory of a session for which codemachine also writes the whole `tasks.json` and the goal of `MAIN.md`. */
export interface OwnMemory extends Memory {
  /** Sets the goal of `MAIN.md` to the one it was opened with, without a report of the earlier one. */
  takeGoal(): Promise<void>
  /** Writes `tasks.json` and its last good copy. Resolves with a sentence on why the text is invalid; null: written. */
  writeTasks(text: string): Promise<string | null>
}

/** Opens the memory of a session. Its calls run one after another. */
export function openMemory(options: MemoryOptions): OwnMemory {
  const folder = relativeInside(options.directory, options.folder)
  const tasksFolder = options.tasks === undefined ? folder : dirname(relativeInside(options.directory, options.tasks))
  let memory: SessionMemory | null = null
  const opened = async (): Promise<SessionMemory> => {
    memory ??= new SessionMemory(await realpath(options.directory), { folder, tasksFolder }, options)
    return memory
  }
  // Run calls one at a time: two reads at once would both rename a broken file.
  let turn: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: (memory: SessionMemory) => Promise<T>): Promise<T> => {
    const result = turn.then(async () => work(await opened()))
    turn = result.catch(() => {})
    return result
  }
  return {
    read: () => inTurn(memory => memory.read()),
    withdrawClaim: () => inTurn(memory => memory.withdrawClaim()),
    markDone: () => inTurn(memory => memory.markDone()),
    markTasks: marks => inTurn(memory => memory.markTasks(marks)),
    replaceTexts: texts => inTurn(memory => memory.replaceTexts(texts)),
    takeGoal: () => inTurn(memory => memory.takeGoal()),
    writeTasks: text => inTurn(memory => memory.writeTasks(text)),
  }
}

/** A file of the memory, and its folder relative to the root. */
interface FileInFolder<T> {
  folder: string
  file: MemoryFile<T>
}

class SessionMemory {
  readonly #root: string
  readonly #main: FileInFolder<MainFile>
  readonly #tasks: FileInFolder<readonly Task[]>
  readonly #ignored: IgnoreRules
  /** Problems from `withdrawClaim` or `markTasks` that `read` has not returned yet. */
  #problems: MemoryProblem[] = []

  constructor(
    root: string,
    { folder, tasksFolder }: { folder: string; tasksFolder: string },
    { lastGood, goal, clock = systemClock }: Pick<MemoryOptions, 'lastGood' | 'goal' | 'clock'>,
  ) {
    this.#root = root
    this.#ignored = new IgnoreRules(root)
    const kind = goal === undefined ? mainKind : { ...mainKind, mend: keepsGoal(goal) }
    this.#main = { folder, file: new MemoryFile(kind, { root, folder, lastGood, clock }) }
    this.#tasks = {
      folder: tasksFolder,
      file: new MemoryFile(tasksKind, { root, folder: tasksFolder, lastGood, clock }),
    }
  }

  async read(): Promise<MemorySnapshot> {
    await this.#refresh()
    const warning = await this.#ignored.keep()
    const problems = this.#problems
    const mended = this.#main.file.takeMended()
    this.#problems = []
    const kb = join(this.#root, memoryRoot, 'kb')
    const [main, tasks] = [this.#main.file, this.#tasks.file]
    const texts = { main: main.text, tasks: tasks.text }
    const fingerprint = memoryFingerprint([texts.main, texts.tasks], kb)
    const warned = warning === null ? {} : { warning }
    const goalChange = mended === null ? {} : { goalChange: goalChangeOf(mended) }
    return { main: main.value, tasks: tasks.value, problems, ...warned, ...goalChange, fingerprint, texts }
  }

  async withdrawClaim(): Promise<void> {
    await this.#refresh()
    const { file } = this.#main
    if (!claimsDone(file.value)) return
    const text = withoutClaim(file.text)
    if (!text.ok) throw new Error(`A done claim cannot be withdrawn: ${text.problem}`)
    await file.replace(text.value)
  }

  async markDone(): Promise<string | null> {
    try {
      await this.#refresh()
      const { file } = this.#main
      const text = withDone(file.text)
      if (!text.ok) return `MAIN.md does not say that it is done: ${text.problem}`
      if (text.value !== file.text) await file.replace(text.value)
      return null
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      return `MAIN.md does not say that it is done: ${error.message}`
    }
  }

  async markTasks(marks: readonly TaskMark[]): Promise<void> {
    await this.#refresh()
    const { file } = this.#tasks
    const text = applyTaskMarks(file.text, marks)
    if (text !== file.text) await file.replace(text)
  }

  async replaceTexts({ main, tasks }: MemoryTexts): Promise<void> {
    await this.#refresh()
    const before = this.#main.file.text
    await this.#main.file.replace(main)
    try {
      await this.#tasks.file.replace(tasks)
    } catch (error) {
      await this.#main.file.replace(before)
      throw error
    }
  }

  async takeGoal(): Promise<void> {
    await this.#refresh()
    this.#main.file.takeMended()
  }

  async writeTasks(text: string): Promise<string | null> {
    await this.#refresh()
    const parsed = acceptTasks(text)
    if (!parsed.ok) return `tasks.json cannot be kept: ${parsed.problem}`
    const { file } = this.#tasks
    if (text !== file.text) await file.replace(text)
    return null
  }

  async #refresh(): Promise<void> {
    const [mainStays, tasksStay] = await Promise.all([this.#main.file.isUnchanged(), this.#tasks.file.isUnchanged()])
    if (mainStays && tasksStay) return
    const lost = new Map<string, ReplacedFolder | null>()
    for (const { folder, file } of [this.#main, this.#tasks]) {
      if (!lost.has(folder)) lost.set(folder, await this.#mendFolder(folder))
      const problem = await file.read(lost.get(folder) ?? null)
      if (problem !== null) this.#problems.push(problem)
    }
  }

  /** Recreates a missing folder of the memory. Returns its problem; `null`: none. */
  async #mendFolder(folder: string): Promise<ReplacedFolder | null> {
    let lost: ReplacedFolder | null = null
    try {
      for (;;) {
        const obstacle = await findObstacle(this.#root, folder)
        if (obstacle === null) return lost
        const what = `${obstacle.path} ${WHAT_WAS_THERE[obstacle.kind]}`
        lost ??= { problem: `its folder ${what}; leave the folder where it is.`, setAside: null }
        if (obstacle.kind === 'missing') {
          await makeMemoryFolder(this.#root, folder)
        } else {
          const aside = await renameAsBroken(this.#root, obstacle.path)
          lost = { ...lost, setAside: relative(folder, aside) }
        }
      }
    } catch (error) {
      const code = systemErrorCode(error)
      if (code === null) throw error
      if (isNoRoom(error)) throw diskFull(join(this.#root, folder), error)
      const problem = `its folder cannot be used (${code}); make it a folder that can be written to.`
      return lost ?? { problem, setAside: null }
    }
  }
}

/** Longest reported text in the place of the goal, in characters. */
const MOST_FOUND = 2_000

function goalChangeOf({ how, found }: Mended): GoalChange {
  const shown = found === null ? null : clipEnd(found, MOST_FOUND)
  return { file: mainKind.name, how, found: shown, setAside: null, restored: true }
}

const WHAT_WAS_THERE = {
  missing: 'was gone',
  link: 'was a link',
  'not-a-directory': 'was not a folder',
} as const satisfies Record<Obstacle['kind'], string>

/** A kind of memory file: its name, its largest size in bytes, its parser, and the parser for others' text. */
interface MemoryFileKind<T> {
  name: string
  limit: number
  parse(text: string): Parsed<T>
  accept(text: string): Parsed<T>
  /** Returns others' text in its correct form; null: it is correct. `copy`: the last good text. */
  mend?(text: string, copy: string): Mended | null
}

/** A corrected text and its problem. */
type Mended = NonNullable<ReturnType<typeof withGoal>>

/** Returns a function that keeps the goal in a `MAIN.md`; `journaled`: the goal in the journal. */
function keepsGoal(journaled: string): (text: string, copy: string) => Mended | null {
  let goal: string | null = null
  return (text, copy) => {
    goal ??= typedGoal(copy, journaled)
    return withGoal(text, goal)
  }
}

/** The problem of a restored folder or file, and the path of the renamed obstacle, if any. */
interface ReplacedFolder {
  problem: string
  setAside: string | null
}

/** One memory file of a session, and its last good copy in the records. */
class MemoryFile<T> {
  readonly #kind: MemoryFileKind<T>
  readonly #root: string
  /** Path relative to the root. */
  readonly #file: string
  readonly #path: string
  readonly #copy: string
  readonly #clock: Clock
  /** Last valid content, of this process or an earlier one; `null`: none. */
  #good: { text: string; value: T } | null = null
  #state: FileState | null = null
  #mended: Mended | null = null

  /** `root`: real path of the work directory, `folder`: the session's folder in it; `lastGood` is in the records. */
  constructor(kind: MemoryFileKind<T>, place: { root: string; folder: string; lastGood: string; clock: Clock }) {
    this.#kind = kind
    this.#root = place.root
    this.#file = join(place.folder, kind.name)
    this.#path = join(place.root, this.#file)
    this.#copy = join(place.lastGood, kind.name)
    this.#clock = place.clock
  }

  /** The parsed last valid text. Call it after `read`. */
  get value(): T {
    return this.#afterRead().value
  }

  get text(): string {
    return this.#afterRead().text
  }

  /** True if the file is unchanged since the last read, by one stat. */
  async isUnchanged(): Promise<boolean> {
    const known = this.#state
    // Time stamps are too coarse to distinguish two writes at the same time.
    if (known === null || known.changedAt > this.#clock.now() - COARSEST_STAMP_MS) return false
    return (await fileState(this.#path))?.key === known.key
  }

  /**
   * Reads the file. If it is broken or missing, renames it, restores the last good copy and returns the problem; otherwise
   * `null`. Throws a `UserError` if the disk is full, or if there is no good copy.
   */
  async read(lost: ReplacedFolder | null): Promise<MemoryProblem | null> {
    this.#good ??= await this.#keptCopy()
    this.#state = null
    const now = await readTextFile(this.#path, this.#kind.limit)
    if (now.kind === 'gone') {
      return this.#putBack(lost ?? { problem: 'it is gone; leave it where it is.', setAside: null })
    }
    if (now.kind === 'broken') return this.#replaceBroken(now.problem)
    if (now.text !== this.#good?.text) {
      const parsed = this.#kind.accept(now.text)
      if (!parsed.ok) return this.#replaceBroken(parsed.problem)
      const mended = this.#good === null ? null : (this.#kind.mend?.(now.text, this.#good.text) ?? null)
      if (mended !== null) return await this.#replaceMended(mended, now.state)
      await this.#keep(now.text, parsed.value)
    }
    this.#state = now.state
    return null
  }

  /** Returns the corrections of a read that have not been taken yet. */
  takeMended(): Mended | null {
    const mended = this.#mended
    this.#mended = null
    return mended
  }

  /** Writes a new valid text; the file keeps its mode. Throws a `UserError` if the write fails. */
  async replace(text: string): Promise<void> {
    const parsed = this.#kind.parse(text)
    if (!parsed.ok) throw new Error(`${this.#kind.name}: ${parsed.problem}`)
    await writingInside(
      this.#path,
      () => writeFileInside(this.#root, this.#file, text, this.#state?.mode),
      code => `${this.#path} cannot be written to (${code}); give yourself the right to write in its folder.`,
      4,
    )
    await this.#keep(text, parsed.value)
    this.#state = await fileState(this.#path)
  }

  #afterRead(): { text: string; value: T } {
    if (this.#good === null) throw new Error(`${this.#kind.name} was not read yet`)
    return this.#good
  }

  async #keptCopy(): Promise<{ text: string; value: T } | null> {
    const copy = await readTextFile(this.#copy, this.#kind.limit)
    if (copy.kind !== 'text') return null
    const text = this.#kind.mend?.(copy.text, copy.text)?.text ?? copy.text
    const parsed = this.#kind.parse(text)
    return parsed.ok ? { text, value: parsed.value } : null
  }

  async #replaceMended(mended: Mended, state: FileState): Promise<MemoryProblem | null> {
    this.#mended ??= mended
    if (Buffer.byteLength(mended.text) > this.#kind.limit) {
      return await this.#replaceBroken(`it is larger than ${this.#kind.limit / 1024 / 1024} MiB; keep it short.`)
    }
    this.#state = state
    await this.replace(mended.text)
    return null
  }

  async #keep(text: string, value: T): Promise<void> {
    await writing(this.#copy, () => writeWholeFile(this.#copy, text))
    this.#good = { text, value }
  }

  async #replaceBroken(problem: string): Promise<MemoryProblem> {
    this.#mustHaveGood(problem)
    try {
      const aside = await renameAsBroken(this.#root, this.#file)
      return await this.#putBack({ problem, setAside: relative(dirname(this.#file), aside) })
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return { file: this.#kind.name, problem, setAside: null, restored: false }
    }
  }

  async #putBack(found: ReplacedFolder): Promise<MemoryProblem> {
    const good = this.#mustHaveGood(found.problem)
    try {
      await writeFileInside(this.#root, this.#file, good.text)
      this.#state = await fileState(this.#path)
      return { file: this.#kind.name, ...found, restored: true }
    } catch (error) {
      if (isNoRoom(error)) throw diskFull(this.#path, error)
      if (systemErrorCode(error) === null && !(error instanceof UserError)) throw error
      return { file: this.#kind.name, ...found, restored: false }
    }
  }

  #mustHaveGood(problem: string): { text: string; value: T } {
    if (this.#good !== null) return this.#good
    throw new UserError('CM0619', `${this.#path}: ${problem} There is no good copy to restore.`, {
      hint: 'Correct it, or start a new session.',
      exitCode: 4,
    })
  }
}

const COARSEST_STAMP_MS = 100
