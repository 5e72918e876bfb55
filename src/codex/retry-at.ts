import type { RoundOutcome } from '../session/outcome.ts'

/**
 * The outcome with the moment from which it may be tried again, if codex's text names one. Other classes than `window`
 * and `throttle` have none. `now`: Unix time, ms.
 */
export function withRetryAt(outcome: RoundOutcome, now: number): RoundOutcome {
  if (outcome.class !== 'window' && outcome.class !== 'throttle') return outcome
  const retryAt = retryAtInText(outcome.message ?? '', now)
  return retryAt === null ? outcome : { ...outcome, retryAt }
}

/**
 * The moment that a text of codex names: "try again in 1.5s", "in 3 days 4 hours 9 minutes", "at 8:54 PM" (local time,
 * the next such moment), "on Nov 25th, 2026 8:54 PM". Unix time, ms; null if it names none, or one that is past or
 * further away than any usage window is long.
 */
export function retryAtInText(text: string, now: number): number | null {
  const said = /\btry again\s+(in|at|on)\s+(?:about\s+)?([^\n]{1,100})/i.exec(text)
  const [, how = '', words = ''] = said ?? []
  return sensible(how.toLowerCase() === 'in' ? timeAfter(words, now) : momentOf(words, now), now)
}

const JUST_PASSED_MS = 60 * 60_000
const HALF_A_DAY_MS = 12 * JUST_PASSED_MS
/** Windows of a month are the longest there are. */
const FURTHEST_MS = 32 * 24 * 60 * 60_000

function sensible(at: number | null, now: number): number | null {
  return at !== null && at > now && at - now <= FURTHEST_MS ? at : null
}

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:ms|millis(?:econds?)?|milliseconds?)$/i, 1],
  [/^(?:s|secs?|seconds?)$/i, 1000],
  [/^(?:m|mins?|minutes?)$/i, 60_000],
  [/^(?:h|hrs?|hours?)$/i, 3_600_000],
  [/^(?:d|days?)$/i, 86_400_000],
  [/^(?:w|wks?|weeks?)$/i, 604_800_000],
]
const PART = /\s*(?:,\s*)?(?:and\s+)?(\d+(?:\.\d+)?|an?(?=\s))\s*([a-z]+)/iy

function timeAfter(words: string, now: number): number | null {
  const text = words.replace(/^less than\s+/i, '')
  let ms = 0
  PART.lastIndex = 0
  for (let part = PART.exec(text); part; part = PART.exec(text)) {
    const [, count = '', word = ''] = part
    const unit = UNITS.find(([names]) => names.test(word))
    if (!unit) break
    ms += (/^a/i.test(count) ? 1 : Number(count)) * unit[1]
  }
  return ms > 0 ? now + Math.ceil(ms) : null
}

/** What a clock on the wall shows. */
interface WallTime {
  hour: number
  minute: number
  second: number
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const DATE = /^(?:[a-z]+day,?\s+)?([a-z]{3})[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?,?\s+(?:at\s+)?(.*)$/i
const ISO = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s?(?:Z|UTC|[+-]\d{2}:?\d{2})?/i

function momentOf(words: string, now: number): number | null {
  const [iso] = ISO.exec(words) ?? []
  if (iso !== undefined) {
    const at = Date.parse(iso.replace(/\s?UTC$/i, 'Z'))
    return Number.isNaN(at) ? null : at
  }
  const today = new Date(now)
  const date = DATE.exec(words)
  if (!date) {
    const time = wallTimeOf(words)
    if (!time) return null
    const day = (later: number) => occurrences(today.getFullYear(), today.getMonth(), today.getDate() + later, time)
    const moments = [...day(-1), ...day(0), ...day(1)]
    // A clock that is ahead of the server's sees a moment that has just passed, and not that of the next day.
    const next = nextOf(moments, now)
    const hasJustPassed = moments.some(at => at + 60_000 <= now && now - at < JUST_PASSED_MS)
    return hasJustPassed && next !== null && next - now > HALF_A_DAY_MS ? null : next
  }
  const [, name = '', dayOfMonth = '', year, rest = ''] = date
  const [month, time] = [MONTHS.indexOf(name.toLowerCase()), wallTimeOf(rest)]
  if (month === -1 || !time) return null
  const years = year === undefined ? [today.getFullYear(), today.getFullYear() + 1] : [Number(year)]
  const real = years.filter(each => new Date(each, month, Number(dayOfMonth)).getMonth() === month)
  return nextOf(
    real.flatMap(each => occurrences(each, month, Number(dayOfMonth), time)),
    now,
  )
}

function wallTimeOf(words: string): WallTime | null {
  const found = /^(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap])\.?m\b)?/i.exec(words)
  if (!found) return null
  const [, hours = '', minutes = '', seconds = '0', half] = found
  const [hour, minute, second] = [Number(hours), Number(minutes), Number(seconds)]
  if (minute > 59 || second > 59) return null
  if (half === undefined) return hour > 23 ? null : { hour, minute, second }
  if (hour < 1 || hour > 12) return null
  return { hour: (hour % 12) + (half.toLowerCase() === 'p' ? 12 : 0), minute, second }
}

/** The moments at which the local clock shows this: two of them where it is put back. */
function occurrences(year: number, month: number, day: number, { hour, minute, second }: WallTime): number[] {
  const first = new Date(year, month, day, hour, minute, second).getTime()
  const shows = (at: number) => new Date(at).getHours() === hour && new Date(at).getMinutes() === minute
  return [first, ...[first + 30 * 60_000, first + 60 * 60_000].filter(shows)]
}

/** Codex leaves the seconds out, so the minute that it is now is not over yet. */
function nextOf(moments: readonly number[], now: number): number | null {
  const next = moments.find(at => at + 60_000 > now)
  if (next === undefined) return null
  return next > now ? next : next + 60_000
}
