const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A length of time for a person, rounded down: `340 ms`, `4.2 s`, `3m12s`, `2h05m`, `1d02h`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.floor(ms))} ms`
  if (ms < MINUTE) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  if (ms < HOUR) return pair(ms, MINUTE, 'm', SECOND, 's')
  if (ms < DAY) return pair(ms, HOUR, 'h', MINUTE, 'm')
  return pair(ms, DAY, 'd', HOUR, 'h')
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)}${largeName}${String(rest).padStart(2, '0')}${smallName}`
}
