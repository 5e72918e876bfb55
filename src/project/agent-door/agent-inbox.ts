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
  /** Does what was asked; up to 16 run at once. */
  run: RunRequest
  clock: Clock
  /** The folder of the session's records, where who is outside of the sandbox shows that; left out: everybody is. */
  records?: string
  /** Told a sentence when the inbox cannot be used, once until it can again, and each of what else goes wrong once. */
  onProblem?(problem: string): void
}

/**
 * Takes what agents ask through the inbox of a work directory, and answers it, for as long as a session runs there.
 * Disposing of it ends what it has in hand, and resolves when all is answered.
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

/** For what a watcher has missed, or where there can be none. */
const POLL_MS = 500
/** All that is written there is a change, and an agent may write there all the time. */
const REST_MS = 50
const SWEEP_MS = 60_000
/** After this nobody looks for a file of a request any more. */
const OLD_MS = 10 * 60_000
/** How many requests are looked at in one go, and how many may be in hand. */
const MOST_LOOKED_AT = 100
const MOST_IN_HAND = 16
/** How many different things that have gone wrong are told. */
const MOST_TOLD = 20
const REQUEST_IDS = /\d{15}-[\da-f-]{36}/g

class ServedInbox {
  readonly #options: InboxOptions
  readonly #folder: InboxFolder
  readonly #closed = new AbortController()
  readonly #inHand = new Map<string, RequestInHand>()
  readonly #working = new Set<Promise<void>>()
  /** Why the inbox cannot be used now, and has been told. */
  #problem: string | null = null
  /** What else has gone wrong, and has been told. */
  readonly #told = new Set<string>()
  /** Ids of requests that could not be taken, until the next sweep. */
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

  /** Removes what an earlier session left. Who asked only just now has asked this one. */
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

  /** What goes wrong with its files costs whoever asked an answer, never the session. */
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

  /** The ids of what is asked and not taken, the oldest first. */
  async #requests(): Promise<string[]> {
    const read = (await this.#folder.names()).map(parseInboxFileName)
    return read.flatMap(each => (each?.file === 'request' ? [each.id] : []))
  }

  async #take(id: string, now: number): Promise<void> {
    // A second request under the name of the first.
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

/** How a request ended; without `status` it was completed, or else refused. `text`: the result, or a sentence why not. */
type InboxAnswer = ToolAnswer & { status?: RequestOutcome; instance?: string }

/** What whoever asked hears before the end. */
interface InboxFeed {
  /** Nothing works on it before these agents have ended; called again when they are others. */
  waits(agents: readonly string[]): void
  /** An instance works on it now. */
  started(instance: string): void
  /** What it says, as it says it; dropped where nobody wants it. */
  text(text: string): void
}

/**
 * Does what was asked. `isOutside`: whether who asks has shown to be outside of the agents' sandbox. `over` is aborted when nobody waits for the answer any more: then it ends what it has started,
 * and resolves.
 */
export type RunRequest = (
  request: AgentRequest,
  over: AbortSignal,
  feed: InboxFeed,
  isOutside: boolean,
) => Promise<InboxAnswer>

/** A request that was taken. */
interface TakenRequest {
  id: string
  request: AgentRequest
  isOutside: boolean
  /** The state of its file; null if it has none. */
  sign: string | null
  /** When: monotonic, ms. */
  at: number
}

/**
 * A request that the session has taken:
 *
 *     in hand ── run resolves ──→ answered
 *        └── cancelled, its file gone or silent ──→ over ── run resolves ──→ answered, or swept where nobody is there
 */
class RequestInHand {
  readonly #folder: InboxFolder
  readonly #id: string
  readonly #request: AgentRequest
  readonly #isOutside: boolean
  readonly #over = new AbortController()
  /** The state of its file, and when it was first seen so: monotonic, ms. */
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

  /** Ends what runs for it. */
  end(): void {
    this.#over.abort()
  }

  /** Has it done and answered. */
  async work(run: RunRequest): Promise<void> {
    const reply = await this.#run(run)
    if (this.#isAsked) return await answerRequest(this.#folder, this.#id, reply)
    for (const file of Object.values(inboxFiles)) await this.#folder.remove(file(this.#id))
  }

  /**
   * Ends it if nobody waits for it any more.
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

  /** Shows that it is still in hand. */
  async beat(now: Date): Promise<void> {
    await this.#folder.touch(inboxFiles.reply(this.#id), now)
  }

  async #run(run: RunRequest): Promise<AgentReply> {
    // What is said on the way is written before this resolves, so that the end comes last.
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

  /** Where it cannot be said, the end will. */
  async #sayStarted(instance: string | null, text = ''): Promise<void> {
    const reply = formatReply({ state: 'started', instance, text })
    await this.#folder.write(inboxFiles.reply(this.#id), reply).catch(() => {})
  }
}

/** Answers a request, and takes what it was asked with out of the inbox. */
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

/** Lets command lines in a work directory (`codemachine --agent`) have agents work for the session that runs there. */
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
