const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Each with its name, and with what a length that has it is rounded to. */
const UNITS = [
  [DAY, 'd', HOUR],
  [HOUR, 'h', MINUTE],
  [MINUTE, 'min', SECOND],
  [SECOND, 's', SECOND],
] as const

/** A length of time (ms) in a sentence, in its two largest units, rounded: `3 h 10 min`, `5 min`, `1 d 2 h`, `4.2 s`, `340 ms`. */
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

/** What is left of a wait (ms), to the nearest minute, in its last minute to the second: `3 h 10 min`, `20 s`. */
export function formatCountdown(ms: number): string {
  return formatSpan(ms < MINUTE ? Math.ceil(ms / SECOND) * SECOND : Math.round(ms / MINUTE) * MINUTE)
}
