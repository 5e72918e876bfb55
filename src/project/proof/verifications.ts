import type { Records } from '../../session/records/records.ts'
import type { World } from '../world.ts'
import { type Verified, verifySession } from './verify.ts'
import { describeVerification } from './verify-words.ts'

/** State of a verification; while it runs, its messages so far. */
type VerificationNow =
  | { state: 'running'; said: readonly string[] }
  | { state: 'ended'; verdict: Verified['verdict']['kind']; words: readonly string[] }

interface Going {
  result: Promise<Extract<VerificationNow, { state: 'ended' }>>
  said: string[]
  listeners: Set<(said: string) => void>
  /** Unix time, ms; null: it runs. */
  endedAt: number | null
}

const MOST_SAID = 200
/** How long a result stays valid for later calls, in ms; after that it is computed again. */
const FRESH_MS = 2 * 60_000

/**
 * Sessions that are being verified. Gates may take longer than a client waits for a call, or than a phone stays on. So a
 * verification continues between calls, and the next call for the same session joins it.
 */
export class Verifications implements AsyncDisposable {
  readonly #world: World
  readonly #ending = new AbortController()
  readonly #going = new Map<string, Going>()

  constructor(world: World) {
    this.#world = { ...world, signal: AbortSignal.any([world.signal, this.#ending.signal]) }
  }

  /** Whether a verification runs. */
  get isGoing(): boolean {
    return [...this.#going.values()].some(({ endedAt }) => endedAt === null)
  }

  /**
   * Verifies a session, or joins the running verification, and waits for its end. Each result is returned once, and not if
   * it is older than `FRESH_MS`. Throws a `UserError` if it cannot verify.
   * @param onSaid receives each message, the earlier ones included
   */
  async take(
    { records, id }: { records: Records; id: string },
    { mostMs, signal, onSaid }: { mostMs: number; signal: AbortSignal; onSaid(said: string): void },
  ): Promise<VerificationNow> {
    const key = `${records.key}/${id}`
    const going = this.#fresh(key) ?? this.#begin(key, records, id)
    const over = new AbortController()
    for (const before of going.said) onSaid(before)
    going.listeners.add(onSaid)
    const late = this.#world.clock
      .wait(mostMs, AbortSignal.any([signal, over.signal]))
      .then((): VerificationNow => ({ state: 'running', said: [...going.said] }))
    try {
      const now = await Promise.race([going.result, late])
      if (now.state === 'ended') this.#going.delete(key)
      return now
    } catch (error) {
      this.#going.delete(key)
      throw error
    } finally {
      over.abort()
      going.listeners.delete(onSaid)
    }
  }

  /** Ends the running verifications, and resolves when they have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort('SIGTERM')
    await Promise.allSettled([...this.#going.values()].map(({ result }) => result))
  }

  #fresh(key: string): Going | null {
    const going = this.#going.get(key)
    if (going === undefined) return null
    const { endedAt } = going
    return endedAt === null || this.#world.clock.now() - endedAt < FRESH_MS ? going : null
  }

  #begin(key: string, records: Records, session: string): Going {
    const said: string[] = []
    const listeners = new Set<(said: string) => void>()
    const say = (text: string) => {
      if (said.length < MOST_SAID) said.push(text)
      for (const listener of listeners) listener(text)
    }
    const result = verifySession(this.#world, records, { session, say }).then(verified => {
      const words = describeVerification(verified).trimEnd().split('\n')
      return { state: 'ended', verdict: verified.verdict.kind, words } as const
    })
    const going: Going = { result, said, listeners, endedAt: null }
    const end = () => {
      going.endedAt = this.#world.clock.now()
    }
    // Nobody may be waiting when it fails; the next call gets the error.
    result.then(end, end)
    this.#going.set(key, going)
    return going
  }
}
