import {
  type AgentReply,
  type AgentRequest,
  type AskedEnd,
  inboxFiles,
  inboxTimes,
  writeReply,
} from '../agents/inbox.ts'
import type { InboxFolder } from '../agents/inbox-folder.ts'
import { StreamWriter } from '../agents/inbox-stream.ts'
import { messageOf } from '../base/errors.ts'
import type { ToolAnswer } from '../session/engine.ts'

/** How a request ended; without `status` it was completed, or else refused. `text`: the result, or a sentence why not. */
type InboxAnswer = ToolAnswer & { status?: AskedEnd; instance?: string }

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
export interface TakenRequest {
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
export class RequestInHand {
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
    if (sign !== null && now - this.#seenAt < inboxTimes.silence) return
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
    const reply = writeReply({ state: 'started', instance, text })
    await this.#folder.write(inboxFiles.reply(this.#id), reply).catch(() => {})
  }
}

/** Answers a request, and takes what it was asked with out of the inbox. */
export async function answerRequest(folder: InboxFolder, id: string, reply: AgentReply): Promise<void> {
  try {
    await folder.write(inboxFiles.reply(id), writeReply(reply))
  } finally {
    for (const file of [inboxFiles.taken, inboxFiles.cancel]) await folder.remove(file(id))
  }
}

function endOf({ success, status }: InboxAnswer, over: AbortSignal): AskedEnd {
  const end = status ?? (success ? 'completed' : 'refused')
  return over.aborted && end !== 'completed' ? 'terminated' : end
}
