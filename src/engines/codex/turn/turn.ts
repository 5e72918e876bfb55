import type { Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import type { RoundOutcome } from '../../../core/events/outcome.ts'
import type { Rpc } from '../wire.ts'

interface TurnOptions {
  rpc: Rpc
  clock: Clock
  threadId: string
  log(message: string): void
}

/** One turn of a thread, from `turn/start` to its end. */
export class Turn {
  /** Resolves when it has ended. */
  readonly ended: Promise<RoundOutcome>
  readonly #options: TurnOptions
  readonly #started = Promise.withResolvers<string>()
  readonly #end = Promise.withResolvers<RoundOutcome>()
  #id: string | null = null
  #wasRefused = false

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

  /** Codex refused the turn, or has ended; no effect if the turn had started. */
  refuse(): void {
    this.#wasRefused ||= this.#id === null
  }

  start(id: string): void {
    this.#id = id
    this.#started.resolve(id)
  }

  end(outcome: RoundOutcome | Promise<RoundOutcome>): void {
    this.#end.resolve(outcome)
  }

  /** Asks codex to end it; resolves when it has ended, or `ms` after it was asked. */
  async interrupt(ms: number): Promise<void> {
    const { rpc, threadId, log } = this.#options
    // Before `turn/started` codex answers "no active turn" and lets the turn run on.
    const turnId = await this.#within(ms, this.#started.promise)
    if (turnId === null) return
    rpc
      .request('turn/interrupt', { threadId, turnId }, ms)
      .catch((error: unknown) => log(`codex did not take the interrupt: ${messageOf(error)}`))
    await this.#within(ms, this.ended)
  }

  /** What the promise resolves with; null if the turn ends, or `ms` pass, before it. */
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
