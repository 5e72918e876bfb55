import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { readBoundedNow } from '../../platform/files.ts'
import type { PrivateGitLocation } from './private-git.ts'

/** A file of an index: its mode and object, and what its file looked like when git read it. */
export interface IndexedFile {
  /** Latin1, relative to git's top. */
  path: string
  /** As in a tree: `100644`, `100755`, `120000`, … */
  mode: string
  id: string
  /** The inode and the size modulo 2^32; the times in ms, as `Stats` has them. */
  ino: number
  size: number
  mtimeMs: number
  ctimeMs: number
}

/** The files of an index in git's order, and when it was written, Unix time in ms. */
export interface IndexFile {
  files: readonly IndexedFile[]
  writtenMs: number
  /** The ids of the tree of all files and of those below it, in that order; none where git has not written it since the last change. */
  trees: readonly string[]
}

/**
 * Reads an index of version 2 in one file, as git writes it in a private git directory. Null for any other: none, a split or
 * sparse one, one that is damaged, or has files of which something else is known (a merge, a submodule, a file not read).
 */
export function readIndexFile(path: string, objectFormat: PrivateGitLocation['objectFormat']): IndexFile | null {
  try {
    const { mtimeMs } = statSync(path)
    // Not waited at, if something else lies there.
    const bytes = readBoundedNow(path, MOST_BYTES)
    const parsed = bytes && parse(bytes, objectFormat)
    return parsed === null ? null : { ...parsed, writtenMs: mtimeMs }
  } catch {
    return null
  }
}

function parse(bytes: Buffer, objectFormat: PrivateGitLocation['objectFormat']): Omit<IndexFile, 'writtenMs'> | null {
  const idBytes = objectFormat === 'sha256' ? 32 : 20
  const end = bytes.length - idBytes
  if (end < HEADER_BYTES || bytes.toString('latin1', 0, 4) !== 'DIRC' || bytes.readUInt32BE(4) !== 2) return null
  if (!createHash(objectFormat).update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end))) return null
  const files: IndexedFile[] = []
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const pathAt = at + STAT_BYTES + idBytes + 2
    // A stage, or what a later version may say of a file.
    if ((bytes.readUInt16BE(pathAt - 2) & ~NAME_LENGTH) !== 0) return null
    const mode = bytes.readUInt32BE(at + 24).toString(8)
    if (!MODES.has(mode)) return null
    const pathEnd = bytes.indexOf(0, pathAt)
    files.push({
      path: bytes.toString('latin1', pathAt, pathEnd),
      mode,
      id: bytes.toString('hex', at + STAT_BYTES, at + STAT_BYTES + idBytes),
      ino: bytes.readUInt32BE(at + 20),
      size: bytes.readUInt32BE(at + 36),
      ctimeMs: inMs(bytes, at),
      mtimeMs: inMs(bytes, at + 8),
    })
    // Entries are padded to a multiple of eight, with one NUL at least.
    at += (pathEnd - at + 8) & ~7
  }
  const extensions = parseExtensions(bytes, at, end)
  return extensions === null ? null : { files, trees: parseTrees(extensions.get('TREE'), idBytes) }
}

/** By their names. Null if there is one that changes what the files are, such as the link to another part of a split index: its name is in lower case. */
function parseExtensions(bytes: Buffer, from: number, end: number): Map<string, Buffer> | null {
  const found = new Map<string, Buffer>()
  let at = from
  while (at < end) {
    const name = bytes.toString('latin1', at, at + 4)
    if (!/^[A-Z]/.test(name)) return null
    const size = bytes.readUInt32BE(at + 4)
    found.set(name, bytes.subarray(at + 8, at + 8 + size))
    at += 8 + size
  }
  return found
}

/** Of each folder: its name, a NUL, the number of its files (-1: its tree is to be made anew), that of its folders, a line feed, the tree's id. */
function parseTrees(bytes: Buffer | undefined, idBytes: number): string[] {
  const ids: string[] = []
  for (let at = 0; bytes !== undefined && at < bytes.length; at += idBytes) {
    const from = bytes.indexOf(0, at) + 1
    const to = bytes.indexOf('\n', from) + 1
    if (bytes.toString('latin1', from, to).startsWith('-')) return []
    at = to
    ids.push(bytes.toString('hex', at, at + idBytes))
  }
  return ids
}

/** In the same way as Node makes it of what the system says: the two are compared for being equal. */
function inMs(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) * 1e3 + bytes.readUInt32BE(at + 4) / 1e6
}

const MOST_BYTES = 256 * 1024 * 1024
const HEADER_BYTES = 12
/** Of an entry, before its object's id. */
const STAT_BYTES = 40
const NAME_LENGTH = 0xfff
const MODES: ReadonlySet<string> = new Set(['100644', '100755', '120000'])
