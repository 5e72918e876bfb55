import type { Clock } from '../base/clock.ts'

/** A machine that slept wakes up late; so the time of day is looked at this often. */
const SLICE_MS = 60_000

export interface WaitOptions {
  clock: Clock
  /** Ends the wait early. */
  signal: AbortSignal
  /** Called once a minute with what is left, ms. */
  onSlice(leftMs: number): void
}

/**
 * Waits until a moment of the day, Unix time in ms; a machine that sleeps meanwhile does not prolong it, and a clock
 * that is set back does not either.
 */
export async function waitUntil(until: number, { clock, signal, onSlice }: WaitOptions): Promise<void> {
  const end = clock.monotonic() + (until - clock.now())
  for (;;) {
    const left = Math.min(until - clock.now(), end - clock.monotonic())
    if (!(left > 0) || signal.aborted) return
    await clock.wait(Math.min(left, SLICE_MS), signal)
    const stillLeft = until - clock.now()
    if (!signal.aborted && stillLeft > 0) onSlice(stillLeft)
  }
}
