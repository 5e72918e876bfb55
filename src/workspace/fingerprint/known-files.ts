import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, readSync, type Stats } from 'node:fs'
import { systemErrorCode } from '../../base/errors.ts'
import { fromLatin1 } from '../git/git.ts'
import type { IndexedFile, IndexFile } from '../git/index-file.ts'
import type { LooseObjects, TreeItem } from '../git/loose-objects.ts'

/** What shows that a file, or a folder, is as it was: it changes with every write, and no program can set `ctimeMs`. */
export interface Stamp {
  ino: number
  size: number
  mode: number
  mtimeMs: number
  ctimeMs: number
}

/** A file of the last fingerprint. */
interface KnownFile {
  mode: string
  id: string
  /** Null: it has to be read again, for it may have been written again since, in the same moment. */
  stamp: Stamp | null
}

/** `special`: a pipe, a socket or a device, which git passes over. A link is a file. */
export type OtherKind = 'folder' | 'file' | 'special'

/** A folder of the work directory. */
export interface KnownFolder {
  files: Map<string, KnownFile>
  folders: Map<string, KnownFolder>
  /** Null: its names have to be read again. */
  stamp: Stamp | null
  /** What else is in it and does not count: a folder is not looked into. */
  others: Map<string, OtherKind>
  /** Those of them that the last reading of the names has found: git is asked once more, for one may have been gone while it looked. */
  found: Set<string>
  /** The id of its tree; null if that has to be made anew. */
  tree: string | null
}

/** What an index does not have as it is now: by path, the file, or null if it is gone. */
export type Pending = ReadonlyMap<string, Readonly<KnownFile> | null>

export interface KnownFilesOptions {
  /** Absolute path of the folder whose tree is the fingerprint. */
  directory: string
  objects: LooseObjects
  /** The size of the largest file that is read, bytes. */
  maxFileSize: number
}

/**
 * The files of the last fingerprint in memory: which object each is, and what its file looked like then. So the next
 * fingerprint reads only what has been written since, and needs no git for it. Paths are latin1, relative to `directory`.
 */
export class KnownFiles {
  readonly root: KnownFolder
  readonly #options: KnownFilesOptions
  readonly #top: string
  readonly #pending = new Map<string, KnownFile | null>()
  readonly #changed = new Set<string>()
  #count = 0
  #hasOtherNames = false

  /**
   * @param index whose paths are relative to `directory` already
   * @param trees the ids of the trees that are written already, by the path of the folder
   */
  constructor(index: IndexFile, trees: ReadonlyMap<string, string>, options: KnownFilesOptions) {
    this.#options = options
    this.#top = Buffer.from(options.directory, 'utf8').toString('latin1')
    this.root = newFolder()
    for (const file of index.files) {
      const stamp = stampInIndex(file, index.writtenMs, this.lstat(file.path) ?? null)
      this.#folderOf(file.path).files.set(nameOf(file.path), { mode: file.mode, id: file.id, stamp })
      this.#count += 1
    }
    for (const [path, id] of trees) {
      const folder = this.folderAt(path)
      if (folder !== null) folder.tree = id
    }
  }

  /** How many there are. */
  get count(): number {
    return this.#count
  }

  /** What the index that this began with does not have as it is now. */
  get pending(): Pending {
    return this.#pending
  }

  /** Whether the index lacks a name, or has one too many. */
  get hasOtherNames(): boolean {
    return this.#hasOtherNames
  }

  /** Says that the index has them as they are. */
  forgetPending(): void {
    this.#pending.clear()
    this.#hasOtherNames = false
  }

  /** The file with this path; null if none has it. */
  fileAt(path: string): Readonly<KnownFile> | null {
    return this.folderAt(parentOf(path))?.files.get(nameOf(path)) ?? null
  }

  folderAt(path: string): KnownFolder | null {
    let folder: KnownFolder | undefined = this.root
    if (path !== '') for (const name of path.split('/')) folder = folder?.folders.get(name)
    return folder ?? null
  }

  /** Looks at a path; null if there is nothing, undefined if that cannot be said: no right to look there, or too long a path. */
  lstat(path: string): Stats | null | undefined {
    try {
      return lstatSync(this.absolute(path), { throwIfNoEntry: false }) ?? null
    } catch {
      return undefined
    }
  }

  /** The absolute path, as bytes where it is no plain text. */
  absolute(path: string): string | Buffer {
    const whole = path === '' ? this.#top : `${this.#top}/${path}`
    return NOT_ASCII.test(whole) ? Buffer.from(whole, 'latin1') : whole
  }

  /** Whether a file is known as it is. */
  isAsKnown(path: string): boolean {
    const stamp = this.fileAt(path)?.stamp ?? null
    const stat = (stamp === null ? null : this.lstat(path)) ?? null
    return stat !== null && isSame(stamp, stat)
  }

  /**
   * Reads files anew and stores what is new of them; those that are gone are forgotten. False if git has to do it: too much, or
   * what is no plain file.
   */
  readAgain(paths: Iterable<string>): boolean {
    let left = MOST_BYTES
    for (const path of paths) {
      const read = this.#read(path, left)
      if (read === null) return false
      left -= read === 'gone' ? 0 : read.bytes
      if (read === 'gone') this.forget(path)
      else this.#keep(path, read.file)
    }
    return true
  }

  /** The paths at which the object or the mode is another one since the last call, in git's order. */
  takeChanged(): string[] {
    const changed = [...this.#changed].sort((a, b) => (a < b ? -1 : 1))
    this.#changed.clear()
    return changed
  }

  /** Takes a file out. */
  forget(path: string): void {
    const folder = this.folderAt(parentOf(path))
    if (folder === null || !folder.files.delete(nameOf(path))) return
    this.#count -= 1
    this.#hasOtherNames = true
    this.#pending.set(path, null)
    this.#soil(path)
  }

  /** The id of the tree of all files, which is stored. */
  writeTree(): string {
    return this.#treeOf(this.root) ?? this.#options.objects.writeTree([])
  }

  #treeOf(folder: KnownFolder): string | null {
    if (folder.tree !== null) return folder.tree
    const items: (TreeItem & { order: string })[] = []
    for (const [name, { mode, id }] of folder.files) items.push({ name, mode, id, order: name })
    for (const [name, inner] of folder.folders) {
      const id = this.#treeOf(inner)
      if (id !== null) items.push({ name, mode: '40000', id, order: `${name}/` })
    }
    if (items.length === 0) return null
    // The letters of latin1 have the order of their bytes, in which git sorts.
    items.sort((a, b) => (a.order < b.order ? -1 : 1))
    folder.tree = this.#options.objects.writeTree(items)
    return folder.tree
  }

  #keep(path: string, file: KnownFile): void {
    const folder = this.#folderOf(path)
    const name = nameOf(path)
    this.#forgetBelow(path, folder.folders.get(name))
    const before = folder.files.get(name)
    if (before === undefined) {
      this.#count += 1
      this.#hasOtherNames = true
    }
    folder.files.set(name, file)
    folder.others.delete(name)
    if (before?.id === file.id && before.mode === file.mode) return
    this.#pending.set(path, file)
    this.#soil(path)
  }

  /** Forgets what was in a folder in whose place there is a file now. */
  #forgetBelow(path: string, folder: KnownFolder | undefined): void {
    for (const name of folder?.files.keys() ?? []) this.forget(`${path}/${name}`)
    for (const [name, inner] of folder?.folders ?? []) this.#forgetBelow(`${path}/${name}`, inner)
  }

  #soil(path: string): void {
    this.#changed.add(path)
    let folder: KnownFolder | undefined = this.root
    folder.tree = null
    for (const name of path.split('/').slice(0, -1)) {
      folder = folder?.folders.get(name)
      if (folder !== undefined) folder.tree = null
    }
  }

  /** The folder of a file, which is made; a file in its place is forgotten. */
  #folderOf(path: string): KnownFolder {
    let folder = this.root
    let at = ''
    for (const name of path.split('/').slice(0, -1)) {
      at = at === '' ? name : `${at}/${name}`
      if (folder.files.has(name)) this.forget(at)
      let inner = folder.folders.get(name)
      if (inner === undefined) {
        inner = newFolder()
        folder.folders.set(name, inner)
        folder.others.delete(name)
      }
      folder = inner
    }
    return folder
  }

  #read(path: string, mostBytes: number): { file: KnownFile; bytes: number } | 'gone' | null {
    const began = Date.now()
    const stat = this.lstat(path)
    if (stat === null) return 'gone'
    if (stat === undefined || isRefused(path, stat)) return null
    try {
      if (!stat.isSymbolicLink() && !stat.isFile()) return null
      const content = stat.isSymbolicLink() ? this.#readLink(path) : this.#readFile(path, stat, mostBytes)
      if (content === null) return null
      const id = this.#options.objects.write('blob', content)
      const after = this.lstat(path) ?? null
      const isSure = after !== null && isSame(stampOf(stat), after) && isSettled(stat, began)
      return { file: { mode: modeOf(stat), id, stamp: isSure ? stampOf(stat) : null }, bytes: content.length }
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return null
    }
  }

  #readLink(path: string): Buffer {
    return readlinkSync(this.absolute(path), 'buffer')
  }

  /** Null if it is no plain file, or too large. */
  #readFile(path: string, { size }: Stats, mostBytes: number): Buffer | null {
    if (size > Math.min(mostBytes, this.#options.maxFileSize)) return null
    const fd = openSync(this.absolute(path), READ_ONLY)
    try {
      if (!fstatSync(fd).isFile()) return null
      const bytes = Buffer.alloc(size + 1)
      let end = 0
      for (let read = -1; read !== 0 && end < bytes.length; end += read) {
        read = readSync(fd, bytes, end, bytes.length - end, null)
      }
      // It has grown meanwhile.
      return end > size ? null : bytes.subarray(0, end)
    } finally {
      closeSync(fd)
    }
  }
}

export function newFolder(): KnownFolder {
  return { files: new Map(), folders: new Map(), stamp: null, others: new Map(), found: new Set(), tree: null }
}

export function stampOf({ ino, size, mode, mtimeMs, ctimeMs }: Stats): Stamp {
  return { ino, size, mode, mtimeMs, ctimeMs }
}

/** Whether a stamp is that of what is there now. */
export function isSame(stamp: Stamp | null, stat: Stats): boolean {
  return (
    stamp !== null &&
    stamp.ctimeMs === stat.ctimeMs &&
    stamp.mtimeMs === stat.mtimeMs &&
    stamp.size === stat.size &&
    stamp.ino === stat.ino &&
    stamp.mode === stat.mode
  )
}

/**
 * Whether a write that comes after the look at `atMs` cannot leave the same times: the clock of a file system goes in steps,
 * of some ms on most, of up to two seconds where the times are whole seconds.
 */
export function isSettled({ ctimeMs, mtimeMs }: Pick<Stamp, 'ctimeMs' | 'mtimeMs'>, atMs: number): boolean {
  const isCoarse = ctimeMs % 1000 === 0 && mtimeMs % 1000 === 0
  return ctimeMs < atMs - (isCoarse ? COARSE_STEP_MS : STEP_MS)
}

/** The stamp of a file that is as git read it; null if it may not be. */
function stampInIndex(file: IndexedFile, writtenMs: number, stat: Stats | null): Stamp | null {
  if (stat === null || !isSettled(stat, writtenMs)) return null
  const isAsRead =
    stat.ctimeMs === file.ctimeMs &&
    stat.mtimeMs === file.mtimeMs &&
    stat.size % WORD === file.size &&
    stat.ino % WORD === file.ino &&
    modeOf(stat) === file.mode
  return isAsRead ? stampOf(stat) : null
}

function modeOf(stat: Stats): string {
  if (stat.isSymbolicLink()) return '120000'
  return (stat.mode & 0o100) === 0 ? '100644' : '100755'
}

/** Whether git takes no file of this name into an index, whatever the system: on macOS some letters count for nothing. */
function isRefused(path: string, stat: Stats): boolean {
  const names = path.split('/').map(name => fromLatin1(name).replace(NO_LETTERS, '').toLowerCase())
  return names.includes('.git') || (stat.isSymbolicLink() && names.at(-1) === '.gitmodules')
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

const WORD = 2 ** 32
const NO_LETTERS = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g
const STEP_MS = 25
const COARSE_STEP_MS = 2_100
/** What is read at once without git, which reads large files in pieces. */
const MOST_BYTES = 16 * 1024 * 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: all that is one byte in UTF-8
const NOT_ASCII = /[^\x00-\x7f]/
// Without O_NONBLOCK (absent on Windows) the opening of a named pipe waits for its other end.
const READ_ONLY = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0)
