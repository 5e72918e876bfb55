import type { EventOf } from '../events/events.ts'

/** A memory file that could not be used, and what became of it. */
export type MemoryProblem = EventOf<'memory-broken'>['problem']

/** The words of the person that were found changed, and what became of them. */
export type GoalChange = Omit<EventOf<'goal-restored'>, 'type' | 'round'>

/** The front matter and open work of a `MAIN.md`. */
export interface MainFile {
  status: string
  finiteIncantatem: boolean
  shortTitle: string | null
  /** Unchecked `- [ ]` entries and plain bullets under "In progress" and "Todo", in their order. */
  open: readonly string[]
  /** What stands under "Why nothing is needed", on one line, at most 1,000 characters; left out: nothing. */
  whyNothing?: string
}

export interface Task {
  id: string
  name: string
  done: boolean
  /** As written, if it is a text. */
  phase?: string
}

/** What codemachine writes about a task: whether it is done, and why nobody works on it any more. */
export interface TaskMark {
  id: string
  done?: boolean
  /** Null takes it back. */
  parked?: string | null
  /** The task as it is to stand there if it does not. */
  lost?: Readonly<Record<string, unknown>>
}

/** The memory files as they are written. */
export interface MemoryTexts {
  /** `MAIN.md`. */
  main: string
  /** `tasks.json`. */
  tasks: string
}

/** What the memory files of a session say now. */
export interface MemorySnapshot {
  main: MainFile
  tasks: readonly Task[]
  /** Files that were broken at this reading; `main` and `tasks` are then the last good ones. */
  problems: readonly MemoryProblem[]
  /** What a person should know of how git was kept from the memory, one sentence; left out: it was. */
  warning?: string
  /** The goal in `MAIN.md` was found changed at this reading, and is back in `texts`; left out: it was not. */
  goalChange?: GoalChange
  /**
   * A hash (hex) of MAIN.md, tasks.json and kb/ as this reading left them, a done claim included. The same hash after
   * two rounds: the second has added nothing that a later one could read.
   */
  fingerprint: string
  texts: MemoryTexts
}

/** The memory of one session, read and mended between its rounds. */
export interface Memory {
  /**
   * What the files say now. Sets aside what is broken and puts the last good copy back, and the goal in `MAIN.md` where it is
   * another one, so call it only while no agent is writing. Throws a `UserError` only if a file is broken and no good copy of it was ever seen, or the disk is full.
   */
  read(): Promise<MemorySnapshot>
  /**
   * Puts the done claim of `MAIN.md` back and changes nothing else in it; does nothing if there is no claim. What it
   * finds broken is told by the next `read`. Throws a `UserError` if the file cannot be written.
   */
  withdrawClaim(): Promise<void>
  /**
   * Sets the status in `MAIN.md` to `done` and changes nothing else in it. Resolves with why that was not possible, a sentence;
   * null: it is so.
   */
  markDone(): Promise<string | null>
  /**
   * Writes into `tasks.json` what codemachine says of some of its tasks, and changes nothing else in it. Throws a
   * `UserError` if the file cannot be written.
   */
  markTasks(marks: readonly TaskMark[]): Promise<void>
  /**
   * Puts other texts in the place of both files, which were theirs before. Throws a `UserError` if one cannot be written;
   * then neither is another.
   */
  replaceTexts(texts: MemoryTexts): Promise<void>
}

/** The memory files of the scopes of a session (`RoundScope`). */
export interface ScopeFiles {
  /**
   * Makes those of a scope that has none yet, and puts the done claim back in those of one that has. What it and its gates
   * name is looked at from now on, as it is while the session is in it. Call it only while no agent is writing. Throws a
   * `UserError` if they cannot be made, or the goal is larger than 1 MiB.
   */
  make(scope: Pick<EventOf<'scope-entered'>, 'name' | 'goal' | 'gates'>): Promise<void>
  /** Puts the done claim back in the files of the session itself, as `Memory.withdrawClaim` does. */
  withdrawOfSession(): Promise<void>
}

/** What a session keeps for people in its folder in the work directory, beside its memory files. */
export interface FolderFiles {
  /**
   * Writes a text file there, all of it or nothing, never through a link; one with that content already is left alone.
   * `file`: relative to the folder, with `/`. `tasks.json` counts as the last good one of the memory from then on. Resolves
   * with its size and the hash of its bytes (hex), or with why it was not written, a sentence. Rejects with a `UserError`
   * where there is no room on the disk.
   */
  write(file: string, text: string): Promise<{ bytes: number; sha256: string } | { problem: string }>
  /**
   * Writes the words of the person for agents to read, as a file beside `MAIN.md`, in the place of whatever an agent has put
   * there. Resolves with its path, relative to the work directory, with `/`; null if it cannot be written.
   */
  writeGoal(text: string): Promise<string | null>
}

/** The files of the person in the work directory that no round may change, such as a specification. */
export interface PersonsFiles {
  /** Notes what these files hold, just before a round; paths relative to the work directory. Those that are not there are left out. */
  before(paths: readonly string[]): void
  /**
   * Puts back what is not as it was noted, also by a process that was killed since, and keeps what stood there. Resolves with
   * what was changed. Call it only while no agent is writing.
   */
  after(): Promise<readonly GoalChange[]>
}

/** The memory of a session that has no memory files. */
export const NO_MEMORY: Memory = {
  read: async () => ({
    main: { status: '', finiteIncantatem: false, shortTitle: null, open: [] },
    tasks: [],
    problems: [],
    fingerprint: '',
    texts: { main: '', tasks: '' },
  }),
  withdrawClaim: async () => {},
  markDone: async () => null,
  markTasks: async () => {},
  replaceTexts: async () => {},
}

/** What became of parsing a file: its value, or one sentence that names the place and the mend. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; problem: string }

/** Whether a `MAIN.md` says that its goal is reached. */
export function claimsDone(main: Pick<MainFile, 'status' | 'finiteIncantatem'>): boolean {
  return main.finiteIncantatem || main.status.trim().toLowerCase() === 'done'
}
