import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import type { Clock } from '../../../base/clock.ts'
import { messageOf, systemErrorCode } from '../../../base/errors.ts'
import { parsedOrNull } from '../../../base/json.ts'
import { LineSplitter } from '../../../base/text.ts'
import type { PromptTerms, QueuedPrompt } from '../../../core/shapes/queue.ts'
import { CHANGE } from '../../../modes/change/start/options.ts'
import { readBoundedText, stampOf, writeWholeFile } from '../../../platform/files.ts'
import { startTimeOf } from '../../../platform/processes.ts'
import type { Redactor } from '../../../secrets/redactor.ts'
import { openQueue, type Queue } from '../../../session/records/queue.ts'
import { termsInWords } from '../../../tell/words/commands.ts'
import type { CliContext } from '../cli-context.ts'
import type { ScreenModel } from '../screen/model.ts'
import type { Screen } from '../screen/screen.tsx'

interface PromptHistoryOptions {
  /** Where codemachine keeps its records (`Records.root`). */
  root: string
  clock: Clock
  redactor: Redactor
  /** Told once, in a sentence, why nothing can be read or kept, if that is so. */
  onProblem: (problem: string) => void
}

/** What a person has typed, in any work directory: `history.jsonl`, the last 500, shared by all that run at once. */
export interface PromptHistory {
  /** The texts, the oldest first, without those that follow upon the same text. */
  list(): Promise<string[]>
  /** Keeps a prompt, without its secrets; one of more than 64 KiB is left out, as half of it would look whole. */
  add(text: string, directory: string): Promise<void>
}

/**
 * Opens the history; nothing is read or made yet. No lock is held: a line is appended in one write, and once more if the
 * file has got another name meanwhile. Who makes the file shorter first takes it aside (only one can), then appends the
 * newest lines of it, then removes it; so at each moment every line stands in some file, and its id tells copies apart.
 */
export function openPromptHistory({ root, clock, redactor, onProblem }: PromptHistoryOptions): PromptHistory {
  const path = join(root, 'history.jsonl')
  let toldProblem = false
  const attempt = async <T>(work: () => Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (systemErrorCode(error) === null) throw error
      if (!toldProblem) onProblem(`The history of prompts, ${path}, cannot be used: ${messageOf(error)}.`)
      toldProblem = true
      return otherwise
    }
  }
  return {
    list: () =>
      attempt(async () => {
        const texts = (await readAll(root, path)).map(({ text }) => text)
        return texts.filter((text, index) => text !== texts[index - 1])
      }, []),
    add: (typed, directory) =>
      attempt(async () => {
        const text = redactor.text(typed)
        if (text.trim() === '' || Buffer.byteLength(text) > MOST_TEXT_BYTES) return
        const at = new Date(clock.now()).toISOString()
        await append(path, [lineOf({ id: randomUUID(), at, text, directory: redactor.text(directory) })])
        await shortenIfLong(root, path)
      }, undefined),
  }
}

const MOST_TEXT_BYTES = 64 * 1024
const MOST_ENTRIES = 500
/** The file is made shorter when it has this many lines. */
const MOST_LINES = 600
/** Of the file, of which the end is read; it is made shorter to half of that, whatever the number of entries. */
const MOST_BYTES = 16 * 1024 * 1024
/** More than the longest text, each character of it written as `\u0000`, and its directory. */
const MOST_LINE_BYTES = 512 * 1024

const entrySchema = v.object({
  id: v.pipe(v.string(), v.minLength(1)),
  at: v.pipe(v.string(), v.isoTimestamp()),
  text: v.pipe(v.string(), v.maxBytes(MOST_TEXT_BYTES)),
  directory: v.string(),
})

type Entry = v.InferOutput<typeof entrySchema>

function lineOf(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`
}

/** Appends lines, for this user alone; on return they stand in the file of that name, or in one that was taken aside later. */
async function append(path: string, lines: readonly string[]): Promise<void> {
  // Each with a newline before it: a line that a full disk has cut off must not swallow the next.
  const bytes = Buffer.from(lines.map(line => `\n${line}`).join(''))
  for (;;) {
    await using file = await open(path, APPEND, 0o600)
    const found = await file.stat()
    if (!found.isFile()) throw Object.assign(new Error('it is not a regular file'), { code: 'EINVAL' })
    if ((found.mode & 0o077) !== 0) await file.chmod(0o600)
    await writeAll(file, bytes)
    const named = await stat(path).catch(() => null)
    if (named !== null && named.ino === found.ino && named.dev === found.dev) return
  }
}

// Without O_NONBLOCK (absent on Windows) the opening of a named pipe waits for its other end.
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0)

/** In one write, but for a disk that is nearly full: it takes a part, and then says so. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let rest = bytes; rest.length > 0; ) rest = rest.subarray((await file.write(rest)).bytesWritten)
}

async function shortenIfLong(root: string, path: string): Promise<void> {
  const { lines, bytes } = await readLines(path)
  if (lines.length < MOST_LINES && bytes < MOST_BYTES) return
  try {
    await rename(path, `${path}.${randomUUID()}.old`)
    // One that was left by a crash goes in together with it.
    const aside = await asideOf(root)
    const entries = new Map<string, Entry>()
    for (const each of aside) for (const line of (await readLines(each)).lines) addEntry(entries, line)
    await append(path, newest(entries).map(lineOf))
    for (const each of aside) await rm(each, { force: true })
  } catch (error) {
    // Another one was quicker, or, on Windows, has it open: then the next prompt makes it shorter.
    if (!['ENOENT', 'EPERM', 'EBUSY', 'EACCES'].includes(systemErrorCode(error) ?? '')) throw error
  }
}

/** All entries, the oldest first. Read again while the files change under the reading, a few times. */
async function readAll(root: string, path: string): Promise<Entry[]> {
  const entries = new Map<string, Entry>()
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const aside = await asideOf(root)
    const read = await Promise.all([...aside, path].map(readLines))
    for (const { lines } of read) for (const line of lines) addEntry(entries, line)
    const now = [...(await asideOf(root)), (await readLines(path)).stamp].join(' ')
    if (now === [...aside, read.at(-1)?.stamp].join(' ')) break
  }
  return newest(entries)
}

const MOST_TRIES = 5

/** The files that were taken aside and have not been removed yet. */
async function asideOf(root: string): Promise<string[]> {
  const names = await readdir(root)
  return names.filter(name => /^history\.jsonl\.[\w-]+\.old$/.test(name)).map(name => join(root, name))
}

/** The lines at the end of a file; none if there is no file. `stamp` tells one state of it from another. */
async function readLines(path: string): Promise<{ lines: string[]; bytes: number; stamp: string }> {
  const lines: string[] = []
  try {
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    const { size, ino } = await file.stat()
    const splitter = new LineSplitter(line => void (line.length > 0 && lines.push(line)), MOST_LINE_BYTES)
    const bytes = Buffer.alloc(Math.min(size, MOST_BYTES))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length)
    splitter.push(bytes.subarray(0, bytesRead))
    splitter.end()
    return { lines, bytes: size, stamp: `${ino}:${size}` }
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
    return { lines, bytes: 0, stamp: '' }
  }
}

/** Passes over what is no entry. */
function addEntry(entries: Map<string, Entry>, line: string): void {
  try {
    const entry = v.parse(entrySchema, JSON.parse(line))
    entries.set(entry.id, entry)
  } catch {}
}

/** The 500 newest, the oldest of them first, as far as half of the file's size holds them. */
function newest(entries: ReadonlyMap<string, Entry>): Entry[] {
  const inOrder = [...entries.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)).slice(-MOST_ENTRIES)
  let bytes = 0
  const first = inOrder.findLastIndex(entry => {
    bytes += Buffer.byteLength(lineOf(entry))
    return bytes > MOST_BYTES / 2
  })
  return inOrder.slice(first + 1)
}

interface DraftFileOptions {
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
      if (!toldProblem) onProblem(`Your draft cannot be saved in ${path}: ${messageOf(error)}.`)
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
      const read = await readBoundedText(path, MOST_DRAFT_BYTES)
      return typeof read === 'object' && 'text' in read ? parsedOrNull(read.text) : null
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
const MOST_DRAFT_BYTES = 8 * 1024 * 1024

async function put(path: string, draft: unknown): Promise<void> {
  if (draft === null) return await rm(path, { force: true })
  const bytes = Buffer.from(`${JSON.stringify(draft)}\n`)
  if (bytes.length <= MOST_DRAFT_BYTES) await writeWholeFile(path, bytes)
}

const draftSchema = v.object({
  /** Whose it is. */
  pid: v.pipe(v.number(), v.integer()),
  startTime: v.nullable(v.string()),
  parts: v.array(v.union([v.string(), v.object({ pasted: v.string() })])),
  caret: v.pipe(v.number(), v.integer(), v.minValue(0)),
})

/**
 * Puts what was typed the last time into the composer, above what is typed by now; from then on every change of it is
 * kept. Does nothing beside another screen that keeps its own there.
 */
export async function keepDraft(
  model: ScreenModel,
  draft: DraftFile,
  { pid, platform }: Pick<CliContext, 'pid' | 'platform'>,
): Promise<void> {
  const { composer } = model
  const kept = v.safeParse(draftSchema, await draft.read())
  if (kept.success) {
    const { pid: owner, startTime } = kept.output
    if (owner !== pid && startTime !== null && (await startTimeOf(owner, platform)) === startTime) return
    const typed = composer.text
    composer.restore(kept.output)
    if (typed.trim() !== '') model.addText(typed)
  }
  const me = { pid, startTime: await startTimeOf(pid, platform) }
  let { text } = composer.snapshot().buffer
  composer.subscribe(() => {
    const { buffer } = composer.snapshot()
    if (buffer.text === text) return
    text = buffer.text
    const changed = composer.draft()
    draft.keep(changed.parts.length === 0 ? null : { ...me, ...changed })
  })
}

interface WaitingPromptsOptions {
  /** Where the queue lies. */
  path: string
  screen: Screen
  clock: Clock
  /** Where what is taken back is kept; null if it is not. */
  draft: DraftFile | null
}

/** How often the queue is looked at for what other terminals do with it, ms. */
const LOOK_MS = 2_000

/** The queue of a work directory, as the screen shows it. */
export class WaitingPrompts {
  readonly #options: WaitingPromptsOptions
  readonly #queue: Queue
  #problem: string | null = null
  #stamp: string | null = null

  constructor(options: WaitingPromptsOptions) {
    this.#options = options
    this.#queue = openQueue(options.path)
  }

  async list(): Promise<readonly QueuedPrompt[]> {
    return (await this.#queue.list()).prompts
  }

  /** Adds a prompt; resolves with a sentence. */
  async add(prompt: string, terms: PromptTerms = {}): Promise<string> {
    await this.#queue.add(prompt, new Date(this.#options.clock.now()), terms)
    const key = this.#options.screen.model.options.keymap.label('take_back')
    const back = key === '' ? '/queue shows it' : `${key} takes it back`
    return `Queued as the next session (${await this.#count()} in the queue); ${back}`
  }

  /** Puts a prompt, or the last one, into the field as one types it, and says what it loses; false if none waits any more. */
  async edit(prompt?: QueuedPrompt): Promise<boolean> {
    const { screen } = this.#options
    const taken = prompt ?? (await this.list()).at(-1)
    if (taken === undefined) return false
    if (!(await this.takeBack(taken, () => screen.model.addQueued(asTyped(taken))))) return false
    const { template, follows, ...terms } = taken
    const lost = termsInWords(asTyped(taken) === taken.prompt ? taken : terms)
    if (lost === '') screen.notice('Removed from the queue; Enter queues it again', 'good')
    else screen.notice(`It was to begin with ${lost}; say it again if you need it`, 'warning')
    return true
  }

  /** Takes the prompt out of the queue, once `keep` has put it where it is kept; false if its session has begun. */
  async takeBack({ id }: QueuedPrompt, keep: () => void): Promise<boolean> {
    if (!(await this.#queue.claim(id))) return false
    keep()
    await this.#options.draft?.written()
    await this.#queue.removeIfWaiting(id)
    await this.#count()
    return true
  }

  /** Has the screen show how many wait; what goes wrong with that is said once. */
  async show(): Promise<void> {
    try {
      await this.#count()
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== this.#problem) this.#options.screen.notice(`The queue cannot be read: ${problem}`, 'warning')
      this.#problem = problem
    }
  }

  /** Does so again and again, until `signal`. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.show()
      await this.#options.clock.wait(LOOK_MS, signal)
    }
  }

  async #count(): Promise<number> {
    const { screen } = this.#options
    const { model } = screen
    // Each change of the queue changes its folder; unchanged, no file is read every two seconds.
    const stamp = stampOf(this.#options.path)
    const isKnown = stamp !== null && stamp === this.#stamp
    const queue = isKnown ? model.queue : (await this.list()).map(asTyped)
    this.#stamp = stamp
    const isSame = (shown: readonly string[]) => isDeepStrictEqual(shown, queue)
    if (isSame(model.queue) && isSame(model.facts?.queue ?? queue)) return queue.length
    model.queue = queue
    if (model.facts !== null) model.facts = { ...model.facts, queue }
    screen.changed()
    return queue.length
  }
}

/** A prompt with the command that begins its kind of session: `/flow release`. */
function asTyped({ template, follows, prompt }: QueuedPrompt): string {
  if (template === 'flow') return `/flow ${prompt}`
  if (template === CHANGE) return `/${follows === undefined ? 'change' : 'follow'} ${prompt}`
  return prompt
}
