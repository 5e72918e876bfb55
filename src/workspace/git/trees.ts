import { constants, lstat, open } from 'node:fs/promises'
import { isNoRoom, systemErrorCode } from '../../base/errors.ts'
import type { TreeChanges } from '../../core/events/events.ts'
import {
  callGit,
  fromLatin1,
  GitError,
  type GitResult,
  type GitSetting,
  pathBytes,
  runGit,
  runGitOrThrow,
  splitAtNul,
} from './git.ts'
import { type PrivateGit, stoppable, withOwnObjectsOnly, withoutIndex } from './private-git.ts'

/** A file that differs between two trees. A rename is a deletion and an addition. */
export interface ChangedFile {
  /** Relative to the work directory, with `/`. */
  path: string
  how: 'added' | 'changed' | 'deleted'
  /** Hashes of the content before and after; `null`: no regular file. */
  before: string | null
  after: string | null
}

/** Returns all files that differ between two trees of the private git directory; `null` if a tree is missing. */
export async function changedFiles(git: PrivateGit, before: string, after: string): Promise<ChangedFile[] | null> {
  if (before === after) return []
  const result = await runOnOwnObjectsFirst(git, [...RAW_DIFF, '--end-of-options', before, after])
  if (result === null) return null
  return [...rawDifferences(result)].map(({ path, status, modeBefore, mode, idBefore, id }) => ({
    path: fromLatin1(path),
    how: status === 'A' ? 'added' : status === 'D' ? 'deleted' : 'changed',
    before: isRegular(modeBefore) ? idBefore : null,
    after: isRegular(mode) ? id : null,
  }))
}

/** Git command with output for `rawDifferences`. */
export const RAW_DIFF = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev']

/** A path's difference between two trees, as git prints it; if absent, the mode is `ABSENT` and the id all 0. */
interface RawDifference {
  /** Path in latin1. */
  path: string
  /** Git's status: `A`, `D`, `M` or `T`. */
  status: string
  modeBefore: string
  mode: string
  idBefore: string
  id: string
  /** Commit printed before it, with `--stdin`; null: none. */
  commit: string | null
}

/** Git's mode of an absent entry. */
export const ABSENT = '000000'

/** Parses the output of `RAW_DIFF`: `:<mode> <mode> <id> <id> <status>`, then the path; a commit is a separate field. */
export function* rawDifferences(output: string): Generator<RawDifference> {
  let commit: string | null = null
  const fields = splitAtNul(output)
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at] ?? ''
    if (!field.startsWith(':')) {
      commit = field.trim()
      continue
    }
    const [modeBefore = '', mode = '', idBefore = '', id = '', status = ''] = field.slice(1).split(' ')
    at += 1
    yield { path: fields[at] ?? '', status, modeBefore, mode, idBefore, id, commit }
  }
}

/** Returns all files of a tree as added files; `null` if the tree is missing. */
export async function treeFiles(git: PrivateGit, tree: string): Promise<ChangedFile[] | null> {
  const result = await runOnOwnObjectsFirst(git, [...TREE_LIST, tree])
  if (result === null) return null
  return treeEntries(result).map(({ path, mode, id }) => {
    return { path: fromLatin1(path), how: 'added', before: null, after: isRegular(mode) ? id : null }
  })
}

/** Git command with output for `treeEntries`. */
export const TREE_LIST = ['ls-tree', '-r', '-z', '--full-tree']

/** Parses the output of `TREE_LIST` to the files of a tree; paths are latin1. */
export function treeEntries(listed: string): { mode: string; id: string; path: string }[] {
  const entries = listed.matchAll(/(\d{6}) \S+ ([0-9a-f]+)\t([^\0]*)\0/g)
  return [...entries].map(([, mode = '', id = '', path = '']) => ({ mode, id, path }))
}

/**
 * Returns by path the new lines of changed files and all lines of added files, in latin1. Moved lines do not count. Skips
 * files over 1 MiB, and everything after the first 64 MiB.
 */
export async function addedLines(git: PrivateGit, files: readonly ChangedFile[]): Promise<Map<string, string[]>> {
  const wanted = files.flatMap(({ before, after }) => [before, after]).filter(hash => hash !== null)
  const texts = await readBlobs(git, [...new Set(wanted)])
  const lines = new Map<string, string[]>()
  for (const { path, before, after } of files) {
    const text = after === null ? undefined : texts.get(after)
    if (text === undefined) continue
    lines.set(path, newLines(before === null ? '' : (texts.get(before) ?? ''), text))
  }
  return lines
}

/**
 * Tries codemachine's own objects before borrowed ones, because an agent can forge objects in the borrowed repository.
 * `null` if git fails on both.
 */
async function runOnOwnObjectsFirst(git: PrivateGit, args: readonly string[], input?: string): Promise<string | null> {
  for (const setting of [withOwnObjectsOnly(git), withoutIndex(git)]) {
    const { ok, stdout } = await runGit(setting, args, input)
    if (ok) return stdout
  }
  return null
}

function isRegular(mode: string): boolean {
  return mode.startsWith('100')
}

/** Returns by hash the content of blobs up to 1 MiB, in latin1; up to 64 MiB in all. */
export async function readBlobs(git: PrivateGit, hashes: readonly string[]): Promise<Map<string, string>> {
  const setting = withoutIndex(git)
  const texts = new Map<string, string>()
  for (const some of await inPortions(setting, hashes)) {
    const { stdout } = await runGit(setting, ['cat-file', '--batch'], asLines(some))
    for (const [hash, text] of parseObjects(stdout, 'blob')) texts.set(hash, text)
  }
  return texts
}

/** Parses `cat-file --batch` to objects of a type by hash: each is a line with its length, its content, a newline. */
export function parseObjects(output: string, wanted: 'blob' | 'commit'): Map<string, string> {
  const texts = new Map<string, string>()
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf('\n', at)
    if (end === -1) break
    const [, id, type, size] = output.slice(at, end).match(/^([0-9a-f]+) (\w+) (\d+)$/) ?? []
    const length = size === undefined ? -1 : Number(size)
    if (id !== undefined && type === wanted) texts.set(id, output.slice(end + 1, end + 1 + length))
    at = end + 1 + length + 1
  }
  return texts
}

/** Splits the hashes of small enough blobs into portions for one read each. */
async function inPortions(setting: GitSetting, hashes: readonly string[]): Promise<string[][]> {
  if (hashes.length === 0) return []
  const { stdout } = await runGit(setting, ['cat-file', '--batch-check'], asLines(hashes))
  const portions: string[][] = []
  let total = 0
  let room = 0
  for (const [, hash = '', size] of stdout.matchAll(/^([0-9a-f]+) blob (\d+)$/gm)) {
    const bytes = Number(size)
    if (bytes > BLOB_BYTES || total + bytes > ALL_BLOBS_BYTES) continue
    total += bytes
    if (room < bytes) {
      portions.push([])
      room = PORTION_BYTES
    }
    room -= bytes
    portions.at(-1)?.push(hash)
  }
  return portions
}

function newLines(before: string, after: string): string[] {
  const known = new Map<string, number>()
  for (const line of before.split('\n')) known.set(line, (known.get(line) ?? 0) + 1)
  return after.split('\n').filter(line => {
    const left = known.get(line) ?? 0
    known.set(line, left - 1)
    return left <= 0
  })
}

function asLines(hashes: readonly string[]): string {
  return hashes.map(hash => `${hash}\n`).join('')
}

const BLOB_BYTES = 1024 * 1024
const PORTION_BYTES = 16 * 1024 * 1024
const ALL_BLOBS_BYTES = 64 * 1024 * 1024

/** Limits of a diff. */
export interface TreeDiffOptions {
  /** Maximum length of the text in UTF-8. */
  mostBytes: number
  /** Literal files or folders, relative to the work directory; undefined: all. */
  paths?: readonly string[]
  /** False: a rename is a deletion and an addition, so that each path has its own part. Default: true. */
  renames?: boolean
  /** Aborts it with `GitStopped`; undefined: never. */
  signal?: AbortSignal
}

/** A unified diff as `git diff` writes it. Of a binary file, only the name. */
export interface TreeDiff {
  text: string
  /** True if it was cut after the last complete line that fits. */
  isCut: boolean
}

/** Returns the diff of two trees in the private git directory. Throws a `GitError` if a tree is broken. */
export async function treeDiff(
  git: PrivateGit,
  before: string,
  after: string,
  { mostBytes, paths = [], renames = true, signal }: TreeDiffOptions,
): Promise<TreeDiff> {
  if (before === after) return { text: '', isCut: false }
  const within = paths.length === 0 ? [] : ['--', ...paths]
  const args = [
    ...PLAIN_READING,
    'diff-tree',
    '-r',
    '-p',
    ...renaming(renames),
    ...PLAIN_TEXT,
    before,
    after,
    ...within,
  ]
  // The reader drops the whole chunk that exceeds the limit.
  const outputLimit = mostBytes + CHUNK_BYTES
  const { exitCode, stdout, stderr, failure } = await callGit(withOwnObjectsOnly(stoppable(git, signal)), args, {
    outputLimit,
  })
  if (exitCode !== 0 && failure !== 'output-limit') throw new GitError(args, { ok: false, stdout, stderr })
  const isCut = failure === 'output-limit' || stdout.length > mostBytes
  const text = fromLatin1(isCut ? wholeLines(stdout.slice(0, mostBytes)) : stdout)
  return {
    text: text.replace(UNREAD_CONTENT, '$1(content not read: too large, no plain file, or with a secret in it)'),
    isCut,
  }
}

function renaming(renames: boolean): string[] {
  return renames ? ['-M', '-l400'] : ['--no-renames']
}

function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

const CHUNK_BYTES = 64 * 1024
/** Matches git's line for an unread file (`UnreadFile`). */
const UNREAD_CONTENT = /^([+-])Subproject commit [0-9a-f]{40,64}$/gm

/** Summarizes the changes between two trees in the private git directory. A rename is a deleted and an added file. */
export async function treeChanges(
  git: PrivateGit,
  before: string,
  after: string,
  mostPaths: number,
): Promise<TreeChanges> {
  const files = await treeDifferences(git, before, after, { renames: false })
  return {
    files: files.length,
    added: files.reduce((sum, { added }) => sum + (added ?? 0), 0),
    removed: files.reduce((sum, { removed }) => sum + (removed ?? 0), 0),
    paths: files.slice(0, mostPaths).map(({ path, added, removed }) => ({ path, added, removed })),
  }
}

/** A file that differs between two trees, for a person: a renamed file is one. */
export interface FileDifference {
  /** Path relative to the work directory, with `/`: after the change, of a deleted file before it. */
  path: string
  /** Path before a rename; null: not renamed. */
  from: string | null
  /** Its one or two paths in latin1: byte for byte, for `planRewind`. */
  bytes: readonly string[]
  how: 'added' | 'changed' | 'deleted' | 'renamed'
  /** Git's modes, such as `100644` and `120000`; `000000`: no file. */
  modeBefore: string
  modeAfter: string
  /** Numbers of lines; null: not text, larger than 4 MiB, or unread. */
  added: number | null
  removed: number | null
}

/** Returns all files that differ between two trees, in git's order. Throws a `GitError` if a tree is broken. */
export async function treeDifferences(
  git: PrivateGit,
  before: string,
  after: string,
  { renames = true }: Pick<TreeDiffOptions, 'renames'> = {},
): Promise<FileDifference[]> {
  if (before === after) return []
  const formats = ['--raw', '--numstat', ...renaming(renames)]
  const args = [...PLAIN_READING, 'diff-tree', '-r', '-z', ...formats, ...PLAIN_TEXT, before, after]
  const fields = (await runGitOrThrow(withOwnObjectsOnly(git), args)).split('\0')
  const files: FileDifference[] = []
  let at = 0
  for (let raw = RAW_FIELD.exec(fields[at] ?? ''); raw !== null; raw = RAW_FIELD.exec(fields[at] ?? '')) {
    const [, modeBefore = '', modeAfter = '', status = ''] = raw
    const bytes = fields.slice(at + 1, at + (status === 'R' ? 3 : 2))
    at += bytes.length + 1
    const [path = '', to] = bytes.map(fromLatin1)
    const names = to === undefined ? { path, from: null } : { path: to, from: path }
    files.push({ ...names, bytes, how: HOWS[status] ?? 'changed', modeBefore, modeAfter, added: null, removed: null })
  }
  // The numbers of lines follow in the same order of files.
  for (const file of files) {
    const [, added, removed, path] = fields[at]?.match(NUMBERS_FIELD) ?? []
    at += path === '' ? 3 : 1
    if (file.modeBefore === UNREAD_ENTRY || file.modeAfter === UNREAD_ENTRY) continue
    file.added = linesOf(added)
    file.removed = linesOf(removed)
  }
  return files
}

const RAW_FIELD = /^:(\d{6}) (\d{6}) \S+ \S+ ([A-Z])\d*$/
const NUMBERS_FIELD = /^(\d+|-)\t(\d+|-)\t(.*)$/s
const HOWS: Readonly<Record<string, FileDifference['how']>> = { A: 'added', D: 'deleted', R: 'renamed' }
/** Git's mode of an unread file (`UnreadFile`). */
const UNREAD_ENTRY = '160000'

function linesOf(count: string | undefined): number | null {
  return count === undefined || count === '-' ? null : Number(count)
}

/** Git options: run no configured program, print names unquoted, and treat over 4 MiB as binary. */
const PLAIN_READING = ['-c', 'core.quotePath=false', '-c', 'core.bigFileThreshold=4m']
const PLAIN_TEXT = ['--no-ext-diff', '--no-textconv', '--no-color']

/** Files that differ between the index and the work tree: latin1 paths relative to the top. */
interface IndexDifferences {
  gone: readonly string[]
  present: readonly string[]
}

/** Updates the index at these paths. Returns the unreadable paths, which stay unchanged. */
export async function stagePaths(git: PrivateGit, { gone, present }: IndexDifferences): Promise<string[]> {
  if ((await updateIndex(git, [...gone, ...present])).ok) return []
  // Git stops at the first path that it refuses, so find these.
  const unreadable = new Set<string>()
  for (const path of present) if (!(await isReadable(pathBytes(git.setting.directory, path)))) unreadable.add(path)
  // Git also refuses a path behind a link that replaced a folder.
  await runGitOrThrow(git.setting, ['update-index', '--force-remove', '-z', '--stdin'], zeroTerminated(gone))
  const left = present.filter(path => !unreadable.has(path))
  return [...unreadable, ...(await stageByHalves(git, left))]
}

/** True if a file can be read, or is not a file any more. */
async function isReadable(path: Buffer): Promise<boolean> {
  try {
    if (!(await lstat(path)).isFile()) return true
    await using _ = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    return true
  } catch (error) {
    const code = systemErrorCode(error)
    return code === 'ENOENT' || code === 'ENOTDIR'
  }
}

async function stageByHalves(git: PrivateGit, paths: readonly string[]): Promise<string[]> {
  const result = await updateIndex(git, paths)
  if (result.ok) return []
  if (paths.length === 1) return [...paths]
  const middle = paths.length >> 1
  const first = await stageByHalves(git, paths.slice(0, middle))
  return [...first, ...(await stageByHalves(git, paths.slice(middle)))]
}

/** Returns a failure because of a path; throws any other. */
async function updateIndex(git: PrivateGit, paths: readonly string[]): Promise<GitResult> {
  if (paths.length === 0) return { ok: true, stdout: '', stderr: '' }
  const bulk = paths.length > BULK_FROM && (await git.packsInBulk()) ? ONE_PACK : []
  const args = [...bulk, 'update-index', '--add', '--remove', '--replace', '-z', '--stdin']
  const result = await runGit(git.setting, args, zeroTerminated(paths))
  if (result.ok) return result
  const failure = new GitError(args, result)
  // On a full disk git blames the path too.
  if (isNoRoom(failure) || !/Unable to process path|Ignoring path/i.test(result.stderr)) throw failure
  return result
}

function zeroTerminated(paths: readonly string[]): string {
  return paths.map(path => `${path}\0`).join('')
}

const BULK_FROM = 100
// 50,000 new files take 11 MiB in one pack. As loose objects they take 207 MiB and as many inodes, in the same time.
const ONE_PACK = ['-c', 'core.bigFileThreshold=1', '-c', 'core.compression=1']
