import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { checkFolder, dayOf, twoDigits } from './places.ts'

/** Subject of a log entry. */
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

/** Longest line with its line end, in bytes. */
const MOST_LINE = 64 * 1024

/**
 * Formats an entry as a line: `[2026-11-21T23:40:07.123+01:00] [WORKER PARSED] …`. Line ends in its text become `\n`, other
 * control characters as in JSON; JSON stays unchanged. A too long text is cut, with the missing length. Pure.
 */
function logLine({ at, prefix, text }: LogEntry): string {
  const line = `[${localTime(new Date(at))}] [${prefix}] ${escaped(text)}`
  const bytes = Buffer.byteLength(line)
  if (bytes < MOST_LINE) return `${line}\n`
  const left = bytes - MOST_LINE + MOST_NOTE
  const kept = Buffer.from(line).subarray(0, bytes - left)
  // A split character becomes U+FFFD, which is at least as long.
  const whole = new TextDecoder().decode(kept).replace(/\uFFFD+$/, '')
  return `${whole} … (${left} bytes left out)\n`
}

const MOST_NOTE = 64

function escaped(text: string): string {
  return text
    .replace(/\r\n?|[\n\u2028\u2029]/g, '\\n')
    .replace(/[^\P{Cc}\t]/gu, each => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Formats a time as ISO 8601 in local time, with its UTC offset. */
function localTime(at: Date): string {
  const distance = -at.getTimezoneOffset()
  const sign = distance < 0 ? '-' : '+'
  const [hours, minutes] = [Math.trunc(Math.abs(distance) / 60), Math.abs(distance) % 60]
  const local = new Date(at.getTime() + distance * 60_000).toISOString().slice(0, -1)
  return `${local}${sign}${twoDigits(hours)}:${twoDigits(minutes)}`
}

/** The log of a workspace, one file a day, shared by parallel teams. */
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
    // An almost full disk may write only part; the rest would then follow another writer's line.
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

/** Returns whether the last line is incomplete: a full disk cut it. A line that is being written grows meanwhile. */
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
  // A pipe without a reader must fail, not block.
  (constants.O_NONBLOCK ?? 0)
