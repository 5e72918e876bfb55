import type { Clock } from '../../src/base/clock.ts'

/** A clock that stands still: a wait is over when a test says so, however busy the machine is. */
export class HandClock implements Clock {
  readonly #pending = new Set<{ ms: number; release: () => void }>()
  #look = () => {}

  now(): number {
    return 0
  }

  monotonic(): number {
    return 0
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const release = () => {
        this.#pending.delete(wait)
        resolve()
      }
      const wait = { ms, release }
      this.#pending.add(wait)
      signal?.addEventListener('abort', release, { once: true })
      this.#look()
    })
  }

  /** How long those waits are that are not over, ms. */
  get pending(): number[] {
    return [...this.#pending].map(({ ms }) => ms)
  }

  /** Ends the first wait of exactly `ms`, as soon as there is one; rejects after 20 s of real time. */
  over(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const bound = setTimeout(() => reject(new Error(`Nothing waits ${ms} ms, only: ${this.pending}.`)), 20_000)
      this.#look = () => {
        const found = [...this.#pending].find(wait => wait.ms === ms)
        if (found === undefined) return
        this.#look = () => {}
        clearTimeout(bound)
        found.release()
        resolve()
      }
      this.#look()
    })
  }

  /** Ends all waits, those that are still to come too. */
  runOut(): void {
    this.#look = () => {
      for (const { release } of this.#pending) release()
    }
    this.#look()
  }
}
