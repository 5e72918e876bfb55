import { stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { RUNTIME_FOLDER } from '../files/write-all.ts'
import { blockedObject, GitBlocked, mending, notBorrowed, putAside } from '../git/blocking-files.ts'
import {
  fromLatin1,
  GitError,
  runGit,
  runGitOrThrow,
  splitAtNul,
  toLatin1,
  withoutBorrowedObjects,
  writeToPrivateGit,
} from '../git/git.ts'
import { LooseObjects } from '../git/loose-objects.ts'
import {
  hasModesAndLinks,
  openPrivateGit,
  openPrivateGitReadOnly,
  type PrivateGit,
  type PrivateGitOptions,
  removeIndex,
  repairPrivateGit,
  stoppable,
} from '../git/private-git.ts'
import { type IndexDifferences, stagePaths } from '../git/trees.ts'
import { coversMoreThanTests, isBelow, type ProtectedGlobs, protectedGlobs } from '../protected-files.ts'
import { findHiddenFiles } from './hidden-files.ts'
import { type IgnoredNow, IndexLook } from './index-look.ts'
import type { KnownTreeGit } from './known-tree.ts'
import { LastFingerprint } from './last-fingerprint.ts'
import {
  forgetReplaced,
  hideInDiffs,
  MAX_FILE_SIZE,
  stageUnread,
  type UnreadFile,
  UnreadFiles,
  type UnreadOptions,
} from './unread-files.ts'
import { codexHomeRules, literal } from './well-known.ts'

export interface FingerprintOptions extends PrivateGitOptions, UnreadOptions {
  /**
   * Absolute paths to leave out, whatever the ignore files say. The work directory's `.codemachine` and
   * `.codex-flow/runtime` are always left out, the latter where it is committed, too.
   */
  leaveOut?: readonly string[]
  /** Absolute path of codex's home: what codex keeps there for itself is left out, what a person configures it with is not. */
  codexHome?: string
  /** Called once for each path that cannot be read and is therefore not in the fingerprint. */
  onWarning?: (message: string) => void
}

/** The paths that differ between two fingerprints. */
export interface ChangedPaths {
  /** Relative to the work directory, in git's order; the first 50. */
  paths: readonly string[]
  /** How many differ in all. */
  count: number
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
  return new Fingerprints(git, { ...options, isKnowable: await hasModesAndLinks(git) })
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
  /** `git`, or `git` without borrowed objects once one of them has proved missing, forged or no file. */
  #working: PrivateGit
  #signal: AbortSignal | undefined
  readonly #never: readonly string[]
  readonly #onWarning: (message: string) => void
  readonly #told = new Set<string>()
  readonly #unread: UnreadFiles
  readonly #byGit: IndexLook
  /** Whether the index may have unread files. */
  #mayHaveUnread = true
  #protected: ProtectedGlobs | null = null
  #isTrace: (path: string) => boolean = () => false
  /** The file of exclude rules by which ignored files count or not; null: by what is ignored now. */
  #ignoredBy: string | null = null
  #isToBeReadAgain = false
  /** Whether the index says what is in the work directory by what is ignored now. */
  #isLookedAt = false
  /** The last fingerprint; `null` if the index may be another. */
  #tree: string | null = null
  /** Single objects of the private git directory. */
  readonly objects: LooseObjects
  readonly #isKnowable: boolean
  readonly #maxFileSize: number
  readonly #last = new LastFingerprint()

  constructor(git: PrivateGit, options: FingerprintOptions & { isKnowable?: boolean }) {
    const { gitDir, directory, leaveOut = [], onWarning = () => {} } = options
    this.#git = git
    this.objects = new LooseObjects(git)
    this.#isKnowable = options.isKnowable ?? false
    this.#maxFileSize = options.maxFileSize ?? MAX_FILE_SIZE
    this.#directory = directory
    this.#working = git
    this.#onWarning = onWarning
    this.#unread = new UnreadFiles(git, options, message => this.#warn(message))
    const runtime = join(directory, RUNTIME_FOLDER)
    const never = [join(directory, '.codemachine'), runtime, gitDir, ...leaveOut]
    this.#never = never.flatMap(path => relativeToTop(git.setting.directory, path))
    const own = this.#never.map(excludeRule)
    const ofCodex = options.codexHome === undefined ? [] : relativeToTop(git.setting.directory, options.codexHome)
    this.#byGit = new IndexLook({
      git: () => this.#looking,
      own,
      rules: [...own, ...ofCodex.flatMap(codexHomeRules).map(rule => `--exclude=${rule}`)],
      runtime: relativeToTop(git.setting.directory, runtime).map(toLatin1),
      ignoredBy: () => this.#ignoredBy,
      warn: line => this.#warn(line),
    })
  }

  /** The private git directory; without borrowed objects once git would wait at one of them. */
  get git(): PrivateGit {
    return this.#git
  }

  /**
   * Writes the tree of all files that are not ignored, including untracked ones and those inside nested repositories
   * and submodules, to the private git directory. Returns its hash. Throws a `UserError` if opened without the run lock
   * and git fails, or where it would wait for ever; `GitStopped` once the signal is aborted.
   *
   * With the run lock a pipe, or what else git would wait at, in the place of a `.gitignore` is renamed, and an object of
   * the person's repository that is one is done without; both are warned of.
   */
  async take(signal?: AbortSignal): Promise<string> {
    this.#signal = signal
    return await this.mending(() => this.#orRepaired(() => this.#take()))
  }

  /**
   * Runs what calls git. With the run lock a file at which git would wait is renamed or done without, as by `take`, and it
   * runs again. Throws `GitStopped` once the signal is aborted.
   */
  async mending<T>(run: (git: PrivateGit) => Promise<T>, signal?: AbortSignal): Promise<T> {
    return await mending(
      () => run(stoppable(this.git, signal)),
      error => (this.#isReadOnly ? false : this.#doWithout(error)),
    )
  }

  /** The files that hold a secret, as of now: latin1, relative to the work directory. A rewind leaves them alone. */
  get hidden(): readonly string[] {
    return this.#unread.hidden
  }

  /** Whether opened without the run lock: then nothing may be repaired. */
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
    // The index is broken, or the person's git has deleted a borrowed object: read every file again.
    this.#tree = null
    this.#last.forget()
    this.objects.forget()
    return writeToPrivateGit(this.git.gitDir, async () => {
      await repairPrivateGit(this.git)
      await removeIndex(this.git)
      return look()
    })
  }

  /**
   * Has git alone take the next one: after the index was changed by others, and before a claim is believed, for not every file
   * system tells by the times of a folder that a name has come.
   */
  takeNothingForGranted(): void {
    this.#tree = null
    this.#isLookedAt = false
    this.#mayHaveUnread = true
  }

  /**
   * Makes the next `take` read every file again and store its content, without borrowing objects any more.
   * @param error what git failed with: where it would wait at an object, nothing at all reads borrowed ones any more
   */
  readAgain(error?: unknown): void {
    this.#tree = null
    this.#working = { ...this.git, setting: withoutBorrowedObjects(this.git.setting) }
    this.#isToBeReadAgain = true
    const object = blockedObject(error)
    if (object === null) return
    this.#git = this.#working
    this.#warn(notBorrowed(this.#directory, object))
  }

  /**
   * From now on includes ignored files that these globs protect and that can decide a gate's result
   * (`findHiddenFiles`).
   */
  protect(globs: readonly string[]): void {
    // A glob such as `**/*.test.ts` must not make every ignored folder be searched.
    const looked = globs.filter(coversMoreThanTests)
    this.#protected = looked.length === 0 ? null : protectedGlobs(looked)
  }

  /** From now on leaves out what is no work of anybody's: untracked files of which this is true, by their absolute paths. */
  passOver(isTrace: (path: string) => boolean): void {
    this.#isTrace = isTrace
  }

  /**
   * From now on also includes what is ignored now and not by the exclude rules in this file, which are relative to git's
   * top; null: includes nothing that is ignored.
   */
  ignoreBy(rules: string | null): void {
    this.#ignoredBy = rules
    this.#tree = null
  }

  /**
   * Looks at the work directory by what is ignored now, and lets go of what is and was not when it was first included, but for
   * what the person has committed. The next `take` adds what the rules do not ignore that `ignoreBy` has been given since.
   */
  async lookByRulesOfNow(signal?: AbortSignal): Promise<IgnoredNow> {
    this.#signal = signal
    this.ignoreBy(null)
    return await this.mending(() => this.#orRepaired(() => this.#lookByRulesOfNow()))
  }

  async #lookByRulesOfNow(): Promise<IgnoredNow> {
    await this.#last.letGo(this.#ways)
    await this.#updateIndex()
    const now = await this.#byGit.forgetIgnored()
    this.#isLookedAt = true
    return now
  }

  /** The file that `ignoreBy` was given last; null: none. */
  get ignoredBy(): string | null {
    return this.#ignoredBy
  }

  /**
   * What lies in the work directory and no fingerprint includes: a folder of which nothing counts ends in `/`. Throws
   * `GitStopped` once the signal is aborted.
   */
  async leftOut(signal?: AbortSignal): Promise<ChangedPaths> {
    const never = this.#never.map(toLatin1)
    const known = this.#last.leftOut(path => never.some(each => isBelow(path, each) || path === each))
    const paths = (known ?? (await this.#byGit.leftOut(stoppable(this.git, signal)))).filter(
      path => !this.#isPassedOver(path),
    )
    const top = toLatin1(this.git.prefix).length
    return firstOf(paths.map(path => path.slice(top)))
  }

  /** The paths that differ between two fingerprints; none, with a warning, if the older one no longer exists. */
  async changed(before: string, after: string): Promise<ChangedPaths> {
    if (before === after) return { paths: [], count: 0 }
    const known = this.#last.changed(before, after)
    if (known !== null) return firstOf(known)
    const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', '--end-of-options', before, after]
    const { ok, stdout } = await this.mending(git => runGit(git.setting, args))
    if (!ok)
      this.#warn('An earlier fingerprint of the work directory is gone: what has changed since cannot be listed.')
    return firstOf(ok ? splitAtNul(stdout) : [])
  }

  /**
   * Whether everything in `tree` that is not in `base` has been stored by `objects` since: then the private git directory has
   * it, and it is what its ids say.
   */
  hasGrown(base: string, tree: string): boolean {
    return this.#last.hasGrown(base, tree)
  }

  /** Whether an untracked file, latin1, relative to git's top, is no work of anybody's. */
  #isPassedOver(path: string): boolean {
    return !path.endsWith('/') && this.#isTrace(join(this.git.setting.directory, fromLatin1(path)))
  }

  /** Does away with what git would wait at; false if that cannot be done. */
  async #doWithout(error: unknown): Promise<boolean> {
    if (!(error instanceof GitBlocked) || error.files.some(({ kind }) => kind === 'repository')) return false
    const isNew = this.git.repository !== null && blockedObject(error) !== null
    if (isNew) this.readAgain(error)
    const isAside = await putAside(error, this.#directory, message => this.#warn(message))
    return isAside || isNew
  }

  /** The private git for one look. */
  get #looking(): PrivateGit {
    return stoppable(this.#working, this.#signal)
  }

  async #take(): Promise<string> {
    const known = await this.#takeFromMemory()
    if (known !== null) return known
    await this.#updateIndex()
    this.#tree ??= await this.#byGit.writeTree(id => this.objects.isStored(id))
    this.#isToBeReadAgain = false
    return this.#tree
  }

  /** Has the index say what is in the work directory. */
  async #updateIndex(): Promise<void> {
    const isLookedAt = this.#isLookedAt && !this.#isToBeReadAgain
    this.#isLookedAt = false
    if (this.#isToBeReadAgain) await this.#byGit.beginAnew()
    if (!(await this.#hasIndex())) await this.#byGit.seed()
    if (this.#mayHaveUnread) await this.#forgetReplaced()
    const seen = isLookedAt ? await this.#look('added') : await this.#lookTwiceIfMany()
    const more = [...(await this.#lookForHidden()), ...(await this.#unread.newlyHidden(this.#looking))]
    const hidden = await this.#unread.divide(this.#looking, more, NONE_KNOWN)
    const differences = { gone: seen.gone, present: [...seen.present, ...hidden.read] }
    const unread = [...seen.unread, ...hidden.unread]
    if (differences.gone.length + differences.present.length + unread.length === 0) return
    this.#tree = null
    for (const path of await stagePaths(this.#looking, differences)) this.#warn(`${fromLatin1(path)} cannot be read.`)
    await this.#stageUnread(unread)
  }

  /** Takes it by what is known of the last one; null if git has to. */
  async #takeFromMemory(): Promise<string | null> {
    const before = this.#tree
    const isPlain = !this.#mayHaveUnread && this.hidden.length === 0 && !this.#isToBeReadAgain && !this.#isReadOnly
    const canBeKnown = this.#isKnowable && this.#last.isOfUse && isPlain && before !== null
    if (!canBeKnown && !this.#last.isKnown) return null
    this.#tree = null
    if (canBeKnown) this.#tree = await this.#last.next(before, this.#ways)
    else await this.#last.letGo(this.#ways)
    return this.#tree
  }

  /** What is asked of git where it is not known. */
  get #ways(): KnownTreeGit {
    return {
      git: this.#looking,
      objects: this.objects,
      list: what => (what === 'files' ? this.#byGit.untracked() : this.#byGit.folders()),
      listHidden: () => this.#lookForHidden(),
      lookAtIndex: what => this.#lookAtIndex(what),
      run: (args, input) => runGitOrThrow(this.#looking.setting, args, input),
      isPassedOver: path => this.#isPassedOver(path),
      rules: this.#ruleFiles,
      maxFileSize: this.#maxFileSize,
    }
  }

  /** Null where files differ whose content is not read, or a repository has to be opened. */
  async #lookAtIndex(what: 'files' | 'files-and-names'): Promise<IndexDifferences | null> {
    const [known, untracked] = await Promise.all([this.#byGit.known(), what === 'files' ? [] : this.#byGit.untracked()])
    if (untracked.some(path => path.endsWith('/'))) return null
    const added = untracked.filter(path => !this.#isPassedOver(path))
    const { read, unread } = await this.#unread.divide(this.#looking, [...known.present, ...added], known.unread)
    return unread.length > 0 || known.unread.size > 0 ? null : { gone: known.gone, present: read }
  }

  /** Files outside of what is looked at whose rules decide what counts there. */
  get #ruleFiles(): string[] {
    const { setting, prefix } = this.git
    const above = prefix.split('/').slice(0, -1)
    const folders = above.map((_, depth) => join(setting.directory, ...above.slice(0, depth)))
    return [
      ...(this.#ignoredBy === null ? [] : [this.#ignoredBy]),
      ...folders.map(folder => join(folder, '.gitignore')),
    ]
  }

  async #forgetReplaced(): Promise<void> {
    // An index that can be read here has none.
    const { left, replaced } = this.#byGit.read() ? { left: 0, replaced: 0 } : await forgetReplaced(this.#looking)
    this.#mayHaveUnread = left > 0
    if (replaced > 0) this.#tree = null
  }

  async #stageUnread(files: readonly UnreadFile[]): Promise<void> {
    if (files.length > 0) this.#mayHaveUnread = true
    await stageUnread(this.#looking, files)
  }

  async #hasIndex(): Promise<boolean> {
    if (this.#tree !== null) return true
    const index = this.git.setting.env.GIT_INDEX_FILE ?? join(this.git.gitDir, 'index')
    return (await stat(index).catch(() => null)) !== null
  }

  /** If many files differ by their stamps only (first take, fresh checkout), refreshing the index is faster than staging them. */
  async #lookTwiceIfMany(): Promise<Seen> {
    const seen = await this.#look()
    if (seen.present.length < MANY_FILES || this.#isToBeReadAgain) return seen
    // They would be read otherwise.
    await this.#stageUnread(seen.unread)
    await runGit(this.#looking.setting, ['update-index', '-q', '--refresh'])
    const again = await this.#look()
    return { ...again, unread: [...seen.unread, ...again.unread] }
  }

  /** @param at left out: everything; `added`: what the rules of `ignoreBy` add */
  async #look(at: 'all' | 'added' = 'all'): Promise<Seen> {
    const opened = new Set<string>()
    for (let now = at; ; now = 'all') {
      const [known, untracked] =
        now === 'added'
          ? [NO_DIFFERENCES, await this.#byGit.addedByRules()]
          : await Promise.all([this.#byGit.known(), this.#byGit.untracked()])
      const closed = untracked.filter(path => path.endsWith('/') && !opened.has(path))
      const added = untracked.filter(path => !path.endsWith('/') && !this.#isPassedOver(path))
      const present = [...known.present, ...added]
      if (closed.length === 0) {
        const { read, unread } = await this.#unread.divide(this.#looking, present, known.unread)
        return { gone: known.gone, present: read, unread }
      }
      for (const path of closed) opened.add(path)
      await this.#byGit.openNested(closed)
    }
  }

  async #lookForHidden(): Promise<string[]> {
    if (this.#protected === null) return []
    return await findHiddenFiles({
      git: this.#looking,
      globs: this.#protected,
      never: this.#never,
      onTooMany: () =>
        this.#warn('Not all files that git ignores could be looked at where gates protect: there are too many.'),
    })
  }

  #warn(message: string): void {
    if (this.#told.has(message)) return
    this.#told.add(message)
    this.#onWarning(message)
  }
}

/** `unread`: those that are not in the index yet as they are now. */
interface Seen extends IndexDifferences {
  unread: readonly UnreadFile[]
}

const NONE_KNOWN: ReadonlyMap<string, string> = new Map()
const NO_DIFFERENCES = { gone: [], present: [], unread: NONE_KNOWN }

function readOnlyFailure(cause: GitError): UserError {
  return new UserError('The work directory cannot be looked at while a session begins or ends; try again.', { cause })
}

/** An exclude rule for the command line, where it is stronger than any `.gitignore`. */
function excludeRule(inside: string): string {
  return `--exclude=/${literal(inside)}`
}

/** The path relative to `top`, with `/`; an empty list if it lies outside. */
function relativeToTop(top: string, path: string): string[] {
  const inside = relative(top, path)
  return inside === '' || inside.startsWith('..') ? [] : [inside.split(sep).join('/')]
}

/** The first of latin1 paths, and how many there are. */
function firstOf(paths: readonly string[]): ChangedPaths {
  return { paths: paths.slice(0, MOST_PATHS).map(fromLatin1), count: paths.length }
}

const MOST_PATHS = 50
const MANY_FILES = 1000
