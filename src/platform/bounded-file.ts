import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
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
    const bytes = Buffer.alloc(stat.size)
    // A file that grows while it is read counts as what it was when it was opened.
    const { bytesRead } = await file.read(bytes, 0, stat.size, 0)
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, bytesRead)) }
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT') return 'missing'
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { problem: 'is not UTF-8 text; save it as UTF-8' }
    if (code !== null) return { problem: `cannot be read (${code})` }
    throw error
  }
}
