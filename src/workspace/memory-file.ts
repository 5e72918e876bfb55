import { dirname, join, relative } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { diskFull, isNoRoom, writing } from '../base/disk-full.ts'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { writeWholeFile } from '../platform/write-whole-file.ts'
import { setAside, writeFileInside } from './inside-directory.ts'
import type { MemoryProblem, Parsed } from './memory.ts'
import { type FileState, fileState, readTextFile } from './read-text-file.ts'

/** What a kind of memory file is called, how large it may be (bytes), and how its text is parsed. */
interface MemoryFileKind<T> {
  name: string
  limit: number
  parse(text: string): Parsed<T>
}

/** A session's folder that had to be made again, and where what was in its place went. */
export interface LostFolder {
  problem: string
  setAside: string | null
}

/** One memory file of a session, and its last good copy in the records. */
export class MemoryFile<T> {
  readonly #kind: MemoryFileKind<T>
  readonly #root: string
  /** Relative to the root. */
  readonly #file: string
  readonly #path: string
  readonly #copy: string
  readonly #clock: Clock
  /** What was good last, in this process or an earlier one; null if nothing was. */
  #good: { text: string; value: T } | null = null
  #state: FileState | null = null

  /** `root` is the work directory's real path, `folder` the session's folder in it; `lastGood` lies in the records. */
  constructor(kind: MemoryFileKind<T>, place: { root: string; folder: string; lastGood: string; clock: Clock }) {
    this.#kind = kind
    this.#root = place.root
    this.#file = join(place.folder, kind.name)
    this.#path = join(place.root, this.#file)
    this.#copy = join(place.lastGood, kind.name)
    this.#clock = place.clock
  }

  /** What the last good text says. Call it after `read`. */
  get value(): T {
    return this.#afterRead().value
  }

  get text(): string {
    return this.#afterRead().text
  }

  /** Whether the file is as it was when it was read last, at the price of one stat. */
  async isUnchanged(): Promise<boolean> {
    const known = this.#state
    // A file system's stamps are too coarse to tell a second write in the same moment from the first.
    if (known === null || known.changedAt > this.#clock.now() - coarsestStampMs) return false
    return (await fileState(this.#path))?.key === known.key
  }

  /**
   * Reads the file. If it is broken or gone, sets it aside, puts the last good copy back, and answers what was wrong. Throws
   * a `UserError` if there is no room for that.
   */
  async read(lost: LostFolder | null): Promise<MemoryProblem | null> {
    this.#good ??= await this.#keptCopy()
    this.#state = null
    const now = await readTextFile(this.#path, this.#kind.limit)
    if (now.kind === 'gone') {
      return this.#putBack(lost ?? { problem: 'it is gone; leave it where it is.', setAside: null })
    }
    if (now.kind === 'broken') return this.#replaceBroken(now.problem)
    if (now.text !== this.#good?.text) {
      const parsed = this.#kind.parse(now.text)
      if (!parsed.ok) return this.#replaceBroken(parsed.problem)
      await this.#keep(now.text, parsed.value)
    }
    this.#state = now.state
    return null
  }

  /** Replaces the text by another good one; the file keeps its mode. Throws a `UserError` if it cannot be written. */
  async replace(text: string): Promise<void> {
    const parsed = this.#kind.parse(text)
    if (!parsed.ok) throw new Error(`${this.#kind.name}: ${parsed.problem}`)
    await writeFileInside(this.#root, this.#file, text, this.#state?.mode).catch((error: unknown) => {
      const code = systemErrorCode(error)
      if (code === null) throw error
      if (isNoRoom(error)) throw diskFull(this.#path, error)
      const message = `${this.#path} cannot be written to (${code}); make its folder one that you can write to.`
      throw new UserError(message, { exitCode: 4, cause: error })
    })
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
    const parsed = this.#kind.parse(copy.text)
    return parsed.ok ? { text: copy.text, value: parsed.value } : null
  }

  async #keep(text: string, value: T): Promise<void> {
    await writing(this.#copy, () => writeWholeFile(this.#copy, text))
    this.#good = { text, value }
  }

  async #replaceBroken(problem: string): Promise<MemoryProblem> {
    this.#mustHaveGood(problem)
    try {
      const aside = await setAside(this.#root, this.#file)
      return await this.#putBack({ problem, setAside: relative(dirname(this.#file), aside) })
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return { file: this.#kind.name, problem, setAside: null, restored: false }
    }
  }

  async #putBack(found: LostFolder): Promise<MemoryProblem> {
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
    throw new UserError(`${this.#path}: ${problem} There is no good copy of it to put back.`, {
      hint: 'Mend it, or start a new session.',
      exitCode: 4,
    })
  }
}

const coarsestStampMs = 100
