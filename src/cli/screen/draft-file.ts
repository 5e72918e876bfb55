import { rm } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import { readBoundedText } from '../../platform/bounded-file.ts'
import { writeWholeFile } from '../../platform/write-whole-file.ts'

export interface DraftFileOptions {
  /** Among the records of the work directory. */
  path: string
  clock: Clock
  /** Told once, in a sentence, why the draft cannot be kept, if it cannot. */
  onProblem: (problem: string) => void
}

/** What stands in the composer, kept through a crash. Disposing of it writes what has not been written yet. */
export interface DraftFile extends AsyncDisposable {
  /** What was kept, as plain JSON; null if there is nothing that can be read. */
  read(): Promise<unknown>
  /**
   * Keeps a JSON value that nobody changes any more, within 300 ms; null removes the file. One of more than 8 MiB is not
   * kept: then the one before it stays.
   */
  keep(draft: unknown): void
  /** Resolves when what was kept so far has been written. */
  written(): Promise<void>
}

/** Opens the draft of a work directory; nothing is made yet. */
export function openDraftFile({ path, clock, onProblem }: DraftFileOptions): DraftFile {
  const closing = new AbortController()
  let hurry = new AbortController()
  let draft: unknown
  let isKept = true
  let writing: Promise<void> | null = null
  let toldProblem = false

  const write = async () => {
    isKept = true
    try {
      await put(path, draft)
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      if (!toldProblem) onProblem(`What you are typing is not kept in ${path}: ${messageOf(error)}.`)
      toldProblem = true
    }
  }
  const writeLater = async () => {
    try {
      while (!isKept) {
        await clock.wait(EVERY_MS, AbortSignal.any([closing.signal, hurry.signal]))
        hurry = new AbortController()
        await write()
      }
    } finally {
      writing = null
    }
  }

  return {
    read: async () => {
      const read = await readBoundedText(path, MOST_BYTES)
      return typeof read === 'object' && 'text' in read ? parsed(read.text) : null
    },
    keep: next => {
      draft = next
      isKept = false
      writing ??= writeLater()
    },
    written: async () => {
      hurry.abort()
      await writing
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await writing
    },
  }
}

const EVERY_MS = 300
const MOST_BYTES = 8 * 1024 * 1024

async function put(path: string, draft: unknown): Promise<void> {
  if (draft === null) return await rm(path, { force: true })
  const bytes = Buffer.from(`${JSON.stringify(draft)}\n`)
  if (bytes.length <= MOST_BYTES) await writeWholeFile(path, bytes)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
