import type { BigIntStats } from 'node:fs'
import { constants, type FileHandle, lstat, open } from 'node:fs/promises'
import { systemErrorCode } from '../base/errors.ts'

/** What tells one state of a file from another without reading it. */
export interface FileState {
  /** Device, inode, size, mtime and ctime. */
  key: string
  /** ms since the epoch. */
  changedAt: number
  mode: number
}

/** A text that was read, that there is none, or why it cannot be one (a sentence). */
type TextFile =
  | { kind: 'text'; text: string; state: FileState }
  | { kind: 'gone' }
  | { kind: 'broken'; problem: string }

/** The bytes of a file, that there is none, that it is larger than allowed, or why it cannot be read (a sentence). */
type PlainFile =
  | { kind: 'bytes'; bytes: Buffer; state: FileState }
  | { kind: 'gone' }
  | { kind: 'too-large'; size: number }
  | { kind: 'broken'; problem: string }

/** The state of the regular file at a path; null if there is none (a link is none). */
export async function fileState(path: string): Promise<FileState | null> {
  try {
    const stat = await lstat(path, { bigint: true })
    return stat.isFile() ? stateOf(stat) : null
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return null
  }
}

/** Reads a UTF-8 text that anybody may have written: never through a link, never from a pipe, never more than `limit` bytes. */
export async function readTextFile(path: string, limit: number): Promise<TextFile> {
  const read = await readPlainFile(path, limit)
  if (read.kind === 'too-large') return broken(`it is larger than ${limit / 1024 / 1024} MiB; keep it short.`)
  if (read.kind !== 'bytes') return read
  const text = decode(read.bytes)
  if (text === null) return broken('it is not valid UTF-8; write it as UTF-8 text.')
  const zero = text.indexOf('\0')
  if (zero === -1) return { kind: 'text', text, state: read.state }
  return broken(`line ${text.slice(0, zero).split('\n').length} has a NUL byte; write plain text.`)
}

/** The same, whatever its bytes are. */
export async function readPlainFile(path: string, limit: number): Promise<PlainFile> {
  try {
    const stat = await lstat(path)
    if (stat.isSymbolicLink()) return broken('it is a link; write a file in its place.')
    if (!stat.isFile()) return broken('it is not a regular file; write a file in its place.')
    // Between the two calls it may have become a pipe, at which a plain open would wait for ever.
    await using file = await open(path, constants.O_RDONLY | nonBlock | noFollow)
    return await readOpened(file, limit)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'gone' }
    if (code === 'EACCES' || code === 'EPERM' || code === 'ELOOP' || code === 'ENXIO') {
      return broken(`it cannot be opened (${code}); write a readable file in its place.`)
    }
    throw error
  }
}

async function readOpened(file: FileHandle, limit: number): Promise<PlainFile> {
  const stat = await file.stat({ bigint: true })
  if (!stat.isFile()) return broken('it is not a regular file; write a file in its place.')
  const bytes = stat.size > limit ? null : await readUpTo(file, limit)
  return bytes === null
    ? { kind: 'too-large', size: Number(stat.size) }
    : { kind: 'bytes', bytes, state: stateOf(stat) }
}

async function readUpTo(file: FileHandle, limit: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  for (let size = 0; size <= limit; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(64 * 1024))
    if (bytesRead === 0) return Buffer.concat(chunks)
    chunks.push(buffer.subarray(0, bytesRead))
    size += bytesRead
  }
  return null
}

function decode(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

function stateOf({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs, mode }: BigIntStats): FileState {
  return { key: [dev, ino, size, mtimeNs, ctimeNs].join(' '), changedAt: Number(ctimeMs), mode: Number(mode) }
}

function broken(problem: string): { kind: 'broken'; problem: string } {
  return { kind: 'broken', problem }
}

// Windows has neither.
const nonBlock = constants.O_NONBLOCK ?? 0
const noFollow = constants.O_NOFOLLOW ?? 0
