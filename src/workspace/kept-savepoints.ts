import { UserError } from '../base/errors.ts'
import { GitError } from './git-command.ts'
import { ownObjects } from './own-objects.ts'
import type { PrivateGit } from './private-git.ts'
import { firstTree, readSavepoints } from './read-savepoints.ts'
import { findSavepoint, type Resolved, type Savepoint } from './savepoint.ts'
import { type TreeChanges, treeChanges } from './tree-changes.ts'
import { type TreeDiff, type TreeDiffOptions, treeDiff } from './tree-diff.ts'
import { writingGit } from './writing-git.ts'

/** The savepoints of a private git directory as they are looked at: which there are, and what differs between them. */
export class KeptSavepoints {
  readonly #git: PrivateGit
  readonly #warn: (message: string) => void

  /** @param warn told a sentence for each savepoint that could not be read, as often as it is looked at */
  constructor(git: PrivateGit, warn: (message: string) => void) {
    this.#git = git
    this.#warn = warn
  }

  /** All savepoints, the oldest first; a broken one is left out, and told of. */
  list(): Promise<Savepoint[]> {
    return readSavepoints(this.#git, this.#warn)
  }

  /**
   * What a person means by a name: one of `findSavepoint`, or `now`.
   * @param now answers the tree of the work directory as it is
   */
  async resolve(name: string, now: () => Promise<string>): Promise<Resolved> {
    if (name === 'now') return { name, tree: await now(), savepoint: null }
    const savepoint = findSavepoint(name, await this.list())
    const tree = savepoint.session !== null && savepoint.round === 0 ? await this.firstTree(savepoint) : savepoint.tree
    return { name: savepoint.id, tree, savepoint }
  }

  /** What differs between two trees, at most `mostPaths` of the files named; a `UserError` if one is broken. */
  changes(before: string, after: string, mostPaths = listed): Promise<TreeChanges> {
    return this.#owning(before, after, () => treeChanges(this.#git, before, after, mostPaths))
  }

  /** The unified diff of two trees; a `UserError` if one is broken. */
  diff(before: string, after: string, options: TreeDiffOptions): Promise<TreeDiff> {
    return this.#owning(before, after, () => treeDiff(this.#git, before, after, options))
  }

  /** What the session of a savepoint began with. */
  async firstTree(savepoint: Savepoint): Promise<string> {
    try {
      return await firstTree(this.#git, savepoint)
    } catch (error) {
      if (!(error instanceof GitError)) throw error
      this.#warn(`What ${savepoint.session} began with cannot be read: ${savepoint.id} counts as that.`)
      return savepoint.tree
    }
  }

  /** A tree that is whole; null if there is none. */
  async anyTree(): Promise<string | null> {
    return (await this.list()).at(-1)?.tree ?? null
  }

  /** Makes a tree whole without the person's repository. A base that turns out not to be whole is none. */
  async own(tree: string, base: string | null): Promise<void> {
    try {
      await ownObjects(this.#git, tree, base)
    } catch (error) {
      if (!(error instanceof GitError) || base === null) throw error
      await ownObjects(this.#git, tree, null)
    }
  }

  /** Looks at trees of which not all may be here yet. */
  async #owning<T>(before: string, after: string, look: () => Promise<T>): Promise<T> {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof GitError)) throw error
    }
    return await orUserError('The two cannot be compared, for one is broken', async () => {
      await writingGit(this.#git.gitDir, async () => {
        await this.own(before, await this.anyTree())
        await this.own(after, before)
      })
      return await look()
    })
  }
}

/** Where git fails, a `UserError` that begins with these words. */
export async function orUserError<T>(words: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw error instanceof GitError ? new UserError(`${words}: ${error.message}`, { cause: error }) : error
  }
}

const listed = 50
