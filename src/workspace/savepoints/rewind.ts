import { randomUUID } from 'node:crypto'
import { copyFile, lstat, mkdir, readdir, rm, rmdir, unlink } from 'node:fs/promises'
import { join, sep } from 'node:path'
import * as v from 'valibot'
import { diskFull, isNoRoom, messageOf, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { readBoundedText, succeeds, writeWholeFile } from '../../platform/files.ts'
import type { Fingerprints } from '../fingerprint/fingerprint.ts'
import { UNREAD_MODE } from '../fingerprint/unread-files.ts'
import { GitError, type GitSetting, pathBytes, runGit, runGitOrThrow, toLatin1, UNSPLIT_INDEX } from '../git/git.ts'
import { type PrivateGit, withOwnObjectsOnly, withoutIndex } from '../git/private-git.ts'
import { ABSENT, RAW_DIFF, rawDifferences } from '../git/trees.ts'
import { findRewindObstacles, printablePath } from './rewind-obstacles.ts'

/** The changes that a rewind makes in a work directory. Paths are latin1, relative to it, in git's order. */
export interface RewindPlan {
  /** Files to write, because they differ or are missing. */
  write: readonly RewindEntry[]
  remove: readonly string[]
  /** Kept files outside of the savepoint that were ignored at its creation. */
  keep: readonly string[]
  /** Kept files outside of the savepoint that were created after the last session. */
  made: readonly string[]
}

/** The files to write and to remove. */
type RewindFiles = Pick<RewindPlan, 'write' | 'remove'>

/** A file or link in the savepoint. */
interface RewindEntry {
  path: string
  /** `100644`, `100755` or `120000`. */
  mode: string
  /** Hash of its content in the private git directory. */
  id: string
  /** True if the tree before the rewind has a file with content at this path. */
  isKnown: boolean
}

/** Two trees in the private git directory. */
interface RewindTrees {
  /** Current tree of the work directory. */
  now: string
  target: string
  /** File of exclude rules of `target` (`Fingerprints.ignoreBy`); null or undefined: its own ignore files. */
  ignoredBy?: string | null
  /** Files to keep, with paths like the plan's (`Fingerprints.hidden`); undefined: none. */
  hidden?: readonly string[]
  /** Files to limit it to, with entries above or below in their way; undefined: no limit. */
  only?: readonly string[]
  /** End of the last session (Unix time, ms), and the commits of the savepoints; null or undefined: not ended. */
  ended?: { at: number; commits: readonly string[] } | null
}

/**
 * Plans the changes that turn the files of tree `now` into those of tree `target`.
 * @param directory real path of the work directory, whose files are those of `now`
 * @throws UserError that names a path in the way whose content is not in `now` and would be lost
 */
export async function planRewind(
  git: PrivateGit,
  directory: string,
  { now, target, ignoredBy = null, hidden = [], only, ended = null }: RewindTrees,
): Promise<RewindPlan> {
  const all = without(hidden, await diffTrees(withOwnObjectsOnly(git), now, target))
  const wanted = only === undefined ? all : within(only, all)
  const kept = { ...wanted, ...(await keepIgnored(git, { target, ignoredBy }, wanted)), made: [] }
  const plan = ended === null || only !== undefined ? kept : await keepMade(git, directory, kept, ended)
  await refuseBroken(git, plan)
  const inTheWay = await findRewindObstacles(directory, plan, git.objectFormat)
  const [first] = inTheWay
  if (first === undefined) return plan
  const others = inTheWay.slice(1, MOST_NAMED + 1).map(({ path }) => printablePath(path))
  const more = inTheWay.length > MOST_NAMED + 1 ? ', …' : ''
  throw new UserError(
    'CM0516',
    `Nothing was changed, for ${printablePath(first.path)} ${first.why}; ${first.mend} and rewind again.`,
    others.length === 0 ? {} : { hint: `The same goes for ${others.join(', ')}${more}.` },
  )
}

function without(hidden: readonly string[], { write, remove }: RewindFiles): RewindFiles {
  const left = new Set(hidden)
  return { write: write.filter(({ path }) => !left.has(path)), remove: remove.filter(path => !left.has(path)) }
}

function within(only: readonly string[], { write, remove }: RewindFiles): RewindFiles {
  const isMeant = (path: string) =>
    only.some(one => path === one || path.startsWith(`${one}/`) || one.startsWith(`${path}/`))
  return { write: write.filter(({ path }) => isMeant(path)), remove: remove.filter(isMeant) }
}

async function keepIgnored(
  git: PrivateGit,
  { target, ignoredBy = null }: Omit<RewindTrees, 'now'>,
  { remove }: RewindFiles,
): Promise<Pick<RewindPlan, 'remove' | 'keep'>> {
  try {
    const ignored = await ignoredIn(git, { target, ignoredBy }, remove)
    const [kept, gone] = [remove.filter(path => ignored.has(path)), remove.filter(path => !ignored.has(path))]
    return { remove: gone, keep: kept }
  } catch (error) {
    if (!(error instanceof GitError)) throw error
    throw new UserError(
      'CM0516',
      `Nothing was rewound, because git does not say which files were ignored at that savepoint: ${error.message}`,
      {
        cause: error,
      },
    )
  }
}

/** Keeps new files from after the last session that no savepoint has: they are the person's, unless in the way. */
async function keepMade(
  git: PrivateGit,
  directory: string,
  plan: RewindPlan,
  { at, commits }: NonNullable<RewindTrees['ended']>,
): Promise<RewindPlan> {
  const written = new Set(plan.write.map(({ path }) => path))
  const aboveWritten = new Set([...written].flatMap(foldersOf))
  const isFree = (path: string) => !aboveWritten.has(path) && !foldersOf(path).some(folder => written.has(folder))
  const young: string[] = []
  for (const path of plan.remove) {
    const found = await lstat(pathBytes(directory, path)).catch(unlessGone)
    // Use the ctime, which no program can set.
    if (found !== undefined && found.ctimeMs > at && isFree(path)) young.push(path)
  }
  const known = await everIn(git, commits, young)
  const made = young.filter(path => !known.has(path))
  const stays = new Set(made)
  return { ...plan, remove: plan.remove.filter(path => !stays.has(path)), made }
}

/** Returns the parents of a path, from the top down. */
function foldersOf(path: string): string[] {
  const parts = path.split('/').slice(0, -1)
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'))
}

/** Returns the paths that one of these commits or an earlier one has had. */
async function everIn(git: PrivateGit, commits: readonly string[], paths: readonly string[]): Promise<Set<string>> {
  // Paths are separated by line ends, so one with a line end counts as never present.
  const wanted = paths.filter(path => !path.includes('\n'))
  if (wanted.length === 0 || commits.length === 0) return new Set()
  const own = withOwnObjectsOnly(git)
  const setting = { ...own, env: { ...own.env, GIT_LITERAL_PATHSPECS: '0' } }
  const args = ['log', '--format=', '--name-only', '-z', '--no-renames', '--diff-filter=A', '--stdin']
  const asked = [...commits, '--', ...wanted.map(path => `:(top,literal)${path}`)]
  const result = await runGit(setting, args, asked.map(line => `${line}\n`).join(''))
  if (!result.ok) throw brokenSavepoint(new GitError(args, result))
  return new Set(result.stdout.split('\0').map(path => path.replace(/^\n+/, '')))
}

/** Changes only the planned files; replaces links and never follows them. The caller holds the run lock. */
export async function applyRewind(
  fingerprints: Pick<Fingerprints, 'git' | 'takeNothingForGranted'>,
  directory: string,
  plan: RewindPlan,
): Promise<void> {
  const { git } = fingerprints
  try {
    for (const path of plan.remove) await removeFile(directory, path)
    for (const { path, isKnown } of plan.write) if (!isKnown) await removeEmptyFolders(pathBytes(directory, path))
    await writeFiles(git, directory, plan.write)
    await updateIndex(git, plan)
    fingerprints.takeNothingForGranted()
  } catch (error) {
    if (isNoRoom(error)) throw diskFull(directory, error)
    throw error instanceof GitError || systemErrorCode(error) !== null
      ? new UserError('CM0516', messageOf(error))
      : error
  }
}

/** A running rewind by savepoint names: its target, and the savepoint to undo it. */
export interface NotedRewind {
  to: string
  undo: string
}

const notedRewind = v.object({ to: v.string(), undo: v.string() })
const MOST_NOTE_BYTES = 64 * 1024

/** Runs a rewind and notes it in a file of the records meanwhile, which a kill leaves for `takeKilledRewind`. */
export async function whileNoted<T>(note: string, about: NotedRewind, rewind: () => Promise<T>): Promise<T> {
  await writing(note, () => writeWholeFile(note, JSON.stringify(about)))
  try {
    return await rewind()
  } finally {
    await rm(note, { force: true })
  }
}

/** Returns and forgets a rewind that a kill interrupted; null: none. */
export async function takeKilledRewind(note: string): Promise<NotedRewind | null> {
  const read = await readBoundedText(note, MOST_NOTE_BYTES)
  if (read === 'missing') return null
  await rm(note, { force: true, recursive: true })
  const parsed = 'text' in read ? v.safeParse(v.pipe(v.string(), v.parseJson(), notedRewind), read.text) : null
  return parsed?.success ? parsed.output : null
}

/** Returns the planned paths (latin1) that still differ from `target` in the tree `after`, taken after the rewind. */
export async function filesNotRestored(
  git: PrivateGit,
  { write, remove }: RewindPlan,
  { after, target }: { after: string; target: string },
): Promise<string[]> {
  const planned = new Set([...write.map(({ path }) => path), ...remove])
  const left = await diffTrees(withoutIndex(git), after, target)
  // Other differences are files that were ignored before the rewind and are not now.
  return [...left.write.map(({ path }) => path), ...left.remove].filter(path => planned.has(path))
}

async function diffTrees(setting: GitSetting, now: string, target: string): Promise<RewindFiles> {
  const args = [...RAW_DIFF, now, target]
  const result = await runGit(setting, args)
  if (!result.ok) throw brokenSavepoint(new GitError(args, result))
  const write: RewindEntry[] = []
  const remove: string[] = []
  for (const { path, modeBefore, mode, id } of rawDifferences(result.stdout)) {
    const hadContent = modeBefore !== ABSENT && modeBefore !== UNREAD_MODE
    // Unread files are in no savepoint, so do not remove or overwrite them.
    if (mode === ABSENT && hadContent) remove.push(path)
    else if (mode !== ABSENT && mode !== UNREAD_MODE) write.push({ path, mode, id, isKnown: hadContent })
  }
  return { write, remove }
}

async function refuseBroken(git: PrivateGit, { write }: RewindPlan): Promise<void> {
  const args = ['cat-file', '--batch-check=%(objecttype)']
  const result = await runGit(withOwnObjectsOnly(git), args, write.map(({ id }) => `${id}\n`).join(''))
  const types = result.stdout.split('\n').slice(0, write.length)
  const index = write.findIndex((_, at) => types[at] !== 'blob')
  const entry = write[index]
  if (entry !== undefined) throw brokenSavepoint(new Error(`the content of ${printablePath(entry.path)} is missing`))
}

function brokenSavepoint(cause: Error): UserError {
  return new UserError('CM0516', `That savepoint is broken, and nothing was changed: ${cause.message}`, { cause })
}

async function removeFile(directory: string, path: string): Promise<void> {
  await unlink(pathBytes(directory, path)).catch(unlessGone)
  const parts = path.split('/')
  while (parts.pop() !== undefined && parts.length > 0) {
    if (!(await succeeds(rmdir(pathBytes(directory, parts.join('/')))))) return
  }
}

/** Removes a folder in the place of a file, after its own files. */
async function removeEmptyFolders(path: Buffer): Promise<void> {
  const found = await lstat(path).catch(unlessGone)
  if (!found?.isDirectory()) return
  for (const name of await readdir(path, 'buffer')) await removeEmptyFolders(Buffer.concat([path, SEPARATOR, name]))
  await rmdir(path)
}

async function writeFiles(git: PrivateGit, directory: string, entries: readonly RewindEntry[]): Promise<void> {
  if (entries.length === 0) return
  const index = join(git.gitDir, `rewind-${randomUUID()}.index`)
  const own = withOwnObjectsOnly(git)
  const setting = { ...own, directory, env: { ...own.env, GIT_INDEX_FILE: index, GIT_WORK_TREE: directory } }
  try {
    await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'update-index', '-z', '--index-info'], indexInfo(entries, ''))
    await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'checkout-index', '--force', '--all', '--quiet'])
  } finally {
    for (const path of [index, `${index}.lock`]) await rm(path, { force: true })
  }
}

/** Updates the index to the savepoint: tracks its files even if an ignore rule matches them now, but not kept ones. */
async function updateIndex(git: PrivateGit, { write, remove, keep }: RewindPlan): Promise<void> {
  const none = `0 ${'0'.repeat(git.objectFormat === 'sha1' ? 40 : 64)}`
  const prefix = toLatin1(git.prefix)
  const gone = [...remove, ...keep].map(path => `${none}\t${prefix}${path}\0`)
  const input = gone.join('') + indexInfo(write, prefix)
  if (input !== '') await runGitOrThrow(git.setting, ['update-index', '-z', '--index-info'], input)
}

function indexInfo(entries: readonly RewindEntry[], prefix: string): string {
  return entries.map(({ mode, id, path }) => `${mode} ${id} 0\t${prefix}${path}\0`).join('')
}

function unlessGone(error: unknown): undefined {
  const code = systemErrorCode(error)
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
}

const MOST_NAMED = 5
const SEPARATOR = Buffer.from(sep)

/**
 * Returns the paths that were ignored at the creation of the tree: by its own ignore files, the person's, those above the
 * work directory, or the rules it was taken by. All paths are latin1, relative to the work directory.
 */
async function ignoredIn(
  git: PrivateGit,
  { target, ignoredBy = null }: Omit<RewindTrees, 'now'>,
  paths: readonly string[],
): Promise<Set<string>> {
  if (paths.length === 0) return new Set()
  const folder = join(git.gitDir, `rewind-${randomUUID()}`)
  const top = join(folder, 'files')
  const own = withOwnObjectsOnly(git)
  const env = { ...own.env, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(folder, 'index'), GIT_LITERAL_PATHSPECS: '0' }
  const within = { ...own, directory: join(top, git.prefix), env }
  try {
    await mkdir(within.directory, { recursive: true })
    const byRules = ignoredBy === null ? null : await findIgnored(within, paths, ignoredBy)
    await writeIgnoreFiles(git, target, { ...own, directory: top, env })
    return await findIgnored(within, byRules === null ? paths : [...byRules])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function writeIgnoreFiles(git: PrivateGit, tree: string, setting: GitSetting): Promise<void> {
  for (const above of foldersAbove(git.prefix)) {
    const rules = join(git.setting.directory, above, IGNORE_FILE)
    const found = await lstat(rules).catch(() => null)
    if (found?.isFile()) await copyFile(rules, join(setting.directory, above, IGNORE_FILE))
  }
  const entries = (await runGitOrThrow(setting, ['ls-tree', '-r', '-z', '--full-tree', tree])).split('\0')
  const prefix = toLatin1(git.prefix)
  const found = entries.flatMap(entry => {
    const [, entryOf, path] = entry.match(/^(100(?:644|755) blob [0-9a-f]+)\t((?:.*\/)?\.gitignore)$/s) ?? []
    return path === undefined ? [] : [`${entryOf}\t${prefix}${path}\0`]
  })
  await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'update-index', '-z', '--index-info'], found.join(''))
  await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'checkout-index', '--all', '--force', '--quiet'])
}

/** Returns the folders above the work directory, from the repository's top down. */
function foldersAbove(prefix: string): string[] {
  const parts = prefix.split('/').slice(0, -1)
  return parts.map((_, index) => join('.', ...parts.slice(0, index)))
}

/** Returns the paths that git ignores. A leading `./` keeps git from reading a path as a pattern. */
async function findIgnored(setting: GitSetting, paths: readonly string[], rules?: string): Promise<Set<string>> {
  const excludes = rules === undefined ? [] : ['-c', `core.excludesFile=${rules}`]
  const args = [...excludes, 'check-ignore', '--no-index', '-z', '--stdin']
  const result = await runGit(setting, args, paths.map(path => `./${path}\0`).join(''))
  // Exit code 1 means that none is ignored.
  if (!result.ok && result.stderr !== '') throw new GitError(args, result)
  const found = result.stdout.split('\0').slice(0, -1)
  return new Set(found.map(path => path.replace(/^\.\//, '')))
}

const IGNORE_FILE = '.gitignore'
