import { setImmediate as nextTick } from 'node:timers/promises'
import type { Clock } from '../../src/base/clock.ts'

/** A clock for what waits on nothing but the clock: when all wait, it goes on to the first whose time has come. */
export class VirtualClock implements Clock {
  readonly #pending = new Set<{ due: number; release: () => void }>()
  #time: number
  /** How far the time of day has been set off the time that has passed, ms. */
  #setOff = 0
  #isRunning = false

  /** @param start Unix time, ms */
  constructor(start: number) {
    this.#time = start
  }

  now(): number {
    return this.#time + this.#setOff
  }

  /** Sets the time of day, as a person may, or a machine that has slept; what waits does not come any sooner. */
  set(byMs: number): void {
    this.#setOff += byMs
  }

  monotonic(): number {
    return this.#time
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const release = () => {
        this.#pending.delete(wait)
        signal?.removeEventListener('abort', release)
        resolve()
      }
      const wait = { due: this.#time + Math.max(0, ms), release }
      this.#pending.add(wait)
      signal?.addEventListener('abort', release, { once: true })
      void this.#run()
    })
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    while (this.#pending.size > 0) {
      // All that can go on without the clock goes on first.
      for (let tick = 0; tick < 3; tick++) await nextTick()
      const [first] = [...this.#pending].sort((a, b) => a.due - b.due)
      if (!first) break
      this.#time = Math.max(this.#time, first.due)
      first.release()
    }
    this.#isRunning = false
  }
}
