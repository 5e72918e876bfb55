import { type FileHandle, open } from 'node:fs/promises'
import { systemErrorCode } from '../base/errors.ts'
import type { Recorded } from '../session/events.ts'
import { JournalLines } from '../session/journal.ts'

const CHUNK_BYTES = 64 * 1024

/** A journal that is still being written, and may not be there yet. */
export class GrowingJournal implements AsyncDisposable {
  readonly #path: string
  readonly #buffer = Buffer.alloc(CHUNK_BYTES)
  readonly #lines: JournalLines
  #file: FileHandle | null = null

  constructor(path: string) {
    this.#path = path
    this.#lines = new JournalLines(path)
  }

  /** What has become whole since the last time. A torn last line counts once it is completed. */
  async *readOn(signal: AbortSignal): AsyncGenerator<Recorded> {
    this.#file ??= await openIfThere(this.#path)
    while (this.#file && !signal.aborted) {
      const { bytesRead } = await this.#file.read(this.#buffer)
      if (bytesRead === 0) return
      // The lines keep what they are given; the buffer is used again.
      yield* this.#lines.push(Buffer.from(this.#buffer.subarray(0, bytesRead)))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close()
  }
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path)
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null
    throw error
  }
}
