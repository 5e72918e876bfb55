import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import type { TreeChanges } from '../../core/events/events.ts'
import { GitError, runGit, runGitOrThrow, writeToPrivateGit } from '../git/git.ts'
import { copyBorrowedObjects, pruneObjects } from '../git/objects.ts'
import { type PrivateGit, removeIndex, stoppable, withOwnObjectsOnly } from '../git/private-git.ts'
import {
  type FileDifference,
  parseObjects,
  type TreeDiff,
  type TreeDiffOptions,
  treeChanges,
  treeDiff,
  treeDifferences,
} from '../git/trees.ts'

/** Reads and compares the savepoints of a private git directory. `SavepointWriter` adds new ones. */
export class SavepointStore {
  readonly #fingerprints: { readonly git: PrivateGit }
  readonly #warn: (message: string) => void
  readonly #isReplayed: (session: string) => Promise<boolean>

  /**
   * @param warn called with one sentence for each savepoint that cannot be read, at every reading
   * @param isReplayed whether a session has only replayed recordings, so that it is not the newest where another one is
   */
  constructor(
    fingerprints: { readonly git: PrivateGit },
    warn: (message: string) => void,
    isReplayed: (session: string) => Promise<boolean> = async () => false,
  ) {
    this.#fingerprints = fingerprints
    this.#warn = warn
    this.#isReplayed = isReplayed
  }

  /** The current git, which may change at any time to one without borrowed objects. */
  get #git(): PrivateGit {
    return this.#fingerprints.git
  }

  /** Returns all savepoints, oldest first. Omits a broken one and reports it to `warn`. */
  list(): Promise<Savepoint[]> {
    return readSavepoints(this.#git, this.#warn)
  }

  /** Returns the session of the newest savepoint, a session of replays only last; null: none. */
  async newestSession(savepoints: readonly Savepoint[]): Promise<string | null> {
    const newestFirst = savepoints.toSorted(byAge).toReversed()
    const sessions = [...new Set(newestFirst.flatMap(({ session }) => session ?? []))]
    for (const session of sessions) if (!(await this.#isReplayed(session))) return session
    return sessions[0] ?? null
  }

  /**
   * Finds the state that a person names: `now`, or a savepoint by `findSavepoint`.
   * @param now returns the tree of the work directory as it is
   */
  async resolve(name: string, now: () => Promise<string>): Promise<NamedState> {
    if (name === 'now') return { name, tree: await now(), savepoint: null }
    const savepoints = await this.list()
    const savepoint = findSavepoint(name, savepoints, await this.newestSession(savepoints))
    const tree = savepoint.session !== null && savepoint.round === 0 ? await this.firstTree(savepoint) : savepoint.tree
    return { name: savepoint.id, tree, savepoint }
  }

  /**
   * Returns the files that differ between two trees, at most `mostPaths` of them by name. Throws a `UserError` if a tree is
   * broken.
   */
  changes(before: string, after: string, mostPaths = MOST_PATHS): Promise<TreeChanges> {
    return this.#owning(before, after, () => treeChanges(this.#git, before, after, mostPaths))
  }

  /** Returns all files that differ between two trees, a renamed one once. Throws a `UserError` if a tree is broken. */
  differences(before: string, after: string, signal?: AbortSignal): Promise<FileDifference[]> {
    return this.#owning(before, after, () => treeDifferences(stoppable(this.#git, signal), before, after))
  }

  /** Returns the unified diff of two trees. Throws a `UserError` if a tree is broken. */
  diff(before: string, after: string, options: TreeDiffOptions): Promise<TreeDiff> {
    return this.#owning(before, after, () => treeDiff(this.#git, before, after, options))
  }

  /** Returns the first tree of a savepoint's session; the savepoint's own tree, with a warning, if that is unreadable. */
  async firstTree(savepoint: Savepoint): Promise<string> {
    try {
      return await firstTree(this.#git, savepoint)
    } catch (error) {
      if (!(error instanceof GitError)) throw error
      this.#warn(
        `The savepoint from the start of ${savepoint.session} cannot be read: ${savepoint.id} is used instead.`,
      )
      return savepoint.tree
    }
  }

  /** Returns a tree with all objects in the private git directory; `null`: none. */
  async anyTree(): Promise<string | null> {
    return (await this.list()).at(-1)?.tree ?? null
  }

  /**
   * Copies every missing object of a tree into the private git directory. `base`: a tree that is complete there; if it is
   * not, copies everything. Throws `GitStopped` once the signal is aborted.
   */
  async own(tree: string, base: string | null, signal?: AbortSignal): Promise<void> {
    const git = stoppable(this.#git, signal)
    try {
      await copyBorrowedObjects(git, tree, base)
    } catch (error) {
      if (!(error instanceof GitError) || base === null) throw error
      await copyBorrowedObjects(git, tree, null)
    }
  }

  /** Runs `look`; if git fails, copies the objects of both trees and retries. */
  async #owning<T>(before: string, after: string, look: () => Promise<T>): Promise<T> {
    try {
      return await look()
    } catch (error) {
      if (!(error instanceof GitError)) throw error
    }
    return await gitErrorAsUserError('The two cannot be compared, because one is broken', async () => {
      await writeToPrivateGit(this.#git.gitDir, async () => {
        await this.own(before, await this.anyTree())
        await this.own(after, before)
      })
      return await look()
    })
  }
}

/** Runs an action and turns a `GitError` into a `UserError` that begins with `words`. Other errors pass. */
export async function gitErrorAsUserError<T>(words: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw error instanceof GitError ? new UserError('CM0504', `${words}: ${error.message}`, { cause: error }) : error
  }
}

const MOST_PATHS = 50

/**
 * Returns the savepoints of a private git directory, the oldest first.
 * @param onProblem called with one sentence for each broken savepoint, which is left out
 */
async function readSavepoints(git: PrivateGit, onProblem: (problem: string) => void): Promise<Savepoint[]> {
  const setting = withOwnObjectsOnly(git)
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
  const setting = withOwnObjectsOnly(git)
  const batch = await runGit(setting, ['cat-file', '--batch'], commits.map(commit => `${commit}\n`).join(''))
  if (batch.ok) return parseObjects(batch.stdout, 'commit')
  // Read one at a time: git stops at a damaged one.
  const texts = new Map<string, string>()
  for (const commit of commits) {
    const { ok, stdout } = await runGit(setting, ['cat-file', 'commit', commit])
    if (ok) texts.set(commit, stdout)
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

/** Returns the tree of the first savepoint of a session. It may be older than the reference of round 0. */
async function firstTree(git: PrivateGit, { commit, tree, parent }: Savepoint): Promise<string> {
  if (parent === null) return tree
  const args = ['log', '--max-parents=0', '--format=%T', '-1', commit]
  return (await runGitOrThrow(withOwnObjectsOnly(git), args)).trim()
}

/** A saved state of the work directory: a commit in codemachine's private git directory. */
export interface Savepoint {
  /** Name for a person to type: `20261121_1/3`, `20261121_1/start`, `before-rewind-1`. */
  id: string
  /** Session; `null`: made before a rewind. */
  session: string | null
  /** Round after which it was made; 0 before the first round. For a `before-rewind`, its number. */
  round: number
  commit: string
  tree: string
  /** Commit of the session's previous savepoint; `null` for the first. */
  parent: string | null
  /** Unix time, ms, in whole seconds. */
  at: number
  /** Checked-out commit of the person's own branch; `null`: unknown. */
  head: string | null
}

/** A state of the work directory that a person has named: a savepoint, or `now`. */
export interface NamedState {
  /** Id of the savepoint, or `now`. */
  name: string
  tree: string
  /** `null` for `now`. */
  savepoint: Savepoint | null
}

/** Returns the git reference of a savepoint: `refs/savepoints/<session>/<round>`. */
export function refName({ session, round }: Pick<Savepoint, 'session' | 'round'>): string {
  return `${prefix}${session ?? beforeRewind}/${String(round).padStart(3, '0')}`
}

/** Parses the name of a savepoint's git reference; `null` if it is not one. */
function parseRef(ref: string): Pick<Savepoint, 'id' | 'session' | 'round'> | null {
  const [, group, number] = ref.match(/^refs\/savepoints\/(\d{8}_\d{1,10}|before-rewind)\/(\d{3,9})$/) ?? []
  if (group === undefined || number === undefined) return null
  const round = Number(number)
  if (group === beforeRewind) return { id: `${beforeRewind}-${round}`, session: null, round }
  return { id: `${group}/${round === 0 ? start : round}`, session: group, round }
}

/** Sorts oldest first. */
function byAge(a: Savepoint, b: Savepoint): number {
  return a.at - b.at || compareSessions(a.session, b.session) || a.round - b.round
}

/** Returns the session of the newest savepoint; `null`: none. */
function newestSession(savepoints: readonly Savepoint[]): string | null {
  return savepoints.toSorted(byAge).findLast(({ session }) => session !== null)?.session ?? null
}

/**
 * Finds a savepoint by a person's words: `3` and `start` in the newest session, `20261121_1/3` or `1/3` in another,
 * `before-rewind-1`. Throws a `UserError` with the existing ones if there is none, or if the session is ambiguous.
 */
function findSavepoint(name: string, savepoints: readonly Savepoint[], newest: string | null): Savepoint {
  const exact = savepoints.find(({ id }) => id === name)
  if (exact !== undefined) return exact
  const [, wanted = null, round = ''] = name.match(/^(?:(.*)\/)?([^/]+)$/) ?? []
  const session = wanted === null ? newest : matchSession(wanted, savepoints)
  const number = round === start ? 0 : /^\d{1,9}$/.test(round) ? Number(round) : null
  const found = savepoints.find(each => session !== null && each.session === session && each.round === number)
  if (found !== undefined) return found
  throw noSuchSavepoint(name, savepoints, newest)
}

function matchSession(wanted: string, savepoints: readonly Savepoint[]): string | null {
  const sessions = [...new Set(savepoints.flatMap(({ session }) => session ?? []))]
  if (sessions.includes(wanted)) return wanted
  const matches = sessions.filter(id => id.endsWith(`_${wanted}`))
  if (matches.length < 2) return matches[0] ?? null
  throw new UserError('CM0604', `"${wanted}" fits several sessions: ${matches.slice(-8).join(', ')}; use the whole id.`)
}

function noSuchSavepoint(name: string, savepoints: readonly Savepoint[], newest: string | null): UserError {
  const shown = name.slice(0, 60).replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
  if (savepoints.length === 0) {
    return new UserError(
      'CM0515',
      `There is no savepoint "${shown}": no session has made a savepoint in this directory yet, or all of them were pruned.`,
    )
  }
  const others = savepoints.filter(({ session }) => session === null).map(({ id }) => id)
  const rounds = savepoints.filter(({ session }) => session !== null && session === newest).map(({ round }) => round)
  const there = [...(newest === null ? [] : [`${formatRanges(rounds)} of ${newest}`]), ...others.slice(-3), 'now']
  return new UserError('CM0515', `There is no savepoint "${shown}".`, {
    hint: `Savepoints: ${there.join('; ')}. codemachine savepoints also lists those of older sessions.`,
  })
}

/** Formats rounds as `start, 1 to 4, 7`. */
function formatRanges(rounds: readonly number[]): string {
  const ranges: { from: number; to: number }[] = []
  for (const round of rounds.toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (round > 1 && last?.to === round - 1) last.to = round
    else ranges.push({ from: round, to: round })
  }
  const words = ranges.map(({ from, to }) => (from === to ? `${from === 0 ? start : from}` : `${from} to ${to}`))
  return `${words.length > 8 ? '…, ' : ''}${words.slice(-8).join(', ')}`
}

/** Orders by day, then by counter; `null` first. */
function compareSessions(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return Number(a.slice(0, 8)) - Number(b.slice(0, 8)) || Number(a.slice(9)) - Number(b.slice(9))
}

const prefix = 'refs/savepoints/'
const beforeRewind = 'before-rewind'
const start = 'start'

/** Rule for the savepoints that `planPrune` chooses. */
export interface PruneRule {
  /** Chooses sessions whose newest savepoint is older than this Unix time in ms; `null` for no limit by age. */
  before: number | null
  /** Chooses the oldest until the rest takes at most this many bytes; `null` for no limit by size. */
  mostBytes: number | null
  /** Chooses all, including the newest session and the newest savepoint before a rewind, which it otherwise keeps. */
  all: boolean
  /** A session that is never chosen. */
  spare?: string | null
  /** The session that counts as the newest; undefined: that of the newest savepoint. */
  newest?: string | null
}

/** Savepoints that are deleted together: of a session, or a single one from before a rewind. */
export interface SavepointGroup {
  /** Id of the session, or of the single savepoint. */
  name: string
  savepoints: readonly Savepoint[]
  /** Unix time in ms of the newest of them. */
  at: number
}

/** Returns the groups of savepoints that a rule chooses to delete, oldest first. Deletes nothing. */
export async function planPrune(
  git: PrivateGit,
  savepoints: readonly Savepoint[],
  { before, mostBytes, all, spare = null, newest = newestSession(savepoints) }: PruneRule,
): Promise<SavepointGroup[]> {
  const batches = groupBySession(savepoints)
  if (all) return batches.filter(({ name }) => name !== spare)
  const kept = [spare, newest, savepoints.toSorted(byAge).findLast(({ session }) => session === null)?.id]
  const free = batches.filter(({ name }) => !kept.includes(name))
  const old = free.filter(({ at }) => before !== null && at < before)
  if (mostBytes === null) return old
  const byCount = await smallestCount(free.length, async count => {
    const gone = new Set(free.slice(0, count))
    const left = batches.filter(each => !gone.has(each))
    return (await savepointBytes(git, left)) <= mostBytes
  })
  return free.slice(0, Math.max(old.length, byCount))
}

/** Deletes groups of savepoints and every unreferenced object. Returns the freed bytes. The caller holds the run lock. */
export async function deleteSavepoints(git: PrivateGit, batches: readonly SavepointGroup[]): Promise<number> {
  const before = await objectBytesOnDisk(git)
  const writing = () =>
    writeToPrivateGit(git.gitDir, async () => {
      const refs = batches.flatMap(({ savepoints }) => savepoints.map(each => `delete ${refName(each)}\n`))
      await runGitOrThrow(withOwnObjectsOnly(git), ['update-ref', '--stdin'], refs.join(''))
      await removeIndex(git)
      await pruneObjects(git)
    })
  await gitErrorAsUserError('Not all space can be freed, because git failed', writing)
  return Math.max(0, before - (await objectBytesOnDisk(git)))
}

/** Returns the bytes on disk of all objects in the private git directory, referenced or not. */
export async function objectBytesOnDisk({ gitDir }: PrivateGit): Promise<number> {
  const files = await readdir(join(gitDir, 'objects'), { recursive: true, withFileTypes: true })
  let bytes = 0
  for (const file of files) {
    if (!file.isFile()) continue
    // A file may disappear meanwhile.
    bytes += (await stat(join(file.parentPath, file.name)).catch(() => null))?.size ?? 0
  }
  return bytes
}

/** Returns the bytes on disk of these savepoints' objects. Throws a `UserError` if git fails. */
export async function savepointBytes(git: PrivateGit, batches: readonly SavepointGroup[]): Promise<number> {
  const commits = batches.flatMap(({ savepoints }) => savepoints.map(({ commit }) => `${commit}\n`))
  if (commits.length === 0) return 0
  const args = ['rev-list', '--objects', '--disk-usage', '--stdin']
  const { ok, stdout, stderr } = await runGit(withOwnObjectsOnly(git), args, commits.join(''))
  if (ok) return Number(stdout.trim())
  throw new UserError(
    'CM0504',
    'codemachine cannot measure the savepoints; it needs git 2.31 or newer, and an undamaged repository.',
    {
      hint: stderr.trim().slice(0, 300),
    },
  )
}

function groupBySession(savepoints: readonly Savepoint[]): SavepointGroup[] {
  const groups = Map.groupBy(savepoints.toSorted(byAge), ({ session, id }) => session ?? id)
  const batches = [...groups].map(([name, group]) => ({ name, savepoints: group, at: group.at(-1)?.at ?? 0 }))
  return batches.sort((a, b) => a.at - b.at)
}

/**
 * Binary search: returns the smallest count from 0 to `most` with `isTrue`, which must hold for all above; otherwise `most`.
 */
async function smallestCount(most: number, isTrue: (count: number) => Promise<boolean>): Promise<number> {
  let [low, high] = [0, most]
  while (low < high) {
    const middle = (low + high) >> 1
    if (await isTrue(middle)) high = middle
    else low = middle + 1
  }
  return low
}
