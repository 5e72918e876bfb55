import { constants, type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { inboxFiles, mostBytes } from './inbox.ts'
import type { InboxFolder } from './inbox-folder.ts'

/** Writes what an agent says, as it says it, for whoever asked; at most 1 MiB. Disposing of it writes what is left. */
export class StreamWriter implements AsyncDisposable {
  readonly #folder: InboxFolder
  readonly #name: string
  #file: Promise<FileHandle | null> | null = null
  #waits = ''
  #left: number = mostBytes.stream
  #writing: Promise<void> = Promise.resolve()

  constructor(folder: InboxFolder, id: string) {
    this.#folder = folder
    this.#name = inboxFiles.stream(id)
  }

  /** Takes some more; what comes while a write goes on is written with the next. */
  push(text: string): void {
    if (this.#left <= 0) return
    if (this.#waits === '') this.#writing = this.#writing.then(() => this.#writeOn())
    this.#waits += text
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing
    const file = await this.#file
    await file?.close().catch(() => {})
  }

  async #writeOn(): Promise<void> {
    const bytes = Buffer.from(this.#waits.toWellFormed()).subarray(0, Math.max(0, this.#left))
    this.#waits = ''
    this.#left -= bytes.length
    this.#file ??= this.#open()
    const file = await this.#file
    // Live text is a comfort: the result comes in the reply.
    await file?.appendFile(bytes).catch(() => {
      this.#left = 0
    })
  }

  async #open(): Promise<FileHandle | null> {
    await this.#folder.remove(this.#name)
    if (!(await this.#folder.isReal())) return null
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL | noFollow
    const file = await open(join(this.#folder.path, this.#name), flags, 0o600).catch(() => null)
    if (file === null || (await this.#folder.holds(this.#name))) return file
    await file.close()
    return null
  }
}

/** Reads a stream as it grows. */
export class StreamReader implements AsyncDisposable {
  readonly #path: string
  #file: FileHandle | null = null
  #offset = 0
  readonly #decoder = new TextDecoder()

  constructor(folder: InboxFolder, id: string) {
    this.#path = join(folder.path, inboxFiles.stream(id))
  }

  /** Whether the stream is as long as one can be, so that its end may be missing. */
  get isCut(): boolean {
    return this.#offset >= mostBytes.stream
  }

  /** Whether there was anything. */
  get hasBegun(): boolean {
    return this.#offset > 0
  }

  /** What has come since the last call; nothing from what is not a regular file. */
  async next(): Promise<string> {
    this.#file ??= await openRegular(this.#path)
    if (this.#file === null) return ''
    let text = ''
    while (!this.isCut) {
      const most = Math.min(CHUNK, mostBytes.stream - this.#offset)
      const { bytesRead, buffer } = await this.#file.read(Buffer.allocUnsafe(most), 0, most, this.#offset)
      if (bytesRead === 0) break
      this.#offset += bytesRead
      text += this.#decoder.decode(buffer.subarray(0, bytesRead), { stream: true })
    }
    return text
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close()
  }
}

const CHUNK = 64 * 1024

/** A plain open would wait at a pipe for ever. */
async function openRegular(path: string): Promise<FileHandle | null> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | noFollow).catch(() => null)
  if (file === null || (await file.stat()).isFile()) return file
  await file.close()
  return null
}

// Windows has no such flag.
const noFollow = constants.O_NOFOLLOW ?? 0
