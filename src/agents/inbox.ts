import { constants, type FileHandle, lutimes, open, opendir, realpath, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { systemErrorCode, unreachable } from '../base/errors.ts'
import { clipEnd } from '../base/text.ts'
import { problemOfTask } from '../core/contracts/tools.ts'
import { renameIfThere } from '../platform/files.ts'
import { fileState, findObstacle, readTextFile, writeFileInside } from '../workspace/files/inside-directory.ts'
import { makeMemoryFolder, memoryRoot } from '../workspace/memory/session-memory.ts'

/*
 * The inbox of a running session: a folder in the work directory, where agents can write even without a network. One
 * request is a few files with one id. Who asks writes `<id>.request.json`, and `<id>.cancel` to take it back; the session
 * renames the request to `<id>.taken`, answers in `<id>.reply.json` and streams to `<id>.stream`. While they wait, who
 * asks touches `<id>.taken` and the session `<id>.reply.json`, so that each sees that the other one still lives: inside
 * the sandbox no pid says so.
 */

/** Where the inbox is, from the work directory. */
export const inboxFolder = `${memoryRoot}/inbox`

/** What is asked of a running session: work for one agent. Who asks may be an agent; nothing of it is to be trusted. */
export interface AgentRequest {
  agent: string
  task: string
  /** What it is to write, from the work directory, as asked; null: anything. Whether they lie inside is not checked. */
  paths: readonly string[] | null
  /** Codex's thread in which it was asked, as far as who asked says; null if it does not. */
  thread: string | null
  /** Whether the answer is wanted as it is written. */
  stream: boolean
}

/** How a request ended. `refused`: nothing was done; `terminated`: the instance was ended before its time. */
export type RequestOutcome = 'completed' | 'error' | 'terminated' | 'refused'

/** What the session says of a request: `started` until it has ended. */
export interface AgentReply {
  state: 'started' | RequestOutcome
  /** The name of the instance that works on it; null while there is none. */
  instance: string | null
  /** The result, or a sentence that says why there is none; while there is no instance, for whom it waits, or empty. */
  text: string
}

/** The most that each file of a request may take, in bytes. */
export const inboxLimits = { request: 512 * 1024, reply: 2 * 1024 * 1024, stream: 1024 * 1024 } as const

/** How long a request may lie there until a session takes it, how often each side shows that it lives, and after what silence the other one takes it for gone; ms. */
export const inboxTimeouts = { take: 15_000, beat: 5_000, silence: 60_000 } as const

/** The files of a request in the inbox, by what they are for. */
export const inboxFiles = {
  request: (id: string) => `${id}.request.json`,
  taken: (id: string) => `${id}.taken`,
  cancel: (id: string) => `${id}.cancel`,
  reply: (id: string) => `${id}.reply.json`,
  stream: (id: string) => `${id}.stream`,
} as const

/** The id of which a name in the inbox is a file, and which one; null for what is no such file. Ids sort by when they were asked. */
export function parseInboxFileName(name: string): { id: string; file: keyof typeof inboxFiles } | null {
  const [, id, rest] = /^(\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\.([a-z.]+)$/.exec(name) ?? []
  const file = rest === undefined ? undefined : KIND_BY_ENDING.get(rest)
  return id === undefined || file === undefined ? null : { id, file }
}

/** A request as it is written; or why it cannot be, a sentence. */
export function formatRequest(request: AgentRequest): { text: string } | { problem: string } {
  const problem = problemOfTask(request.task)
  if (problem !== null) return { problem }
  const text = JSON.stringify({ v: 1, ...request })
  if (Buffer.byteLength(text) <= inboxLimits.request) return { text }
  return { problem: 'The task and its paths do not fit into 512 KiB; put the text into a file and name that file.' }
}

/** A request as it was written; or why it is none, a sentence. */
export function parseRequest(text: string): { request: AgentRequest } | { problem: string } {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, 'is no JSON'), requestSchema), text)
  if (!read.success) {
    const [issue] = read.issues
    return { problem: `This is no request for an agent: ${v.getDotPath(issue) ?? 'the file'} ${issue.message}.` }
  }
  const { agent, task, paths, thread, stream } = read.output
  const problem = problemOfTask(task)
  return problem === null ? { request: { agent, task, paths, thread, stream } } : { problem }
}

/** A reply as it is written; a text that is too long is cut. */
export function formatReply({ state, instance, text }: AgentReply): string {
  const exitCode = replyExitCode(state)
  return JSON.stringify({ v: 1, state, instance, text: clipEnd(text, MOST_REPLY_CHARACTERS), exitCode })
}

/** A reply as it was written; null for anything else. */
export function parseReply(text: string): AgentReply | null {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), replySchema), text)
  if (!read.success) return null
  const { state, instance, text: said } = read.output
  return { state, instance, text: said }
}

/** With which exit code the command ends that asked; null while it waits. */
export function replyExitCode(state: AgentReply['state']): 0 | 4 | 143 | null {
  switch (state) {
    case 'started':
      return null
    case 'completed':
      return 0
    case 'error':
    case 'refused':
      return 4
    case 'terminated':
      return 143
    default:
      return unreachable(state)
  }
}

/** Six bytes are the most that JSON makes of one. */
const MOST_REPLY_CHARACTERS = 256 * 1024

const KIND_BY_ENDING: ReadonlyMap<string, keyof typeof inboxFiles> = new Map([
  ['request.json', 'request'],
  ['taken', 'taken'],
  ['cancel', 'cancel'],
  ['reply.json', 'reply'],
  ['stream', 'stream'],
])

const text = (most: number) => v.pipe(v.string('is no text'), v.maxLength(most, `has more than ${most} characters`))

const requestSchema = v.object(
  {
    v: v.literal(1, 'is not 1, so another version of codemachine wrote it'),
    agent: text(100),
    task: v.string('is no text'),
    paths: v.nullish(
      v.pipe(v.array(text(4096), 'is no list of paths'), v.maxLength(100, 'has more than 100 paths')),
      null,
    ),
    thread: v.nullish(text(200), null),
    stream: v.optional(v.boolean('is neither true nor false'), false),
  },
  'is no object',
)

const replySchema = v.object({
  v: v.literal(1),
  state: v.picklist(['started', 'completed', 'error', 'terminated', 'refused']),
  instance: v.nullable(v.string()),
  text: v.string(),
})

/**
 * The folder of the inbox and its files, by name: any agent may have put anything there, a link in place of the folder
 * too. Never follows a link, waits for a pipe, or deletes more than one entry.
 */
export class InboxFolder {
  readonly #root: string
  readonly path: string

  /** @param root the work directory's real path */
  constructor(root: string) {
    this.#root = root
    this.path = join(root, inboxFolder)
  }

  /** Makes sure of the folder; answers what is in the way, a sentence, null if nothing is. */
  async make(): Promise<string | null> {
    // Of a narrow sandbox nothing above it may be written.
    if (await this.isReal()) return null
    const obstacle = await makeMemoryFolder(this.#root, inboxFolder)
    if (obstacle === null) return null
    const what = obstacle.kind === 'link' ? 'is a link' : 'is not a folder'
    return `${join(this.#root, obstacle.path)} ${what}, so no agent can be asked through it; move it away.`
  }

  /** The names of what is there, the first 10,000 of them, sorted; none where the folder is not a real one. */
  async names(): Promise<string[]> {
    if (!(await this.isReal())) return []
    const names: string[] = []
    // What is made and removed meanwhile makes it fail on some systems; the next look sees the rest.
    const folder = await opendir(this.path).catch(() => null)
    if (folder === null) return []
    for await (const { name } of folder) if (names.push(name) >= MOST_NAMES) break
    return names.sort()
  }

  /** Writes a whole file in place of whatever has its name. */
  async write(name: string, text: string): Promise<void> {
    await writeFileInside(this.#root, `${inboxFolder}/${name}`, text)
  }

  /** The text of a file; null if there is none, or why it cannot be read, a sentence. */
  async read(name: string, limit: number): Promise<{ text: string } | { problem: string } | null> {
    const read = await readTextFile(join(this.path, name), limit)
    if (read.kind === 'gone') return null
    return read.kind === 'text' ? { text: read.text } : { problem: `The file cannot be read: ${read.problem}` }
  }

  /** What tells one state of a file from another; null if there is no regular file. */
  async stateOf(name: string): Promise<{ key: string; changedAt: number } | null> {
    return await fileState(join(this.path, name))
  }

  /** Renames an entry, whatever it is, in place of a file that has the new name; false if there was none. */
  async rename(from: string, to: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    return await renameIfThere(join(this.path, from), join(this.path, to))
  }

  /** Shows that whoever waits for a file, or works on it, still lives. A file that has gone is left alone. */
  async touch(name: string, now: Date): Promise<void> {
    await succeeds(lutimes(join(this.path, name), now, now))
  }

  /** Removes an entry; a folder only if it is empty. False if it was not there, or could not be removed. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    const path = join(this.path, name)
    return (await succeeds(unlink(path))) || (await succeeds(rmdir(path)))
  }

  /** Whether it is there, and no part of its path is a link. */
  async isReal(): Promise<boolean> {
    return (await findObstacle(this.#root, inboxFolder)) === null
  }

  /** Whether a path that was just opened lies in the folder itself, and not behind a link on the way. */
  async holds(name: string): Promise<boolean> {
    const path = join(this.path, name)
    return (await realpath(path).catch(() => null)) === path
  }
}

const MOST_NAMES = 10_000

async function succeeds(action: Promise<void>): Promise<boolean> {
  try {
    await action
    return true
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    return false
  }
}

/** Writes what an agent says, as it says it, for whoever asked; at most 1 MiB. Disposing of it writes what is left. */
export class StreamWriter implements AsyncDisposable {
  readonly #folder: InboxFolder
  readonly #name: string
  #file: Promise<FileHandle | null> | null = null
  #waits = ''
  #left: number = inboxLimits.stream
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
    return this.#offset >= inboxLimits.stream
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
      const most = Math.min(CHUNK_BYTES, inboxLimits.stream - this.#offset)
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

const CHUNK_BYTES = 64 * 1024

/** A plain open would wait at a pipe for ever. */
async function openRegular(path: string): Promise<FileHandle | null> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | noFollow).catch(() => null)
  if (file === null || (await file.stat()).isFile()) return file
  await file.close()
  return null
}

// Windows has no such flag.
const noFollow = constants.O_NOFOLLOW ?? 0

/** Which file of a request a file in the inbox is; `half-written`: one that was never finished. */
type SweptFile = keyof typeof inboxFiles | 'half-written'

export interface Sweep {
  /** Wall time, ms since the epoch. */
  now: number
  /** How old each file may become, ms. */
  mostAge(file: SweptFile): number
  /** Whether the files of a request stay, however old. */
  stays(id: string): boolean
}

/** Removes what requests that nobody waits for any more have left. What is no file of a request stays. */
export async function sweepInbox(folder: InboxFolder, { now, mostAge, stays }: Sweep): Promise<void> {
  for (const name of await folder.names()) {
    const read = parseInboxFileName(name)
    const file = read?.file ?? (HALF_WRITTEN.test(name) ? 'half-written' : null)
    if (file === null || (read !== null && stays(read.id))) continue
    const state = await folder.stateOf(name)
    if (state === null || now - state.changedAt >= mostAge(file)) await folder.remove(name)
  }
}

/** What `writeFileInside` leaves where it was cut off. */
const HALF_WRITTEN = /^\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/
