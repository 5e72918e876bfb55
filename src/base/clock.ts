/** The program's time, passed in so that tests need not wait. */
export interface Clock {
  /** Wall time, ms since the epoch; may jump. For stamps only. */
  now(): number
  /** Monotonic time, ms; for durations and deadlines. */
  monotonic(): number
  /** Resolves after `ms`, or as soon as `signal` aborts; never rejects. */
  wait(ms: number, signal?: AbortSignal): Promise<void>
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  wait: (ms, signal) =>
    new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal?.addEventListener('abort', end, { once: true })
    }),
}
