import { join } from 'node:path'
import { type KnownChange, KnownTree, type KnownTreeGit } from './known-tree.ts'

/** The last fingerprint of a work directory as it is known in memory, and those before it as far as they are needed. */
export class LastFingerprint {
  #known: KnownTree | null = null
  #timesGivenUp = 0
  #takenSince = 0
  #change: (KnownChange & { before: string }) | null = null
  /** By fingerprint the one before it, where all that was new in it has been stored here. */
  readonly #grownFrom = new Map<string, string>()

  /** Whether there is something that the index may not say. */
  get isKnown(): boolean {
    return this.#known !== null
  }

  /** False once git has had to take it too often. */
  get isOfUse(): boolean {
    return this.#timesGivenUp < MOST_GIVEN_UP
  }

  /**
   * The fingerprint after `before`; null if git has to take it: then its index says what was known. Where this throws what git
   * throws, something may have been missed: what is known has to be let go of.
   */
  async next(before: string, ways: KnownTreeGit): Promise<string | null> {
    const { git, objects } = ways
    // Somebody has deleted it, and more: git finds out what.
    if (!(await objects.has(git, before))) {
      this.forget()
      return null
    }
    this.#known ??= await KnownTree.open(ways, join(git.gitDir, 'index'), before)
    const change = (await this.#known?.take(ways)) ?? null
    const hasReused = objects.hasReused()
    if (change !== null) {
      this.#forgive()
      return this.#note(change, before, hasReused)
    }
    this.#timesGivenUp += 1
    this.#takenSince = 0
    await this.letGo(ways)
    return null
  }

  /** Has the index say what was known. */
  async letGo(ways: Pick<KnownTreeGit, 'git' | 'run'>): Promise<void> {
    await this.#known?.flush(ways)
    this.#known = null
  }

  /** The same where there may be no index, or a broken one. */
  forget(): void {
    this.#known = null
    this.#grownFrom.clear()
  }

  /** The paths that differ between two fingerprints; null if that is not known. */
  changed(before: string, after: string): readonly string[] | null {
    return this.#change?.before === before && this.#change.tree === after ? this.#change.changed : null
  }

  /** As `Fingerprints.hasGrown`. */
  hasGrown(base: string, tree: string): boolean {
    let at: string | undefined = tree
    for (let steps = 0; at !== undefined && steps <= MOST_GROWN; steps += 1) {
      if (at === base) return true
      at = this.#grownFrom.get(at)
    }
    return false
  }

  /** As `KnownTree.leftOut`. */
  leftOut(isNever: (path: string) => boolean): string[] | null {
    return this.#known?.leftOut(isNever) ?? null
  }

  /** What git has had to take long ago, as for a repository that was cloned into the work directory, does not count. */
  #forgive(): void {
    this.#takenSince += 1
    if (this.#takenSince % TAKEN_TO_FORGIVE === 0) this.#timesGivenUp = Math.max(0, this.#timesGivenUp - 1)
  }

  #note(change: KnownChange, before: string, hasReused: boolean): string {
    if (change.tree === before) return before
    this.#change = { ...change, before }
    if (this.#grownFrom.size >= MOST_GROWN) this.#grownFrom.clear()
    if (hasReused) this.#grownFrom.delete(change.tree)
    else this.#grownFrom.set(change.tree, before)
    return change.tree
  }
}

const MOST_GROWN = 100
/** So often git has to take it before it always does, unless so many in a row were taken without it. */
const MOST_GIVEN_UP = 3
const TAKEN_TO_FORGIVE = 20
