import { createHash } from 'node:crypto'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import { pathExists, writeWholeFile } from '../../platform/files.ts'
import { treeRevision } from './commits.ts'
import { GitError, type GitSetting, runGit, runGitOrThrow, toLatin1 } from './git.ts'
import { type PrivateGit, withOwnObjectsOnly, withoutIndex } from './private-git.ts'
import { ABSENT, RAW_DIFF, rawDifferences } from './trees.ts'

/**
 * Copies the objects of a tree into the private git directory as one pack, on disk when this resolves. The person's `git gc`
 * can then delete none of them.
 * @param base a tree that is complete there already; `null` if there is none
 */
export async function copyBorrowedObjects(git: PrivateGit, tree: string, base: string | null): Promise<void> {
  if (tree === base) return
  const kept = (await ownPacks(git)).map(name => `--keep-pack=${name}`)
  const args = [
    ...FAST_PACK,
    'pack-objects',
    '-q',
    '--non-empty',
    '--delta-base-offset',
    '--window=0',
    '--revs',
    ...kept,
    join(git.gitDir, 'objects', 'pack', 'pack'),
  ]
  const wanted = `${tree}\n${base === null ? '' : `^${base}\n`}`
  const packs = await runGitOrThrow(withoutIndex(git), args, wanted)
  for (const name of packs.split('\n')) if (name !== '') await verify(git, `pack-${name}`)
}

/**
 * Checks the objects' hashes. An agent can write to the borrowed repository and store other content under a hash; git itself
 * does not check that.
 */
async function verify(git: PrivateGit, pack: string): Promise<void> {
  const path = join(git.gitDir, 'objects', 'pack', pack)
  const args = ['index-pack', '--verify', `${path}.pack`]
  const result = await runGit(withOwnObjectsOnly(git), args)
  if (result.ok) return
  for (const ending of ['idx', 'rev', 'pack']) await rm(`${path}.${ending}`, { force: true })
  throw new GitError(args, result)
}

/** Combines packs and loose objects if there are more than 12 packs, or about 2,000 loose objects. Deletes no object. */
export async function repackObjects(git: PrivateGit): Promise<void> {
  // One of the 256 folders of loose objects is a sample, as for `git gc`.
  const some = await readdir(join(git.gitDir, 'objects', '17')).catch(() => [])
  if (some.length <= MOST_LOOSE / 256 && (await ownPacks(git)).length <= MOST_PACKS) return
  const setting = withOwnObjectsOnly(git)
  const { ok } = await runGit(setting, [...FSYNC_ALL, ...ONE_THREAD, 'repack', '-d', '-q', '--geometric=2'])
  // git before 2.32.
  if (!ok) await runGit(setting, [...FSYNC_ALL, ...ONE_THREAD, 'repack', '-a', '-d', '-k', '-q'])
}

/** Deletes every unreferenced object. The caller has removed the index, which refers to other objects. */
export async function pruneObjects(git: PrivateGit): Promise<void> {
  const setting = withOwnObjectsOnly(git)
  await runGitOrThrow(setting, [...FSYNC_ALL, ...ONE_THREAD, 'repack', '-a', '-d', '-q'])
  await runGitOrThrow(setting, ['prune', '--expire=now'])
}

/** True if the private git directory has an object; asks git only without a file for it. */
export async function hasObject({ gitDir }: PrivateGit, setting: GitSetting, id: string): Promise<boolean> {
  return (await pathExists(looseObject(gitDir, id))) || (await runGit(setting, ['cat-file', '-e', id])).ok
}

/** Stores a commit, on disk when this resolves, and returns its id. Faster than the start of git. */
export async function writeCommit({ gitDir, objectFormat }: PrivateGit, text: string): Promise<string> {
  const object = Buffer.from(`commit ${Buffer.byteLength(text)}\0${text}`)
  const id = createHash(objectFormat).update(object).digest('hex')
  await writeSynced(looseObject(gitDir, id), deflateSync(object), ['hash-object', '-t', 'commit'])
  return id
}

/** Sets a reference in a private git directory, on disk when this resolves. */
export async function writeReference({ gitDir }: Pick<PrivateGit, 'gitDir'>, name: string, id: string): Promise<void> {
  await writeSynced(join(gitDir, name), `${id}\n`, ['update-ref', name])
}

function looseObject(gitDir: string, id: string): string {
  return join(gitDir, 'objects', id.slice(0, 2), id.slice(2))
}

/** Writes a file to disk; on failure throws a `GitError` of these arguments. The caller holds the run lock. */
async function writeSynced(path: string, content: string | Buffer, args: readonly string[]): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeWholeFile(path, content)
    await syncFolder(dirname(path))
  } catch (error) {
    throw new GitError(args, { ok: false, stdout: '', stderr: messageOf(error) })
  }
}

/** Resolves when a folder's names are on disk. Windows cannot open folders and does not need this. */
async function syncFolder(path: string): Promise<void> {
  try {
    await using folder = await open(path, 'r')
    await folder.datasync()
  } catch (error) {
    if (!['EISDIR', 'EPERM', 'EACCES', 'EINVAL'].includes(systemErrorCode(error) ?? '')) throw error
  }
}

async function ownPacks({ gitDir }: PrivateGit): Promise<string[]> {
  const names = await readdir(join(gitDir, 'objects', 'pack')).catch(() => [])
  return names.filter(name => name.endsWith('.pack'))
}

/** Git options that write objects to disk before the reference to them. */
const FSYNC_ALL = ['-c', 'core.fsync=all']
const ONE_THREAD = ['-c', 'pack.threads=1']
const FAST_PACK = [...FSYNC_ALL, ...ONE_THREAD, '-c', 'pack.writeReverseIndex=false', '-c', 'pack.compression=1']
const MOST_PACKS = 12
const MOST_LOOSE = 2_000
/** A file as git records it; mode `000000` means deleted. Paths are latin1, relative to git's top. */
export interface TreeEntry {
  mode: string
  hash: string
  path: string
}

/** Uncommitted changes at a commit that stayed in the work directory, each until a later commit touched the file. */
export interface CarriedChanges {
  /** Returns the changes that remain at commit `index`, from 0. */
  at(index: number): readonly TreeEntry[]
  /** Returns the first submodule set to another commit by then; `null`: none. */
  submoduleChanged(index: number): string | null
}

/** Returns the changes of `tree` (a fingerprint) against the commit `from`, carried through the later commits. */
export async function carriedChanges(
  git: PrivateGit,
  { from, tree, commits }: { from: string; tree: string; commits: readonly string[] },
): Promise<CarriedChanges> {
  const changes = await uncommitted(git, from, tree)
  const pairs = commits.map((commit, index) => `${commit} ${index === 0 ? from : commits[index - 1]}\n`).join('')
  const listed = pairs === '' ? '' : await runGitOrThrow(git.setting, [...RAW_DIFF, '--stdin'], pairs)
  const touched = new Map<string, number>()
  let submodule = { path: '', index: Number.POSITIVE_INFINITY }
  let index = -1
  for (const { commit, path, modeBefore, mode } of rawDifferences(listed)) {
    if (commit !== commits[index]) index = commits.indexOf(commit ?? '', index + 1)
    if (!touched.has(path)) touched.set(path, index)
    if ((modeBefore === SUBMODULE || mode === SUBMODULE) && index < submodule.index) submodule = { path, index }
  }
  return {
    at: index => changes.filter(({ path }) => (touched.get(path) ?? Number.POSITIVE_INFINITY) > index),
    submoduleChanged: index => (submodule.index <= index ? submodule.path : null),
  }
}

async function uncommitted(git: PrivateGit, from: string, tree: string): Promise<TreeEntry[]> {
  const { setting } = git
  const known = await runGit(setting, ['rev-parse', '--verify', '--quiet', treeRevision(git, from)])
  return await entriesBetween(git, known.ok ? known.stdout.trim() : EMPTY_TREE[git.objectFormat], tree)
}

/** A file in one tree; `isNew`: the other tree has no such path. */
interface ChangedEntry extends TreeEntry {
  isNew: boolean
}

/**
 * Returns the entries that turn one tree of a work directory into the other, without unread files. Deletions first, because
 * a folder may replace a submodule. Throws a `GitError` if a tree is missing.
 */
export async function entriesBetween(git: PrivateGit, before: string, tree: string): Promise<ChangedEntry[]> {
  const { setting, prefix } = git
  const listed = await runGitOrThrow(setting, [...RAW_DIFF, '--end-of-options', before, tree])
  return [...rawDifferences(listed)]
    .filter(({ mode }) => mode !== SUBMODULE)
    .map(({ mode, id, modeBefore, path }) => {
      return { mode, hash: id, isNew: modeBefore === ABSENT, path: toLatin1(prefix) + path }
    })
    .sort((a, b) => Number(b.mode === ABSENT) - Number(a.mode === ABSENT))
}

/** Mode of a submodule, and of an unread file, which has no content to check out. */
const SUBMODULE = '160000'

/** Ids of an empty file and an empty tree, by hash. */
export const EMPTY_BLOB = {
  sha1: 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391',
  sha256: '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813',
}
export const EMPTY_TREE = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
}
