import type { Clock } from '../base/clock.ts'
import type { Activity, SilenceLimits } from './activity.ts'

export interface SilenceWatchOptions extends SilenceLimits {
  activity: Activity
  clock: Clock
  /** The machine slept for about so long, ms; the clocks have been started anew. */
  onSlept(ms: number): void
  /** Codex counts as hung, for this reason, a sentence. Called once; nothing is watched after it. */
  onSilent(message: string): void
}

/** How often it is looked whether the machine slept, ms. */
const LOOK_MS = 30_000
/** A shorter wait is not worth it. */
const LEAST_WAIT_MS = 1_000
/** What a look may come too late, or the wall clock gain on the other, before the machine counts as having slept, ms. */
const SLEEP_MS = 30_000

/**
 * Watches until `stop` is called whether codex still does something.
 *
 * In a machine that sleeps, monotonic time and timers stand still (Linux) or go on (macOS, Windows): either the wall
 * clock gains on the other, or a look comes far too late. What codex could not do meanwhile is not held against it.
 */
export function watchForSilence(options: SilenceWatchOptions): { stop(): void } {
  const { activity, clock, onSlept, onSilent } = options
  const stopped = new AbortController()
  void watch()
  return { stop: () => stopped.abort() }

  async function watch(): Promise<void> {
    for (;;) {
      const [wall, steady] = [clock.now(), clock.monotonic()]
      const waitMs = Math.max(LEAST_WAIT_MS, Math.min(LOOK_MS, activity.msLeft(steady, options)))
      await clock.wait(waitMs, stopped.signal)
      if (stopped.signal.aborted) return
      const now = clock.monotonic()
      const missedMs = Math.max(clock.now() - wall, now - steady) - waitMs
      if (missedMs > SLEEP_MS) {
        activity.restart(now)
        onSlept(Math.round(missedMs))
      } else if (activity.msLeft(now, options) <= 0) {
        onSilent(activity.describe(now))
        return
      }
    }
  }
}
