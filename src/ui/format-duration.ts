const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long something took (ms), rounded, the same in every view: `340 ms`, `4.2 s`, `3m12s`, `2h05m`, `1d02h`. */
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
