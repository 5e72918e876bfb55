import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'
import { pathInside } from '../../platform/files.ts'
import { fileState, findObstacle, readRegularFile } from '../files/inside-directory.ts'

/** An untrusted project to read. */
export interface Project {
  /** Real path of the work directory. */
  root: string
  /** Removes secrets from a text. Call it before a cut: a part of a secret is not recognized. */
  redact(text: string): string
}

/**
 * Content of a file of the project.
 * - `binary`, `huge`: only the `size`, bytes.
 * - `secret`: not read, because the name means keys or passwords.
 * - `unread`: `why` is the predicate of a sentence, such as `is a pipe`.
 */
export type ProjectFile =
  | { kind: 'text'; text: string; encoding: 'UTF-8' | 'UTF-16' | 'Latin-1' }
  | { kind: 'binary' | 'huge'; size: number }
  | { kind: 'gone' }
  | { kind: 'secret' }
  | { kind: 'unread'; why: string }

/**
 * Reads a file of the project without its secrets: never through a link that leads outside, never from a pipe or device.
 * @param path relative to the work directory
 * @param limit bytes; what is larger is `huge`
 */
export async function readProjectFile(
  { root, redact }: Project,
  path: string,
  limit = MOST_BYTES,
): Promise<ProjectFile> {
  const found = await placeInside(root, path)
  if (typeof found !== 'string') return found
  if (holdsSecrets(path) || holdsSecrets(found)) return { kind: 'secret' }
  try {
    const read = await readRegularFile(join(root, found), limit)
    switch (read.kind) {
      case 'bytes':
        return withoutSecrets(decoded(read.bytes), redact)
      case 'too-large':
        return { kind: 'huge', size: read.size }
      case 'gone':
        return read
      case 'broken':
        return { kind: 'unread', why: read.problem.replace(/^it |;.*$/gs, '') }
    }
  } catch (error) {
    return unread(error)
  }
}

const MOST_BYTES = 1024 * 1024

/** Returns why a file was not read, as the predicate of a sentence; `limit`: the size above which it is `huge`, in words. */
export function whyUnread(file: Exclude<ProjectFile, { kind: 'text' }>, limit = '1 MiB'): string {
  switch (file.kind) {
    case 'binary':
      return 'is no text'
    case 'huge':
      return `is larger than ${limit}`
    case 'gone':
      return 'is gone'
    case 'secret':
      return 'is named like a file with secrets'
    case 'unread':
      return file.why
  }
}

function withoutSecrets(file: ProjectFile, redact: Project['redact']): ProjectFile {
  return file.kind === 'text' ? { ...file, text: redact(file.text) } : file
}

/**
 * Returns the current hashes (hex) of the first 200 files, by the given paths. Null if it is not a readable regular file of
 * the project. For a file above 16 MiB, size and times replace the content.
 * @param directory real path of the work directory, to which the paths are relative
 */
export async function hashFiles(
  directory: string,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Record<string, string | null>> {
  const hashes: [string, string | null][] = []
  for (const path of paths.slice(0, MOST_HASHED)) {
    signal.throwIfAborted()
    hashes.push([path, await hashOf(directory, path)])
  }
  return Object.fromEntries(hashes)
}

const MOST_HASHED = 200
const MOST_HASHED_BYTES = 16 * 1024 * 1024

async function hashOf(root: string, path: string): Promise<string | null> {
  const found = await placeInside(root, path)
  if (typeof found !== 'string') return null
  try {
    const read = await readRegularFile(join(root, found), MOST_HASHED_BYTES)
    if (read.kind === 'bytes') return createHash('sha256').update(read.bytes).digest('hex')
    const state = read.kind === 'too-large' ? await fileState(join(root, found)) : null
    return state === null ? null : createHash('sha256').update(state.key).digest('hex')
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/** Returns the path without links, relative to the root; otherwise why nothing there may be read. */
async function placeInside(root: string, path: string): Promise<string | ProjectFile> {
  if (path.includes('\0') || pathInside(root, path) === null) return OUTSIDE
  try {
    const inside = pathInside(root, await realpath(join(root, path)))
    if (inside === null) return OUTSIDE
    if (OWN.test(inside)) return { kind: 'unread', why: 'belongs to git or codemachine' }
    // A link that was created since is an obstacle.
    const obstacle = await findObstacle(root, dirname(inside))
    return obstacle === null ? inside : OUTSIDE
  } catch (error) {
    return unread(error)
  }
}

const OUTSIDE: ProjectFile = { kind: 'unread', why: 'lies outside of the project' }
const OWN = /(?:^|\/)\.git(?:\/|$)|^\.codemachine(?:\/|$)/

function unread(error: unknown): ProjectFile {
  const code = systemErrorCode(error)
  if (code === null) throw error
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'gone' }
  return { kind: 'unread', why: code === 'ELOOP' ? 'is a link that leads nowhere' : `cannot be read (${code})` }
}

/** True if a file of this name probably has keys, passwords or tokens. */
function holdsSecrets(path: string): boolean {
  const name = basename(path)
  return SECRET_NAMES.test(name) && !EXAMPLES.test(name)
}

const SECRET_NAMES =
  /^(?:\.env(?:\..+)?|.+\.env|\.npmrc|\.netrc|\.pypirc|\.pgpass|\.htpasswd|\.git-credentials|credentials(?:\.\w+)?|secrets?\.(?:ya?ml|json|toml|ini|txt)|id_(?:rsa|dsa|ecdsa|ed25519)|.+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|tfstate|tfvars))$/i
const EXAMPLES = /(?:^|[.-])(?:example|sample|template|dist|schema)(?:\.|$)/i

function decoded(bytes: Buffer): ProjectFile {
  const mark = bytes.length >= 2 ? bytes.readUInt16BE(0) : 0
  if (mark === 0xfffe || mark === 0xfeff) {
    const text = new TextDecoder(mark === 0xfffe ? 'utf-16le' : 'utf-16be').decode(bytes)
    return { kind: 'text', text: plain(text), encoding: 'UTF-16' }
  }
  if (isBinary(bytes)) return { kind: 'binary', size: bytes.length }
  try {
    return { kind: 'text', text: plain(new TextDecoder('utf-8', { fatal: true }).decode(bytes)), encoding: 'UTF-8' }
  } catch {
    return { kind: 'text', text: plain(new TextDecoder('windows-1252').decode(bytes)), encoding: 'Latin-1' }
  }
}

/** True for bytes with a NUL, or with control characters in over a tenth of the first ones. */
function isBinary(bytes: Buffer): boolean {
  if (bytes.includes(0)) return true
  const beginning = bytes.subarray(0, 8 * 1024)
  const controls = beginning.reduce((count, byte) => count + (byte < 0x20 && !TEXT_CONTROLS.has(byte) ? 1 : 0), 0)
  return controls * 10 > beginning.length
}

/** Tab, line feed, form feed, carriage return, escape. */
const TEXT_CONTROLS: ReadonlySet<number> = new Set([9, 10, 12, 13, 27])

/** Returns a text with `\n` line ends, and without terminal control and text direction characters. */
function plain(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(STEERING, '\uFFFD')
}

const STEERING = /(?![\n\t])[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu
