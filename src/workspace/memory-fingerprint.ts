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
import { systemErrorCode } from '../base/errors.ts'

/**
 * What a session's memory comes to, as a hash (hex): the texts of its own files, and everything in the folder `kb`
 * (absolute), which anybody may have written. Links are not followed. Of the first 1,000 files, and of 16 MiB in all,
 * the contents count; of more, name, size and time of change; what comes after 20,000 entries does not count.
 * Synchronous, because a usual folder costs a millisecond or two this way.
 */
export function memoryFingerprint(texts: readonly string[], kb: string): string {
  const look: Look = { hash: createHash('sha256'), files: 0, bytes: 0, entries: 0 }
  for (const text of texts) add(look.hash, 'text', text)
  lookAt(kb, '', look, 0)
  return look.hash.digest('hex')
}

/** The hash so far, and how much of what is looked at has gone into it. */
interface Look {
  hash: Hash
  files: number
  bytes: number
  entries: number
}

function lookAt(path: string, name: string, look: Look, depth: number): void {
  if (look.entries >= mostEntries) return
  look.entries += 1
  try {
    const stat = lstatSync(path)
    add(look.hash, ...partsOf(path, name, stat, look))
    if (!stat.isDirectory() || depth >= deepest) return
    for (const child of readdirSync(path).sort()) lookAt(join(path, child), `${name}/${child}`, look, depth + 1)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    add(look.hash, code, name)
  }
}

function partsOf(path: string, name: string, stat: Stats, look: Look): (string | Buffer)[] {
  if (stat.isSymbolicLink()) return ['link', name, readlinkSync(path)]
  if (stat.isFile()) return contentOf(path, name, look)
  return [stat.isDirectory() ? 'folder' : 'other', name]
}

function contentOf(path: string, name: string, look: Look): (string | Buffer)[] {
  // Since it was looked at it may have become a link, or a pipe, at which a plain open would wait for ever.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0))
  try {
    const { size, mtimeMs } = fstatSync(fd)
    look.files += 1
    const isTooMuch = look.files > mostFiles || look.bytes + size > mostBytes
    if (isTooMuch) return ['stamp', name, `${size} ${mtimeMs}`]
    look.bytes += size
    const bytes = Buffer.allocUnsafe(size)
    return ['file', name, bytes.subarray(0, readSync(fd, bytes, 0, size, 0))]
  } finally {
    closeSync(fd)
  }
}

/** Each with its length, so that no two lists of parts hash alike. */
function add(hash: Hash, ...parts: readonly (string | Buffer)[]): void {
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
}

const mostFiles = 1000
const mostBytes = 16 * 1024 * 1024
const mostEntries = 20_000
const deepest = 16
