import { constants, type Dirent, lstatSync, readlinkSync } from 'node:fs'
import { type FileHandle, open, readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { createUnzip } from 'node:zlib'
import { systemErrorCode } from '../base/errors.ts'
import { isShortSecret, type Secret } from '../core/shapes/secrets.ts'
import { codesOf, type FormSearch, formSearchOf, type KnownForm } from './form-search.ts'
import { BadPack, looksLikePack, objectsInPack } from './git-pack.ts'
import { knownForms, solidForms, solidOf } from './secret-forms.ts'

/** Limits of a search. */
interface SearchLimits {
  /** Visited files and folders. */
  files: number
  /** Read bytes. */
  bytes: number
  /** Elapsed time, ms. */
  ms: number
}

export const SEARCH_LIMITS: SearchLimits = { files: 200_000, bytes: 1024 ** 3, ms: 30_000 }

/** Files that contain a secret. */
interface SearchResult {
  /** Relative to the directory, with `/`. */
  files: readonly string[]
  /** Why not all files were searched, one sentence; null: all were. */
  problem: string | null
}

/**
 * Searches new and changed files below a directory (its real path) for secrets, in content and names, also encoded and
 * across lines. It removes what agents see without reading: a file with a secret in its name is renamed, a link with one in
 * its target is removed. Both are in the result. Values that look like a word are ignored in names, where they occur by
 * chance. Ignored files are searched; links and special files are skipped. Git objects, packs and bundles are unpacked, and
 * gzip and zlib data; other archives are not. Secrets under 8 characters are not searched for.
 * @param since ms, wall clock; compared with the inode change time, which no program can set
 */
export async function searchFiles(
  directory: string,
  { since, secrets, signal, limits = SEARCH_LIMITS, now }: SearchOptions,
): Promise<SearchResult> {
  const wanted = secrets
    .filter(({ value }) => !isShortSecret(value))
    .map(each => ({ ...each, isEncoded: true as const }))
  if (wanted.length === 0) return { files: [], problem: null }
  const inNames = searchesFor(wanted.filter(({ value }) => !readsLikeWord(value)))
  const search = new Search(
    directory,
    { ...searchesFor(wanted), inNames },
    { since: since - CLOCK_MS, limits, signal, now },
  )
  await search.folder('')
  return { files: search.found, problem: search.problem }
}

interface SearchOptions {
  since: number
  secrets: readonly Secret[]
  signal: AbortSignal
  limits?: SearchLimits
  /** Returns elapsed time, ms. */
  now(): number
}

/** File times are up to a tick behind the clock; some file systems store only whole seconds. */
const CLOCK_MS = 1_000
/** Yield to other work after this number of files. */
const AT_ONCE = 1_000
const CHUNK_BYTES = 1024 * 1024
/** Overlap of chunks: four times the longest form, as wrapped or grouped text needs. */
const MOST_OVERLAP = 4 * CHUNK_BYTES

/** Searches in bytes, one unit each: the forms are UTF-8. */
interface Searches {
  written: FormSearch
  solid: FormSearch
}

/** Returns true if a value may be an ordinary word, which also occurs without a secret. */
export function readsLikeWord(value: string): boolean {
  return /^[\p{L} ]{1,20}$/u.test(value.trim())
}

function searchesFor(secrets: readonly Secret[]): Searches {
  const forms = new Map<string, KnownForm>()
  for (const [form, known] of knownForms(secrets)) {
    forms.set(Buffer.from(form, 'utf8').toString('latin1'), known)
    // UTF-16 only adds zero bytes to ASCII, which the search across lines ignores.
    if (/^\p{ASCII}*$/u.test(form)) continue
    for (const bytes of [Buffer.from(form, 'utf16le'), Buffer.from(form, 'utf16le').swap16()])
      forms.set(bytes.toString('latin1'), known)
  }
  return { written: formSearchOf(forms), solid: formSearchOf(solidForms(forms)) }
}

function holdsSecret({ written, solid }: Searches, bytes: Buffer): boolean {
  const holds = (codes: Uint16Array) => {
    if (written.open(codes, codes.length)(0) !== null) return true
    const left = solidOf(codes, 'lines')
    return solid.open(left.codes, left.length)(0) !== null
  }
  if (holds(new Uint16Array(bytes))) return true
  return bytes.includes(ESC) && holds(codesOf(bytes.toString('latin1').replace(COLOUR, '')))
}

const ESC = '\x1b'
/** Terminal sequences may split a value: `grep --color` marks a part of it. */
const COLOUR = new RegExp(String.raw`${ESC}(?:\[[0-?]*[ -/]*[@-~]|\][^\x07${ESC}]*(?:\x07|${ESC}\\))`, 'g')

class Search {
  readonly found: string[] = []
  problem: string | null = null
  readonly #directory: string
  readonly #searches: Searches & { inNames: Searches }
  readonly #options: Required<Omit<SearchOptions, 'secrets'>>
  readonly #overlap: number
  readonly #until: number
  readonly #buffer: Buffer
  #files: number
  #bytes: number

  constructor(
    directory: string,
    searches: Searches & { inNames: Searches },
    options: Required<Omit<SearchOptions, 'secrets'>>,
  ) {
    this.#directory = directory
    this.#searches = searches
    this.#options = options
    this.#overlap = Math.min(4 * searches.written.longest, MOST_OVERLAP)
    this.#buffer = Buffer.alloc(this.#overlap + CHUNK_BYTES)
    this.#until = options.now() + options.limits.ms
    this.#files = options.limits.files
    this.#bytes = options.limits.bytes
  }

  /** Searches a folder and those in it. @param folder relative path; empty: all */
  async folder(folder: string): Promise<void> {
    for (const entry of await this.#entriesOf(folder)) {
      if (this.#isOver()) return
      if (this.#files % AT_ONCE === 0) await setImmediate()
      const path = await this.#withoutName(folder, entry)
      if (path === null) continue
      if (entry.isDirectory()) await this.folder(path)
      else if (entry.isFile()) await this.#file(path)
    }
  }

  /** Resolves with an entry's path, renamed if its name contains a secret; null: nothing to search. */
  async #withoutName(folder: string, entry: Dirent): Promise<string | null> {
    const within = folder === '' ? '' : `${folder}/`
    const path = within + entry.name
    const full = join(this.#directory, path)
    const { inNames } = this.#searches
    try {
      if (lstatSync(full).ctimeMs < this.#options.since) return path
      const isNamed = holdsSecret(inNames, Buffer.from(path))
      const isLinked = entry.isSymbolicLink() && holdsSecret(inNames, readlinkSync(full, 'buffer'))
      if (!isNamed && !isLinked) return path
      const other = within + (isNamed ? this.#freeName(folder) : entry.name)
      if (isLinked) await unlink(full)
      else await rename(full, join(this.#directory, other))
      this.found.push(other)
      return isLinked ? null : other
    } catch (error) {
      this.#passedOver(path, error)
      return null
    }
  }

  #freeName(folder: string): string {
    for (let n = 1; ; n++) {
      const name = `secret-in-name-${n}`
      if (lstatSync(join(this.#directory, folder, name), { throwIfNoEntry: false }) === undefined) return name
    }
  }

  async #entriesOf(folder: string): Promise<Dirent[]> {
    try {
      return await readdir(join(this.#directory, folder), { withFileTypes: true })
    } catch (error) {
      this.#passedOver(folder, error)
      return []
    }
  }

  #isOver(): boolean {
    const { signal, now } = this.#options
    this.#files -= 1
    const isOver = this.#files < 0 || this.#bytes < 0 || now() > this.#until
    if (isOver) this.problem = 'Too many files changed, so codemachine could not search all of them for secrets.'
    else if (signal.aborted) this.problem = 'The search for secrets in files was interrupted.'
    return isOver || signal.aborted
  }

  async #file(path: string): Promise<void> {
    try {
      const full = join(this.#directory, path)
      // Most files are unchanged, and the synchronous call takes a tenth of the time.
      if (lstatSync(full).ctimeMs < this.#options.since) return
      // Without O_NONBLOCK (absent on Windows), opening a named pipe would wait for its other end.
      await using file = await open(
        full,
        constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0),
      )
      const isNamed = holdsSecret(this.#searches, Buffer.from(path))
      if (this.found.at(-1) === path) return
      if (isNamed || ((await file.stat()).isFile() && (await this.#content(path, file)))) this.found.push(path)
    } catch (error) {
      if (error instanceof BadPack)
        this.problem = `${JSON.stringify(path)} cannot be searched for secrets: ${error.message}.`
      else this.#passedOver(path, error)
    }
  }

  async #content(path: string, file: FileHandle): Promise<boolean> {
    const beginning = Buffer.alloc(BEGINNING_BYTES)
    const { bytesRead } = await file.read(beginning, 0, BEGINNING_BYTES, 0)
    const first = beginning.subarray(0, bytesRead)
    if (await this.#holds(chunksOf(file))) return true
    if (looksLikePack(first)) return await this.#packHolds(path, file)
    return looksDeflated(first) && (await this.#holds(unpacked(file)))
  }

  async #packHolds(path: string, file: FileHandle): Promise<boolean> {
    for await (const object of objectsInPack(file, SHA256_NAME.test(path) ? 32 : 20)) {
      this.#bytes -= object.length
      if (this.#isOver()) return false
      if (holdsSecret(this.#searches, object)) return true
      if (this.#files % AT_ONCE === 0) await setImmediate()
    }
    return false
  }

  /** Uses each chunk before it requests the next one. */
  async #holds(chunks: AsyncIterable<Buffer>): Promise<boolean> {
    let [kept, end] = [0, 0]
    for await (const chunk of chunks) {
      for (let from = 0; from < chunk.length; ) {
        const taken = chunk.copy(this.#buffer, end, from)
        from += taken
        end += taken
        this.#bytes -= taken
        if (end < this.#buffer.length) continue
        if (this.#isOver()) return false
        if (holdsSecret(this.#searches, this.#buffer)) return true
        kept = this.#overlap
        this.#buffer.copyWithin(0, end - kept, end)
        end = kept
      }
    }
    return end > kept && !this.#isOver() && holdsSecret(this.#searches, this.#buffer.subarray(0, end))
  }

  /** Ignores entries that are gone or became links; reports other failures. */
  #passedOver(path: string, error: unknown): void {
    const code = systemErrorCode(error)
    if (code === null) throw error
    // A name that is not UTF-8 cannot be opened as read.
    const isGone = ['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO'].includes(code) && !path.includes('\ufffd')
    if (isGone) return
    this.problem = `${JSON.stringify(path)} cannot be searched for secrets (${code}).`
  }
}

/** Bytes of a pack's header (version, number of objects), or of a bundle's first line. */
const BEGINNING_BYTES = 16
/** Pack file name in a repository with SHA-256. */
const SHA256_NAME = /[0-9a-f]{64}\.pack$/

/** Yields the bytes of a file from its start; each chunk overwrites the last one. */
async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  const chunk = Buffer.allocUnsafe(READ_BYTES)
  for (let at = 0; ; ) {
    const { bytesRead } = await file.read(chunk, 0, READ_BYTES, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}

const READ_BYTES = 64 * 1024

/** Returns true if a file starts like gzip or zlib data; git compresses its objects with zlib. */
function looksDeflated(beginning: Buffer): boolean {
  const [first = 0, second = 0] = beginning
  return (first === 0x1f && second === 0x8b) || ((first & 0x8f) === 8 && (first * 256 + second) % 31 === 0)
}

/** Yields the unpacked content of a file, as far as possible. */
async function* unpacked(file: FileHandle): AsyncGenerator<Buffer> {
  const unzip = createUnzip({ chunkSize: READ_BYTES })
  const copies = async function* () {
    for await (const chunk of chunksOf(file)) yield Buffer.from(chunk)
  }
  // The loop below sees the same error.
  const feeding = pipeline(copies, unzip).catch(() => {})
  try {
    for await (const chunk of unzip) yield chunk
  } catch (error) {
    if (!/^Z_/.test(systemErrorCode(error) ?? '')) throw error
  } finally {
    unzip.destroy()
    await feeding
  }
}
