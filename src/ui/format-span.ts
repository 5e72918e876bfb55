const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const UNITS = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'min'],
  [SECOND, 's'],
] as const

/** A length of time (ms) in a sentence, in its two largest units, rounded down: `3 h 10 min`, `5 min`, `1 d 2 h`, `45 s`. */
export function formatSpan(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / SECOND) * SECOND
  const largest = UNITS.findIndex(([unit]) => seconds >= unit)
  if (largest === -1) return '0 s'
  let rest = seconds
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
