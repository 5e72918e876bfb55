import { setImmediate as nextTick } from 'node:timers/promises'
import type { Clock } from '../../src/base/clock.ts'

/** A clock that runs with real time, and can be moved on, so that a night passes in a moment. */
export class TestClock implements Clock {
  readonly #pending = new Set<PendingWait>()
  readonly #watchers = new Set<() => void>()
  #offset = 0
  #slept = 0
  #advancing = false

  now(): number {
    return Math.round(Date.now() + this.#offset) + this.#slept
  }

  monotonic(): number {
    return performance.now() + this.#offset
  }

  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const release = () => {
        clearTimeout(wait.timer)
        this.#pending.delete(wait)
        signal?.removeEventListener('abort', release)
        resolve()
      }
      const wait: PendingWait = { due: this.monotonic() + ms, isShort: ms < SHORT_MS, release, timer: undefined }
      this.#pending.add(wait)
      signal?.addEventListener('abort', release, { once: true })
      if (!this.#advancing) this.#arm(wait)
      for (const look of [...this.#watchers]) look()
    })
  }

  /**
   * Moves both clocks on by `ms`, from one wait that falls due to the next, and lets what waited go on each time: what
   * looks at the clock again and again sees no jump. Waits of less than a second may be released up to a step late.
   * A second call before the first has resolved is an error of the test.
   */
  async advance(ms: number): Promise<void> {
    if (this.#advancing) throw new Error('The clock is being advanced already.')
    this.#advancing = true
    try {
      const end = this.monotonic() + ms
      for (;;) {
        const next = Math.min(end, ...[...this.#pending].filter(wait => !wait.isShort).map(wait => wait.due))
        this.#offset += Math.max(0, next - this.monotonic())
        for (const wait of this.#dueNow()) wait.release()
        await letOthersRun()
        if (next === end) break
      }
    } finally {
      this.#advancing = false
      for (const wait of this.#pending) this.#arm(wait)
    }
  }

  /** A machine that slept: wall time has moved on by `ms`, monotonic time and all waits have stood still. */
  sleepMachine(ms: number): void {
    this.#slept += ms
  }

  /** How long each pending wait still takes, ms; the shortest first. */
  waits(): number[] {
    const now = this.monotonic()
    return [...this.#pending].map(wait => Math.max(0, wait.due - now)).sort((a, b) => a - b)
  }

  /** Resolves with what is left, ms, once a wait is pending that still takes `minMs` or more; rejects after 30 s. */
  nextWait(minMs: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(bound)
        this.#watchers.delete(look)
      }
      const bound = setTimeout(() => {
        stop()
        reject(new Error(`Nothing waits ${minMs} ms or longer, only: ${this.waits().map(Math.round).join(', ')}.`))
      }, BOUND_MS)
      const look = () => {
        // Time runs on between a wait and the look at it.
        const found = this.waits().find(left => left > minMs - SLACK_MS)
        if (found === undefined) return
        stop()
        resolve(found)
      }
      this.#watchers.add(look)
      look()
    })
  }

  #dueNow(): PendingWait[] {
    const now = this.monotonic()
    return [...this.#pending].filter(wait => wait.due <= now).sort((a, b) => a.due - b.due)
  }

  #arm(wait: PendingWait): void {
    clearTimeout(wait.timer)
    const left = Math.min(Math.max(0, wait.due - this.monotonic()), LONGEST_TIMER_MS)
    wait.timer = setTimeout(() => {
      if (this.#advancing) return
      if (wait.due - this.monotonic() < 1) wait.release()
      else this.#arm(wait)
    }, left)
  }
}

interface PendingWait {
  /** Monotonic, ms. */
  due: number
  /** Whether it is not worth a step of its own: what polls would make a night of a million steps. */
  isShort: boolean
  release(): void
  timer: NodeJS.Timeout | undefined
}

const SHORT_MS = 1000
const SLACK_MS = 50
const BOUND_MS = 60_000
/** What setTimeout takes. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Several turns of the event loop: for what goes on over more than one callback before it waits again. */
async function letOthersRun(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await nextTick()
}
