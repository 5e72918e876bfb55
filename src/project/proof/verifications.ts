import type { Records } from '../../session/records/records.ts'
import type { World } from '../world.ts'
import { type Verified, verifySession } from './verify.ts'
import { describeVerification } from './verify-words.ts'

/** What has come of verifying; while it goes on, what was said so far. */
type VerificationNow =
  | { state: 'running'; said: readonly string[] }
  | { state: 'ended'; verdict: Verified['verdict']['kind']; words: readonly string[] }

interface Going {
  result: Promise<Extract<VerificationNow, { state: 'ended' }>>
  said: string[]
  listeners: Set<(said: string) => void>
  /** Unix time, ms; null: it goes on. */
  endedAt: number | null
}

const MOST_SAID = 200
/** For so long what it has come to is still true for whoever asks; after that it is made anew, ms. */
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

  /** Whether any goes on. */
  get isGoing(): boolean {
    return [...this.#going.values()].some(({ endedAt }) => endedAt === null)
  }

  /**
   * Begins to verify a session, or goes on with that, and waits for its end. What it has come to is told once, and not where it is
   * older than `FRESH_MS`. A `UserError` where it cannot be verified.
   * @param onSaid told what is done, as it is, and what was said before
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

  /** Ends what goes on, and resolves when it has ended. */
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
    // Nobody may wait for it when it fails; the next call is told.
    result.then(end, end)
    this.#going.set(key, going)
    return going
  }
}
