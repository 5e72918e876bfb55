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
} from './git.ts'
import { type PrivateGit, stoppable, withOwnObjectsOnly, withoutIndex } from './private-git.ts'

/** A file that differs between two trees. A rename is a deleted and an added file. */
export interface ChangedFile {
  /** Relative to the work directory, with `/`. */
  path: string
  how: 'added' | 'changed' | 'deleted'
  /** Hashes of the content before and after; `null` where there is no regular file. */
  before: string | null
  after: string | null
}

/** All files that differ between two trees of the private git directory; `null` if one of the trees is gone. */
export async function changedFiles(git: PrivateGit, before: string, after: string): Promise<ChangedFile[] | null> {
  if (before === after) return []
  const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', '--end-of-options', before, after]
  const result = await runOnOwnObjectsFirst(git, args)
  return result === null ? null : parseRaw(result)
}

/** All files of a tree as added files; `null` if the tree is gone. */
export async function treeFiles(git: PrivateGit, tree: string): Promise<ChangedFile[] | null> {
  const result = await runOnOwnObjectsFirst(git, ['ls-tree', '-r', '-z', '--full-tree', tree])
  if (result === null) return null
  return [...result.matchAll(/(\d{6}) \S+ ([0-9a-f]+)\t([^\0]*)\0/g)].map(([, mode = '', hash = '', path = '']) => {
    return { path: fromLatin1(path), how: 'added', before: null, after: isRegular(mode) ? hash : null }
  })
}

/**
 * By path, the lines that changed files have gained, and all lines of added files, in latin1. A moved line does not
 * count. Skips files over 1 MiB, and everything after the first 64 MiB.
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
 * Tries codemachine's own objects before borrowed ones, as an agent can write forged objects to the repository that
 * objects are borrowed from. `null` if git fails on both.
 */
async function runOnOwnObjectsFirst(git: PrivateGit, args: readonly string[], input?: string): Promise<string | null> {
  for (const setting of [withOwnObjectsOnly(git), withoutIndex(git)]) {
    const { ok, stdout } = await runGit(setting, args, input)
    if (ok) return stdout
  }
  return null
}

function parseRaw(raw: string): ChangedFile[] {
  const pattern = /:(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) (\w)\d*\0([^\0]*)\0/g
  return [...raw.matchAll(pattern)].map(([, oldMode = '', newMode = '', old = '', now = '', status, path = '']) => ({
    path: fromLatin1(path),
    how: status === 'A' ? 'added' : status === 'D' ? 'deleted' : 'changed',
    before: isRegular(oldMode) ? old : null,
    after: isRegular(newMode) ? now : null,
  }))
}

function isRegular(mode: string): boolean {
  return mode.startsWith('100')
}

/** By hash, the content of blobs up to 1 MiB, in latin1; up to 64 MiB in all. */
export async function readBlobs(git: PrivateGit, hashes: readonly string[]): Promise<Map<string, string>> {
  const setting = withoutIndex(git)
  const texts = new Map<string, string>()
  for (const some of await inPortions(setting, hashes)) {
    const { stdout } = await runGit(setting, ['cat-file', '--batch'], asLines(some))
    for (const [hash, text] of parseObjects(stdout, 'blob')) texts.set(hash, text)
  }
  return texts
}

/** By hash, the objects of a type in the output of `cat-file --batch`: of each a line with its length, its content, a newline. */
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

/** Splits the hashes of small enough blobs into portions that can be read at once. */
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
  /** Files or folders, relative to the work directory and taken literally; all if left out. */
  paths?: readonly string[]
  /** False: a renamed file is a deleted and an added one, so that each path has a part of its own. Left out: true. */
  renames?: boolean
  /** Ends it: `GitStopped` is thrown then. Left out: nothing does. */
  signal?: AbortSignal
}

/** A unified diff as `git diff` writes it. Of a binary file, only the name. */
export interface TreeDiff {
  text: string
  /** Whether it was cut after the last whole line that fits. */
  isCut: boolean
}

/** The diff of two trees in the private git directory. Throws a `GitError` if a tree is broken. */
export async function treeDiff(
  git: PrivateGit,
  before: string,
  after: string,
  { mostBytes, paths = [], renames = true, signal }: TreeDiffOptions,
): Promise<TreeDiff> {
  if (before === after) return { text: '', isCut: false }
  const within = paths.length === 0 ? [] : ['--', ...paths]
  const how = renames ? ['-M', '-l400'] : ['--no-renames']
  const args = [...PLAIN_READING, 'diff-tree', '-r', '-p', ...how, ...PLAIN_TEXT, before, after, ...within]
  // The whole chunk that exceeds the limit is dropped.
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

function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1)
}

const CHUNK_BYTES = 64 * 1024
/** How git shows the entry of an unread file (`UnreadFile`). */
const UNREAD_CONTENT = /^([+-])Subproject commit [0-9a-f]{40,64}$/gm

/** Summarizes the changes between two trees in the private git directory. A rename is a deleted and an added file. */
export async function treeChanges(
  git: PrivateGit,
  before: string,
  after: string,
  mostPaths: number,
): Promise<TreeChanges> {
  if (before === after) return { files: 0, added: 0, removed: 0, paths: [] }
  const args = [...PLAIN_READING, 'diff-tree', '-r', '-z', '--numstat', '--no-renames', ...PLAIN_TEXT, before, after]
  const output = await runGitOrThrow(withOwnObjectsOnly(git), args)
  const changes = { files: 0, added: 0, removed: 0, paths: [] as TreeChanges['paths'][number][] }
  for (const line of output.split('\0')) {
    const [, added, removed, path] = line.match(/^(\d+|-)\t(\d+|-)\t(.+)$/s) ?? []
    if (path === undefined) continue
    const lines = { added: linesOf(added), removed: linesOf(removed) }
    changes.files += 1
    changes.added += lines.added ?? 0
    changes.removed += lines.removed ?? 0
    if (changes.paths.length < mostPaths) {
      changes.paths.push({ path: fromLatin1(path), ...lines })
    }
  }
  return changes
}

/** A file that differs between two trees, as a person looks at it: a renamed file is one. */
export interface FileDifference {
  /** Relative to the work directory, with `/`: after the change, of a deleted file before it. */
  path: string
  /** The path before, of a renamed file; null for any other. */
  from: string | null
  /** Both, or the one, in latin1: byte for byte, as `planRewind` takes them. */
  bytes: readonly string[]
  how: 'added' | 'changed' | 'deleted' | 'renamed'
  /** git's modes, such as `100644` and `120000`; `000000` where there is no file. */
  modeBefore: string
  modeAfter: string
  /** Lines; null if it is not text, larger than 4 MiB, or was not read. */
  added: number | null
  removed: number | null
}

/** All files that differ between two trees in the private git directory, in git's order. Throws a `GitError` if a tree is broken. */
export async function treeDifferences(
  git: PrivateGit,
  before: string,
  after: string,
  signal?: AbortSignal,
): Promise<FileDifference[]> {
  if (before === after) return []
  const formats = ['--raw', '--numstat', '-M', '-l400']
  const args = [...PLAIN_READING, 'diff-tree', '-r', '-z', ...formats, ...PLAIN_TEXT, before, after]
  const fields = (await runGitOrThrow(withOwnObjectsOnly(stoppable(git, signal)), args)).split('\0')
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
  // The numbers of lines follow, of the same files in the same order.
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
/** git's mode of what was not read (`UnreadFile`). */
const UNREAD_ENTRY = '160000'

function linesOf(count: string | undefined): number | null {
  return count === undefined || count === '-' ? null : Number(count)
}

/**
 * Options to run no program that a tree or a person configures, print names unquoted, and treat over 4 MiB as binary.
 */
const PLAIN_READING = ['-c', 'core.quotePath=false', '-c', 'core.bigFileThreshold=4m']
const PLAIN_TEXT = ['--no-ext-diff', '--no-textconv', '--no-color']

/** Files that differ between the index and the work tree: latin1 paths relative to the top. */
export interface IndexDifferences {
  gone: readonly string[]
  present: readonly string[]
}

/** Updates the index at these paths. Returns the paths that could not be read and were left as they were. */
export async function stagePaths(git: PrivateGit, { gone, present }: IndexDifferences): Promise<string[]> {
  if ((await updateIndex(git, [...gone, ...present])).ok) return []
  // git gives up at the first path that it cannot take: find out which those are.
  const { readable, unreadable, special } = await classify(git, present)
  await removeFromIndex(git, [...gone, ...special])
  return [...unreadable, ...(await stageByHalves(git, readable))]
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

async function removeFromIndex(git: PrivateGit, paths: readonly string[]): Promise<void> {
  if (paths.length === 0) return
  await runGitOrThrow(git.setting, ['update-index', '--force-remove', '-z', '--stdin'], zeroTerminated(paths))
}

type Kind = 'readable' | 'unreadable' | 'special'

async function classify(git: PrivateGit, paths: readonly string[]): Promise<Record<Kind, string[]>> {
  const kinds: Record<Kind, string[]> = { readable: [], unreadable: [], special: [] }
  for (let start = 0; start < paths.length; start += FILES_AT_ONCE) {
    const some = paths.slice(start, start + FILES_AT_ONCE)
    const found = await Promise.all(some.map(path => kindOf(git.setting.directory, path)))
    for (const [index, path] of some.entries()) kinds[found[index] ?? 'readable'].push(path)
  }
  return kinds
}

async function kindOf(top: string, path: string): Promise<Kind> {
  const bytes = pathBytes(top, path)
  try {
    const stat = await lstat(bytes)
    if (stat.isSymbolicLink() || stat.isDirectory()) return 'readable'
    if (!stat.isFile()) return 'special'
    await using _ = await open(bytes, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    return 'readable'
  } catch (error) {
    const code = systemErrorCode(error)
    // Git itself removes a file that is gone by now.
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'readable' : 'unreadable'
  }
}

function zeroTerminated(paths: readonly string[]): string {
  return paths.map(path => `${path}\0`).join('')
}

const BULK_FROM = 100
const FILES_AT_ONCE = 100
// 50,000 new files take 11 MiB in one pack, 207 MiB and as many inodes as loose objects, in the same time.
const ONE_PACK = ['-c', 'core.bigFileThreshold=1', '-c', 'core.compression=1']
