import { type FSWatcher, watch } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { systemErrorCode } from '../base/errors.ts'
import { LineSplitter } from '../base/line-splitter.ts'
import type { Recorded } from '../session/events.ts'
import { MAX_LINE_BYTES, parseEvent } from '../session/journal.ts'

export interface FollowOptions {
  clock: Clock
  /** Ends the following. */
  signal: AbortSignal
  /** Asked whenever all that is written has been yielded: whether nothing more will come. */
  isOver(): Promise<boolean>
}

/**
 * The events of a journal that is still being written, from its first on. An event is yielded when its line is whole,
 * so a torn last line counts once it is completed. Ends after `isOver` or with `signal`.
 */
export async function* followJournal(path: string, options: FollowOptions): AsyncGenerator<Recorded> {
  const { clock, signal, isOver } = options
  await using journal = new GrowingJournal(path)
  let wake = new AbortController()
  const awaken = () => wake.abort()
  const watcher = watchFolder(dirname(path), awaken)
  signal.addEventListener('abort', awaken)
  try {
    while (!signal.aborted) {
      // Before the reading, so that what is written during it is not slept over.
      wake = new AbortController()
      yield* journal.readOn(signal)
      if (await isOver()) {
        yield* journal.readOn(signal)
        return
      }
      if (!signal.aborted) await clock.wait(POLL_MS, wake.signal)
    }
  } finally {
    signal.removeEventListener('abort', awaken)
    watcher?.close()
  }
}

/** A network drive tells nothing of what changes on it. */
const POLL_MS = 1000

const CHUNK_BYTES = 64 * 1024

/** Null where it cannot be watched (no inotify watches left, for one): then polling has to do. */
function watchFolder(folder: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(folder, onChange).on('error', () => {})
  } catch {
    return null
  }
}

class GrowingJournal implements AsyncDisposable {
  readonly #path: string
  readonly #buffer = Buffer.alloc(CHUNK_BYTES)
  readonly #splitter: LineSplitter
  #file: FileHandle | null = null
  #ready: Recorded[] = []

  constructor(path: string) {
    this.#path = path
    this.#splitter = new LineSplitter(line => {
      const event = parseEvent(line)
      if (event) this.#ready.push(event)
    }, MAX_LINE_BYTES)
  }

  /** What has become whole since the last time. */
  async *readOn(signal: AbortSignal): AsyncGenerator<Recorded> {
    this.#file ??= await openIfThere(this.#path)
    while (this.#file && !signal.aborted) {
      const { bytesRead } = await this.#file.read(this.#buffer)
      if (bytesRead === 0) return
      // The splitter keeps what it is given; the buffer is used again.
      this.#splitter.push(Buffer.from(this.#buffer.subarray(0, bytesRead)))
      const events = this.#ready
      this.#ready = []
      yield* events
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
