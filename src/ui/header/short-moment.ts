import { formatMoment, formatTime } from '../format-time.ts'

const NEAR_MS = 20 * 60 * 60 * 1000

/** A moment seen from another, both Unix time in ms, where there is little room: `05:02`, with its day if it is far away. */
export function shortMoment(at: number, from: number): string {
  return Math.abs(at - from) < NEAR_MS ? formatTime(at).slice(0, 5) : formatMoment(at, from)
}
