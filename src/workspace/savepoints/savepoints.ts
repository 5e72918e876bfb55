import { isDiskFull, messageOf, UserError } from '../../base/errors.ts'
import type { TreeChanges } from '../../core/events/events.ts'
import type { Fingerprints } from '../fingerprint.ts'
import { type NewCommit, newCommits } from '../git/commits.ts'
import { GitError, readHead, runGitOrThrow, writingGit } from '../git/git.ts'
import { synced, tidyObjects } from '../git/objects.ts'
import { type PrivateGit, withoutIndex } from '../git/private-git.ts'
import { orUserError, refOf, type Savepoint, SavepointStore } from './savepoint-store.ts'

/** What is to be kept. */
export interface ToKeep {
  session: string
  /** The round after which; 0: before the first. */
  round: number
  /** As `Fingerprints.take` answered it. */
  tree: string
  /** Unix time, ms. */
  at: number
}

/** What is to be said of a savepoint that was made: the fields of the event `savepoint`. */
export interface SavepointFacts {
  commit: string
  tree: string
  /** Since the session's first savepoint; at most 50 paths. */
  changes: TreeChanges
  head: string | null
  /** At most 20, the oldest first. */
  commits: readonly NewCommit[]
}

export interface SavepointsOptions {
  /** Told once for each savepoint that could not be made or read: a sentence. */
  onWarning?: (message: string) => void
}

type SavedFingerprints = Pick<Fingerprints, 'git' | 'readAgain'>

/** Of one session: its newest savepoint, the tree of its first, and what has changed in between; null: not looked at yet. */
interface Chain {
  newest: Savepoint
  first: string
  changes: TreeChanges | null
}

/** Opens the savepoints that lie beside the fingerprints of a work directory. */
export function openSavepoints(fingerprints: SavedFingerprints, options: SavepointsOptions = {}): Savepoints {
  return new Savepoints(fingerprints, options)
}

/**
 * The work directory's states that are kept, as commits in codemachine's private git directory: whole without the
 * person's repository, whatever becomes of that. Uses no index, so that fingerprints may be taken meanwhile. Dispose of
 * it before the lock of the run is given back.
 */
export class Savepoints extends SavepointStore implements AsyncDisposable {
  readonly #fingerprints: SavedFingerprints
  readonly #git: PrivateGit
  readonly #warn: (message: string) => void
  readonly #chains = new Map<string, Chain>()
  /** One after another. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(fingerprints: SavedFingerprints, { onWarning = () => {} }: SavepointsOptions) {
    const warn = onlyOnce(onWarning)
    super(fingerprints.git, warn)
    this.#fingerprints = fingerprints
    this.#git = fingerprints.git
    this.#warn = warn
  }

  /**
   * Makes a savepoint of a tree; kept for good when this resolves. Null if it could not be made: that has been told. One
   * of the same round takes its name, and stays behind it. Throws a `UserError` where the disk is full.
   */
  keep(what: ToKeep): Promise<SavepointFacts | null> {
    const kept = this.#last.then(() => this.#keepOrTell(what))
    // What is tidied up keeps nobody waiting but the next one.
    this.#last = kept.then(() => tidyObjects(this.#git)).catch(() => {})
    return kept
  }

  /** Makes a savepoint of the tree that a rewind leaves. */
  async keepBeforeRewind(tree: string, at: number): Promise<Savepoint> {
    const all = await this.list()
    const round = Math.max(0, ...all.flatMap(each => (each.session === null ? each.round : []))) + 1
    const base = all.at(-1)?.tree ?? null
    const made = { session: null, round, tree, parent: null, at: wholeSeconds(at), head: await this.#head() }
    const words = 'What is there now cannot be kept, so nothing is changed'
    return await orUserError(words, () =>
      this.#writing(async () => {
        await this.own(tree, base)
        const commit = await this.#commit(made)
        await this.#name(made, commit)
        return { ...made, id: `before-rewind-${round}`, commit }
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last
  }

  async #keepOrTell(what: ToKeep): Promise<SavepointFacts | null> {
    try {
      return await this.#writing(() => this.#keep(what))
    } catch (error) {
      if (!(error instanceof GitError)) throw error
      const why = messageOf(error).split('\n').at(-1)?.slice(-MOST_SAID) ?? ''
      this.#warn(`There is no savepoint of round ${what.round}, for git failed: ${why}`)
      // What was borrowed has gone, or is something else: the next one is to do without.
      this.#fingerprints.readAgain()
      return null
    }
  }

  async #keep({ session, round, tree, at }: ToKeep): Promise<SavepointFacts> {
    const head = await this.#head()
    const chain = await this.#chain(session)
    // What has not changed needs no commit of its own, only its name.
    const same = chain !== null && chain.newest.tree === tree && chain.newest.head === head ? chain : null
    const isThere = same?.newest.round === round
    const before = isThere ? await this.#before(same.newest) : (chain?.newest ?? null)
    const base = chain === null ? await this.anyTree() : chain.newest.tree
    const first = chain?.first ?? tree
    const parent = (same === null ? chain?.newest.commit : same.newest.parent) ?? null
    const made = { session, round, tree, parent, at: wholeSeconds(at), head }
    const [commits, commit] = await Promise.all([
      newCommits(this.#git, before?.head ?? null, head),
      same?.newest.commit ?? this.#commit(made),
      same === null ? this.own(tree, base) : null,
    ])
    const [changes] = await Promise.all([
      same?.changes ?? this.#changesSince(first, tree),
      isThere ? null : this.#name(made, commit),
    ])
    this.#chains.set(session, { newest: { ...made, commit, id: `${session}/${round}` }, first, changes })
    return { commit, tree, changes, head, commits }
  }

  async #changesSince(first: string, tree: string): Promise<TreeChanges> {
    try {
      return await this.changes(first, tree)
    } catch (error) {
      if (!(error instanceof UserError) || isDiskFull(error)) throw error
      this.#warn(`What has changed since the session began cannot be listed: ${messageOf(error)}`)
      return { files: 0, added: 0, removed: 0, paths: [] }
    }
  }

  async #chain(session: string): Promise<Chain | null> {
    const known = this.#chains.get(session)
    if (known !== undefined) return known
    const all = (await this.list()).filter(each => each.session === session)
    const newest = all.sort((a, b) => a.round - b.round).at(-1)
    if (newest === undefined) return null
    const chain = { newest, first: await this.firstTree(newest), changes: null }
    this.#chains.set(session, chain)
    return chain
  }

  /** The one before, of which nothing but where the branch stood is wanted. */
  async #before({ parent }: Savepoint): Promise<{ head: string | null } | null> {
    if (parent === null) return null
    const text = await runGitOrThrow(withoutIndex(this.#git), ['cat-file', 'commit', parent])
    return { head: text.match(/^Head: ([0-9a-f]{40,64})$/m)?.[1] ?? null }
  }

  async #head(): Promise<string | null> {
    const { repository } = this.#git
    return repository === null ? null : (await readHead(repository)).commit
  }

  async #commit(made: Omit<Savepoint, 'id' | 'commit'>): Promise<string> {
    const { session, round, tree, parent, at, head } = made
    const setting = withoutIndex(this.#git)
    const env = { ...setting.env, ...identity(at) }
    const words = session === null ? `before rewind ${round}` : `after round ${round} of ${session}`
    const message = `codemachine: ${words}\n\nHead: ${head ?? 'none'}\n`
    const parents = parent === null ? [] : ['-p', parent]
    const args = [...synced, 'commit-tree', '--no-gpg-sign', ...parents, '-F', '-', tree]
    return (await runGitOrThrow({ ...setting, env }, args, message)).trim()
  }

  /** When all is on the disk. */
  async #name(made: Pick<Savepoint, 'session' | 'round'>, commit: string): Promise<void> {
    await runGitOrThrow(withoutIndex(this.#git), [...synced, 'update-ref', '--no-deref', refOf(made), commit])
  }

  #writing<T>(write: () => Promise<T>): Promise<T> {
    return writingGit(this.#git.gitDir, write)
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

/** The same for everybody: a savepoint says nothing of who ran it, and two of the same are the same. */
function identity(at: number): NodeJS.ProcessEnv {
  const date = `@${Math.floor(at / 1000)} +0000`
  return Object.fromEntries(
    ['AUTHOR', 'COMMITTER'].flatMap(role => [
      [`GIT_${role}_NAME`, 'codemachine'],
      [`GIT_${role}_EMAIL`, 'codemachine@localhost'],
      [`GIT_${role}_DATE`, date],
    ]),
  )
}

function wholeSeconds(at: number): number {
  return Math.floor(at / 1000) * 1000
}

const MOST_SAID = 300
