import { isDiskFull, messageOf, UserError } from '../../base/errors.ts'
import type { TreeChanges } from '../../core/events/events.ts'
import type { Fingerprints } from '../fingerprint/fingerprint.ts'
import { GitBlocked } from '../git/blocking-files.ts'
import { type NewCommit, newCommits, uncommittedPaths } from '../git/commits.ts'
import { GitError, readHead, runGit, writeToPrivateGit } from '../git/git.ts'
import { hasObject, repackObjects, writeCommit, writeReference } from '../git/objects.ts'
import { type PrivateGit, withOwnObjectsOnly, withoutIndex } from '../git/private-git.ts'
import { gitErrorAsUserError, refName, type Savepoint, SavepointStore } from './savepoint-store.ts'

/** A savepoint to create. */
interface NewSavepoint {
  session: string
  /** Round after which it is made; 0 before the first round. */
  round: number
  /** Tree of `Fingerprints.take`. */
  tree: string
  /** Unix time, ms. */
  at: number
  /** Aborts the copy of its objects, which is slow for a whole tree, with `GitStopped`; undefined: never. */
  signal?: AbortSignal
}

/** The report of a new savepoint: the fields of the event `savepoint`. */
export interface SavepointFacts {
  commit: string
  tree: string
  /** Changes since the session's first savepoint; at most 50 paths. */
  changes: TreeChanges
  head: string | null
  /** New commits of the person's branch since the previous savepoint; at most 20, oldest first. */
  commits: readonly NewCommit[]
  /** Session's changes not in `head`, after new commits of the person; at most 50 paths. Undefined: none or unknown. */
  uncommitted?: { paths: readonly string[]; count: number }
}

interface SavepointsOptions {
  /** Called once, with one sentence, per savepoint that could not be made or read. */
  onWarning?: (message: string) => void
  /** True for a session of replays only, which is the newest only without another one. Undefined: none is. */
  isReplayed?: (session: string) => Promise<boolean>
}

type SavedFingerprints = Pick<Fingerprints, 'git' | 'readAgain' | 'isWhole' | 'hasBecomeWhole'>

/** A session's savepoints: the newest, the tree of the first, and the changes between; `null` if not compared yet. */
interface Chain {
  newest: Savepoint
  first: string
  changes: TreeChanges | null
  /** False while the person's branch has no new commits in this process. */
  hasCommits: boolean
}

/** Opens the savepoints in the private git directory of these fingerprints. */
export function openSavepoints(fingerprints: SavedFingerprints, options: SavepointsOptions = {}): SavepointWriter {
  return new SavepointWriter(fingerprints, options)
}

/**
 * Creates savepoints: commits in codemachine's private git directory with all their objects, so they survive any change of
 * the person's repository. Uses no index, so fingerprints can be taken meanwhile. Dispose of it before the release of the
 * run lock.
 */
export class SavepointWriter extends SavepointStore implements AsyncDisposable {
  readonly #fingerprints: SavedFingerprints
  readonly #warn: (message: string) => void
  readonly #chains = new Map<string, Chain>()
  /** The last queued write: savepoints are created one at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(fingerprints: SavedFingerprints, { onWarning = () => {}, isReplayed }: SavepointsOptions) {
    const warn = onlyOnce(onWarning)
    super(fingerprints, warn, isReplayed)
    this.#fingerprints = fingerprints
    this.#warn = warn
  }

  get #git(): PrivateGit {
    return this.#fingerprints.git
  }

  /**
   * Creates a savepoint of a tree, on disk when this resolves. `null` if git failed, reported to `onWarning`. A second
   * savepoint of a round takes the name of the first and becomes its child. Throws a `UserError` if the disk is full.
   */
  keep(what: NewSavepoint): Promise<SavepointFacts | null> {
    const kept = this.#last.then(() => this.#keepOrTell(what))
    // Only the next savepoint waits for the repack.
    this.#last = kept.then(() => repackObjects(this.#git)).catch(() => {})
    return kept
  }

  /** Creates the savepoint `before-rewind-<n>` of the tree that a rewind is about to replace. */
  async keepBeforeRewind(tree: string, at: number): Promise<Savepoint> {
    const all = await this.list()
    const round = Math.max(0, ...all.flatMap(each => (each.session === null ? each.round : []))) + 1
    const base = all.at(-1)?.tree ?? null
    const made = { session: null, round, tree, parent: null, at: wholeSeconds(at), head: await this.#head() }
    const words = 'The current files cannot be saved, so nothing is changed'
    return await gitErrorAsUserError(words, () =>
      this.#writing(async () => {
        await this.#put(tree, base, undefined)
        const commit = await this.#commit(made)
        await this.#name(made, commit)
        return { ...made, id: `before-rewind-${round}`, commit }
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last
  }

  async #keepOrTell(what: NewSavepoint): Promise<SavepointFacts | null> {
    try {
      return await this.#writing(() => this.#keepOrBeginAnew(what))
    } catch (error) {
      if (!(error instanceof GitError || error instanceof GitBlocked)) throw error
      const why = (error instanceof GitError ? error.reason : messageOf(error)).slice(-MOST_REASON_CHARS)
      this.#warn(`There is no savepoint of round ${what.round}, because git failed: ${why}`)
      // Borrowed objects are missing or forged, so the next fingerprint must not use them.
      this.#fingerprints.readAgain(error)
      return null
    }
  }

  /** Creates a savepoint; without a parent if the earlier savepoints have been deleted. */
  async #keepOrBeginAnew(what: NewSavepoint): Promise<SavepointFacts> {
    const known = this.#chains.get(what.session)
    try {
      return await this.#keep(what)
    } catch (error) {
      if (!(error instanceof GitError) || known === undefined) throw error
      this.#chains.delete(what.session)
      if ((await this.#chain(what.session)).chain?.newest.commit === known.newest.commit) throw error
    }
    this.#warn(
      `Savepoints before that of round ${what.round} are gone from ${this.#git.gitDir}: somebody deleted them. New ones are saved from now on.`,
    )
    return await this.#keep(what)
  }

  async #keep({ session, round, tree, at, signal }: NewSavepoint): Promise<SavepointFacts> {
    const head = await this.#head()
    const isTold = this.#chains.has(session)
    const { chain, base } = await this.#chain(session)
    // An unchanged tree needs only another reference, no new commit.
    const same = chain !== null && chain.newest.tree === tree && chain.newest.head === head ? chain : null
    const isThere = same?.newest.round === round
    // An earlier process may not have journaled its savepoint.
    const before = isThere && !isTold ? await this.#before(same.newest) : (chain?.newest ?? null)
    const first = chain?.first ?? tree
    const parent = (same === null ? chain?.newest.commit : same.newest.parent) ?? null
    const made = { session, round, tree, parent, at: wholeSeconds(at), head }
    const needed = same?.newest.commit ?? parent
    if (needed !== null && !(await this.#hasObject(needed))) throw gone(needed)
    const [commits, changes] = await Promise.all([
      newCommits(this.#git, before, head),
      same?.changes ?? this.#changesSince(first, tree),
      same === null ? this.#put(tree, base, signal) : null,
    ])
    const commit = same?.newest.commit ?? (await this.#commit(made))
    if (!isThere) await this.#name(made, commit)
    const hasCommits = commits.length > 0 || (chain?.hasCommits ?? false)
    this.#chains.set(session, { newest: { ...made, commit, id: `${session}/${round}` }, first, changes, hasCommits })
    return {
      commit,
      tree,
      changes,
      head,
      commits,
      ...(hasCommits ? await this.#uncommitted(head, { first, tree }) : {}),
    }
  }

  async #uncommitted(
    head: string | null,
    trees: { first: string; tree: string },
  ): Promise<Pick<SavepointFacts, 'uncommitted'>> {
    const paths = (head === null ? null : await uncommittedPaths(this.#git, head, trees)) ?? []
    return paths.length === 0 ? {} : { uncommitted: { paths: paths.slice(0, MOST_UNCOMMITTED), count: paths.length } }
  }

  async #changesSince(first: string, tree: string): Promise<TreeChanges> {
    try {
      return await this.changes(first, tree)
    } catch (error) {
      if (!(error instanceof UserError) || isDiskFull(error)) throw error
      this.#warn(`The changes since the session began cannot be listed: ${messageOf(error)}`)
      return { files: 0, added: 0, removed: 0, paths: [] }
    }
  }

  /** Returns the savepoints of a session, null: none yet; and `base`, a complete tree here, if there is one. */
  async #chain(session: string): Promise<{ chain: Chain | null; base: string | null }> {
    const known = this.#chains.get(session)
    if (known !== undefined) return { chain: known, base: known.newest.tree }
    const all = await this.list()
    const newest = all
      .filter(each => each.session === session)
      .sort((a, b) => a.round - b.round)
      .at(-1)
    if (newest === undefined) return { chain: null, base: all.at(-1)?.tree ?? null }
    // An earlier process may have seen new commits.
    const chain = { newest, first: await this.firstTree(newest), changes: null, hasCommits: true }
    this.#chains.set(session, chain)
    return { chain, base: newest.tree }
  }

  /** Returns the person's commit at the previous savepoint; `null` for the first. */
  async #before({ parent }: Savepoint): Promise<{ head: string | null } | null> {
    if (parent === null) return null
    const { stdout } = await runGit(withoutIndex(this.#git), ['cat-file', 'commit', parent])
    return { head: stdout.match(/^Head: ([0-9a-f]{40,64})$/m)?.[1] ?? null }
  }

  async #head(): Promise<string | null> {
    const { repository } = this.#git
    return repository === null ? null : (await readHead(repository)).commit
  }

  /** Copies all objects of a tree that the private git directory lacks against `base`, unless git has stored them there. */
  async #put(tree: string, base: string | null, signal: AbortSignal | undefined): Promise<void> {
    if (this.#fingerprints.isWhole(tree) && (await this.#hasObject(tree))) return
    await this.own(tree, base, signal)
    this.#fingerprints.hasBecomeWhole(tree)
  }

  #hasObject(id: string): Promise<boolean> {
    return hasObject(this.#git, withOwnObjectsOnly(this.#git), id)
  }

  /** Stores the commit; all its objects are there. */
  #commit({ session, round, tree, parent, at, head }: Omit<Savepoint, 'id' | 'commit'>): Promise<string> {
    // A fixed author, so that a savepoint does not reveal who ran it, and equal savepoints have equal hashes.
    const who = `codemachine <codemachine@localhost> ${Math.floor(at / 1000)} +0000`
    const parents = parent === null ? '' : `parent ${parent}\n`
    const words = session === null ? `before rewind ${round}` : `after round ${round} of ${session}`
    const message = `codemachine: ${words}\n\nHead: ${head ?? 'none'}\n`
    const text = `tree ${tree}\n${parents}author ${who}\ncommitter ${who}\n\n${message}`
    return writeCommit(this.#git, text)
  }

  /** Sets the reference. Call it when all objects are on disk. */
  async #name(made: Pick<Savepoint, 'session' | 'round'>, commit: string): Promise<void> {
    await writeReference(this.#git, refName(made), commit)
  }

  #writing<T>(write: () => Promise<T>): Promise<T> {
    return writeToPrivateGit(this.#git.gitDir, write)
  }
}

function onlyOnce(tell: (message: string) => void): (message: string) => void {
  const told = new Set<string>()
  return message => {
    if (told.has(message)) return
    told.add(message)
    tell(message)
  }
}

function gone(commit: string): GitError {
  return new GitError(['cat-file', '-e', commit], {
    ok: false,
    stdout: '',
    stderr: 'There is no such savepoint any more.',
  })
}

function wholeSeconds(at: number): number {
  return Math.floor(at / 1000) * 1000
}

const MOST_REASON_CHARS = 300
const MOST_UNCOMMITTED = 50
