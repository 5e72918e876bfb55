import { formatCountdown } from './format-span.ts'

const MINUTE = 60_000
const STEP_MS = 15 * MINUTE

/** Picks, of the moments of a wait that are reported once a minute, those that a log is worth a line. */
export class Countdown {
  /** When the wait is over; Unix time, ms. */
  readonly until: number
  #sayAt: number

  /** @param leftMs what is left of it as it begins */
  constructor(until: number, leftMs: number) {
    this.until = until
    this.#sayAt = stepBelow(leftMs)
  }

  /** What to say when `leftMs` is left; null if nothing. */
  tick(leftMs: number): string | null {
    if (leftMs > this.#sayAt) return null
    this.#sayAt = stepBelow(leftMs)
    return `still waiting: ${formatCountdown(leftMs)} left`
  }
}

/** The next moment to say something: a whole quarter of an hour, and one minute before the end. */
function stepBelow(leftMs: number): number {
  if (leftMs > STEP_MS) return (Math.ceil(leftMs / STEP_MS) - 1) * STEP_MS
  return leftMs > MINUTE ? MINUTE : Number.NEGATIVE_INFINITY
}
