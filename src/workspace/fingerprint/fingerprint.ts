import { stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { comparable } from '../../platform/files.ts'
import { RUNTIME_FOLDER } from '../files/write-all.ts'
import { blockedObject, GitBlocked, mending, notBorrowed, putAside } from '../git/blocking-files.ts'
import {
  fromLatin1,
  GitError,
  readHead,
  runGit,
  runGitOrThrow,
  splitAtNul,
  toLatin1,
  withoutBorrowedObjects,
  writeToPrivateGit,
} from '../git/git.ts'
import { EMPTY_BLOB, EMPTY_TREE } from '../git/objects.ts'
import {
  openPrivateGit,
  openPrivateGitReadOnly,
  type PrivateGit,
  type PrivateGitOptions,
  removeIndex,
  repairPrivateGit,
  stoppable,
} from '../git/private-git.ts'
import { stagePaths } from '../git/trees.ts'
import { coversMoreThanTests, isBelow, type ProtectedGlobs, protectedGlobs } from '../protected-files.ts'
import { findHiddenFiles } from './hidden-files.ts'
import { hideInDiffs, UnreadFiles, type UnreadOptions } from './unread-files.ts'
import { isKeptByCodex } from './well-known.ts'

export interface FingerprintOptions extends PrivateGitOptions, UnreadOptions {
  /**
   * Absolute paths to omit, regardless of ignore files. Always omits the work directory's `.codemachine`, and
   * `.codex-flow/runtime` even if committed.
   */
  leaveOut?: readonly string[]
  /** Absolute path of codex's home: omits codex's own files there, but not a person's configuration. */
  codexHome?: string
  /** Called once for each unreadable path, which is not in the fingerprint. */
  onWarning?: (message: string) => void
}

/** The paths that differ between two fingerprints. */
interface ChangedPaths {
  /** Relative to the work directory, in git's order; the first 50. */
  paths: readonly string[]
  /** Number of all differing paths. */
  count: number
}

/** Files that count by the current ignore rules, and ignored ones: latin1 paths relative to git's top. */
export interface IgnoredNow {
  files: readonly string[]
  /** Ignored paths; a folder in which nothing counts ends in `/`. */
  ignored: readonly string[]
}

/** The ignore rules at the start of a session. */
interface StartRules {
  /** Path of a file of exclude rules, relative to git's top. */
  path: string
  /** Returns true if they ignore everything that is ignored now; undefined: unknown. */
  ignoreAll?(now: IgnoredNow): Promise<boolean>
}

/** Opens the fingerprints of a work directory. The caller holds the run lock. */
export async function openFingerprints(options: FingerprintOptions): Promise<Fingerprints> {
  const { directory, onWarning = () => {} } = options
  let borrows = true
  const git = await mending(
    () => openPrivateGit({ ...options, borrows }),
    async error => {
      const object = blockedObject(error)
      if (object !== null && borrows) onWarning(notBorrowed(directory, object))
      const isNew = object !== null && borrows
      if (isNew) borrows = false
      return (await putAside(error, directory, onWarning)) || isNew
    },
  )
  await hideInDiffs(git, options)
  return new Fingerprints(git, options)
}

/** Opens the fingerprints without the run lock, on a copy of the index; `null` if none have been taken yet. */
export async function openFingerprintsReadOnly(
  options: FingerprintOptions,
): Promise<(AsyncDisposable & { fingerprints: Fingerprints }) | null> {
  const look = await openPrivateGitReadOnly(options)
  if (look === null) return null
  await hideInDiffs(look.git, options)
  return { fingerprints: new Fingerprints(look.git, options), [Symbol.asyncDispose]: look.forget }
}

/**
 * Hashes the contents of the work directory as git trees in codemachine's private git directory. One call at a time.
 */
export class Fingerprints {
  #git: PrivateGit
  readonly #directory: string
  #signal: AbortSignal | undefined
  readonly #never: readonly string[]
  readonly #codexHome: readonly string[]
  readonly #onWarning: (message: string) => void
  readonly #told = new Set<string>()
  readonly #unread: UnreadFiles
  #protected: ProtectedGlobs | null = null
  #isTrace: (path: string) => boolean = () => false
  #startRules: StartRules | null = null
  #areRulesTrusted = true
  #isToBeReadAgain = false
  /** True if the index may have objects that only the person's repository has. */
  #borrows = true
  /** The last fingerprint; `null` if the index may have changed. */
  #tree: string | null = null
  /** Fingerprints whose objects are all in the private git directory. */
  readonly #whole = new Set<string>()
  #lastChange: { before: string; after: string; paths: readonly string[] } | null = null
  #leftOut: readonly string[] = []

  constructor(git: PrivateGit, options: FingerprintOptions) {
    const { gitDir, directory, leaveOut = [], codexHome, onWarning = () => {} } = options
    this.#git = git
    this.#directory = directory
    this.#onWarning = onWarning
    this.#unread = new UnreadFiles(git, options, message => this.#warn(message))
    const inside = (path: string) => relativeToTop(git.setting.directory, path)
    this.#never = [join(directory, '.codemachine'), join(directory, RUNTIME_FOLDER), gitDir, ...leaveOut]
      .flatMap(inside)
      .map(path => comparable(path))
    this.#codexHome = codexHome === undefined ? [] : inside(codexHome).map(toLatin1)
  }

  /** The private git directory; without borrowed objects once git would wait at one. */
  get git(): PrivateGit {
    return this.#git
  }

  /**
   * Writes the tree of all files that are not ignored to the private git directory, and returns its hash. Includes untracked
   * files and those in nested repositories and submodules. Throws `GitStopped` once the signal is aborted. Throws a
   * `UserError` if opened without the run lock and git fails or would wait forever. With the run lock, renames a
   * `.gitignore` that blocks git, such as a pipe, and warns. Likewise stops borrowing objects if one blocks git.
   */
  async take(signal?: AbortSignal): Promise<string> {
    this.#signal = signal
    return await this.mending(() => this.#orRepaired(() => this.#take()))
  }

  /**
   * Runs an action with git. With the run lock, removes a file that blocks git like `take`, and retries. Throws `GitStopped`
   * once the signal is aborted.
   */
  async mending<T>(run: (git: PrivateGit) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return await mending(
      () => run(stoppable(this.git, signal)),
      error => (this.#isReadOnly ? false : this.#doWithout(error)),
    )
  }

  /** The files that currently contain a secret: latin1, relative to the work directory. A rewind keeps them. */
  get hidden(): readonly string[] {
    return this.#unread.hidden
  }

  /** True if opened without the run lock: then nothing may be repaired. */
  get #isReadOnly(): boolean {
    return this.git.setting.env.GIT_INDEX_FILE !== undefined
  }

  async #orRepaired<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await writeToPrivateGit(this.git.gitDir, look)
    } catch (error) {
      if (!(error instanceof GitError)) throw error
      if (this.#isReadOnly) throw readOnlyFailure(error)
    }
    // The index is broken, or the person's git deleted a borrowed object: read every file again.
    this.#forgetIndex()
    try {
      return await writeToPrivateGit(this.git.gitDir, async () => {
        await repairPrivateGit(this.git)
        await removeIndex(this.git)
        return await look()
      })
    } catch (error) {
      throw error instanceof GitError ? twiceFailed(this.git, error) : error
    }
  }

  #forgetIndex(): void {
    this.#tree = null
    this.#unread.forgetIndex()
  }

  /** Makes the next fingerprint trust only git: after a foreign change of the index, and before a claim is accepted. */
  takeNothingForGranted(): void {
    this.#forgetIndex()
    this.#areRulesTrusted = false
  }

  /**
   * Makes the next `take` read every file again and store its content, without borrowed objects.
   * @param error what git failed with: where it would wait at an object, nothing at all reads borrowed ones any more
   */
  readAgain(error?: unknown): void {
    this.#tree = null
    this.#borrows = false
    this.#whole.clear()
    this.#isToBeReadAgain = true
    const object = blockedObject(error)
    if (object === null) return
    this.#git = { ...this.git, setting: withoutBorrowedObjects(this.git.setting) }
    this.#warn(notBorrowed(this.#directory, object))
  }

  /** True if all objects of a fingerprint are in the private git directory, so that they match their ids. */
  isWhole(tree: string): boolean {
    return this.#whole.has(tree)
  }

  /** Notes that they have been copied there: later objects of the index are stored there too. */
  hasBecomeWhole(tree: string): void {
    this.#whole.add(tree)
    if (tree === this.#tree) this.#borrows = false
  }

  /** From now on includes ignored files under these protected globs that can decide a gate's result (`findHiddenFiles`). */
  protect(globs: readonly string[]): void {
    // A glob such as `**/*.test.ts` must not search every ignored folder.
    const looked = globs.filter(coversMoreThanTests)
    this.#protected = looked.length === 0 ? null : protectedGlobs(looked)
  }

  /** From now on omits untracked files that are nobody's work: those with an absolute path for which this is true. */
  passOver(isTrace: (path: string) => boolean): void {
    this.#isTrace = isTrace
  }

  /** From now on also includes files that are ignored now but not by these rules; null: no ignored files. */
  ignoreBy(rules: StartRules | null): void {
    this.#startRules = rules
    this.#tree = null
  }

  /** File of the last rules of `ignoreBy`; null: none. */
  get ignoredBy(): string | null {
    return this.#startRules?.path ?? null
  }

  /**
   * Reads the work directory by the current ignore rules. Drops files that have become ignored, except those that the person
   * has committed.
   */
  async lookByRulesOfNow(signal?: AbortSignal): Promise<IgnoredNow> {
    this.#signal = signal
    this.ignoreBy(null)
    return await this.mending(() => this.#orRepaired(() => this.#lookByRulesOfNow()))
  }

  async #lookByRulesOfNow(): Promise<IgnoredNow> {
    const { files, ignored } = await this.#updateIndex()
    const listed = splitAtNul(await this.#run(['ls-files', '-c', '-i', '-z', '--exclude-standard', ...this.#within]))
    const committed = new Set(listed.length === 0 ? [] : (await this.#committed()).map(pathOf))
    const gone = new Set(listed.filter(path => !committed.has(path)))
    if (gone.size === 0) return { files, ignored }
    this.#tree = null
    await this.#run(['update-index', '--force-remove', '-z', '--stdin'], [...gone].map(path => `${path}\0`).join(''))
    return { files: files.filter(path => !gone.has(path)), ignored: [...ignored, ...gone] }
  }

  /**
   * Returns the paths in the work directory that the last fingerprint omits: a folder in which nothing counts ends in `/`.
   */
  leftOut(): ChangedPaths {
    return this.#shown(this.#leftOut)
  }

  /** Returns the paths that differ between two fingerprints; none, with a warning, if the older one no longer exists. */
  async changed(before: string, after: string): Promise<ChangedPaths> {
    if (before === after) return { paths: [], count: 0 }
    if (this.#lastChange?.before === before && this.#lastChange.after === after)
      return this.#shown(this.#lastChange.paths)
    const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', '--end-of-options', before, after]
    const { ok, stdout } = await this.mending(git => runGit(git.setting, args))
    if (!ok) this.#warn('An earlier fingerprint of the work directory is gone: later changes cannot be listed.')
    return firstOf(ok ? splitAtNul(stdout) : [])
  }

  /** Returns the first of these paths, which are relative to git's top. */
  #shown(paths: readonly string[]): ChangedPaths {
    return firstOf(paths.map(path => path.slice(toLatin1(this.git.prefix).length)))
  }

  /** Removes an obstacle at which git would wait; false if that is impossible. */
  async #doWithout(error: unknown): Promise<boolean> {
    if (!(error instanceof GitBlocked) || error.files.some(({ kind }) => kind === 'repository')) return false
    const isNew = this.git.repository !== null && blockedObject(error) !== null
    if (isNew) this.readAgain(error)
    const isAside = await putAside(error, this.#directory, message => this.#warn(message))
    return isAside || isNew
  }

  /** The private git for one look: `git`, perhaps without borrowed objects. */
  get #looking(): PrivateGit {
    const git = stoppable(this.git, this.#signal)
    return this.#borrows ? git : { ...git, setting: withoutBorrowedObjects(git.setting) }
  }

  /** Git arguments that limit a command to the work directory. */
  get #within(): readonly string[] {
    const { prefix } = this.git
    return prefix === '' ? [] : ['--', prefix]
  }

  #run(args: readonly string[], input?: string): Promise<string> {
    return runGitOrThrow(this.#looking.setting, args, input)
  }

  /** Runs a command, reports its warnings, and returns its output; throws a `GitError` if it fails. */
  async #list(args: readonly string[]): Promise<string[]> {
    const result = await runGit(this.#looking.setting, args)
    // Git may read a torn index but not write it.
    if (!result.ok || /^error: cache entry/m.test(result.stderr)) throw new GitError(args, result)
    for (const line of result.stderr.split('\n', MOST_WARNINGS)) if (line !== '') this.#warn(fromLatin1(line))
    return splitAtNul(result.stdout)
  }

  async #take(): Promise<string> {
    const before = this.#tree
    const { staged } = await this.#updateIndex()
    this.#isToBeReadAgain = false
    this.#areRulesTrusted = true
    if (this.#tree !== null) return this.#tree
    this.#tree = await this.#writeTree()
    if (!this.#borrows) this.#whole.add(this.#tree)
    this.#lastChange = before === null || staged === null ? null : { before, after: this.#tree, paths: staged }
    return this.#tree
  }

  /** Updates the index to the work directory. `staged`: its changed paths; null if uncertain. */
  async #updateIndex(): Promise<IgnoredNow & { staged: readonly string[] | null }> {
    if (this.#isToBeReadAgain) await this.#beginAnew()
    if (!(await this.#hasIndex())) await this.#fillIndex(await this.#committed())
    const isReplaced = await this.#unread.forgetReplaced(this.#looking)
    if (isReplaced) this.#tree = null
    const seen = await this.#look()
    const hidden = [...(await this.#lookForHidden(seen.ignored)), ...(await this.#unread.newlyHidden(this.#looking))]
    const present = new Set([...seen.changed, ...seen.added, ...hidden])
    const { read, unread } = await this.#unread.divide(this.#looking, [...present])
    const gone = new Set(seen.gone)
    const files = [...seen.known.filter(path => !gone.has(path)), ...seen.added]
    this.#leftOut = byFolder([...files, ...hidden], seen.ignored, toLatin1(this.git.prefix).length)
    const staged = [...seen.gone, ...read, ...unread.map(({ path }) => path)]
    if (staged.length === 0) return { files, ignored: seen.ignored, staged }
    this.#tree = null
    const unreadable = await stagePaths(this.#looking, { gone: seen.gone, present: read })
    for (const path of unreadable) this.#warn(`${fromLatin1(path)} cannot be read.`)
    await this.#unread.stage(this.#looking, [...seen.gone, ...read], unread)
    const isSure = !isReplaced && unreadable.length === 0
    const paths = staged.filter(path => !path.endsWith(`/${PLACEHOLDER}`)).sort(byBytes)
    return { files, ignored: seen.ignored, staged: isSure ? paths : null }
  }

  async #hasIndex(): Promise<boolean> {
    if (this.#tree !== null) return true
    const index = this.git.setting.env.GIT_INDEX_FILE ?? join(this.git.gitDir, 'index')
    return (await stat(index).catch(() => null)) !== null
  }

  /** Makes git read every file of the index again, including ignored ones, which no look finds. */
  async #beginAnew(): Promise<void> {
    const { ok, stdout } = await runGit(this.#looking.setting, ['ls-files', '-z'])
    await removeIndex(this.git)
    // This id is of no file, so all files count as changed.
    const none = EMPTY_BLOB[this.git.objectFormat].replace(/./g, '1')
    await this.#fillIndex(ok ? splitAtNul(stdout).map(path => `100644 blob ${none}\t${path}`) : [])
  }

  /** Adds files to a new index, as `ls-tree` lists them: no ignore rule counts, because the person's commit has them. */
  async #fillIndex(entries: readonly string[]): Promise<void> {
    this.#unread.forgetIndex()
    if (entries.length === 0) return
    // Git would read these files for the comparison.
    const { unread } = await this.#unread.divide(this.#looking, entries.map(pathOf))
    const left = new Set(unread.map(({ path }) => path))
    await this.#addEntries(entries.filter(entry => !left.has(pathOf(entry))))
    await this.#unread.stage(this.#looking, [], unread)
  }

  /** Adds entries, as `update-index --index-info` reads them. */
  async #addEntries(entries: readonly string[]): Promise<void> {
    await this.#run(['update-index', '-z', '--index-info'], entries.map(entry => `${entry}\0`).join(''))
  }

  /** Returns the files of the person's commit, as `git ls-tree` lists them. */
  async #committed(): Promise<string[]> {
    const { repository, setting } = this.#looking
    const commit = repository === null ? null : (await readHead(repository)).commit
    if (commit === null) return []
    const { ok, stdout } = await runGit(setting, ['ls-tree', '-r', '-z', '--full-tree', commit, ...this.#within])
    const isOwn = (entry: string) => entry.startsWith('160000 ') || this.#isNever(pathOf(entry))
    return splitAtNul(ok ? stdout : '').filter(entry => !isOwn(entry))
  }

  /**
   * Looks at the work directory. Git lists a nested repository's files only if the index has an entry there. So each gets a
   * placeholder, which the next index update removes. This never reads the nested repository's config.
   */
  async #look(): Promise<Seen> {
    const empty = EMPTY_BLOB[this.git.objectFormat]
    for (const opened = new Set<string>(); ; ) {
      const seen = await this.#compare()
      const found = new Set([...seen.added, ...(await this.#addedByStartRules(seen))])
      const closed = [...found].filter(path => path.endsWith('/') && !opened.has(path))
      if (closed.length === 0) {
        const added = [...found].filter(path => !path.endsWith('/'))
        return { ...seen, added, ignored: seen.ignored.filter(path => !found.has(path)) }
      }
      for (const path of closed) opened.add(path)
      await this.#addEntries(closed.map(folder => `100644 blob ${empty}\t${folder}${PLACEHOLDER}`))
    }
  }

  /** Compares the work directory with the index. Unread files always count as changed. */
  async #compare(): Promise<Seen> {
    const how = ['--untracked-files=all', '--ignored=matching', '--ignore-submodules=dirty', '--no-renames']
    const seen: Seen = { known: [], gone: [], changed: [], added: [], ignored: [] }
    for (const line of await this.#list(['status', '--porcelain', '-z', ...how, ...this.#within])) {
      const path = line.slice(3)
      // There is no commit, so git reports files of the index as "added".
      if (line.startsWith('A')) {
        seen.known.push(path)
        if (line[1] === 'D') seen.gone.push(path)
        else if (line[1] !== ' ') seen.changed.push(path)
      } else if (!this.#isNever(path) && !this.#isPassedOver(path)) {
        const isIgnored = line.startsWith('!') || this.#isOfCodex(path)
        ;(isIgnored ? seen.ignored : seen.added).push(path)
      }
    }
    return seen
  }

  /** Returns the files that count only by the rules of the session's start: a round has made git ignore them since. */
  async #addedByStartRules({ known, added, ignored }: Seen): Promise<string[]> {
    const { path, ignoreAll } = this.#startRules ?? {}
    if (path === undefined) return []
    if (this.#areRulesTrusted && (await ignoreAll?.({ files: [...known, ...added], ignored }))) return []
    const listed = await this.#list(['ls-files', '-o', '-z', `--exclude-from=${path}`, ...this.#within])
    return listed.filter(each => !this.#isNever(each) && !this.#isPassedOver(each) && !this.#isOfCodex(each))
  }

  #isNever(path: string): boolean {
    const name = comparable(fromLatin1(path))
    return this.#never.some(each => name === each || isBelow(name, each))
  }

  /** True for codex's own files. */
  #isOfCodex(path: string): boolean {
    return this.#codexHome.some(home => isBelow(path, home) && isKeptByCodex(path.slice(home.length + 1)))
  }

  /** True if an untracked file is nobody's work. */
  #isPassedOver(path: string): boolean {
    return !path.endsWith('/') && this.#isTrace(join(this.git.setting.directory, fromLatin1(path)))
  }

  async #lookForHidden(ignored: readonly string[]): Promise<string[]> {
    if (this.#protected === null) return []
    return await findHiddenFiles({
      git: this.#looking,
      ignored,
      globs: this.#protected,
      isNever: path => this.#isNever(path),
      onTooMany: () => this.#warn('Not all ignored files that gates protect could be checked: there are too many.'),
    })
  }

  /** Writes the tree of the work directory in the index, and returns its id. */
  async #writeTree(): Promise<string> {
    const { setting, prefix, objectFormat } = this.#looking
    const args = ['write-tree', ...(prefix === '' ? [] : [`--prefix=${prefix}`])]
    const result = await runGit(setting, args)
    if (result.ok) return result.stdout.trim()
    if (prefix !== '' && /prefix .* not found/s.test(result.stderr)) return EMPTY_TREE[objectFormat]
    throw new GitError(args, result)
  }

  #warn(message: string): void {
    if (this.#told.has(message)) return
    this.#told.add(message)
    this.#onWarning(message)
  }
}

/** Git's view of a work directory: latin1 paths relative to git's top. */
interface Seen {
  /** Paths in the index, and those of them that are `gone` or have `changed`. */
  known: string[]
  gone: string[]
  changed: string[]
  /** Files that count and are not in the index; an unopened nested repository is one path that ends in `/`. */
  added: string[]
  ignored: string[]
}

function twiceFailed({ setting }: PrivateGit, cause: GitError): UserError {
  return new UserError('CM0504', `git failed twice while reading ${setting.directory}: ${cause.reason}.`, {
    hint: 'Try again with codemachine resume; codemachine doctor checks git and the disk.',
    exitCode: 4,
    cause,
  })
}

function readOnlyFailure(cause: GitError): UserError {
  return new UserError(
    'CM0504',
    'The work directory cannot be read while another session begins or ends there; try again.',
    {
      cause,
    },
  )
}

/** Returns the path relative to `top`, with `/`; an empty list if it is outside. */
function relativeToTop(top: string, path: string): string[] {
  const inside = relative(top, path)
  return inside === '' || inside.startsWith('..') ? [] : [inside.split(sep).join('/')]
}

/** Returns the path of an entry of `ls-tree`. */
function pathOf(entry: string): string {
  return entry.slice(entry.indexOf('\t') + 1)
}

/** Compares paths in git's order. */
function byBytes(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/**
 * Returns the omitted paths, with one path for each folder in which nothing counts.
 * @param from where the names begin that are looked at
 */
function byFolder(counting: readonly string[], left: readonly string[], from: number): string[] {
  if (left.length === 0) return []
  const folders = new Set<string>()
  for (const path of counting) {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at)
      if (folders.has(folder)) break
      folders.add(folder)
    }
  }
  const shown = left.flatMap(path => {
    for (let at = path.indexOf('/', from); at !== -1; at = path.indexOf('/', at + 1))
      if (!folders.has(path.slice(0, at))) return [path.slice(0, at + 1)]
    return path.endsWith('/') ? [] : [path]
  })
  return [...new Set(shown)].sort(byBytes)
}

/** Returns the first of latin1 paths and their number. */
function firstOf(paths: readonly string[]): ChangedPaths {
  return { paths: paths.slice(0, MOST_PATHS).map(fromLatin1), count: paths.length }
}

const MOST_PATHS = 50
const MOST_WARNINGS = 20
const PLACEHOLDER = '.codemachine-looks-in-here'
