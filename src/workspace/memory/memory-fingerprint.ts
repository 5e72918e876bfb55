import { createHash, type Hash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs'
import { join } from 'node:path'
import { systemErrorCode } from '../../base/errors.ts'

/**
 * Returns a hash (hex) of a session's memory: its own files' texts and the untrusted folder `kb` (absolute path). Follows no
 * links. Hashes the first 1,000 files, up to 16 MiB, by content, and others by name, size and mtime; stops after 20,000
 * entries. Synchronous, because a usual folder then takes one or two milliseconds.
 */
export function memoryFingerprint(texts: readonly string[], kb: string): string {
  const look: HashProgress = { hash: createHash('sha256'), files: 0, bytes: 0, entries: 0 }
  for (const text of texts) addToHash(look.hash, 'text', text)
  hashPath(kb, '', look, 0)
  return look.hash.digest('hex')
}

/** The current hash and the amount of hashed data. */
interface HashProgress {
  hash: Hash
  files: number
  bytes: number
  entries: number
}

function hashPath(path: string, name: string, look: HashProgress, depth: number): void {
  if (look.entries >= MOST_ENTRIES) return
  look.entries += 1
  try {
    const stat = lstatSync(path)
    addToHash(look.hash, ...hashedParts(path, name, stat, look))
    if (!stat.isDirectory() || depth >= MOST_LEVELS) return
    for (const child of readdirSync(path).sort()) hashPath(join(path, child), `${name}/${child}`, look, depth + 1)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    addToHash(look.hash, code, name)
  }
}

function hashedParts(path: string, name: string, stat: Stats, look: HashProgress): (string | Buffer)[] {
  if (stat.isSymbolicLink()) return ['link', name, readlinkSync(path)]
  if (stat.isFile()) return hashedContent(path, name, look)
  return [stat.isDirectory() ? 'folder' : 'other', name]
}

function hashedContent(path: string, name: string, look: HashProgress): (string | Buffer)[] {
  // It may have become a link since the stat, or a pipe, where a plain open would block forever.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
  try {
    const { size, mtimeMs } = fstatSync(fd)
    look.files += 1
    const isTooMuch = look.files > MOST_FILES || look.bytes + size > MOST_BYTES
    if (isTooMuch) return ['stamp', name, `${size} ${mtimeMs}`]
    look.bytes += size
    const bytes = Buffer.allocUnsafe(size)
    return ['file', name, bytes.subarray(0, readSync(fd, bytes, 0, size, 0))]
  } finally {
    closeSync(fd)
  }
}

/** Hashes each part with its length, so that different lists of parts never hash alike. */
function addToHash(hash: Hash, ...parts: readonly (string | Buffer)[]): void {
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
}

const MOST_FILES = 1000
const MOST_BYTES = 16 * 1024 * 1024
const MOST_ENTRIES = 20_000
const MOST_LEVELS = 16
