import { constants, type FileHandle, lstat, lutimes, open, opendir, realpath, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { clipEnd } from '../base/text.ts'
import { problemOfTask } from '../core/shapes/tools.ts'
import { isItself, renameIfThere, succeeds } from '../platform/files.ts'
import {
  fileState,
  findObstacle,
  readTextFile,
  whatIsThere,
  writeFileInside,
} from '../workspace/files/inside-directory.ts'
import { makeMemoryFolder } from '../workspace/memory/memory-folder.ts'
import { memoryRoot } from '../workspace/memory/memory-paths.ts'

/*
 * The inbox of a running session: a folder in the work directory, where agents can write even without a network. A request
 * is several files with one id. The sender writes `<id>.request.json`, and `<id>.cancel` to withdraw it; the session renames
 * the request to `<id>.taken`, replies in `<id>.reply.json` and streams to `<id>.stream`. Meanwhile the sender keeps
 * touching `<id>.taken`, and the session `<id>.reply.json`, to show each other that they are alive: pids are useless inside
 * the sandbox.
 */

/** Path of the inbox, relative to the work directory. */
export const inboxFolder = `${memoryRoot}/inbox`

/** A request to a running session: a task for one agent. Untrusted, as an agent may have written it. */
export interface AgentRequest {
  agent: string
  task: string
  /** Paths that the agent may write, relative to the work directory and unchecked; `null` for any. */
  paths: readonly string[] | null
  /** The codex thread that the sender names as its own; `null` if it names none. */
  thread: string | null
  /** True: stream the agent's messages. */
  stream: boolean
}

/** End of a request. `refused`: no agent was started. `terminated`: the agent was stopped. */
export type RequestOutcome = 'completed' | 'error' | 'terminated' | 'refused'

/** The session's reply to a request; `started` until it has ended. */
export interface AgentReply {
  state: 'started' | RequestOutcome
  /** The name of the agent's instance; `null`: none yet. */
  instance: string | null
  /** The result, or a sentence that says why there is none. Without an instance: the agent that it waits for, or empty. */
  text: string
}

/** Maximum sizes of the files of a request, in bytes. */
export const inboxLimits = { request: 512 * 1024, reply: 2 * 1024 * 1024, stream: 1024 * 1024 } as const

/**
 * All in ms. `take`: how long a request may wait for a session to take it. `beat`: interval at which each side touches its
 * file. `silence`: time without a touch after which the other side counts as gone.
 */
export const inboxTimeouts = { take: 15_000, beat: 5_000, silence: 60_000 } as const

/** The names of a request's files in the inbox, by purpose. */
export const inboxFiles = {
  request: (id: string) => `${id}.request.json`,
  taken: (id: string) => `${id}.taken`,
  cancel: (id: string) => `${id}.cancel`,
  reply: (id: string) => `${id}.reply.json`,
  stream: (id: string) => `${id}.stream`,
} as const

/**
 * Parses a file name in the inbox: the request's id and the file's purpose; `null` for any other name. Ids sort by
 * time.
 */
export function parseInboxFileName(name: string): { id: string; file: keyof typeof inboxFiles } | null {
  const [, id, rest] = /^(\d{15}-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\.([a-z.]+)$/.exec(name) ?? []
  const files = Object.keys(inboxFiles) as (keyof typeof inboxFiles)[]
  const file = id === undefined ? undefined : files.find(each => inboxFiles[each](id) === `${id}.${rest}`)
  return id === undefined || file === undefined ? null : { id, file }
}

/** Formats a request as JSON; or why it cannot be sent, a sentence. */
export function formatRequest(request: AgentRequest): { text: string } | { problem: string } {
  const problem = problemOfTask(request.task)
  if (problem !== null) return { problem }
  const text = JSON.stringify({ v: 1, ...request })
  if (Buffer.byteLength(text) <= inboxLimits.request) return { text }
  return { problem: 'The task and its paths do not fit into 512 KiB. Put the text into a file, and name that file.' }
}

/** Parses an untrusted request; or why it is invalid, a sentence. */
export function parseRequest(text: string): { request: AgentRequest } | { problem: string } {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(undefined, 'is no JSON'), requestSchema), text)
  if (!read.success) {
    const [issue] = read.issues
    return { problem: `This is not a request for an agent: ${v.getDotPath(issue) ?? 'the file'} ${issue.message}.` }
  }
  const { agent, task, paths, thread, stream } = read.output
  const problem = problemOfTask(task)
  return problem === null ? { request: { agent, task, paths, thread, stream } } : { problem }
}

/** Formats a reply as JSON; a text that is too long is cut. */
export function formatReply({ state, instance, text }: AgentReply): string {
  const exitCode = replyExitCode(state)
  return JSON.stringify({ v: 1, state, instance, text: clipEnd(text, MOST_REPLY_CHARACTERS), exitCode })
}

/** Parses an untrusted reply; `null` if it is invalid. */
export function parseReply(text: string): AgentReply | null {
  const read = v.safeParse(v.pipe(v.string(), v.parseJson(), replySchema), text)
  if (!read.success) return null
  const { state, instance, text: said } = read.output
  return { state, instance, text: said }
}

/** Returns the exit code of the command that sent the request; `null`: it still waits. */
export function replyExitCode(state: AgentReply['state']): 0 | 4 | 143 | null {
  return EXIT_CODES[state]
}

const EXIT_CODES = { started: null, completed: 0, error: 4, refused: 4, terminated: 143 } as const

/** JSON needs at most six bytes per character, and the file has 2 MiB. */
const MOST_REPLY_CHARACTERS = 256 * 1024

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
 * Safe access to the inbox folder: any agent may have put anything there, or replaced it by a link. Never follows a link,
 * blocks on a pipe, or deletes more than one entry.
 */
export class InboxFolder {
  readonly #root: string
  readonly path: string

  /** @param root the work directory's real path */
  constructor(root: string) {
    this.#root = root
    this.path = join(root, inboxFolder)
  }

  /** Creates the folder if missing. Resolves with a sentence about the obstacle; `null`: success. */
  async make(): Promise<string | null> {
    // A narrow sandbox may not write anything above it.
    if (await this.isReal()) return null
    const obstacle = await makeMemoryFolder(this.#root, inboxFolder)
    if (obstacle === null) return null
    const what = `${join(this.#root, obstacle.path)} ${whatIsThere(obstacle)}`
    return `${what}, so no agent can be asked through it; move it away.`
  }

  /** The first 10,000 file names, sorted; none if the folder is not a real one. */
  async names(): Promise<string[]> {
    if (!(await this.isReal())) return []
    const names: string[] = []
    // On some systems this fails if entries come and go meanwhile; the next call sees them.
    const folder = await opendir(this.path).catch(() => null)
    if (folder === null) return []
    for await (const { name } of folder) if (names.push(name) >= MOST_NAMES) break
    return names.sort()
  }

  /** Writes a whole file, replacing anything of that name. */
  async write(name: string, text: string): Promise<void> {
    await writeFileInside(this.#root, `${inboxFolder}/${name}`, text)
  }

  /** Resolves with the text of a file, or why it is unreadable, a sentence; `null`: missing. */
  async read(name: string, limit: number): Promise<{ text: string } | { problem: string } | null> {
    const read = await readTextFile(join(this.path, name), limit)
    if (read.kind === 'gone') return null
    return read.kind === 'text' ? { text: read.text } : { problem: `The file cannot be read: ${read.problem}` }
  }

  /** Resolves with the state of a regular file, see `fileState`; `null`: none. */
  async stateOf(name: string): Promise<{ key: string } | null> {
    return await fileState(join(this.path, name))
  }

  /** Resolves with the last change of any entry, Unix time, ms; `null`: none. */
  async changedAt(name: string): Promise<number | null> {
    return await lstat(join(this.path, name)).then(
      ({ ctimeMs }) => Math.floor(ctimeMs),
      () => null,
    )
  }

  /** Renames an entry of any kind, replacing a file of the new name. False if there was none. */
  async rename(from: string, to: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    return await renameIfThere(join(this.path, from), join(this.path, to))
  }

  /** Updates a file's time to show that its owner is alive. Does nothing if the file is gone. */
  async touch(name: string, now: Date): Promise<void> {
    await succeeds(lutimes(join(this.path, name), now, now))
  }

  /** Removes an entry; a folder only if it is empty. False if it did not exist, or could not be removed. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.isReal())) return false
    const path = join(this.path, name)
    return (await succeeds(unlink(path))) || (await succeeds(rmdir(path)))
  }

  /** Resolves with true if the folder exists, and no part of its path is a link. */
  async isReal(): Promise<boolean> {
    return (await findObstacle(this.#root, inboxFolder)) === null
  }

  /** Resolves with true if a just opened file is in the folder itself, not behind a link. */
  async holds(name: string): Promise<boolean> {
    const path = join(this.path, name)
    return isItself(path, await realpath(path).catch(() => null))
  }
}

const MOST_NAMES = 10_000

/** Streams an agent's messages to the sender of a request, at most 1 MiB. Disposing writes the rest. */
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

  /** Appends text. Text that arrives during a write goes into the next write. */
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
    // A failure is ignored: the reply has the whole result.
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

  /** True if the stream reached its maximum size, so its end may be missing. */
  get isCut(): boolean {
    return this.#offset >= inboxLimits.stream
  }

  /** True if any text was read. */
  get hasBegun(): boolean {
    return this.#offset > 0
  }

  /** The text since the last call; always empty if it is not a regular file. */
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

/** Opens a regular file; `null` for anything else. A plain open would block on a pipe for ever. */
async function openRegular(path: string): Promise<FileHandle | null> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | noFollow).catch(() => null)
  if (file === null || (await file.stat()).isFile()) return file
  await file.close()
  return null
}

// Windows has no such flag.
const noFollow = constants.O_NOFOLLOW ?? 0

/** The purpose of a file in the inbox. `half-written`: a temporary file of an unfinished write. */
type SweptFile = keyof typeof inboxFiles | 'half-written'

/**
 * Removes the old files of requests. Other files stay.
 * @param rule `now`: Unix time, ms; `mostAge`: maximum age of a file, ms; `stays`: returns true to keep a request's files
 */
export async function sweepInbox(
  folder: InboxFolder,
  rule: { now: number; mostAge(file: SweptFile): number; stays(id: string): boolean },
): Promise<void> {
  const { now, mostAge, stays } = rule
  for (const name of await folder.names()) {
    const read = parseInboxFileName(name)
    const file = read?.file ?? (HALF_WRITTEN.test(name) ? 'half-written' : null)
    if (file === null || (read !== null && stays(read.id))) continue
    const changedAt = await folder.changedAt(name)
    if (changedAt !== null && now - changedAt >= mostAge(file)) await folder.remove(name)
  }
}

/** The temporary file that a killed `writeFileInside` leaves. */
const HALF_WRITTEN = /^\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/
