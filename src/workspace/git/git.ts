import { copyFile, readdir, realpath, rm, stat, utimes } from 'node:fs/promises'
import { delimiter, dirname, join, resolve, sep } from 'node:path'
import { diskFull, isNoRoom, UserError, writing } from '../../base/errors.ts'
import { lacksRoom } from '../../platform/files.ts'
import { type ProcessOptions, type ProcessResult, runProcess } from '../../platform/run-process.ts'
import { readTextFile } from '../files/inside-directory.ts'
import {
  type BlockingFile,
  findBlockingFiles,
  GitBlocked,
  type GitPlace,
  usualBlockingFiles,
} from './blocking-files.ts'

/** The result of a git command. Texts are latin1, which preserves names in any encoding. */
export interface GitResult {
  ok: boolean
  stdout: string
  stderr: string
}

/** Thrown by `runGitOrThrow` or a caller of `runGit` if a required git command fails. */
export class GitError extends Error {
  override readonly name = 'GitError'
  /** Last line of git, which is its reason; without output, the whole message. */
  readonly reason: string

  constructor(args: readonly string[], { stderr }: GitResult) {
    const said = stderr.trim()
    super(`git ${args.join(' ')} failed: ${said.slice(0, 2000)}`)
    this.reason = said.split('\n').at(-1) || this.message
  }
}

/** Thrown by `runGit` once its signal is aborted: nobody waits for the result. */
export class GitStopped extends Error {
  override readonly name = 'GitStopped'
}

/** The git program to run, and its directory and environment. */
export interface GitSetting {
  /** Absolute path of the program. */
  program: string
  directory: string
  /** Whole environment; git inherits nothing. */
  env: NodeJS.ProcessEnv
  /** Function to run it; undefined: `runProcess`, as between two rounds. */
  run?: typeof runProcess
  /** Aborts it with `GitStopped`. */
  signal?: AbortSignal
}

/**
 * Runs git and collects its output (up to 256 MiB). A failure is a value; errors of `callGit` are thrown. `input` is latin1
 * text for stdin.
 */
export async function runGit(setting: GitSetting, args: readonly string[], input?: string): Promise<GitResult> {
  const { exitCode, stdout, stderr, failure } = await callGit(setting, args, {
    outputLimit: OUTPUT_BYTES,
    ...(input === undefined ? {} : { input: Buffer.from(input, 'latin1') }),
  })
  return { ok: exitCode === 0, stdout, stderr: failure === null ? stderr : `git was not run to its end: ${failure}` }
}

/**
 * Runs git for at most ten minutes, or an hour if the command reads or writes many files. Its output is latin1. Throws
 * `GitBlocked` if it would wait at a file, a `UserError` (exit code 4) after its time, and `GitStopped`.
 */
export async function callGit(
  setting: GitSetting,
  args: readonly string[],
  options: Pick<ProcessOptions, 'input' | 'outputLimit'>,
): Promise<ProcessResult> {
  const { directory, signal } = setting
  const command = commandOf(args)
  const usual = usualBlockingFiles(placeOf(setting, command))
  if (usual.length > 0) throw new GitBlocked(directory, usual)
  const timeoutMs = READS_MANY.has(command) ? LONG_MS : SHORT_MS
  const { blocking, ...result } = await watchGit(setting, args, { ...options, encoding: 'latin1', timeoutMs })
  if (signal?.aborted && result.failure === 'aborted') throw new GitStopped(`git ${command} was ended`)
  if (result.failure === 'aborted') throw new GitBlocked(directory, blocking)
  if (result.failure === 'timeout') throw tooSlow(`git ${command} in ${directory}`, timeoutMs)
  return result
}

/**
 * Runs git, and ends it once a file is found at which it waits: `blocking` has these files. The result has the output up to
 * then.
 */
export async function watchGit(
  setting: GitSetting,
  args: readonly string[],
  options: Pick<ProcessOptions, 'input' | 'outputLimit' | 'encoding' | 'timeoutMs'>,
): Promise<ProcessResult & { blocking: readonly BlockingFile[] }> {
  const { run = runProcess, program, directory, env, signal } = setting
  using watch = new BlockWatch(placeOf(setting, commandOf(args)))
  const signals = signal === undefined ? watch.signal : AbortSignal.any([watch.signal, signal])
  const result = await run(program, args, { ...options, directory, env, signal: signals })
  return { ...result, blocking: watch.found }
}

function placeOf({ directory, env }: GitSetting, command: string): GitPlace {
  return {
    directory,
    env,
    opensTree: OPENS_TREE.has(command),
    repository: async () => (env.GIT_DIR === undefined ? await repositoryDirectories(directory) : []),
  }
}

/** Watches a running git: aborts `signal` once git takes long and a blocking file exists. */
class BlockWatch implements Disposable {
  readonly #over = new AbortController()
  readonly #place: GitPlace
  #timer: NodeJS.Timeout | undefined
  found: readonly BlockingFile[] = []

  constructor(place: GitPlace) {
    this.#place = place
    this.#lookIn(LOOK_MS)
  }

  get signal(): AbortSignal {
    return this.#over.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Repeats the search, each time after a ten times longer delay: a blocking file may appear later. */
  #lookIn(ms: number): void {
    const timer = setTimeout(async () => {
      this.found = await findBlockingFiles(this.#place)
      if (this.#timer !== timer) return
      if (this.found.length > 0) this.#over.abort()
      else this.#lookIn(ms * 10)
    }, ms)
    this.#timer = timer
  }
}

/** The error of a work on files that was ended after this time, ms. @param what the subject of its sentence */
export function tooSlow(what: string, ms: number): UserError {
  return new UserError('CM0503', `${what} did not finish in ${ms / 60_000} minutes, so codemachine ended it.`, {
    hint: 'Check if a disk or a network folder hangs there; then codemachine resume continues.',
    exitCode: 4,
  })
}

/** Returns the git command in its arguments, after its options. */
function commandOf(args: readonly string[]): string {
  return args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c') ?? ''
}

/** Commands that may read or write every file or object. */
const READS_MANY: ReadonlySet<string> = new Set(
  'status update-index checkout-index read-tree pack-objects index-pack repack prune add commit checkout merge worktree'.split(
    ' ',
  ),
)
/** Commands that open files of the work tree. */
const OPENS_TREE: ReadonlySet<string> = new Set(
  'ls-files check-ignore update-index checkout-index add commit status checkout merge worktree'.split(' '),
)
const SHORT_MS = 10 * 60_000
const LONG_MS = 60 * 60_000
/** Delay before the first search for a blocking file, ms. */
const LOOK_MS = 2_000

/** Runs git and returns its stdout. Throws a `GitError` if it fails. */
export async function runGitOrThrow(setting: GitSetting, args: readonly string[], input?: string): Promise<string> {
  const result = await runGit(setting, args, input)
  if (!result.ok) throw new GitError(args, result)
  return result.stdout
}

/** Decodes git's latin1 text as UTF-8. */
export function fromLatin1(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}

/** Encodes a text for `runGit`: its UTF-8 bytes as latin1. */
export function toLatin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** Returns paths as (not latin1) arguments of git: unchanged, composed, and decomposed as on other systems. */
export function pathArguments(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap(path => [path, path.normalize('NFC'), path.normalize('NFD')]))]
}

/** Returns the entries of git's NUL-terminated list. */
export function splitAtNul(list: string): string[] {
  const entries = list.split('\0')
  entries.pop()
  return entries
}

/** Returns the absolute path of a latin1 path below a directory, as bytes. File names may have any encoding. */
export function pathBytes(directory: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(directory + sep), Buffer.from(path, 'latin1')])
}

/** Returns the setting with these variables. */
export function withVariables(setting: GitSetting, variables: NodeJS.ProcessEnv): GitSetting {
  return { ...setting, env: { ...setting.env, ...variables } }
}

/** Git options for an index in one file: the shared part of a split one would stay in the private git directory. */
export const UNSPLIT_INDEX = ['-c', 'core.splitIndex=false']

/**
 * Copies an index with its mtime. Git compares whole seconds, and reads files again that were written in the index's second
 * or later. A copy that seems younger would hide a change of the same length in that second.
 */
export async function copyIndex(from: string, to: string): Promise<void> {
  // Read the time first, as the index may be replaced: a too old time only makes git read more.
  const { atime, mtime } = await stat(from)
  await copyFile(from, to)
  await utimes(to, atime, mtime)
}

/**
 * Returns an environment in which git reads neither the person's configuration or hooks, nor the repository of its caller.
 */
export function hardenedEnvironment(env: NodeJS.ProcessEnv, emptyFile: string): NodeJS.ProcessEnv {
  return {
    ...withoutGitVariables(env),
    GIT_CONFIG_GLOBAL: emptyFile,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    LC_ALL: 'C',
  }
}

/** Returns the environment without `GIT_*` variables, which a hook or tool around codemachine may have set. */
export function withoutGitVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith('GIT_')))
}

const OUTPUT_BYTES = 256 * 1024 * 1024

/** The person's git repository that contains a directory. All paths are absolute. */
export interface PersonRepository {
  /** Top of the work tree: the parent of `.git`. */
  root: string
  /** The work tree's own git directory (HEAD, index). */
  gitDir: string
  /** The git directory that worktrees share (objects, branches, config); `gitDir` itself for a plain repository. */
  commonDir: string
}

/** The checked-out commit and branch of a repository. */
export interface Head {
  /** `null` for a branch without a commit, or if the references cannot be read (reftable). */
  commit: string | null
  /** `null` when detached, or not readable. */
  branch: string | null
}

/** Finds the repository that contains a directory, without running git; `null` if there is none. */
export async function findRepository(directory: string): Promise<PersonRepository | null> {
  for (let root = await realpath(directory); ; root = dirname(root)) {
    const gitDir = await gitDirectoryOf(root)
    if (gitDir !== null) return { root, gitDir, commonDir: await commonDirectoryOf(gitDir) }
    if (dirname(root) === root) return null
  }
}

/** Reads the checked-out commit and branch without running git. Never throws for the files' content. */
export async function readHead({ gitDir, commonDir }: PersonRepository): Promise<Head> {
  const head = await readLine(join(gitDir, 'HEAD'))
  if (head === null) return { commit: null, branch: null }
  const ref = targetOf(head)
  if (ref === null) return { commit: isHash(head) ? head : null, branch: null }
  const branch = ref.startsWith(BRANCHES) ? ref.slice(BRANCHES.length) : null
  if (branch === REFTABLE_BRANCH) return { commit: null, branch: null }
  return { commit: await resolveRef(commonDir, ref), branch }
}

/** Returns the directories that git reads of the repository around a directory; a linked worktree has two. */
async function repositoryDirectories(directory: string): Promise<readonly string[]> {
  const repository = await findRepository(directory).catch(() => null)
  if (repository === null) return [join(directory, '.git')]
  return [...new Set([repository.commonDir, repository.gitDir])]
}

async function gitDirectoryOf(root: string): Promise<string | null> {
  const path = join(root, '.git')
  const found = await stat(path).catch(() => null)
  if (found === null) return null
  const gitDir = found.isDirectory() ? path : await readPointer(path, root)
  // Like git, continue the search if `.git` is something else.
  if (gitDir === null || (await stat(join(gitDir, 'HEAD')).catch(() => null)) === null) return null
  return realpath(gitDir).catch(() => null)
}

/** Returns the target of a `.git` file of a worktree or submodule. */
async function readPointer(path: string, root: string): Promise<string | null> {
  const line = await readLine(path)
  const target = line?.match(/^gitdir: (.+)$/)?.[1]
  return target === undefined ? null : resolve(root, target)
}

async function commonDirectoryOf(gitDir: string): Promise<string> {
  const line = await readLine(join(gitDir, 'commondir'))
  if (line === null) return gitDir
  return realpath(resolve(gitDir, line)).catch(() => gitDir)
}

async function resolveRef(commonDir: string, name: string): Promise<string | null> {
  let ref = name
  for (let step = 0; step < MOST_SYMBOLIC_STEPS; step += 1) {
    if (!isSafeRef(ref)) return null
    const line = await readLine(join(commonDir, ref))
    if (line === null) return readPackedRef(commonDir, ref)
    const next = targetOf(line)
    if (next === null) return isHash(line) ? line : null
    ref = next
  }
  return null
}

async function readPackedRef(commonDir: string, ref: string): Promise<string | null> {
  const packed = await readTextFile(join(commonDir, 'packed-refs'), PACKED_REFS_BYTES)
  if (packed.kind !== 'text') return null
  const end = packed.text.indexOf(` ${ref}\n`)
  if (end === -1) return null
  const hash = packed.text.slice(packed.text.lastIndexOf('\n', end) + 1, end)
  return isHash(hash) ? hash : null
}

/** Returns the first line of a small file such as a reference; null: none. */
export async function readLine(path: string): Promise<string | null> {
  const file = await readTextFile(path, LINE_BYTES)
  if (file.kind !== 'text') return null
  const line = file.text.trimEnd()
  return line === '' ? null : line
}

function targetOf(line: string): string | null {
  return line.match(/^ref: *(.+)$/)?.[1] ?? null
}

function isSafeRef(ref: string): boolean {
  return ref.startsWith('refs/') && !ref.split('/').some(part => part === '' || part === '..')
}

function isHash(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text)
}

const BRANCHES = 'refs/heads/'
// Branch in HEAD of a reftable repository, for programs that only know files.
const REFTABLE_BRANCH = '.invalid'
const MOST_SYMBOLIC_STEPS = 5
const LINE_BYTES = 16 * 1024
const PACKED_REFS_BYTES = 64 * 1024 * 1024

/**
 * Runs a write to a private git directory. If the disk is full, removes unfinished objects and throws a `UserError`.
 */
export function writeToPrivateGit<T>(gitDir: string, write: () => Promise<T>): Promise<T> {
  return writing(gitDir, async () => {
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof GitError) || !(await failedForRoom(gitDir, error))) throw error
      await removeUnfinishedObjects(gitDir)
      throw diskFull(gitDir, error)
    }
  })
}

/** True if a full disk is the cause, which git does not always report. */
async function failedForRoom(gitDir: string, error: GitError): Promise<boolean> {
  return isNoRoom(error) || (await lacksRoom(gitDir))
}

/** Removes object files that a killed git, or one on a full disk, left unfinished. Nothing refers to them. */
export async function removeUnfinishedObjects(gitDir: string): Promise<void> {
  const objects = join(gitDir, 'objects')
  for (const folder of await readdir(objects).catch(() => [])) {
    const names = await readdir(join(objects, folder)).catch(() => [])
    for (const name of names) if (UNFINISHED.test(name)) await rm(join(objects, folder, name), { force: true })
  }
}

const UNFINISHED = /^(?:tmp_(?:obj|pack|idx|rev|bitmap)_|\.tmp-\d+-pack-)|\.tmp$/

/** Returns the environment variable to borrow objects of the person's repository; empty if there is none. */
export function borrowedObjectsEnvironment(repository: PersonRepository | null): NodeJS.ProcessEnv {
  return repository === null ? {} : { [ALTERNATES]: quotePath(join(repository.commonDir, 'objects')) }
}

/** Returns the setting without the person's objects. */
export function withoutBorrowedObjects(setting: GitSetting): GitSetting {
  const { [ALTERNATES]: _, ...env } = setting.env
  return { ...setting, env }
}

/** Quotes a path for the variable if it contains the list separator. */
function quotePath(path: string): string {
  return path.includes(delimiter) ? `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"` : path
}

const ALTERNATES = 'GIT_ALTERNATE_OBJECT_DIRECTORIES'

/**
 * Returns only the lines of a git config that `git init`, `git config user.*`, `git remote add` and `git branch --track`
 * write. Stricter than git's own parser, so that git reads each line equally.
 */
export function plainConfig(text: string): string {
  const kept: string[] = []
  let section: { header: string; name: string; isWritten: boolean } | null = null
  for (const line of text.split(/\r?\n/)) {
    const header = line.match(headerLine)
    if (header !== null) {
      section = { header: line, name: sectionName(header), isWritten: false }
      continue
    }
    // An unknown header ends the previous section.
    if (line.trimStart().startsWith('[')) section = null
    if (section === null || !isPlain(section.name, line)) continue
    if (!section.isWritten) kept.push(section.header)
    section.isWritten = true
    kept.push(line)
  }
  return kept.map(line => `${line}\n`).join('')
}

function sectionName([, name = '', subsection]: RegExpMatchArray): string {
  return subsection === undefined ? name.toLowerCase() : `${name.toLowerCase()}.*`
}

function isPlain(section: string, line: string): boolean {
  const [, key = '', value = ''] = line.match(valueLine) ?? []
  // `transport::address` names a program to run.
  return plainKeys.has(`${section}.${key.toLowerCase()}`) && !value.includes('::')
}

const headerLine = /^\[([A-Za-z]+)(?: "([^"\\\p{Cc}]*)")?\]$/u
// No quotes, escapes, comments or continued lines.
const valueLine = /^[\t ]+([A-Za-z]+) = ([^"\\#;\p{Cc}]*)$/u

const plainKeys: ReadonlySet<string> = new Set([
  'core.repositoryformatversion',
  'core.filemode',
  'core.bare',
  'core.logallrefupdates',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.symlinks',
  'core.worktree',
  'extensions.objectformat',
  'extensions.refstorage',
  'init.defaultbranch',
  'user.name',
  'user.email',
  'remote.*.url',
  'remote.*.fetch',
  'branch.*.remote',
  'branch.*.merge',
])
