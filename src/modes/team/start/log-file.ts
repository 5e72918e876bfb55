import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { checkFolder, dayOf, twoDigits } from './places.ts'

/** What an entry of the log is about. */
export type LogPrefix =
  | `${'PLANNER' | 'WORKER' | 'REVIEWER'} ${'REQUEST' | 'RAW RESPONSE' | 'PARSED'}`
  | `ORCH ${'START' | 'EXECUTE STEP' | 'REVIEW' | 'COMPLETE'}`
  | `SECRET ${'CONFIRMED' | 'CONFIRMATION FAILED'}`

/** One entry of the log; `at`: Unix time, ms. */
export interface LogEntry {
  at: number
  prefix: LogPrefix
  text: string
}

/** The longest line, with its line end, bytes. */
const MOST_LINE = 64 * 1024

/**
 * An entry as a line with its end: `[2026-11-21T23:40:07.123+01:00] [WORKER PARSED] …`. Line ends in its text are `\n`, other control
 * characters as JSON writes them; JSON is left as it is. What is too long is cut, and says how much of it is missing. Pure.
 */
function logLine({ at, prefix, text }: LogEntry): string {
  const line = `[${localTime(new Date(at))}] [${prefix}] ${escaped(text)}`
  const bytes = Buffer.byteLength(line)
  if (bytes < MOST_LINE) return `${line}\n`
  const left = bytes - MOST_LINE + MOST_NOTE
  const kept = Buffer.from(line).subarray(0, bytes - left)
  // A character that is cut in two becomes U+FFFD, which is as long or longer.
  const whole = new TextDecoder().decode(kept).replace(/\uFFFD+$/, '')
  return `${whole} … (${left} bytes left out)\n`
}

const MOST_NOTE = 64

function escaped(text: string): string {
  return text
    .replace(/\r\n?|[\n\u2028\u2029]/g, '\\n')
    .replace(/[^\P{Cc}\t]/gu, each => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A moment as ISO 8601 in local time, with its distance from UTC. */
function localTime(at: Date): string {
  const distance = -at.getTimezoneOffset()
  const sign = distance < 0 ? '-' : '+'
  const [hours, minutes] = [Math.trunc(Math.abs(distance) / 60), Math.abs(distance) % 60]
  const local = new Date(at.getTime() + distance * 60_000).toISOString().slice(0, -1)
  return `${local}${sign}${twoDigits(hours)}:${twoDigits(minutes)}`
}

/** The log of a workspace, a file a day, which teams side by side write to. */
export class TeamLogFile implements AsyncDisposable {
  readonly #workspace: string
  readonly #folder: string
  #open: { name: string; file: FileHandle } | null = null
  #isTorn = false

  /** @param folder relative to the workspace */
  constructor(workspace: string, folder: string) {
    this.#workspace = workspace
    this.#folder = folder
  }

  /** Adds one entry, in one write. Rejects if it cannot be written. */
  async add(entry: LogEntry): Promise<void> {
    const file = await this.#fileOf(`agent-${dayOf(new Date(entry.at))}.log`)
    const bytes = Buffer.from(`${this.#isTorn ? '\n' : ''}${logLine(entry)}`)
    this.#isTorn = true
    const { bytesWritten } = await file.write(bytes)
    // A disk that is nearly full takes a part of it; of a line that was cut so the rest would stand after that of another.
    if (bytesWritten < bytes.length) throw Object.assign(new Error('only a part was written'), { code: 'ENOSPC' })
    this.#isTorn = false
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = this.#open
    this.#open = null
    await opened?.file.close()
  }

  async #fileOf(name: string): Promise<FileHandle> {
    if (this.#open?.name === name) return this.#open.file
    await this[Symbol.asyncDispose]()
    await checkFolder(this.#workspace, this.#folder)
    const file = await open(join(this.#workspace, this.#folder, name), APPEND, 0o600)
    const found = await file.stat()
    if (!found.isFile() || found.nlink !== 1) {
      await file.close()
      throw new UserError('CM0210', 'it is a link, or no regular file; remove it.')
    }
    this.#open = { name, file }
    this.#isTorn = await endsInsideLine(file)
    return file
  }
}

/** Whether the last line has no end: a full disk has cut it off. One that is just being written grows meanwhile. */
async function endsInsideLine(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] !== LINE_END && (await file.stat()).size === size
}

const LINE_END = 0x0a

const APPEND =
  constants.O_RDWR |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NOFOLLOW ?? 0) |
  // A pipe whose other end nobody opens is an error, and no wait.
  (constants.O_NONBLOCK ?? 0)
