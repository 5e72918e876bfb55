import type { RoundEvent } from '../session/engine.ts'

/** How often the same notice is told while nothing else happens, ms. */
const AGAIN_MS = 5 * 60_000
/** Different notices that are remembered. */
const MOST_NOTICES = 100

/**
 * Which of codex's notices that it tries again are told. While the network is away it gives the same one every few
 * seconds, for hours; told once, and then every five minutes, it does not fill a journal.
 */
export class RetryNotices {
  readonly #told = new Map<string, number>()

  /** Whether this notice, that comes at `now` (monotonic, ms), is told. */
  isNews({ message, waitsForNetwork }: Extract<RoundEvent, { type: 'error' }>, now: number): boolean {
    const cause = waitsForNetwork ? 'network' : message
    const last = this.#told.get(cause)
    if (last !== undefined && now - last < AGAIN_MS) return false
    if (this.#told.size >= MOST_NOTICES) this.#told.clear()
    this.#told.set(cause, now)
    return true
  }

  /** The turn goes on: what comes after this is news again. */
  forget(): void {
    if (this.#told.size > 0) this.#told.clear()
  }
}
