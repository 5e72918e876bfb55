import { lstatSync, type Stats, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { devNull } from 'node:os'
import { delimiter, dirname, join, relative, sep } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { pathInside, readBoundedText } from '../../platform/files.ts'
import { findObstacle, renameAsBroken } from '../files/inside-directory.ts'

/** Something at which git would wait for ever, or over which it would sit for minutes: a pipe in the place of a file. */
export interface BlockingFile {
  /** Absolute; a name that is not UTF-8 is not the very path. */
  path: string
  /** The predicate of a sentence: `is a pipe`. */
  why: string
  /**
   * `rules`: in the work tree, a file that says what git ignores or how it reads, or one of a nested repository.
   * `objects`: an object of the person's repository, or what names further ones. `repository`: another file of theirs.
   */
  kind: 'rules' | 'objects' | 'repository'
}

/** Where a git command is run; its variables say where its work tree and its objects lie. */
export interface GitPlace {
  directory: string
  env: Readonly<NodeJS.ProcessEnv>
  /** Whether the command opens files of the work tree. */
  opensTree: boolean
  /** The directories of the person's own repository that it opens; empty if `GIT_DIR` names another one. */
  repository(): Promise<readonly string[]>
}

/** Thrown in the place of a result where git would wait at files. Exit code 4: a person has to mend it. */
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

/** A path as it is shown: relative to the directory where it lies in there. */
function shownPath(directory: string, path: string): string {
  const inside = relative(directory, path)
  return (inside.startsWith('..') ? path : inside).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, '?').slice(0, 300)
}

/** The blocking files in the places that matter most, found without a walk: the rules at the top, and `alternates`. */
export function usualBlockingFiles(place: GitPlace): BlockingFile[] {
  const { workTree, objects } = placesOf(place)
  // Of the person's own git it is not known what it opens.
  const rules =
    workTree === null || place.env.GIT_DIR === undefined
      ? []
      : [...RULE_FILES].map(name => ruleFile(join(workTree, name)))
  return [...rules, ...objects.map(folder => objectFile(join(folder, ALTERNATES)))].filter(file => file !== null)
}

/**
 * Looks through the work tree and the objects that git may open for files at which it would wait: at most 500,000 names.
 * For a git that has taken suspiciously long.
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
  // The list grows while it is gone through, so that what is near the top comes first.
  for (const folder of folders) {
    const entries = await entriesOf(folder, left)
    const isRepository = entries.some(({ name }) => name === 'objects')
    for (const { name } of entries) add(found, blockingInTree(join(folder, name), name, isRepository))
    for (const entry of entries.filter(each => each.isDirectory())) {
      const path = join(folder, entry.name)
      if (entry.name !== '.git') folders.push(path)
      // git opens what is in the `.git` of a nested repository; that of the top it never looks into.
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

/** These folders of objects, and those that their files `info/alternates` name. */
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

/** git does not follow a link to one; a link that leads to a pipe is refused by older ones only when it is too late. */
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

/** A socket cannot be opened, and the null device ends at once: git's own file system monitor has one, and hooks are turned off by a link to the other. */
function isWaitedAt(stat: Stats): boolean {
  const isNull = stat.isCharacterDevice() && stat.rdev === statOf(devNull)?.rdev
  return stat.isFIFO() || stat.isBlockDevice() || (stat.isCharacterDevice() && !isNull)
}

/** What something is that is neither a file nor a folder nor a link. */
export function kindOfSpecial(stat: Pick<Stats, 'isFIFO' | 'isSocket'>): string {
  return stat.isFIFO() ? 'a pipe' : stat.isSocket() ? 'a socket' : 'a device'
}

/** Of a link, what it leads to. */
function statOf(path: string): Stats | null {
  try {
    return lstatSync(path).isSymbolicLink() ? statSync(path) : lstatSync(path)
  } catch {
    return null
  }
}

const RULE_FILES: ReadonlySet<string> = new Set(['.gitignore', '.gitattributes'])
/** What git opens of a folder to find out whether it is a repository. */
const REPOSITORY_FILES: ReadonlySet<string> = new Set(['HEAD', 'commondir'])
const ALTERNATES = join('info', 'alternates')
const MOST_NAMES = 500_000
const MOST_FOUND = 10_000
const MOST_FOLDERS = 100
const MOST_BYTES = 32 * 1024 * 1024

/** Runs an action again for as long as what it has thrown could be mended; at most 20 times. */
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

/** The object, or file that names further ones, at which git would wait; null if that was not what was thrown. */
export function blockedObject(error: unknown): BlockingFile | null {
  return error instanceof GitBlocked ? (error.files.find(({ kind }) => kind === 'objects') ?? null) : null
}

/** Says that the objects of the person's repository are done without. */
export function notBorrowed(directory: string, { path, why }: BlockingFile): string {
  return `${shownPath(directory, path)} ${why}: codemachine reads no objects of the repository any more.`
}

/**
 * Renames the files of the work directory at which git would wait, so that it does not; false if that was not what was
 * thrown, or one of them cannot be renamed.
 */
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
