import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import type { SandboxMode } from '../../core/shapes/sandbox.ts'
import { isWritableByAgents, writableByAgents } from '../../platform/files.ts'
import { findRepository, type PersonRepository, plainConfig } from '../git/git.ts'
import {
  type Baseline,
  type GuardedEntry,
  type GuardedFiles,
  type GuardState,
  type NestedState,
  readGuardedContent,
  readGuardedEntry,
  readGuardState,
  removeGuardState,
  type SavedEntry,
  scanGuardedFiles,
  writeGuardState,
} from './guarded-files.ts'
import {
  findNestedRepositories,
  isPureGitDirectory,
  type NestedRepositories,
  targetOfPointer,
} from './nested-repositories.ts'

/** `setAsideDir`: a folder in the records that agents cannot write. Created when needed. */
interface GuardOptions extends Pick<GuardState, 'workTree' | 'setAsideDir'> {
  /** The person's repository before the first round; `null`: none. */
  repository: PersonRepository | null
  /** File in the records for the saved state, until the guard is closed. */
  baselineFile: string
  /** Folders with codemachine's own repositories: the records may be in the work tree. */
  leaveOut: readonly string[]
  /** Determines where agents can write. */
  reach: { env: Readonly<NodeJS.ProcessEnv>; sandbox: SandboxMode }
}

/**
 * Saves config, hooks and info of the person's repository and of those in the work tree, before the first round. If a git
 * directory is outside of the tree, only places that agents can write count: elsewhere, changes are the person's. Keeps the
 * entries that `restoreAfterCrash` could not restore.
 */
export async function openRepositoryGuard(options: GuardOptions): Promise<RepositoryGuard> {
  const { repository, workTree, setAsideDir, baselineFile, leaveOut, reach } = options
  const nested = await findNestedRepositories(workTree, leaveOut)
  const tops = [repository?.root ?? workTree, workTree].map(folder => join(folder, '.git'))
  const found = await readGuardState(baselineFile).catch(() => null)
  const left = found?.workTree === workTree ? found : null
  const state: GuardState = {
    workTree,
    setAsideDir,
    tops: left?.tops ?? new Map(tops.map(path => [path, saveEntry(path, readGuardedEntry(path))])),
    guarded: new Map(nested.directories.map(directory => [directory, readBaseline(directory)])),
    nested: left?.nested ?? { leaveOut, pointers: pointersIn(nested) },
  }
  if (repository !== null) state.guarded.set(repository.commonDir, readBaseline(repository.commonDir))
  const where = writableByAgents(workTree, reach.env, [])
  for (const directory of await directoriesOf(nested.pointers)) {
    if ([...state.guarded.values()].some(({ directories }) => directories.has(directory))) continue
    if (reach.sandbox === 'danger-full-access' || isWritableByAgents(directory, where))
      state.guarded.set(directory, readBaseline(directory))
  }
  for (const [directory, baseline] of left?.guarded ?? []) state.guarded.set(directory, baseline)
  await writeGuardState(baselineFile, state)
  return new RepositoryGuard(state, baselineFile)
}

/**
 * Runs an action while a repository is guarded, and then reports the restored entries.
 * @param say told a sentence each; `what`: how that begins
 */
export async function whileGuarded<T>(
  options: GuardOptions,
  { say, what }: { say(sentence: string): void; what: string },
  action: () => Promise<T>,
): Promise<T> {
  const guard = await openRepositoryGuard(options)
  try {
    return await action()
  } finally {
    const { restored = [], problems = [] } = (await guard.check()) ?? {}
    if (restored.length > 0) say(`${what}, and codemachine restored it: ${restored.join(', ')}.`)
    for (const problem of problems) say(problem)
    await guard.close()
  }
}

/**
 * Restores the changes of a killed run's rounds, like `check`. `null` if there was no such run or change. Also undoes later
 * changes of the person, which are kept in `setAside`. Call it before any read of the repository, because a planted pointer
 * may lead anywhere.
 */
export async function restoreAfterCrash(baselineFile: string): Promise<RestoreReport | null> {
  try {
    const state = await readGuardState(baselineFile)
    if (state === null) return null
    const guard = new RepositoryGuard(state, baselineFile)
    const restored = await guard.check()
    if (guard.isWhole) await guard.close()
    else await writeGuardState(baselineFile, state)
    return restored
  } catch (error) {
    const problem = `${baselineFile} cannot be used, so check yourself which programs git would run: ${messageOf(error)}`
    await removeGuardState(baselineFile)
    return { restored: [], setAside: null, problems: [problem] }
  }
}

/** Returns the git directories with the configuration of the repositories behind these pointers. */
async function directoriesOf(pointers: readonly string[]): Promise<Set<string>> {
  const found = await Promise.all(pointers.map(async path => ({ path, at: await findRepository(dirname(path)) })))
  return new Set(found.flatMap(({ path, at }) => (at !== null && at.root === dirname(path) ? [at.commonDir] : [])))
}

function pointersIn({ pointers }: NestedRepositories): Map<string, SavedEntry> {
  return new Map(
    pointers.flatMap(path => {
      const saved = saveEntry(path, readGuardedEntry(path))
      return saved === null ? [] : [[path, saved]]
    }),
  )
}

/** Prevents a round from leaving anything in a `.git` that the person's own git would run later. */
export class RepositoryGuard {
  readonly #state: GuardState
  readonly #baselineFile: string
  readonly #lost = new Set<string>()
  /** Git directories created by a round. */
  readonly #made = new Set<string>()
  #isCutTold = false
  /** True if the last check has restored all changes. */
  isWhole = true

  constructor(state: GuardState, baselineFile: string) {
    this.#state = state
    this.#baselineFile = baselineFile
  }

  /**
   * Restores all changes; `null` if there were none. Call it when no process of a round can write any more. Never throws
   * because of a round's files.
   */
  async check(): Promise<RestoreReport | null> {
    const { workTree, setAsideDir, tops, guarded, nested } = this.#state
    const restoration = new Restoration(workTree, setAsideDir)
    for (const [path, before] of tops) this.#checkTop(path, before, restoration)
    for (const [commonDir, baseline] of guarded) this.#checkDirectory(commonDir, baseline, restoration)
    if (nested !== null) await this.#checkNested(nested, restoration)
    this.isWhole = restoration.failed.size === 0
    return restoration.result()
  }

  /** Closes the guard. Call it after the last check and round: later changes are the person's own. */
  async close(): Promise<void> {
    await removeGuardState(this.#baselineFile)
  }

  #checkTop(path: string, before: SavedEntry | null, restoration: Restoration): void {
    const { guarded } = this.#state
    const kind = readGuardedEntry(path)?.kind ?? null
    if (before !== null && before.kind !== 'directory') {
      restoreEntry(path, before, restoration)
      return
    }
    if (kind === 'directory' && before === null && !guarded.has(path)) {
      // A round may create a new repository, but nothing that git would run in it.
      const made = scanGuardedFiles(path)
      removeExecutableParts(made.entries.keys(), path, restoration)
      guarded.set(path, readBaseline(path, restoration))
    }
    if (before === null && kind !== 'directory') guarded.delete(path)
    if (kind === null || kind === 'directory') return
    restoration.putAside(path)
    if (before !== null) restoration.problem(path, 'was put in the place of the repository')
  }

  /** Checks the repositories anywhere in the work tree, which a person's git may run in or enter. */
  async #checkNested({ leaveOut, pointers }: NestedState, restoration: Restoration): Promise<void> {
    const { workTree, guarded, tops } = this.#state
    const found = await findNestedRepositories(workTree, leaveOut)
    // On a disk that ignores case, a round can rename a known one to `.GIT`.
    const before = new Set([...guarded.keys(), ...tops.keys()].map(identityOf))
    for (const directory of found.directories) {
      if (before.has(identityOf(directory))) continue
      const entries = [...scanGuardedFiles(directory).entries.keys()]
      if (basename(directory) !== '.git' && !isPureGitDirectory(directory)) {
        // A folder of the project: entries with git's names may be work.
        restoration.putAside(join(directory, 'HEAD'))
        continue
      }
      removeExecutableParts(entries, directory, restoration)
      guarded.set(directory, readBaseline(directory, restoration))
      this.#made.add(directory)
    }
    const known = new Set([...guarded.values()].flatMap(({ directories }) => [...directories].map(realPathOf)))
    for (const path of found.pointers) {
      const before = pointers.get(path)
      if (before !== undefined) restoreEntry(path, before, restoration)
      else if (!tops.has(path) && !known.has(targetOfPointer(path) ?? '')) restoration.putAside(path)
    }
    if (found.isCut && !this.#isCutTold)
      restoration.problem(workTree, 'holds more folders than are searched for repositories that a round has made')
    this.#isCutTold ||= found.isCut
  }

  #checkDirectory(commonDir: string, baseline: Baseline, restoration: Restoration): void {
    if (readGuardedEntry(commonDir)?.kind !== 'directory') {
      if (this.#made.has(commonDir)) {
        this.#state.guarded.delete(commonDir)
        return
      }
      if (!this.#lost.has(commonDir))
        restoration.problem(commonDir, 'is gone, and codemachine has no copy of the repository')
      this.#lost.add(commonDir)
      return
    }
    this.#lost.delete(commonDir)
    const now = scanGuardedFiles(commonDir)
    const isSame = restoreDifferences(commonDir, baseline, now, restoration)
    if (isSame) return
    this.#state.guarded.set(commonDir, updateBaseline(baseline, scanGuardedFiles(commonDir), restoration.failed))
  }
}

function readBaseline(commonDir: string, { failed }: Pick<Restoration, 'failed'> = { failed: new Set() }): Baseline {
  return updateBaseline(null, scanGuardedFiles(commonDir), failed)
}

function saveEntry(path: string, entry: GuardedEntry | null): SavedEntry | null {
  return entry === null ? null : { ...entry, bytes: readGuardedContent(path, entry) }
}

/**
 * Returns a baseline of the current entries. Takes contents from the previous one, and reads only missing ones. Keeps
 * entries that could not be restored, so that the next check retries.
 */
function updateBaseline(before: Baseline | null, now: GuardedFiles, failed: ReadonlySet<string>): Baseline {
  const entries = new Map([...(before?.entries ?? [])].filter(([path]) => failed.has(path)))
  for (const [path, entry] of now.entries) {
    if (failed.has(path)) continue
    const known = before?.entries.get(path)
    const bytes = known?.kind === entry.kind ? known.bytes : readGuardedContent(path, entry)
    entries.set(path, { ...entry, bytes })
  }
  return { directories: now.directories, entries }
}

/** Restores every difference. Returns true if there was none. */
function restoreDifferences(commonDir: string, before: Baseline, now: GuardedFiles, restoration: Restoration): boolean {
  const added = [...now.directories].filter(directory => !before.directories.has(directory))
  // A removed worktree or submodule is missing as a whole.
  const gone = [...before.directories].filter(directory => !now.directories.has(directory))
  const paths = [...new Set([...before.entries.keys(), ...now.entries.keys()])]
  const changed = paths.filter(path => before.entries.get(path)?.key !== now.entries.get(path)?.key)
  if (changed.length === 0 && added.length === 0) return true
  const isWithin = (directories: readonly string[], path: string) =>
    directories.some(directory => path.startsWith(directory + sep))
  const inAdded = changed.filter(path => isWithin(added, path))
  removeExecutableParts(inAdded, commonDir, restoration)
  // Folders come before their content.
  for (const path of changed.sort()) {
    if (isWithin(added, path) || isWithin(gone, path)) continue
    restoreEntry(path, before.entries.get(path) ?? null, restoration)
  }
  return false
}

function restoreEntry(path: string, before: SavedEntry | null, restoration: Restoration): void {
  const now = readGuardedEntry(path)
  if (before?.key === now?.key) return
  if (before === null) {
    // An empty folder is harmless; its entries are compared themselves.
    if (now !== null && now.kind !== 'directory') restoration.putAside(path)
    return
  }
  if (now === null) {
    if (before.kind !== 'directory') restoration.write(path, before)
    return
  }
  const isKept = before.kind === 'directory' || before.bytes !== null
  if (before.kind === now.kind && isKept && before.bytes === readGuardedContent(path, now)) {
    if (before.mode !== now.mode) restoration.setMode(path, before)
    return
  }
  if (restoration.putAside(path)) restoration.write(path, before)
}

/** In a repository, submodule or worktree created by a round, keeps only what plain git commands write. */
function removeExecutableParts(paths: Iterable<string>, commonDir: string, restoration: Restoration): void {
  for (const path of [...paths].sort()) {
    const entry = readGuardedEntry(path)
    if (entry === null || entry.kind === 'directory') continue
    const bytes = readGuardedContent(path, entry)
    const text = bytes === null ? '' : Buffer.from(bytes, 'base64').toString('utf8')
    if (entry.kind !== 'file' || bytes === null || !isHarmless(path, text, commonDir)) restoration.putAside(path)
    else if (basename(path) === 'config') writePlainConfig(path, entry, text, restoration)
  }
}

function isHarmless(path: string, text: string, commonDir: string): boolean {
  const inside = path.slice(commonDir.length)
  if (inside.includes(`${sep}hooks${sep}`)) return path.endsWith('.sample')
  if (inside.includes(`${sep}info${sep}`)) return true
  switch (basename(path)) {
    case 'config':
    case 'gitdir':
      return true
    case 'commondir':
      return isSamePath(resolve(dirname(path), text.trim()), commonDir) && dirname(path) !== commonDir
    default:
      return false
  }
}

/** Returns what stays the same under each name of an entry; the path if it is missing. */
function identityOf(path: string): string {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? path : `${stat.dev} ${stat.ino}`
}

/** Returns the real path; the path itself if it is missing. */
function realPathOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}

function isSamePath(path: string, expected: string): boolean {
  return existsSync(path) && realpathSync(path) === realpathSync(expected)
}

function writePlainConfig(path: string, entry: GuardedEntry, text: string, restoration: Restoration): void {
  const plain = plainConfig(text)
  if (plain === text || !restoration.putAside(path)) return
  restoration.write(path, { ...entry, bytes: Buffer.from(plain).toString('base64') })
}

/** The restores of a check of the repository's config, hooks and info. */
export interface RestoreReport {
  /** Restored or removed paths, relative to the work directory; absolute if outside. */
  restored: readonly string[]
  /** Folder with a round's own moved files; `null`: none. */
  setAside: string | null
  /** A sentence for each path that could not be restored, for the person to check. */
  problems: readonly string[]
}

/** Restores entries and collects the report. A failure becomes a problem in the report; nothing throws. */
class Restoration {
  readonly #workTree: string
  readonly #setAsideDir: string
  readonly #restored = new Set<string>()
  readonly #problems: string[] = []
  /** Absolute paths at which a system call failed. */
  readonly failed = new Set<string>()
  #setAside: string | null = null

  constructor(workTree: string, setAsideDir: string) {
    this.#workTree = workTree
    this.#setAsideDir = setAsideDir
  }

  /** Returns the report; `null` if there was nothing to do. */
  result(): RestoreReport | null {
    if (this.#restored.size === 0 && this.#problems.length === 0) return null
    return { restored: [...this.#restored].sort(), setAside: this.#setAside, problems: this.#problems }
  }

  /** Moves the entry at a path to the records. Returns false if that failed. */
  putAside(path: string): boolean {
    return this.#try(path, 'could not be removed', () => {
      this.#setAside ??= freeFolder(this.#setAsideDir)
      moveAside(path, join(this.#setAside, asidePath(this.#shown(path))))
    })
  }

  /** Writes the saved content to an absent path. */
  write(path: string, { kind, mode, bytes }: SavedEntry): void {
    if (kind !== 'directory' && bytes === null) {
      this.problem(path, 'was changed, and could not be saved for a restore')
      return
    }
    this.#try(path, 'could not be restored', () => {
      mkdirSync(dirname(path), { recursive: true })
      const content = Buffer.from(bytes ?? '', 'base64')
      if (kind === 'file') writeWhole(path, content, mode)
      else if (kind === 'link') symlinkSync(content, path)
      else mkdirSync(path, { mode })
    })
  }

  /** Restores the mode of a file or folder. */
  setMode(path: string, { kind, mode }: GuardedEntry): void {
    if (kind !== 'link') this.#try(path, 'could not get its mode back', () => chmodSync(path, mode))
  }

  /** Adds a problem to the report. */
  problem(path: string, what: string): void {
    this.#problems.push(`${this.#shown(path)} ${what}.`)
  }

  #try(path: string, failure: string, action: () => void): boolean {
    try {
      action()
      this.#restored.add(this.#shown(path))
      return true
    } catch (error) {
      this.failed.add(path)
      this.problem(path, `${failure}: ${messageOf(error)}`)
      return false
    }
  }

  #shown(path: string): string {
    const inside = relative(this.#workTree, path)
    return inside.startsWith('..') || isAbsolute(inside) ? path : inside
  }
}

function freeFolder(directory: string): string {
  for (let number = 1; ; number += 1) {
    const folder = join(directory, String(number).padStart(3, '0'))
    if (!existsSync(folder)) return folder
  }
}

function asidePath(shown: string): string {
  return isAbsolute(shown) ? join('outside', shown.slice(parse(shown).root.length)) : shown
}

function writeWhole(path: string, bytes: Buffer, mode: number): void {
  const temporary = `${path}.${randomUUID()}`
  try {
    writeFileSync(temporary, bytes, { flag: 'wx', flush: true })
    chmodSync(temporary, mode)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Moves an entry to `destination`, also to another file system. Moves links and never follows them. */
function moveAside(path: string, destination: string): void {
  mkdirSync(dirname(destination), { recursive: true, mode: 0o700 })
  try {
    renameSync(path, destination)
  } catch (error) {
    if (systemErrorCode(error) !== 'EXDEV') throw error
    // Pipes and sockets have no content to copy.
    const filter = (source: string) => {
      const stat = lstatSync(source)
      return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink()
    }
    cpSync(path, destination, { recursive: true, verbatimSymlinks: true, filter })
    rmSync(path, { recursive: true, force: true })
  }
}
