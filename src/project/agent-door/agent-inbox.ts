import {
  type AgentReply,
  type AgentRequest,
  formatReply,
  InboxFolder,
  inboxFiles,
  inboxLimits,
  inboxTimeouts,
  parseInboxFileName,
  parseRequest,
  type RequestOutcome,
  StreamWriter,
  sweepInbox,
} from '../../agents/inbox.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { ToolAnswer } from '../../core/engine.ts'
import { FolderChanges } from '../../platform/files.ts'
import type { Records } from '../../session/records/records.ts'
import type { Session } from '../../session/session.ts'
import { isShownOutside } from './ask-session.ts'

interface InboxOptions {
  /** The work directory's real path. */
  directory: string
  /** Runs a request; at most 16 run at once. */
  run: RunRequest
  clock: Clock
  /** Records' folder, where a requester proves that it is outside of the sandbox. Left out: everybody counts as outside. */
  records?: string
  /** Receives one sentence when the inbox becomes unusable, and once each other problem. */
  onProblem?(problem: string): void
}

/**
 * Serves the requests that agents put into the inbox of a work directory, as long as a session runs there. Disposing of it
 * ends the running requests, and resolves when all are answered.
 */
export async function serveInbox(options: InboxOptions): Promise<AsyncDisposable> {
  const inbox = new ServedInbox(options)
  await inbox.sweepOld()
  const served = inbox.serve()
  return {
    [Symbol.asyncDispose]: async () => {
      inbox.close()
      await served
    },
  }
}

/** Catches changes that a watcher missed, or where no watcher works. */
const POLL_MS = 500
/** Every write in the folder is a change, and an agent can write all the time: rest between looks. */
const REST_MS = 50
const SWEEP_MS = 60_000
/** After this time no requester looks for its files any more. */
const OLD_MS = 10 * 60_000
/** Most requests per look, and most that run at once. */
const MOST_LOOKED_AT = 100
const MOST_IN_HAND = 16
/** Most different problems that are reported. */
const MOST_TOLD = 20
const REQUEST_IDS = /\d{15}-[\da-f-]{36}/g

class ServedInbox {
  readonly #options: InboxOptions
  readonly #folder: InboxFolder
  readonly #closed = new AbortController()
  readonly #inHand = new Map<string, RequestInHand>()
  readonly #working = new Set<Promise<void>>()
  /** Problem that makes the inbox unusable and has been reported; null: usable. */
  #problem: string | null = null
  /** Other problems already reported. */
  readonly #told = new Set<string>()
  /** Ids of requests whose files failed, ignored until the next sweep. */
  readonly #stuck = new Set<string>()
  #beatAt = 0
  #sweptAt = 0

  constructor(options: InboxOptions) {
    this.#options = options
    this.#folder = new InboxFolder(options.directory)
  }

  close(): void {
    this.#closed.abort()
  }

  /** Removes the files of an earlier session. A request that is only seconds old is meant for this one. */
  async sweepOld(): Promise<void> {
    await this.#trying(async () => {
      if (await this.#isUsable())
        await this.#sweep(file => (file === 'request' || file === 'half-written' ? inboxTimeouts.take : 0))
    })
  }

  async serve(): Promise<void> {
    const { clock } = this.#options
    using changes = new FolderChanges([this.#folder.path], { clock, signal: this.#closed.signal })
    while (!this.#closed.signal.aborted) {
      await this.#trying(() => this.#look())
      await clock.wait(REST_MS, this.#closed.signal)
      await changes.next(POLL_MS)
    }
    for (const inHand of this.#inHand.values()) inHand.end()
    await Promise.all(this.#working)
    await this.#trying(() => this.#refuseWaiting())
  }

  async #look(): Promise<void> {
    if (!(await this.#isUsable())) return
    const now = this.#options.clock.monotonic()
    for (const inHand of this.#inHand.values()) await inHand.lookWhetherAsked(now)
    const asked = (await this.#requests()).filter(id => !this.#stuck.has(id))
    for (const id of asked.slice(0, MOST_LOOKED_AT)) await this.#trying(() => this.#take(id, now), id)
    if (now - this.#beatAt >= inboxTimeouts.beat) {
      this.#beatAt = now
      for (const inHand of this.#inHand.values()) await inHand.beat(new Date(this.#options.clock.now()))
    }
    if (now - this.#sweptAt < SWEEP_MS) return
    this.#sweptAt = now
    this.#stuck.clear()
    await this.#sweep(() => OLD_MS)
  }

  /** A file error costs the requester its answer, but never ends the session. */
  async #trying(action: () => Promise<void>, id?: string): Promise<void> {
    try {
      await action()
    } catch (error) {
      if (id !== undefined) this.#stuck.add(id)
      const why = messageOf(error).replaceAll(REQUEST_IDS, '<id>')
      this.#tellOnce(`Agents cannot be asked through ${this.#folder.path}: ${why}.`)
    }
  }

  async #isUsable(): Promise<boolean> {
    const problem = await this.#folder.make()
    if (problem !== null && problem !== this.#problem) this.#options.onProblem?.(problem)
    this.#problem = problem
    return problem === null
  }

  #tellOnce(problem: string): void {
    if (this.#told.has(problem) || this.#told.size >= MOST_TOLD) return
    this.#told.add(problem)
    this.#options.onProblem?.(problem)
  }

  /** Returns the ids of the open requests, oldest first. */
  async #requests(): Promise<string[]> {
    const read = (await this.#folder.names()).map(parseInboxFileName)
    return read.flatMap(each => (each?.file === 'request' ? [each.id] : []))
  }

  async #take(id: string, now: number): Promise<void> {
    // Ignore a second request with the id of a running one.
    if (this.#inHand.has(id)) return void (await this.#folder.remove(inboxFiles.request(id)))
    if (!(await this.#folder.rename(inboxFiles.request(id), inboxFiles.taken(id)))) return
    const file = await this.#folder.read(inboxFiles.taken(id), inboxLimits.request)
    if (file === null) return
    const read = 'problem' in file ? file : parseRequest(file.text)
    if ('problem' in read) return await this.#refuse(id, read.problem)
    if (this.#inHand.size >= MOST_IN_HAND) return await this.#refuse(id, TOO_MANY)
    const sign = (await this.#folder.stateOf(inboxFiles.taken(id)))?.key ?? null
    const isOutside = await this.#isOutside(id, 'text' in file ? file.text : '')
    const inHand = new RequestInHand(this.#folder, { id, request: read.request, isOutside, sign, at: now })
    this.#inHand.set(id, inHand)
    const work = this.#trying(() => inHand.work(this.#options.run)).finally(() => {
      this.#inHand.delete(id)
      this.#working.delete(work)
    })
    this.#working.add(work)
  }

  async #isOutside(id: string, request: string): Promise<boolean> {
    const { records } = this.#options
    return records === undefined || (await isShownOutside(records, id, request))
  }

  async #refuse(id: string, text: string): Promise<void> {
    await answerRequest(this.#folder, id, { state: 'refused', instance: null, text })
  }

  async #sweep(mostAge: Parameters<typeof sweepInbox>[1]['mostAge']): Promise<void> {
    const now = this.#options.clock.now()
    await sweepInbox(this.#folder, { now, mostAge, stays: id => this.#inHand.has(id) })
  }

  async #refuseWaiting(): Promise<void> {
    for (const [index, id] of (await this.#requests()).entries()) {
      const wasThere = await this.#folder.remove(inboxFiles.request(id))
      if (wasThere && index < MOST_LOOKED_AT) await this.#refuse(id, 'The session has ended.')
    }
  }
}

const TOO_MANY = `The session has ${MOST_IN_HAND} tasks in hand already; wait for one of them.`

/** Result of a request. Without `status` it was completed, or else refused. `text`: the result, or a sentence why not. */
type InboxAnswer = ToolAnswer & { status?: RequestOutcome; instance?: string }

/** Progress of a request that its requester sees before the end. */
interface InboxFeed {
  /** The request waits until these agents have ended; called again when the list changes. */
  waits(agents: readonly string[]): void
  /** An instance has started on the request. */
  started(instance: string): void
  /** Text of the instance as it arrives; dropped if the requester wants no stream. */
  text(text: string): void
}

/**
 * Runs a request. `isOutside`: whether the requester has proved that it is outside of the agents' sandbox. `over` aborts
 * when nobody waits for the answer any more: then it ends what it started, and resolves.
 */
export type RunRequest = (
  request: AgentRequest,
  over: AbortSignal,
  feed: InboxFeed,
  isOutside: boolean,
) => Promise<InboxAnswer>

/** A request that the session has accepted. */
interface TakenRequest {
  id: string
  request: AgentRequest
  isOutside: boolean
  /** State key of its file; null: no file. */
  sign: string | null
  /** Time of acceptance: monotonic, ms. */
  at: number
}

/**
 * A request that the session has accepted:
 *
 *     in hand ── run resolves ──→ answered
 *        └── cancelled, its file gone or silent ──→ over ── run resolves ──→ answered, or swept if nobody waits
 */
class RequestInHand {
  readonly #folder: InboxFolder
  readonly #id: string
  readonly #request: AgentRequest
  readonly #isOutside: boolean
  readonly #over = new AbortController()
  /** State key of its file, and the time when it first had it: monotonic, ms. */
  #sign: string | null
  #seenAt: number
  #isAsked = true

  constructor(folder: InboxFolder, { id, request, isOutside, sign, at }: TakenRequest) {
    this.#folder = folder
    this.#id = id
    this.#request = request
    this.#isOutside = isOutside
    this.#sign = sign
    this.#seenAt = at
  }

  /** Ends the work of this request. */
  end(): void {
    this.#over.abort()
  }

  /** Runs the request and answers it. */
  async work(run: RunRequest): Promise<void> {
    const reply = await this.#run(run)
    if (this.#isAsked) return await answerRequest(this.#folder, this.#id, reply)
    for (const file of Object.values(inboxFiles)) await this.#folder.remove(file(this.#id))
  }

  /**
   * Ends the request if nobody waits for it any more.
   * @param now monotonic, ms
   */
  async lookWhetherAsked(now: number): Promise<void> {
    if ((await this.#folder.stateOf(inboxFiles.cancel(this.#id))) !== null) this.end()
    const sign = (await this.#folder.stateOf(inboxFiles.taken(this.#id)))?.key ?? null
    if (sign !== this.#sign) {
      this.#sign = sign
      this.#seenAt = now
    }
    if (sign !== null && now - this.#seenAt < inboxTimeouts.silence) return
    this.#isAsked = false
    this.end()
  }

  /** Shows the requester that the request still runs. */
  async beat(now: Date): Promise<void> {
    await this.#folder.touch(inboxFiles.reply(this.#id), now)
  }

  async #run(run: RunRequest): Promise<AgentReply> {
    // Closing the stream first writes all text, so that the end comes last.
    await using stream = new StreamWriter(this.#folder, this.#id)
    let instance: string | null = null
    let said = this.#sayStarted(instance)
    const { agent } = this.#request
    try {
      const feed: InboxFeed = {
        waits: agents => {
          said = said.then(() => this.#sayStarted(null, `${agent} waits for ${agents.join(', ')}.`))
        },
        started: name => {
          instance = name
          said = said.then(() => this.#sayStarted(name))
        },
        text: text => {
          if (this.#request.stream) stream.push(text)
        },
      }
      const answer = await run(this.#request, this.#over.signal, feed, this.#isOutside)
      return { state: endOf(answer, this.#over.signal), instance: answer.instance ?? instance, text: answer.text }
    } catch (error) {
      return { state: this.#over.signal.aborted ? 'terminated' : 'error', instance, text: messageOf(error) }
    } finally {
      await said
    }
  }

  /** Ignore a write error: the final answer tells the instance too. */
  async #sayStarted(instance: string | null, text = ''): Promise<void> {
    const reply = formatReply({ state: 'started', instance, text })
    await this.#folder.write(inboxFiles.reply(this.#id), reply).catch(() => {})
  }
}

/** Answers a request, and removes its files from the inbox. */
async function answerRequest(folder: InboxFolder, id: string, reply: AgentReply): Promise<void> {
  try {
    await folder.write(inboxFiles.reply(id), formatReply(reply))
  } finally {
    for (const file of [inboxFiles.taken, inboxFiles.cancel]) await folder.remove(file(id))
  }
}

function endOf({ success, status }: InboxAnswer, over: AbortSignal): RequestOutcome {
  const end = status ?? (success ? 'completed' : 'refused')
  return over.aborted && end !== 'completed' ? 'terminated' : end
}

/** Lets command lines in a work directory (`codemachine --agent`) use the agents of the session that runs there. */
export async function serveAgents(
  { directory, folder }: Pick<Records, 'directory' | 'folder'>,
  runner: Pick<Session, 'delegation'>,
  { clock, remarks }: { clock: Clock; remarks: string[] },
): Promise<AsyncDisposable> {
  return await serveInbox({
    directory,
    clock,
    records: folder,
    run: ({ agent, task, paths, thread }, over, feed, isOutside) =>
      runner.delegation.run({ agent, task, paths, thread, door: 'command-line', feed, isOutside }, over),
    onProblem: problem => void remarks.push(problem),
  })
}
