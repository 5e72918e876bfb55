import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { TreeChanges } from '../../core/events/events.ts'
import { GitError, runGit, runGitOrThrow, writingGit } from '../git/git.ts'
import { ownObjects, throwAwayObjects } from '../git/objects.ts'
import { dropIndex, onOwnObjects, type PrivateGit } from '../git/private-git.ts'
import { type TreeDiff, type TreeDiffOptions, treeChanges, treeDiff } from '../git/trees.ts'

/** The savepoints of a private git directory as they are looked at: which there are, and what differs between them. */
export class SavepointStore {
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

/**
 * The savepoints of a private git directory, the oldest first.
 * @param onProblem told a sentence for each that is broken; it is left out
 */
async function readSavepoints(git: PrivateGit, onProblem: (problem: string) => void): Promise<Savepoint[]> {
  const setting = onOwnObjects(git)
  const listed = await runGit(setting, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/savepoints'])
  const refs = listed.stdout.split('\n').flatMap(line => {
    const [, commit = '', ref = ''] = line.match(/^([0-9a-f]+) (.+)$/) ?? []
    const named = parseRef(ref)
    return named === null ? [] : [{ ...named, commit }]
  })
  const texts = await readCommits(git, [...new Set(refs.map(({ commit }) => commit))])
  const savepoints = refs.flatMap(ref => {
    const read = parseCommit(texts.get(ref.commit) ?? '')
    if (read === null) onProblem(`The savepoint ${ref.id} is broken, and left out: its commit cannot be read.`)
    return read === null ? [] : [{ ...ref, ...read }]
  })
  return savepoints.sort(byAge)
}

async function readCommits(git: PrivateGit, commits: readonly string[]): Promise<Map<string, string>> {
  if (commits.length === 0) return new Map()
  const setting = onOwnObjects(git)
  const batch = await runGit(setting, ['cat-file', '--batch'], commits.map(commit => `${commit}\n`).join(''))
  if (batch.ok) return parseBatch(batch.stdout)
  // git gives up at one that is damaged.
  const texts = new Map<string, string>()
  for (const commit of commits) {
    const { ok, stdout } = await runGit(setting, ['cat-file', 'commit', commit])
    if (ok) texts.set(commit, stdout)
  }
  return texts
}

/** As `cat-file --batch` writes it: a line that says how long the object is, the object, a newline. */
function parseBatch(output: string): Map<string, string> {
  const texts = new Map<string, string>()
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at)
    if (end === -1) break
    const [, id, type, size] = output.slice(at, end).match(/^([0-9a-f]+) (\w+) (\d+)$/) ?? []
    const length = size === undefined ? -1 : Number(size)
    if (id !== undefined && type === 'commit') texts.set(id, output.slice(end + 1, end + 1 + length))
    at = end + 1 + length + 1
  }
  return texts
}

function parseCommit(text: string): Pick<Savepoint, 'tree' | 'parent' | 'at' | 'head'> | null {
  const tree = text.match(/^tree ([0-9a-f]+)$/m)?.[1]
  const seconds = text.match(/^committer .* (\d{1,12}) \+0000$/m)?.[1]
  if (tree === undefined || seconds === undefined) return null
  return {
    tree,
    parent: text.match(/^parent ([0-9a-f]+)$/m)?.[1] ?? null,
    at: Number(seconds) * 1000,
    head: text.match(/^Head: ([0-9a-f]{40,64})$/m)?.[1] ?? null,
  }
}

/** The tree of the first savepoint in a chain, which may be older than the reference of round 0. */
async function firstTree(git: PrivateGit, { commit, tree, parent }: Savepoint): Promise<string> {
  if (parent === null) return tree
  const args = ['log', '--max-parents=0', '--format=%T', '-1', commit]
  return (await runGitOrThrow(onOwnObjects(git), args)).trim()
}

/** A state of the work directory that was kept: a commit in codemachine's private git directory. */
export interface Savepoint {
  /** As a person types it: `20261121_1/3`, `20261121_1/start`, `before-rewind-1`. */
  id: string
  /** Null: made before a rewind. */
  session: string | null
  /** The round after which it was made, 0: before the first; the number of a `before-rewind`. */
  round: number
  commit: string
  tree: string
  /** The commit of the one before it in its session; null for the first. */
  parent: string | null
  /** Unix time, ms, in whole seconds. */
  at: number
  /** Where the person's own branch stood; null if that was not known. */
  head: string | null
}

/** What a person means by a name. */
export interface Resolved {
  /** The savepoint's id, or `now`. */
  name: string
  tree: string
  /** Null for the work directory as it is. */
  savepoint: Savepoint | null
}

/** How a savepoint's reference is called. */
export function refOf({ session, round }: Pick<Savepoint, 'session' | 'round'>): string {
  return `${prefix}${session ?? beforeRewind}/${String(round).padStart(3, '0')}`
}

/** What the name of a reference says of its savepoint; null if it is none. */
function parseRef(ref: string): Pick<Savepoint, 'id' | 'session' | 'round'> | null {
  const [, group, number] = ref.match(/^refs\/savepoints\/(\d{8}_\d{1,10}|before-rewind)\/(\d{3,9})$/) ?? []
  if (group === undefined || number === undefined) return null
  const round = Number(number)
  if (group === beforeRewind) return { id: `${beforeRewind}-${round}`, session: null, round }
  return { id: `${group}/${round === 0 ? start : round}`, session: group, round }
}

/** The older first. */
function byAge(a: Savepoint, b: Savepoint): number {
  return a.at - b.at || compareSessions(a.session, b.session) || a.round - b.round
}

/** The session in which a savepoint was made last; null if there is none. */
function newestSession(savepoints: readonly Savepoint[]): string | null {
  return savepoints.toSorted(byAge).findLast(({ session }) => session !== null)?.session ?? null
}

/**
 * The savepoint that a person means: `3` and `start` in the newest session, `20261121_1/3` or `1/3` in another,
 * `before-rewind-1`; a `UserError` that says which there are if there is none, or more than one session is meant.
 */
function findSavepoint(name: string, savepoints: readonly Savepoint[]): Savepoint {
  const exact = savepoints.find(({ id }) => id === name)
  if (exact !== undefined) return exact
  const [, wanted = null, round = ''] = name.match(/^(?:(.*)\/)?([^/]+)$/) ?? []
  const session = wanted === null ? newestSession(savepoints) : sessionOf(wanted, savepoints)
  const number = round === start ? 0 : /^\d{1,9}$/.test(round) ? Number(round) : null
  const found = savepoints.find(each => session !== null && each.session === session && each.round === number)
  if (found !== undefined) return found
  throw notThere(name, savepoints)
}

function sessionOf(wanted: string, savepoints: readonly Savepoint[]): string | null {
  const sessions = [...new Set(savepoints.flatMap(({ session }) => session ?? []))]
  if (sessions.includes(wanted)) return wanted
  const matches = sessions.filter(id => id.endsWith(`_${wanted}`))
  if (matches.length < 2) return matches[0] ?? null
  throw new UserError(`Session "${wanted}" may be any of ${matches.slice(-8).join(', ')}; use the whole id.`)
}

function notThere(name: string, savepoints: readonly Savepoint[]): UserError {
  const shown = name.slice(0, 60).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
  const newest = newestSession(savepoints)
  if (savepoints.length === 0) {
    return new UserError(
      `There is no savepoint "${shown}": no session has made one in this directory yet, or they have been pruned.`,
    )
  }
  const others = savepoints.filter(({ session }) => session === null).map(({ id }) => id)
  const rounds = savepoints.filter(({ session }) => session !== null && session === newest).map(({ round }) => round)
  const there = [...(newest === null ? [] : [`${inRanges(rounds)} of ${newest}`]), ...others.slice(-3), 'now']
  return new UserError(`There is no savepoint "${shown}".`, {
    hint: `There are: ${there.join('; ')}. codemachine savepoints lists those of older sessions, too; others may have been pruned.`,
  })
}

/** `start, 1 to 4, 7`. */
function inRanges(rounds: readonly number[]): string {
  const ranges: { from: number; to: number }[] = []
  for (const round of rounds.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (round > 1 && last?.to === round - 1) last.to = round
    else ranges.push({ from: round, to: round })
  }
  const words = ranges.map(({ from, to }) => (from === to ? `${from === 0 ? start : from}` : `${from} to ${to}`))
  return `${words.length > 8 ? '…, ' : ''}${words.slice(-8).join(', ')}`
}

/** By day, then by counter; what is of no session first. */
function compareSessions(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return a.slice(0, 8).localeCompare(b.slice(0, 8)) || Number(a.slice(9)) - Number(b.slice(9))
}

const prefix = 'refs/savepoints/'
const beforeRewind = 'before-rewind'
const start = 'start'

/** Which savepoints may go. */
export interface PruneRule {
  /** Those of sessions whose newest is older than this moment, Unix time, ms; null: none for that. */
  before: number | null
  /** The oldest, until the rest takes at most so many bytes; null: none for that. */
  mostBytes: number | null
  /** Every one, also the newest session's and the newest before a rewind. */
  all: boolean
  /** A session whose savepoints stay all the same. */
  spare?: string | null
}

/** The savepoints that go together: those of a session, or one that was made before a rewind. */
export interface Batch {
  /** The session, or the savepoint's id. */
  name: string
  savepoints: readonly Savepoint[]
  /** Of the newest of them, Unix time, ms. */
  at: number
}

/** The batches that a rule lets go, the oldest first. */
export async function planPrune(
  git: PrivateGit,
  savepoints: readonly Savepoint[],
  { before, mostBytes, all, spare = null }: PruneRule,
): Promise<Batch[]> {
  const batches = batchesOf(savepoints)
  if (all) return batches.filter(({ name }) => name !== spare)
  const kept = [
    spare,
    newestSession(savepoints),
    savepoints.toSorted(byAge).findLast(({ session }) => session === null)?.id,
  ]
  const free = batches.filter(({ name }) => !kept.includes(name))
  const old = free.filter(({ at }) => before !== null && at < before)
  if (mostBytes === null) return old
  const byCount = await fewestFor(free.length, async count => {
    const gone = new Set(free.slice(0, count))
    return (
      (await bytesOf(
        git,
        batches.filter(each => !gone.has(each)),
      )) <= mostBytes
    )
  })
  return free.slice(0, Math.max(old.length, byCount))
}

/**
 * Lets batches go, and gives the room back that nothing needs then, or did not need before; answers how many bytes that
 * are. The caller holds the lock of the run.
 */
export async function prune(git: PrivateGit, batches: readonly Batch[]): Promise<number> {
  const before = await bytesOnDisk(git)
  const writing = () =>
    writingGit(git.gitDir, async () => {
      const refs = batches.flatMap(({ savepoints }) => savepoints.map(each => `delete ${refOf(each)}\n`))
      await runGitOrThrow(onOwnObjects(git), ['update-ref', '--stdin'], refs.join(''))
      await dropIndex(git)
      await throwAwayObjects(git)
    })
  await orUserError('Not all room can be given back, for git failed', writing)
  return Math.max(0, before - (await bytesOnDisk(git)))
}

/** What the objects of the private git directory take on the disk, those too that nothing needs, bytes. */
export async function bytesOnDisk({ gitDir }: PrivateGit): Promise<number> {
  const files = await readdir(join(gitDir, 'objects'), { recursive: true, withFileTypes: true })
  let bytes = 0
  for (const file of files) {
    if (!file.isFile()) continue
    // Something may go meanwhile.
    bytes += (await stat(join(file.parentPath, file.name)).catch(() => null))?.size ?? 0
  }
  return bytes
}

/** What these savepoints take, bytes. */
export async function bytesOf(git: PrivateGit, batches: readonly Batch[]): Promise<number> {
  const commits = batches.flatMap(({ savepoints }) => savepoints.map(({ commit }) => `${commit}\n`))
  if (commits.length === 0) return 0
  const args = ['rev-list', '--objects', '--disk-usage', '--stdin']
  const { ok, stdout, stderr } = await runGit(onOwnObjects(git), args, commits.join(''))
  if (ok) return Number(stdout.trim())
  throw new UserError('How much the savepoints take cannot be found out; git 2.31 or newer can, if none is broken.', {
    hint: stderr.trim().slice(0, 300),
  })
}

function batchesOf(savepoints: readonly Savepoint[]): Batch[] {
  const groups = Map.groupBy(savepoints.toSorted(byAge), ({ session, id }) => session ?? id)
  const batches = [...groups].map(([name, group]) => ({ name, savepoints: group, at: group.at(-1)?.at ?? 0 }))
  return batches.sort((a, b) => a.at - b.at)
}

/** The least count from 0 to `most` of which it is true, if it is true of all above; `most` if it is of none. */
async function fewestFor(most: number, isTrue: (count: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, most]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await isTrue(middle)) high = middle
    else low = middle + 1
  }
  return low
}
