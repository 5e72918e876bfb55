import { closeSync, createReadStream, fdatasync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { promisify } from 'node:util'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { LineSplitter } from '../base/line-splitter.ts'
import type { Recorded } from './events.ts'

const FORMAT = 'codemachine-journal'
const VERSION = 1
/** The longest line that is read. No event comes near it: texts in events are bounded. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024

/** The append-only record of one session. One owner; a line has reached the operating system when `append` returns. */
export interface Journal extends AsyncDisposable {
  append(event: Recorded): void
  /** Resolves when everything appended before is on the disk. */
  sync(): Promise<void>
}

/**
 * Opens a journal for appending. A new one gets its first line, which names the format and its version; one whose last
 * line was torn gets the missing newline, so that the next event stands on a line of its own.
 */
export function openJournal(path: string): Journal {
  const fd = openSync(path, 'a+', 0o600)
  const { size } = fstatSync(fd)
  let torn = size > 0 && lastByte(fd, size) !== NEWLINE
  let failed = false
  const failure = (error: unknown) => {
    failed = true
    return NO_ROOM.has(systemErrorCode(error) ?? '') ? diskFull(path, error) : error
  }
  const write = (value: unknown) => {
    const bytes = Buffer.from(`${torn ? '\n' : ''}${JSON.stringify(value)}\n`)
    let written = 0
    try {
      while (written < bytes.length) written += writeSync(fd, bytes, written)
      torn = false
    } catch (error) {
      if (written > 0) torn = bytes[written - 1] !== NEWLINE
      throw failure(error)
    }
  }
  const sync = async () => {
    try {
      await promisify(fdatasync)(fd)
    } catch (error) {
      throw failure(error)
    }
  }
  try {
    if (size === 0) write({ format: FORMAT, v: VERSION })
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return {
    append: write,
    sync,
    async [Symbol.asyncDispose]() {
      // What has failed before is what the person is told: a second error would stand in front of it.
      const toldBefore = failed
      try {
        await sync()
      } catch (error) {
        if (!toldBefore) throw error
      } finally {
        closeSync(fd)
      }
    },
  }
}

const NEWLINE = 0x0a
/** Of the disk, of a quota, and of the size that a file may have. */
const NO_ROOM: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

function diskFull(path: string, cause: unknown): UserError {
  return new UserError(`The disk is full: ${path} cannot be written.`, {
    hint: 'Free some space; nothing that was journaled before is lost.',
    exitCode: 4,
    cause,
  })
}

function lastByte(fd: number, size: number): number | undefined {
  const buffer = Buffer.alloc(1)
  readSync(fd, buffer, 0, 1, size - 1)
  return buffer[0]
}

/**
 * The events of a journal in their order, read in pieces of bounded size. Blank, torn and rubbish lines are passed over;
 * so are events of a later version. A file that is not there gives none.
 */
export async function* readJournal(path: string): AsyncGenerator<Recorded> {
  let ready: Recorded[] = []
  const splitter = new LineSplitter(line => {
    const event = parseEvent(line)
    if (event) ready.push(event)
  }, MAX_LINE_BYTES)
  try {
    for await (const chunk of createReadStream(path)) {
      splitter.push(chunk)
      const events = ready
      ready = []
      yield* events
    }
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return
    throw error
  }
  splitter.end()
  yield* ready
}

/** The event in one line of a journal; null if it is blank, torn, rubbish, or of a type that this version does not know. */
export function parseEvent(line: string): Recorded | null {
  try {
    const value: unknown = JSON.parse(line)
    return isRecorded(value) ? value : null
  } catch {
    return null
  }
}

const KNOWN_TYPES: Record<Recorded['type'], true> = {
  'session-created': true,
  'session-resumed': true,
  'round-started': true,
  'turn-started': true,
  'item-completed': true,
  'plan-updated': true,
  usage: true,
  limits: true,
  'model-rerouted': true,
  'request-answered': true,
  steered: true,
  warning: true,
  error: true,
  waiting: true,
  'round-ended': true,
  'memory-broken': true,
  'repository-restored': true,
  'done-nominated': true,
  'done-refused': true,
  'done-accepted': true,
  'session-ended': true,
}

/** codemachine alone writes the journal, so a line that parses and has a known type is taken at its word. */
function isRecorded(value: unknown): value is Recorded {
  if (typeof value !== 'object' || value === null || !('type' in value) || !('at' in value)) return false
  return typeof value.type === 'string' && Object.hasOwn(KNOWN_TYPES, value.type) && typeof value.at === 'string'
}
