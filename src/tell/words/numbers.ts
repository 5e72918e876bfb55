/** Formats a number with its noun: `1 round`, `3 rounds`. */
export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Formats a whole number for a person, with thousands separators: `2,000`. */
export function formatNumber(count: number): string {
  return count < 1000 ? String(count) : count.toLocaleString('en-US')
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Formats a duration (ms), rounded, the same in every view: `340 ms`, `4.2 s`, `3m12s`, `2h05m`, `1d02h`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < SECOND) return `${whole} ms`
  if (nearest(ms, SECOND / 10) < MINUTE) return `${(Math.round(ms / 100) / 10).toFixed(1)} s`
  if (nearest(ms, SECOND) < HOUR) return pair(nearest(ms, SECOND), MINUTE, 'm', SECOND, 's')
  if (nearest(ms, MINUTE) < DAY) return pair(nearest(ms, MINUTE), HOUR, 'h', MINUTE, 'm')
  return pair(nearest(ms, HOUR), DAY, 'd', HOUR, 'h')
}

function nearest(ms: number, unit: number): number {
  return Math.round(ms / unit) * unit
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = (ms % large) / small
  return `${Math.floor(ms / large)}${largeName}${String(rest).padStart(2, '0')}${smallName}`
}

/** Each with its name, and the unit to which it is rounded. */
const UNITS = [
  [DAY, 'd', HOUR],
  [HOUR, 'h', MINUTE],
  [MINUTE, 'min', SECOND],
  [SECOND, 's', SECOND],
] as const

/**
 * Formats a duration (ms) for a sentence in its two largest units, rounded: `3 h 10 min`, `5 min`, `1 d 2 h`, `4.2 s`, `340
 * ms`.
 */
export function formatSpan(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole === 0) return '0 s'
  if (whole < SECOND) return `${whole} ms`
  const tenths = Math.round(ms / (SECOND / 10)) / 10
  if (tenths < MINUTE / SECOND) return `${tenths} s`
  const rounded = UNITS.map(([, , smallest]) => Math.round(ms / smallest) * smallest)
  const largest = UNITS.findIndex(([unit], at) => (rounded[at] ?? 0) >= unit)
  let rest = rounded[largest] ?? 0
  const parts: string[] = []
  for (const [unit, name] of UNITS.slice(largest, largest + 2)) {
    const count = Math.floor(rest / unit)
    if (count > 0) parts.push(`${count} ${name}`)
    rest %= unit
  }
  return parts.join(' ')
}

/** Formats the rest of a wait (ms), to the nearest minute, in its last minute to the second: `3 h 10 min`, `20 s`. */
export function formatCountdown(ms: number): string {
  return formatSpan(ms < MINUTE ? Math.ceil(ms / SECOND) * SECOND : Math.round(ms / MINUTE) * MINUTE)
}

/** Formats the local time of day of an instant (Unix time, ms): `22:41:07`. */
export function formatTime(at: number): string {
  const date = new Date(at)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':')
}

/** Formats the local day and time of an instant, without seconds: `2026-11-20 22:41`. */
export function formatDayAndTime(at: number): string {
  return `${dayOf(at)} ${formatTime(at).slice(0, 5)}`
}

/** Formats a moment as seen from another: `05:02`, with its day if that differs. */
export function formatMoment(at: number, from: number): string {
  const moment = formatDayAndTime(at)
  return dayOf(at) === dayOf(from) ? moment.slice(11) : moment
}

function dayOf(at: number): string {
  const date = new Date(at)
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(twoDigits).join('-')
}

function twoDigits(part: number): string {
  return String(part).padStart(2, '0')
}

/** Formats a number of tokens for a person: `950 tokens`, `45.2k tokens`, `1.3M tokens`, `5M tokens`. */
export function formatTokens(tokens: number): string {
  return `${shortNumber(tokens)} token${tokens === 1 ? '' : 's'}`
}

/**
 * Formats an amount of money, without its currency, which only the person knows: `3.20`, and `0.0042` below one hundredth.
 */
export function formatCost(amount: number): string {
  return amount === 0 || amount >= 0.01 ? amount.toFixed(2) : String(Number(amount.toPrecision(2)))
}

/** Formats a large number in short, to one decimal: `950`, `45.2k`, `1.3M`, `5M`. */
export function shortNumber(count: number): string {
  if (count < 1000) return String(count)
  // From here on, the thousands would round up to `1000k`.
  return count < 999_950 ? `${toOneDecimal(count / 1000)}k` : `${toOneDecimal(count / 1_000_000)}M`
}

function toOneDecimal(value: number): string {
  return value.toFixed(1).replace('.0', '')
}

/** Formats a duration (ms) as a clock of seconds, rounded down: `0:42`, `12:05`, `1:02:05`, `27:00:00`. */
export function formatClock(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const parts = hours > 0 ? [hours, twoDigits(minutes), twoDigits(rest)] : [minutes, twoDigits(rest)]
  return parts.join(':')
}

const NEAR_MS = 20 * 60 * 60 * 1000

/** Formats a moment as seen from another (both Unix time, ms) in little space: `05:02`, with its day if it is far away. */
export function shortMoment(at: number, from: number): string {
  return Math.abs(at - from) < NEAR_MS ? formatTime(at).slice(0, 5) : formatMoment(at, from)
}

const STEP_MS = 15 * MINUTE

/** Selects the reports of a wait that are worth a log line, from one a minute. */
export class Countdown {
  /** End of the wait; Unix time, ms. */
  readonly until: number
  #sayAt: number

  /** @param leftMs time left at the beginning */
  constructor(until: number, leftMs: number) {
    this.until = until
    this.#sayAt = stepBelow(leftMs)
  }

  /** Returns the report when `leftMs` is left; null: none. */
  tick(leftMs: number): string | null {
    if (leftMs > this.#sayAt) return null
    this.#sayAt = stepBelow(leftMs)
    return `still waiting: ${formatCountdown(leftMs)} left`
  }
}

/** Returns the next time for a report: a whole quarter of an hour, or one minute before the end. */
function stepBelow(leftMs: number): number {
  if (leftMs > STEP_MS) return (Math.ceil(leftMs / STEP_MS) - 1) * STEP_MS
  return leftMs > MINUTE ? MINUTE : Number.NEGATIVE_INFINITY
}
