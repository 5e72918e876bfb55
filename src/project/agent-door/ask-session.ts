import { createHash, randomUUID } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AgentReply,
  type AgentRequest,
  formatRequest,
  InboxFolder,
  inboxFiles,
  inboxLimits,
  inboxTimeouts,
  parseReply,
  StreamReader,
} from '../../agents/inbox.ts'
import type { Clock } from '../../base/clock.ts'
import { Interrupted, messageOf, systemErrorCode, UserError, writing } from '../../base/errors.ts'
import { FolderChanges, readBoundedText, writeWholeFile } from '../../platform/files.ts'

/** Outcome of a request: answered, not accepted by any session, or its session has gone. */
export type Asked =
  | { kind: 'answered'; reply: AgentReply; streamed: Streamed }
  | { kind: 'not-taken' }
  | { kind: 'gone' }

/** How much of the agent's text came before the answer; `cut`: more than the stream keeps. */
export type Streamed = 'nothing' | 'whole' | 'cut'

interface AskOptions {
  /** Real path of the session's work directory. */
  directory: string
  /** Folder of its records, where a requester proves that it is outside of the sandbox. Left out: it proves nothing. */
  records?: string
  clock: Clock
  /** Ends the request, and the work for it. */
  signal: AbortSignal
  /** Returns whether the session is known to have ended; left out: this process cannot see it. */
  isGone?(): Promise<boolean>
  /** Receives a sentence that names whom the agent waits for, each time that this changes. */
  onWaiting(sentence: string): void
  onStarted(instance: string): void
  /** Called only if the request asks for a stream. */
  onText(text: string): void
}

/**
 * Asks the session of a directory for an agent's work, and waits for the end while the session shows that it lives. Throws a
 * `UserError` if it cannot ask, `Interrupted` with the signal. It always removes its files from the inbox and ends work that
 * nobody waits for.
 */
export async function askSession(request: AgentRequest, options: AskOptions): Promise<Asked> {
  const written = formatRequest(request)
  if ('problem' in written) throw new UserError('CM1009', written.problem)
  const folder = new InboxFolder(options.directory)
  await using asking = new Asking(folder, options)
  await asking.post(written.text)
  const asked = await asking.follow(options.signal, Number.POSITIVE_INFINITY)
  if (asked !== null) return asked
  await asking.cancel()
  throw new Interrupted(options.signal.reason)
}

const POLL_MS = 500
/** How often to check that the session still runs. */
const GONE_MS = 1000
/** Each beat and each piece of the stream is a change: rest between looks. */
const REST_MS = 50
/** Time for the session to end a cancelled request. */
const CANCEL_MS = 5_000

class Asking implements AsyncDisposable {
  readonly #folder: InboxFolder
  readonly #options: AskOptions
  readonly #id: string
  readonly #stream: StreamReader
  readonly #askedAt: number
  #beatAt: number
  /** State key of the reply, and the time when it first had it: monotonic, ms. */
  #sign: string | null = null
  #seenAt: number
  #reply: AgentReply | null = null
  /** Time of the last check that the session runs: monotonic, ms. */
  #goneAt: number

  constructor(folder: InboxFolder, options: AskOptions) {
    const { clock } = options
    this.#folder = folder
    this.#options = options
    this.#id = `${String(clock.now()).padStart(15, '0')}-${randomUUID()}`
    this.#stream = new StreamReader(folder, this.#id)
    this.#askedAt = this.#beatAt = this.#seenAt = this.#goneAt = clock.monotonic()
  }

  async post(text: string): Promise<void> {
    try {
      const problem = await this.#folder.make()
      if (problem !== null) throw new UserError('CM1014', problem, { exitCode: 4 })
      const { records } = this.#options
      if (records !== undefined) await showOutside(records, this.#id, text)
      await writing(this.#folder.path, () => this.#folder.write(inboxFiles.request(this.#id), text))
    } catch (error) {
      if (error instanceof UserError || systemErrorCode(error) === null) throw error
      throw new UserError(
        'CM1014',
        `codemachine cannot ask the session for an agent, because ${this.#folder.path} cannot be written (${messageOf(error)}).`,
        { exitCode: 4, cause: error },
      )
    }
  }

  /** Waits for the end of the request. Returns null on the signal, or once the clock reaches `until`. */
  async follow(signal: AbortSignal, until: number): Promise<Asked | null> {
    const { clock } = this.#options
    using changes = new FolderChanges([this.#folder.path], { clock, signal })
    while (!signal.aborted && clock.monotonic() < until) {
      const asked = await this.#look()
      if (asked !== null) return asked
      await clock.wait(REST_MS, signal)
      await changes.next(POLL_MS)
    }
    return null
  }

  /** Cancels the request, and gives the session a moment to end its work. */
  async cancel(): Promise<void> {
    if (await this.#folder.remove(inboxFiles.request(this.#id))) return
    // If this fails, the session sees that the request file is gone.
    await this.#folder.write(inboxFiles.cancel(this.#id), '').catch(() => {})
    await this.follow(new AbortController().signal, this.#options.clock.monotonic() + CANCEL_MS)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stream[Symbol.asyncDispose]()
    const { records } = this.#options
    if (records !== undefined) await forgetOutside(records, this.#id)
    for (const file of Object.values(inboxFiles)) await this.#folder.remove(file(this.#id)).catch(() => false)
  }

  async #look(): Promise<Asked | null> {
    const now = this.#options.clock.monotonic()
    // Check before reading the reply: a session that ends answers first.
    const isGone = await this.#isGone(now)
    await this.#readReply(now)
    // Read the stream after the reply: once the reply is final, the stream is complete.
    this.#options.onText(await this.#stream.next())
    if (this.#reply !== null && this.#reply.state !== 'started')
      return { kind: 'answered', reply: this.#reply, streamed: this.#streamed() }
    if (now - this.#beatAt >= inboxTimeouts.beat) {
      this.#beatAt = now
      await this.#folder.touch(inboxFiles.taken(this.#id), new Date(this.#options.clock.now()))
    }
    if (!isGone && now - this.#askedAt < inboxTimeouts.take) return null
    if (this.#reply === null && (await this.#folder.remove(inboxFiles.request(this.#id)))) return { kind: 'not-taken' }
    return !isGone && now - this.#seenAt < inboxTimeouts.silence ? null : { kind: 'gone' }
  }

  async #isGone(now: number): Promise<boolean> {
    const { isGone } = this.#options
    if (isGone === undefined || now - this.#goneAt < GONE_MS) return false
    this.#goneAt = now
    return await isGone()
  }

  async #readReply(now: number): Promise<void> {
    const name = inboxFiles.reply(this.#id)
    const sign = (await this.#folder.stateOf(name))?.key ?? null
    if (sign === this.#sign) return
    this.#sign = sign
    this.#seenAt = now
    const read = await this.#folder.read(name, inboxLimits.reply)
    const reply = read === null || 'problem' in read ? null : parseReply(read.text)
    if (reply === null) return
    const { state, instance, text } = reply
    if (state === 'started' && instance === null && text !== '' && text !== this.#reply?.text)
      this.#options.onWaiting(text)
    if (instance !== null && instance !== this.#reply?.instance) this.#options.onStarted(instance)
    this.#reply = reply
  }

  #streamed(): Streamed {
    if (!this.#stream.hasBegun) return 'nothing'
    return this.#stream.isCut ? 'cut' : 'whole'
  }
}

/*
 * Only a process outside of the agents' sandbox can write into the records. A requester writes a file there that holds the
 * digest of its request. A request that an agent swaps in has no such file.
 */

/**
 * Proves in the records' folder that the request with this id and text comes from outside of the sandbox. Does nothing if
 * the folder is not writable.
 */
export async function showOutside(records: string, id: string, request: string): Promise<void> {
  try {
    // Only the session creates the folder of the records itself.
    await mkdir(folderIn(records), { mode: 0o700 }).catch(error => {
      if (systemErrorCode(error) !== 'EEXIST') throw error
    })
    await writeWholeFile(join(folderIn(records), id), digestOf(request))
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
  }
}

/** Returns whether exactly this text was proved to come from outside. */
export async function isShownOutside(records: string, id: string, request: string): Promise<boolean> {
  const read = await readBoundedText(join(folderIn(records), id), DIGEST_BYTES)
  return typeof read === 'object' && 'text' in read && read.text === digestOf(request)
}

/** Removes the proof. */
export async function forgetOutside(records: string, id: string): Promise<void> {
  await rm(join(folderIn(records), id), { force: true }).catch(() => {})
}

const DIGEST_BYTES = 64

function folderIn(records: string): string {
  return join(records, 'asked')
}

function digestOf(request: string): string {
  return createHash('sha256').update(request).digest('hex')
}
