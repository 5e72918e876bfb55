import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { systemErrorCode } from '../base/errors.ts'

/** The text of a file, or why there is none: `problem` goes on after the file's name, as in `is a directory`. */
export type BoundedText = { text: string } | { problem: string } | 'missing'

/**
 * Reads a UTF-8 file of at most `maxBytes` (a BOM is dropped). Anything else is a problem in words, and never waited
 * for: a pipe, a device, a directory, a file that is too long or not UTF-8 or may not be read.
 */
export async function readBoundedText(path: string, maxBytes: number): Promise<BoundedText> {
  try {
    // Without O_NONBLOCK (absent on Windows) the opening of a named pipe waits for its other end.
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const stat = await file.stat()
    if (stat.isDirectory()) return { problem: 'is a directory; a file is expected' }
    if (!stat.isFile()) return { problem: 'is not a regular file' }
    if (stat.size > maxBytes) return { problem: `is longer than ${maxBytes} bytes` }
    // A file that grows while it is read counts as what it was when it was opened.
    const bytes = await readFirst(file, stat.size)
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return 'missing'
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problem: 'is not UTF-8 text; save it as UTF-8' }
    if (code !== null) return { problem: `cannot be read (${code})` }
    throw error
  }
}

/** The first `size` bytes of a file, or as many as it has. The system may give less at a time than it is asked for. */
async function readFirst(file: Pick<FileHandle, 'read'>, size: number): Promise<Buffer> {
  const bytes = Buffer.alloc(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await file.read(bytes, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}
