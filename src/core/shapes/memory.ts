import type { EventOf } from '../events/events.ts'

/** An unusable memory file, and what was done with it. */
export type MemoryProblem = EventOf<'memory-broken'>['problem']

/** A found change of the person's words, and what was done about it. */
export type GoalChange = Omit<EventOf<'goal-restored'>, 'type' | 'round'>

/** The front matter and open work of a `MAIN.md`. */
export interface MainFile {
  status: string
  finiteIncantatem: boolean
  shortTitle: string | null
  /** Unchecked `- [ ]` entries and plain bullets under "In progress" and "Todo", in their order. */
  open: readonly string[]
  /** The text under "Why nothing is needed", on one line, at most 1,000 characters; left out: nothing. */
  whyNothing?: string
}

export interface Task {
  id: string
  name: string
  done: boolean
  /** As written, if it is a text. */
  phase?: string
}

/** Codemachine's marks on a task: done, and why it is parked. */
export interface TaskMark {
  id: string
  done?: boolean
  /** Null: removes the mark. */
  parked?: string | null
  /** The task to restore if it is missing. */
  lost?: Readonly<Record<string, unknown>>
}

/** Texts of the memory files. */
export interface MemoryTexts {
  /** `MAIN.md`. */
  main: string
  /** `tasks.json`. */
  tasks: string
}

/** Content of a session's memory files now. */
export interface MemorySnapshot {
  main: MainFile
  tasks: readonly Task[]
  /** Files found broken by this read; `main` and `tasks` are then the last good ones. */
  problems: readonly MemoryProblem[]
  /** Warning about excluding the memory from git, one sentence; left out: it worked. */
  warning?: string
  /** A changed goal in `MAIN.md` found by this read, restored in `texts`; left out: unchanged. */
  goalChange?: GoalChange
  /**
   * A hash (hex) of MAIN.md, tasks.json and kb/ after this read, including a done claim. Equal hashes after two rounds: the
   * second added nothing readable.
   */
  fingerprint: string
  texts: MemoryTexts
}

/** The memory of one session, read and repaired between its rounds. */
export interface Memory {
  /**
   * Reads the files. Moves broken ones aside and restores the last good copy, and restores a changed goal in `MAIN.md`; so
   * no agent may write meanwhile. Throws a `UserError` only for a broken file without any good copy, or a full disk.
   */
  read(): Promise<MemorySnapshot>
  /**
   * Removes the done claim from `MAIN.md` and changes nothing else. The next `read` reports broken files. Throws a
   * `UserError` if the file cannot be written.
   */
  withdrawClaim(): Promise<void>
  /**
   * Sets the status in `MAIN.md` to `done` and changes nothing else. Resolves with why that failed, a sentence; null: done.
   */
  markDone(): Promise<string | null>
  /**
   * Writes codemachine's marks into `tasks.json` and changes nothing else. Throws a `UserError` if the file cannot be
   * written.
   */
  markTasks(marks: readonly TaskMark[]): Promise<void>
  /**
   * Replaces both files with earlier texts of theirs. Throws a `UserError` if one cannot be written; then both stay as they
   * were.
   */
  replaceTexts(texts: MemoryTexts): Promise<void>
}

/** The memory files of the scopes of a session (`RoundScope`). */
export interface ScopeFiles {
  /**
   * Creates the files of a new scope, or removes the done claim from existing ones. From then on, read checks them and its
   * gates' files. No agent may write meanwhile. Throws a `UserError` if it fails, or the goal exceeds 1 MiB.
   */
  make(scope: Pick<EventOf<'scope-entered'>, 'name' | 'goal' | 'gates'>): Promise<void>
  /** Removes the done claim from the session's own files, as `Memory.withdrawClaim` does. */
  withdrawOfSession(): Promise<void>
}

/** A session's files for people, in its folder of the work directory, next to its memory files. */
export interface FolderFiles {
  /**
   * Writes a text file atomically, never through a link; equal content is not touched. `file`: relative to the folder, with
   * `/`. A written `tasks.json` becomes the memory's last good one. Resolves with size and hash (hex), or why it failed, a
   * sentence. Rejects with a `UserError` if the disk is full.
   */
  write(file: string, text: string): Promise<{ bytes: number; sha256: string } | { problem: string }>
  /**
   * Writes the person's words for agents into a file next to `MAIN.md`, replacing anything there. Resolves with its path,
   * relative to the work directory, with `/`; null: it cannot be written.
   */
  writeGoal(text: string): Promise<string | null>
}

/** The person's files that no round may change, a specification for example. */
export interface PersonsFiles {
  /** Records these files just before a round; paths relative to the work directory. Missing files are skipped. */
  before(paths: readonly string[]): void
  /**
   * Restores changed files, even after a crash since then, and saves the changed versions. Resolves with the changes. No
   * agent may write meanwhile.
   */
  after(): Promise<readonly GoalChange[]>
}

/** The memory of a session without memory files. */
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

/** Result of parsing a file: its value, or one sentence with the place and the fix. */
export type Parsed<T> = { ok: true; value: T } | { ok: false; problem: string }

/** Returns true if a `MAIN.md` claims that its goal is reached. */
export function claimsDone(main: Pick<MainFile, 'status' | 'finiteIncantatem'>): boolean {
  return main.finiteIncantatem || main.status.trim().toLowerCase() === 'done'
}
