/** A length of time (ms) as a clock that moves each second, rounded down: `0:42`, `12:05`, `1:02:05`, `27:00:00`. */
export function formatClock(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000)
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  const parts = hours > 0 ? [hours, twoDigits(minutes), twoDigits(rest)] : [minutes, twoDigits(rest)]
  return parts.join(':')
}

/** The same with hours and two digits each: `00:15:32`. */
export function formatFullClock(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000)
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60].map(twoDigits).join(':')
}

function twoDigits(part: number): string {
  return String(part).padStart(2, '0')
}
