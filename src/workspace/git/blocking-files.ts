import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { devNull } from 'node:os'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { pathInside, readBoundedText } from '../../platform/files.ts'
import { findObstacle, renameAsBroken } from '../files/inside-directory.ts'

/** An entry at which git would wait forever or for minutes: for example a pipe in place of a file. */
export interface BlockingFile {
  /** Absolute path; inexact for a name that is not UTF-8. */
  path: string
  /** Problem as the predicate of a sentence: `is a pipe`. */
  why: string
  /**
   * `rules`: a file with rules for ignoring or reading in the work tree or a nested repository. `objects`: an object of the
   * person's repository, or its list of further ones. `repository`: another of its files.
   */
  kind: 'rules' | 'objects' | 'repository'
}

/** Directory of a git command; its variables name the work tree and the objects. */
export interface GitPlace {
  directory: string
  env: Readonly<NodeJS.ProcessEnv>
  /** True if the command opens files of the work tree. */
  opensTree: boolean
  /** Returns the directories that it opens of the person's own repository; empty if `GIT_DIR` names another one. */
  repository(): Promise<readonly string[]>
}

/** Thrown if git would wait at files. Exit code 4: a person has to fix them. */
export class GitBlocked extends UserError {
  readonly files: readonly BlockingFile[]

  constructor(directory: string, files: readonly BlockingFile[]) {
    const [first] = files
    const path = first === undefined ? 'a file' : shownPath(directory, first.path)
    const more = files.length > 1 ? ` (and ${files.length - 1} more)` : ''
    super(
      'CM0502',
      `git cannot look at ${directory}: ${path} ${first?.why ?? 'blocks it'}${more}; put a plain file in its place.`,
      {
        exitCode: 4,
      },
    )
    this.files = files
  }
}

/** Returns a path for messages: relative to the directory if it is inside. */
function shownPath(directory: string, path: string): string {
  const inside = relative(directory, path)
  return (inside.startsWith('..') ? path : inside).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?').slice(0, 300)
}

/** Returns the blocking files in the usual places, without a walk: the rules at the top, and `alternates`. */
export function usualBlockingFiles(place: GitPlace): BlockingFile[] {
  const { workTree, objects } = placesOf(place)
  // It is unknown what the person's own git opens.
  const rules =
    workTree === null || place.env.GIT_DIR === undefined
      ? []
      : [...RULE_FILES].map(name => ruleFile(join(workTree, name)))
  return [...rules, ...objects.map(folder => objectFile(join(folder, ALTERNATES)))].filter(file => file !== null)
}

/**
 * Searches the work tree and the objects that git may open for blocking files: at most 500,000 names. For a git that takes
 * suspiciously long.
 */
export async function findBlockingFiles(place: GitPlace): Promise<BlockingFile[]> {
  const { workTree, objects } = placesOf(place)
  const found: BlockingFile[] = []
  const left = { names: MOST_NAMES }
  if (workTree !== null) await lookThroughTree(workTree, found, left)
  for (const folder of await withAlternates(objects)) {
    await lookThrough(folder, path => objectFile(path), found, left)
  }
  const ofRepository = (path: string) => special(path, 'repository')
  for (const directory of await place.repository()) await lookThrough(directory, ofRepository, found, left)
  return found
}

/** `workTree`: null if git does not look there. `objects`: folders of borrowed objects. */
function placesOf({ directory, env, opensTree }: GitPlace): { workTree: string | null; objects: string[] } {
  const borrowed = (env.GIT_ALTERNATE_OBJECT_DIRECTORIES ?? '').split(delimiter).filter(path => path.startsWith(sep))
  const workTree = opensTree ? (env.GIT_WORK_TREE ?? directory) : null
  return { workTree, objects: borrowed }
}

async function lookThroughTree(top: string, found: BlockingFile[], left: { names: number }): Promise<void> {
  const folders = [top]
  // The loop extends its own list, so that entries near the top come first.
  for (const folder of folders) {
    const entries = await entriesOf(folder, left)
    const isRepository = entries.some(({ name }) => name === 'objects')
    for (const { name } of entries) add(found, blockingInTree(join(folder, name), name, isRepository))
    for (const entry of entries.filter(each => each.isDirectory())) {
      const path = join(folder, entry.name)
      if (entry.name !== '.git') folders.push(path)
      // Git opens files in the `.git` of a nested repository, but not in the one at the top.
      else if (folder !== top) await lookThrough(path, inner => special(inner, 'rules'), found, left)
    }
  }
}

function blockingInTree(path: string, name: string, isRepository: boolean): BlockingFile | null {
  if (RULE_FILES.has(name)) return ruleFile(path)
  return isRepository && REPOSITORY_FILES.has(name) ? special(path, 'rules') : null
}

async function lookThrough(
  top: string,
  judge: (path: string) => BlockingFile | null,
  found: BlockingFile[],
  left: { names: number },
): Promise<void> {
  const folders = [top]
  for (const folder of folders) {
    for (const entry of await entriesOf(folder, left)) {
      if (entry.isDirectory()) folders.push(join(folder, entry.name))
      else if (!entry.isFile() || entry.name === 'alternates') add(found, judge(join(folder, entry.name)))
    }
  }
}

async function entriesOf(folder: string, left: { names: number }) {
  if (left.names <= 0) return []
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  left.names -= entries.length
  return entries
}

/** Returns these folders of objects, and those in their `info/alternates`. */
async function withAlternates(folders: readonly string[]): Promise<string[]> {
  const all = new Set(folders)
  for (const folder of all) {
    if (all.size > MOST_FOLDERS) break
    const read = await readBoundedText(join(folder, ALTERNATES), MOST_BYTES)
    if (read === 'missing' || 'problem' in read) continue
    for (const line of read.text.split('\n', MOST_FOLDERS)) if (line.startsWith(sep)) all.add(line)
  }
  return [...all]
}

function add(found: BlockingFile[], file: BlockingFile | null): void {
  if (file !== null && found.length < MOST_FOUND) found.push(file)
}

/** Checks a rules file. Git follows no link to one; older versions notice a link to a pipe too late. */
function ruleFile(path: string): BlockingFile | null {
  const stat = statOf(path)
  if (stat?.isFile() && stat.size > MOST_BYTES) return { path, why: 'is larger than 32 MiB', kind: 'rules' }
  return special(path, 'rules')
}

function objectFile(path: string): BlockingFile | null {
  return special(path, 'objects')
}

function special(path: string, kind: BlockingFile['kind']): BlockingFile | null {
  const stat = statOf(path)
  if (stat === null || !isWaitedAt(stat)) return null
  return { path, why: `is ${kindOfSpecial(stat)}, at which git would wait for ever`, kind }
}

/** True if git would wait at this entry. Not for sockets (cannot be opened) and the null device (ends at once). */
function isWaitedAt(stat: Stats): boolean {
  const isNull = stat.isCharacterDevice() && stat.rdev === statOf(devNull)?.rdev
  return stat.isFIFO() || stat.isBlockDevice() || (stat.isCharacterDevice() && !isNull)
}

/** Returns the kind of an entry that is not a file, folder or link. */
export function kindOfSpecial(stat: Pick<Stats, 'isFIFO' | 'isSocket'>): string {
  return stat.isFIFO() ? 'a pipe' : stat.isSocket() ? 'a socket' : 'a device'
}

/** Returns the state of an entry, or of a link's target. */
function statOf(path: string): Stats | null {
  try {
    return lstatSync(path).isSymbolicLink() ? statSync(path) : lstatSync(path)
  } catch {
    return null
  }
}

const RULE_FILES: ReadonlySet<string> = new Set(['.gitignore', '.gitattributes'])
/** Files that git opens to detect a repository. */
const REPOSITORY_FILES: ReadonlySet<string> = new Set(['HEAD', 'commondir'])
const ALTERNATES = join('info', 'alternates')
const MOST_NAMES = 500_000
const MOST_FOUND = 10_000
const MOST_FOLDERS = 100
const MOST_BYTES = 32 * 1024 * 1024

/** Repeats an action while its error can be fixed; at most 20 times. */
export async function mending<T>(
  action: () => Promise<T>,
  mend: (error: unknown) => Promise<boolean> | false,
): Promise<T> {
  for (let left = MOST_MENDS; ; left -= 1) {
    try {
      return await action()
    } catch (error) {
      if (left <= 0 || !(await mend(error))) throw error
    }
  }
}

/** Returns the object, or the list of further ones, at which git would wait; null: another error. */
export function blockedObject(error: unknown): BlockingFile | null {
  return error instanceof GitBlocked ? (error.files.find(({ kind }) => kind === 'objects') ?? null) : null
}

/** Returns the warning that codemachine no longer borrows objects of the person's repository. */
export function notBorrowed(directory: string, { path, why }: BlockingFile): string {
  return `${shownPath(directory, path)} ${why}: codemachine reads no objects of the repository any more.`
}

/** Renames the blocking files of the work directory; false for another error, or if a rename fails. */
export async function putAside(error: unknown, directory: string, warn: (message: string) => void): Promise<boolean> {
  const files = error instanceof GitBlocked ? error.files.filter(({ kind }) => kind === 'rules') : []
  for (const { path, why } of files) {
    const inside = pathInside(directory, path)
    if (inside === null || (await findObstacle(directory, dirname(inside))) !== null) return false
    try {
      const aside = await renameAsBroken(directory, inside)
      warn(`${shownPath(directory, path)} ${why}; it was renamed to ${shownPath(directory, join(directory, aside))}.`)
    } catch (failure) {
      if (systemErrorCode(failure) === null) throw failure
      return false
    }
  }
  return files.length > 0
}

const MOST_MENDS = 20
