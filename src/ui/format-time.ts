/** The local time of day of an instant (Unix time, ms): `22:41:07`. */
export function formatTime(at: number): string {
  const date = new Date(at)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':')
}

/** The local day and time of an instant, without seconds: `2026-11-20 22:41`. */
export function formatDayAndTime(at: number): string {
  return `${dayOf(at)} ${formatTime(at).slice(0, 5)}`
}

/** A moment seen from another: `05:02`, with its day if that is not the same. */
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
