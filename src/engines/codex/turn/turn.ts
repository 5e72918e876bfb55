import type { ServerNotification, ThreadItem, Turn as TurnRead } from '../../../../protocol/codex.ts'
import type { Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import type { RoundOutcome } from '../../../core/events/outcome.ts'
import type { CodexError } from '../classify.ts'
import { memberOf, type Rpc, stringMember } from '../wire.ts'

interface TurnOptions {
  rpc: Rpc
  clock: Clock
  threadId: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  log(message: string): void
}

/** Delay after an idle notice before the read of the turn's end, and between two reads, ms. */
const END_GRACE_MS = 15_000
/** Deadline of a read, ms. */
const READ_MS = 10_000
/** Most reads: together well below the silence at which the turn counts as hung. */
const MOST_READS = 3

/** An end of a turn that codex did not report, with its unreported items. */
export interface LostEnd {
  id: string
  status: string
  error: CodexError | null
  /** False if `turn/started` did not arrive either. */
  wasToldToStart: boolean
  missing: ThreadItem[]
}

/** One turn of a thread, from `turn/start` to its end. */
export class Turn {
  /** Resolves when the turn has ended. */
  readonly ended: Promise<RoundOutcome>
  readonly #options: TurnOptions
  readonly #started = Promise.withResolvers<string>()
  readonly #end = Promise.withResolvers<RoundOutcome>()
  #id: string | null = null
  /** Id in the answer to `turn/start`; codex accepts an interrupt only later. */
  #acceptedId: string | null = null
  #wasRefused = false
  /** Ids of items reported as completed. */
  readonly #told = new Set<string>()
  #lastError: CodexError | null = null
  #idle = new AbortController()

  constructor(options: TurnOptions) {
    this.#options = options
    this.ended = this.#end.promise
  }

  /** Codex's id of the turn; null before `turn/started`. */
  get id(): string | null {
    return this.#id
  }

  /** True if codex refused `turn/start`: the turn never began. */
  get wasRefused(): boolean {
    return this.#wasRefused
  }

  /** Notes that codex refused the turn or has ended; no effect on a started turn. */
  refuse(): void {
    this.#wasRefused ||= this.#id === null
  }

  /** Notes codex's answer to `turn/start`. */
  accept(answer: unknown): void {
    const id = memberOf(memberOf(answer, 'turn'), 'id')
    if (typeof id === 'string') this.#acceptedId = id
  }

  start(id: string): void {
    this.#id = id
    this.#started.resolve(id)
  }

  end(outcome: RoundOutcome | Promise<RoundOutcome>): void {
    this.#end.resolve(outcome)
  }

  /** Notes a message about its thread. */
  note(message: ServerNotification): void {
    if (message.method === 'item/completed') this.#told.add(message.params.item.id)
    else if (message.method === 'error' && !message.params.willRetry) this.#lastError = message.params.error
  }

  /** Notes that the thread works, so its end is not lost. */
  isActive(): void {
    this.#idle.abort()
  }

  /**
   * Notes that the thread is idle, which codex reports just before the end of its turn. Resolves with codex's stored end if
   * it is not reported within the grace. Null if it is, if the turn continues, or if codex cannot say in three reads.
   */
  async lostEnd(): Promise<LostEnd | null> {
    const { clock } = this.#options
    this.#idle.abort()
    const idle = new AbortController()
    this.#idle = idle
    void this.ended.then(() => idle.abort())
    for (let reads = 0; reads < MOST_READS; reads++) {
      await clock.wait(END_GRACE_MS, idle.signal)
      if (idle.signal.aborted) return null
      const turn = await this.#read()
      if (idle.signal.aborted) return null
      if (turn !== null) return this.#asRead(turn)
    }
    return null
  }

  #asRead({ id, status, error, items }: TurnRead): LostEnd {
    // Nobody has validated codex's answer.
    const missing = (Array.isArray(items) ? items : []).filter(item => {
      const itemId = stringMember(item, 'id')
      return itemId !== null && !this.#told.has(itemId) && memberOf(item, 'status') !== 'inProgress'
    })
    return { id, status, error: error ?? this.#lastError, wasToldToStart: this.#id !== null, missing }
  }

  /** Returns the turn as stored in the thread; null if it still runs or codex does not say. */
  async #read(): Promise<TurnRead | null> {
    const { rpc, threadId, requestMs, log } = this.#options
    const turnId = this.#id ?? this.#acceptedId
    try {
      const answer = await rpc.request('thread/read', { threadId, includeTurns: true }, Math.min(READ_MS, requestMs))
      const turns = memberOf(memberOf(answer, 'thread'), 'turns')
      const turn: unknown = Array.isArray(turns) ? turns.find(each => memberOf(each, 'id') === turnId) : null
      const status = memberOf(turn, 'status')
      if (turnId !== null && typeof status === 'string' && status !== 'inProgress') return turn as TurnRead
      log(`codex is idle, and says that turn ${turnId} is ${typeof status === 'string' ? status : 'not there'}.`)
    } catch (error) {
      log(`codex is idle, and does not say how the turn ended: ${messageOf(error)}`)
    }
    return null
  }

  /** Asks codex to end the turn; resolves after its end or `ms` later. */
  async interrupt(ms: number): Promise<void> {
    const { rpc, threadId, log } = this.#options
    // Before `turn/started`, codex answers "no active turn" and continues the turn.
    const turnId = await this.#within(ms, this.#started.promise)
    if (turnId === null) return
    rpc
      .request('turn/interrupt', { threadId, turnId }, ms)
      .catch((error: unknown) => log(`codex did not accept the interrupt: ${messageOf(error)}`))
    await this.#within(ms, this.ended)
  }

  /** Returns the result of the promise; null if the turn ends or `ms` pass first. */
  async #within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
    const settled = new AbortController()
    try {
      return await Promise.race([
        promise,
        this.ended.then(() => null),
        this.#options.clock.wait(ms, settled.signal).then(() => null),
      ])
    } finally {
      settled.abort()
    }
  }
}
