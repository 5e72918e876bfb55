import { createHash } from 'node:crypto'
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { sha256Of } from '../platform/files.ts'

/** The content of programs at a moment. */
interface Programs {
  /** By path with `/`: a package's version or nothing; a colon; a hash. */
  entries: Readonly<Record<string, string>>
  /** True if it is complete. */
  isWhole: boolean
}

/** A changed entry; `hash`: the current one, null if it is removed. */
export interface ChangedProgram {
  path: string
  how: 'added' | 'changed' | 'deleted'
  hash: string | null
  /** False for a package with the same version as before, or without one. */
  isOtherVersion: boolean
}

/** By path of a package: the state of its files, and its entry. */
type KnownPackages = Map<string, { looks: string; entry: string }>

/** Folder whose programs `npm` scripts find first. It has one entry. */
const PROGRAMS = 'node_modules/.bin'
/** Entry of all programs and packages after the limit. No package has that name. */
const REST = 'node_modules/…'

/**
 * Returns a reader of programs that gates run in the work directory and git usually ignores: `node_modules/.bin`, programs
 * of folders on PATH and of Python's virtual environments at the top, and their packages. Its text is for `changedPrograms`.
 * It reads at most 60,000 files and 10 s, and the first 64 KiB of each file. After 1,000 entries, one entry stands for all
 * others. It remembers unchanged packages between calls.
 * @param searched the folders on PATH, of which those below the work directory count
 */
export function programReader(directory: string, searched: readonly string[]): () => Promise<string> {
  const known: KnownPackages = new Map()
  return async () => {
    const look = new Look(directory, known)
    await look.all(searched)
    const { entries, isWhole } = look
    return JSON.stringify({ v: 2, isWhole, entries } satisfies Programs & { v: 2 })
  }
}

/**
 * Returns the differences between two texts of a `programReader`, in the order of paths. A text of an earlier version is
 * only the hash of `node_modules/.bin`. Pure.
 */
export function changedPrograms(before: string, after: string): ChangedProgram[] {
  const [was, now] = [parsePrograms(before), parsePrograms(after)]
  const areWhole = was.isWhole && now.isWhole
  // What can be read no longer may have changed.
  const cut =
    was.isWhole && !now.isWhole ? [{ path: REST, how: 'changed' as const, hash: null, isOtherVersion: false }] : []
  const paths = [...new Set([...Object.keys(was.entries), ...Object.keys(now.entries)])].sort()
  const changed = paths.flatMap((path): ChangedProgram[] => {
    const [old = null, hash = null] = [was.entries[path], now.entries[path]]
    if (old === hash) return []
    if (old !== null && hash !== null)
      return [{ path, how: 'changed', hash, isOtherVersion: versionIn(old) !== versionIn(hash) }]
    return areWhole ? [{ path, how: old === null ? 'added' : 'deleted', hash, isOtherVersion: true }] : []
  })
  return [...changed, ...cut]
}

function parsePrograms(text: string): Programs {
  if (!text.startsWith('{')) return { entries: { [PROGRAMS]: `:${text}` }, isWhole: false }
  return JSON.parse(text) as Programs
}

function versionIn(entry: string): string {
  return entry.slice(0, entry.lastIndexOf(':'))
}

const MOST_ENTRIES = 1_000
const MOST_LOOKS = 60_000
const MOST_MS = 10_000
const MOST_PROGRAMS = 2_000
const FILE_BYTES = 64 * 1024
const HASH_CHARS = 12
const VERSION_CHARS = 40
/** Number of files between two pauses for other work. */
const AT_ONCE = 100
/** Names of folders that programs write beside themselves. */
const WRITTEN: ReadonlySet<string> = new Set(['.cache', '__pycache__'])

interface FoundFile {
  path: string
  /** Identifies an unchanged file without a read: only root can set `ctime`. */
  look: string
}

/** One look at the programs of a work directory. */
class Look {
  readonly entries: Record<string, string> = {}
  isWhole = true
  readonly #directory: string
  readonly #known: KnownPackages
  readonly #until = performance.now() + MOST_MS
  #looked = 0
  /** What comes after the limit of entries: names with versions, and contents. */
  readonly #rest = { count: 0, names: createHash('sha256'), contents: createHash('sha256') }

  constructor(directory: string, known: KnownPackages) {
    this.#directory = directory
    this.#known = known
  }

  async all(searched: readonly string[]): Promise<void> {
    this.#add(PROGRAMS, '', hashOfFolder(join(this.#directory, PROGRAMS)))
    const environments = this.#names('').filter(name => this.#isFile(`${name}/pyvenv.cfg`))
    const bins = environments.flatMap(name => [`${name}/bin`, `${name}/Scripts`])
    const folders = new Set([...searched.flatMap(folder => this.#below(folder)), ...bins])
    folders.delete(PROGRAMS)
    for (const folder of [...folders].sort()) {
      for (const name of this.#names(folder).slice(0, MOST_PROGRAMS)) {
        const path = `${folder}/${name}`
        this.#add(path, '', sha256Of(programText(name, join(this.#directory, path))))
      }
    }
    await this.#addPackages('node_modules')
    for (const store of this.#names('node_modules/.pnpm'))
      await this.#addPackages(`node_modules/.pnpm/${store}/node_modules`)
    for (const environment of environments) await this.#addEnvironment(environment)
    const [names, contents] = [this.#rest.names, this.#rest.contents].map(each =>
      each.digest('hex').slice(0, HASH_CHARS),
    )
    if (this.#rest.count > 0) this.entries[REST] = `${names}:${contents}`
  }

  /** Returns a folder's path below the work directory; empty if it is outside. */
  #below(folder: string): string[] {
    const path = resolve(this.#directory, folder)
    const inside = [path, found(() => realpathSync(path)) ?? path].map(each => relative(this.#directory, each))
    const below = inside.find(each => each !== '' && !each.startsWith('..') && !isAbsolute(each))
    return below === undefined ? [] : [below.split(sep).join('/')]
  }

  async #addPackages(folder: string): Promise<void> {
    for (const name of this.#names(folder).filter(each => !each.startsWith('.'))) {
      const inner = name.startsWith('@') ? this.#names(`${folder}/${name}`).map(each => `${name}/${each}`) : [name]
      for (const each of inner) await this.#addPackage(`${folder}/${each}`)
    }
  }

  async #addEnvironment(environment: string): Promise<void> {
    const libraries = [...this.#names(`${environment}/lib`).map(name => `lib/${name}`), 'Lib']
    for (const library of libraries) {
      const packages = `${environment}/${library}/site-packages`
      for (const name of this.#names(packages)) await this.#addPackage(`${packages}/${name}`)
    }
  }

  /** Adds the content of a package. For a link, the content is at its target: in a store or in the project. */
  async #addPackage(path: string): Promise<void> {
    const files: FoundFile[] = []
    await this.#find(path, files)
    const looks = sha256Of(files.map(each => `${each.path} ${each.look}`).join('\n'))
    const known = this.#known.get(path)
    const entry = known?.looks === looks ? known.entry : await this.#entryOf(path, files)
    // A partly read package would look changed the next time.
    if (!this.isWhole) return
    this.#known.set(path, { looks, entry })
    this.#add(path, versionIn(entry), entry.slice(entry.lastIndexOf(':') + 1))
  }

  async #entryOf(path: string, files: readonly FoundFile[]): Promise<string> {
    const hash = createHash('sha256')
    for (const file of files) {
      hash.update(programText(file.path.slice(path.length), join(this.#directory, file.path)))
      await this.#breathe()
    }
    const isVersioned = files.some(file => file.path === `${path}/package.json`)
    const version = isVersioned ? versionOf(join(this.#directory, path, 'package.json')) : ''
    return `${version}:${hash.digest('hex').slice(0, HASH_CHARS)}`
  }

  /** Finds all files at a path and below it. */
  async #find(path: string, files: FoundFile[]): Promise<void> {
    if (!this.isWhole) return
    await this.#breathe()
    const at = join(this.#directory, path)
    const stat = found(() => lstatSync(at, { bigint: true }))
    if (stat === null) return
    if (!stat.isDirectory()) files.push({ path, look: lookOf(stat, at) })
    else for (const name of namesIn(at)) if (!WRITTEN.has(name)) await this.#find(`${path}/${name}`, files)
  }

  /** Pauses between many files; stops after too many files or too long. */
  async #breathe(): Promise<void> {
    this.#looked += 1
    if (this.#looked % AT_ONCE !== 0) return
    await setImmediate()
    if (this.#looked > 2 * MOST_LOOKS || performance.now() > this.#until) this.isWhole = false
  }

  #add(path: string, version: string, hash: string): void {
    if (Object.keys(this.entries).length < MOST_ENTRIES) {
      this.entries[path] = `${version}:${path === PROGRAMS ? hash : hash.slice(0, HASH_CHARS)}`
      return
    }
    this.#rest.count += 1
    this.#rest.names.update(`${path} ${version}\n`)
    this.#rest.contents.update(`${path} ${hash}\n`)
  }

  #isFile(path: string): boolean {
    return found(() => lstatSync(join(this.#directory, path)))?.isFile() === true
  }

  #names(folder: string): string[] {
    return namesIn(join(this.#directory, folder))
  }
}

/** Returns the result of a read; null if it fails. */
function found<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

function lookOf(stat: BigIntStats, path: string): string {
  const target = stat.isSymbolicLink() ? found(() => statSync(path, { bigint: true })) : null
  return [stat, target].map(each => each && `${each.ino} ${each.size} ${each.mtimeNs} ${each.ctimeNs}`).join(' ')
}

function namesIn(folder: string): string[] {
  return found(() => readdirSync(folder).sort()) ?? []
}

function hashOfFolder(folder: string): string {
  const names = namesIn(folder).slice(0, MOST_PROGRAMS)
  return sha256Of(names.map(name => programText(name, join(folder, name))).join(''))
}

/** Returns a name, its target if it is a link, and its content's hash as text. */
function programText(name: string, path: string): string {
  return JSON.stringify([name, found(() => readlinkSync(path)), contentHash(path)])
}

function contentHash(path: string): string | null {
  const read = readStart(path)
  return read && createHash('sha256').update(`${read.size}:`).update(read.start).digest('hex')
}

function versionOf(path: string): string {
  const text = readStart(path)?.start.toString('utf8') ?? ''
  const version = found(() => (JSON.parse(text) as { version?: unknown }).version)
  return typeof version === 'string' ? version.slice(0, VERSION_CHARS) : ''
}

/** Returns the first 64 KiB of a file; null for another kind. Does not wait at a pipe. */
function readStart(path: string): { size: number; start: Buffer } | null {
  let file: number | null = null
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stat = fstatSync(file)
    if (!stat.isFile()) return null
    const length = readSync(file, START, 0, FILE_BYTES, 0)
    return { size: stat.size, start: START.subarray(0, length) }
  } catch {
    return null
  } finally {
    if (file !== null) closeSync(file)
  }
}

const START = Buffer.alloc(FILE_BYTES)
