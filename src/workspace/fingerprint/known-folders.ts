import { type Dirent, readdirSync, type Stats } from 'node:fs'
import { systemErrorCode } from '../../base/errors.ts'
import {
  isSame,
  isSettled,
  type KnownFiles,
  type KnownFolder,
  newFolder,
  type OtherKind,
  stampOf,
} from './known-files.ts'

/** What differs from what is known. Paths are latin1, relative to the folder whose tree is the fingerprint. */
export interface KnownLook {
  /** Files that are not there any more. */
  gone: string[]
  /** Files that may have been written. */
  changed: string[]
  /** Whether names have come of which it is not known whether they count. */
  hasNewFiles: boolean
  newFolders: string[]
  /** Folders that are not there any more; `now`: what else has their name, or null. */
  lost: { path: string; now: OtherKind | null }[]
}

/** What is looked at in each folder: its names alone, or its files, too. */
type LookedAt = 'names' | 'names-and-files'

/**
 * The folders around the files that are known: which names they have. A name that has come shows by the times of its folder,
 * so git is asked only then whether it counts. A folder that does not count is not looked into.
 */
export class KnownFolders {
  readonly #known: KnownFiles
  #count = 0

  constructor(known: KnownFiles) {
    this.#known = known
  }

  /** How many there are that count, or lie around one. */
  get count(): number {
    return this.#count
  }

  /**
   * Reads the names in all folders; of those that hold no file, in the ones that count and all below. False if there are too
   * many, or one cannot be read.
   */
  register(counts: (path: string) => boolean): boolean {
    this.#count = 0
    return this.#register(this.#known.root, '', counts)
  }

  /** Looks at all folders; null if git has to, for something is not as it can be known here. */
  look(what: LookedAt): KnownLook | null {
    const seen: KnownLook = { gone: [], changed: [], hasNewFiles: false, newFolders: [], lost: [] }
    const stat = this.#known.lstat('')
    if (!stat?.isDirectory()) return null
    return this.#look(this.#known.root, '', stat, { what, seen }) ? seen : null
  }

  /** Takes in those of the folders that count, of which the names are read; false as of `register`. */
  admit(paths: Iterable<string>, counts: (path: string) => boolean): boolean {
    // Those that are gone by now leave room for others.
    this.#count = [...this.#folders()].length
    for (const path of paths) if (counts(path) && !this.#admit(path)) return false
    return true
  }

  /** Has the names around a file be read again at the next look: it was gone for git, which may have looked before this did. */
  readNamesAgain(path: string): void {
    const { parent } = this.#placeOf(path)
    if (parent !== null) parent.stamp = null
  }

  /** Forgets folders whose files have been forgotten. */
  drop(lost: KnownLook['lost']): void {
    for (const { path, now } of lost) {
      const { parent, name } = this.#placeOf(path)
      parent?.folders.delete(name)
      if (now !== null) parent?.others.set(name, now)
    }
  }

  /** All folders that do not count. */
  passedOver(): string[] {
    const found: string[] = []
    for (const [path, { others }] of this.#folders()) {
      for (const [name, kind] of others) if (kind === 'folder') found.push(join(path, name))
    }
    return found
  }

  /** What shows whether the rules have changed by which files are ignored; null if that cannot be known yet. */
  stampOfRules(): string | null {
    const now = Date.now()
    const stamps: string[] = []
    for (const [path, { files, others }] of this.#folders()) {
      if (!files.has(RULES) && !others.has(RULES)) continue
      const rules = join(path, RULES)
      const stat = this.#known.lstat(rules)
      // What a link leads to is read by git before 2.32.
      if (stat === undefined || stat?.isSymbolicLink() || (stat !== null && !isSettled(stat, now))) return null
      stamps.push(`${rules} ${stat?.ino} ${stat?.size} ${stat?.ctimeMs}`)
    }
    return stamps.join('\n')
  }

  /**
   * What is in the folders now and did not count at the last look, in git's order: a folder of which nothing counts as one path
   * that ends in `/`, an empty one not at all.
   * @param isNever whether a path is none of the work directory
   */
  leftOut(isNever: (path: string) => boolean): string[] {
    return this.#leftOut(this.#known.root, '', isNever).sort(byBytes)
  }

  #leftOut(folder: KnownFolder, path: string, isNever: (path: string) => boolean): string[] {
    const holdsAny = (at: string) => (this.#holdsFile(at, isNever) ? [`${at}/`] : [])
    const others = [...this.#othersNow(folder, path)].flatMap(([name, kind]) => {
      const at = join(path, name)
      if (isNever(at)) return []
      return kind === 'folder' ? holdsAny(at) : [at]
    })
    const inner = [...folder.folders].flatMap(([name, each]) => {
      const at = join(path, name)
      if (holdsKnown(each)) return this.#leftOut(each, at, isNever)
      return isNever(at) ? [] : holdsAny(at)
    })
    return [...others, ...inner]
  }

  /** What is in a folder now and does not count. Its names are read where they may not be those of the last look. */
  #othersNow(folder: KnownFolder, path: string): KnownFolder['others'] {
    const stat = this.#known.lstat(path) ?? null
    if (stat !== null && isSame(folder.stamp, stat)) return folder.others
    const names = (this.#namesIn(path) ?? []).filter(({ name }) => !isKnown(folder, name))
    return new Map(names.map(entry => [entry.name, kindOf(entry)]))
  }

  #admit(path: string): boolean {
    const { parent, name } = this.#placeOf(path)
    if (parent === null || parent.folders.has(name)) return true
    const folder = newFolder()
    parent.others.delete(name)
    parent.folders.set(name, folder)
    return this.#register(folder, path, () => true)
  }

  #placeOf(path: string): { parent: KnownFolder | null; name: string } {
    const at = path.lastIndexOf('/')
    return { parent: this.#known.folderAt(path.slice(0, Math.max(0, at))), name: path.slice(at + 1) }
  }

  #register(folder: KnownFolder, path: string, counts: (path: string) => boolean): boolean {
    this.#count += 1
    if (this.#count > MOST_FOLDERS) return false
    const began = Date.now()
    const stat = this.#known.lstat(path)
    if (stat === undefined) return false
    // It is gone, which the look says.
    if (!stat?.isDirectory()) return true
    const names = this.#namesIn(path)
    if (names === null) return false
    folder.others.clear()
    for (const entry of names) {
      const { name } = entry
      if (isKnown(folder, name)) continue
      const inner = join(path, name)
      if (!entry.isDirectory()) folder.others.set(name, kindOf(entry))
      else if (counts(inner)) folder.folders.set(name, newFolder())
      else folder.others.set(name, 'folder')
    }
    folder.found = new Set(folder.others.keys())
    folder.stamp = isSettled(stat, began) ? stampOf(stat) : null
    for (const [name, inner] of folder.folders) {
      const at = join(path, name)
      if (!this.#register(inner, at, holdsKnown(inner) ? counts : () => true)) return false
    }
    return true
  }

  #look(folder: KnownFolder, path: string, stat: Stats, look: { what: LookedAt; seen: KnownLook }): boolean {
    const { what, seen } = look
    const began = Date.now()
    if (!isSame(folder.stamp, stat) && !this.#lookAtNames(folder, path, seen)) return false
    folder.stamp = isSettled(stat, began) ? stampOf(stat) : null
    if (what === 'names-and-files' && !this.#lookAtFiles(folder, path, seen)) return false
    for (const [name, inner] of folder.folders) {
      const at = join(path, name)
      const now = this.#known.lstat(at)
      if (now === undefined) return false
      if (now?.isDirectory()) {
        if (!this.#look(inner, at, now, look)) return false
        continue
      }
      goneIn(inner, at, seen.gone)
      seen.lost.push({ path: at, now: now === null ? null : kindOf(now) })
      seen.hasNewFiles ||= now !== null
    }
    return true
  }

  /** Compares the files in a folder; false if one cannot be looked at. */
  #lookAtFiles(folder: KnownFolder, path: string, seen: KnownLook): boolean {
    for (const [name, { stamp }] of folder.files) {
      const at = join(path, name)
      const now = this.#known.lstat(at)
      if (now === undefined) return false
      if (now === null) seen.gone.push(at)
      else if (!isSame(stamp, now)) seen.changed.push(at)
    }
    return true
  }

  /** Compares the names in a folder; false if that cannot be done here. */
  #lookAtNames(folder: KnownFolder, path: string, seen: KnownLook): boolean {
    const names = this.#namesIn(path)
    if (names === null) return false
    const others: KnownFolder['others'] = new Map()
    const found = new Set<string>()
    for (const entry of names) {
      const { name } = entry
      if (isKnown(folder, name)) {
        if (folder.files.has(name) && entry.isDirectory()) return false
        continue
      }
      const kind = kindOf(entry)
      others.set(name, kind)
      if (folder.others.get(name) !== kind) found.add(name)
      else if (!folder.found.has(name)) continue
      if (kind === 'folder') seen.newFolders.push(join(path, name))
      else seen.hasNewFiles = true
    }
    folder.others = others
    folder.found = found
    return true
  }

  /** Null if they cannot be read. */
  #namesIn(path: string): Dirent[] | null {
    try {
      return readdirSync(this.#known.absolute(path), { withFileTypes: true, encoding: 'latin1' })
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      return null
    }
  }

  #holdsFile(path: string, isNever: (path: string) => boolean): boolean {
    return (this.#namesIn(path) ?? []).some(entry => {
      const at = join(path, entry.name)
      return !isNever(at) && (!entry.isDirectory() || this.#holdsFile(at, isNever))
    })
  }

  *#folders(): Generator<[path: string, KnownFolder]> {
    const within = function* (folder: KnownFolder, path: string): Generator<[string, KnownFolder]> {
      yield [path, folder]
      for (const [name, inner] of folder.folders) yield* within(inner, join(path, name))
    }
    yield* within(this.#known.root, '')
  }
}

function kindOf(entry: Dirent | Stats): OtherKind {
  if (entry.isDirectory()) return 'folder'
  return entry.isFile() || entry.isSymbolicLink() ? 'file' : 'special'
}

/** Git keeps nothing that is called `.git`. */
function isKnown({ files, folders }: KnownFolder, name: string): boolean {
  return name === '.git' || files.has(name) || folders.has(name)
}

function holdsKnown({ files, folders }: KnownFolder): boolean {
  return files.size > 0 || [...folders.values()].some(holdsKnown)
}

function goneIn({ files, folders }: KnownFolder, path: string, gone: string[]): void {
  for (const name of files.keys()) gone.push(join(path, name))
  for (const [name, inner] of folders) goneIn(inner, join(path, name), gone)
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}/${name}`
}

function byBytes(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

const RULES = '.gitignore'
const MOST_FOLDERS = 20_000
