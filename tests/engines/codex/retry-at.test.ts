import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { retryAtInText, withRetryAt } from '../../../src/engines/codex/classify.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** The time zone of a test; Node reads it anew each time it is set. */
let zone: string | undefined
beforeEach(() => {
  zone = process.env.TZ
  process.env.TZ = 'Europe/Berlin'
})
afterEach(() => {
  if (zone === undefined) delete process.env.TZ
  else process.env.TZ = zone
})

const saying = (text: string, now: string) => {
  const at = retryAtInText(text, Date.parse(now))
  return at === null ? null : new Date(at).toISOString()
}

describe('the time in codex’s words, read in Berlin on the 21st of November at noon (11:00 UTC)', () => {
  test.each([
    ['You’ve hit your usage limit. Try again at 8:54 PM.', '2026-11-21T19:54:00.000Z'],
    ["You've hit your usage limit. Upgrade to Pro (https://x), or try again at 8:54 PM.", '2026-11-21T19:54:00.000Z'],
    ['try again at 8:54\u202fp.m.', '2026-11-21T19:54:00.000Z'],
    ['try again at 20:54.', '2026-11-21T19:54:00.000Z'],
    ['try again at 12:30 PM', '2026-11-21T11:30:00.000Z'],
    ['a time that is past today is tomorrow’s: try again at 10:59 AM', '2026-11-22T09:59:00.000Z'],
    ['midnight is at the end of the day: try again at 12:00 AM', '2026-11-21T23:00:00.000Z'],
    ['the minute that it is now is not over: try again at 12:00 PM', '2026-11-21T11:01:00.000Z'],
    ['try again in 1.5s', '2026-11-21T11:00:01.500Z'],
    ['Please try again in 28ms. Visit …', '2026-11-21T11:00:00.028Z'],
    ['try again in 20 seconds.', '2026-11-21T11:00:20.000Z'],
    ['try again in 1m30s', '2026-11-21T11:01:30.000Z'],
    ['try again in less than a minute', '2026-11-21T11:01:00.000Z'],
    ['try again in an hour', '2026-11-21T12:00:00.000Z'],
    ['try again in 3 days 4 hours 9 minutes', '2026-11-24T15:09:00.000Z'],
    ['try again in 2 days, 3 hours and 1 minute', '2026-11-23T14:01:00.000Z'],
    ['or try again on Nov 25th, 2026 8:54 PM.', '2026-11-25T19:54:00.000Z'],
    ['or try again at Nov 25th, 2026 8:54 PM.', '2026-11-25T19:54:00.000Z'],
    ['try again on December 1, 2026 at 9:05 AM', '2026-12-01T08:05:00.000Z'],
    ['a year that is left out: try again on Dec 3rd 9:05 AM', '2026-12-03T08:05:00.000Z'],
    ['try again at 2026-11-21T22:00:00Z', '2026-11-21T22:00:00.000Z'],
  ])('%s', (text, at) => {
    expect(saying(text, '2026-11-21T11:00:00Z')).toBe(at)
  })
})

test('nonsense names no time', () => {
  for (const text of [
    '',
    'try again later',
    'try again at',
    'try again at noon',
    'try again at 25:10',
    'try again at 8:61 PM',
    'try again at 13:00 PM',
    'try again at 0:10 AM',
    'try again in -5 seconds',
    'try again in 0 s',
    'try again in 40 days',
    'try again in 2 months',
    'try again in 3 fortnights',
    'try again in 99999999999999999999 hours',
    'try again on Nov 20th, 2026 8:54 PM',
    'try again on Nov 25th, 2031 8:54 PM',
    'try again on Feb 31st, 2027 8:54 PM',
    'try again on Foo 3rd, 2026 8:54 PM',
    'try again at 2026-13-45T99:00:00Z',
  ])
    expect([text, saying(text, '2026-11-21T11:00:00Z')]).toEqual([text, null])
})

test('over midnight, and over the end of a year, the next such moment is meant', () => {
  expect(saying('try again at 1:15 AM', '2026-11-21T22:59:00Z')).toBe('2026-11-22T00:15:00.000Z')
  expect(saying('try again at 1:15 AM', '2026-12-31T22:59:00Z')).toBe('2027-01-01T00:15:00.000Z')
  expect(saying('try again on Jan 2nd 1:15 AM', '2026-12-31T22:59:00Z')).toBe('2027-01-02T00:15:00.000Z')
})

test('where the clock is put back, the second of the two moments counts once the first is past', () => {
  // 25 October 2026: 3:00 summer time (01:00 UTC) becomes 2:00.
  expect(saying('try again at 2:30 AM', '2026-10-24T23:00:00Z')).toBe('2026-10-25T00:30:00.000Z')
  expect(saying('try again at 2:30 AM', '2026-10-25T00:45:00Z')).toBe('2026-10-25T01:30:00.000Z')
  expect(saying('try again at 2:30 AM', '2026-10-25T03:45:00Z')).toBe('2026-10-26T01:30:00.000Z')
})

test('where the clock is put forward, a moment that is left out is an hour later', () => {
  // 29 March 2026: 2:00 (01:00 UTC) becomes 3:00.
  expect(saying('try again at 2:30 AM', '2026-03-29T00:00:00Z')).toBe('2026-03-29T01:30:00.000Z')
  expect(saying('try again at 8:00 AM', '2026-03-28T23:00:00Z')).toBe('2026-03-29T06:00:00.000Z')
})

const anyNow = fc.integer({ min: Date.UTC(2025, 0), max: Date.UTC(2028, 0) })

test('a time of day has just passed, or is within a day and an hour and what the clock on the wall then shows', () => {
  fc.assert(
    fc.property(anyNow, fc.nat(23), fc.nat(59), (now, hour, minute) => {
      const half = hour < 12 ? 'AM' : 'PM'
      const text = `try again at ${hour % 12 || 12}:${String(minute).padStart(2, '0')} ${half}.`
      const at = retryAtInText(text, now)
      const today = new Date(now)
      const since = (today.getHours() * 60 + today.getMinutes() - (hour * 60 + minute) + 1440) % 1440
      if (at === null) {
        expect(since).toBeLessThanOrEqual(60)
        return
      }
      expect(at).toBeGreaterThan(now)
      expect(at - now).toBeLessThanOrEqual(DAY + HOUR)
      const shown = new Date(at)
      // The minute that it is now ends a minute later; an hour that is left out is shown an hour later.
      const minutes = (shown.getHours() * 60 + shown.getMinutes() - (hour * 60 + minute) + 1440) % 1440
      expect([0, 1, 60]).toContain(minutes)
    }),
  )
})

test('no text makes a time that is past or absurdly far away', () => {
  const words = fc.constantFrom(
    'try again',
    'in',
    'at',
    'on',
    'Nov',
    '25th,',
    '2026',
    '8:54',
    'PM',
    '3',
    'days',
    '1.5s',
    'a',
    'h',
  )
  fc.assert(
    fc.property(anyNow, fc.array(fc.oneof(words, fc.string()), { maxLength: 12 }), (now, parts) => {
      const at = retryAtInText(`try again ${parts.join(' ')}`, now)
      if (at !== null) expect(at > now && at - now <= 32 * DAY && Number.isInteger(at)).toBe(true)
    }),
  )
})

test('an outcome has the moment that codex named, if it may be tried again and codex named one', () => {
  const now = Date.parse('2026-11-21T11:00:00Z')
  const message = 'You’ve hit your usage limit. Try again at 8:54 PM.'
  const retryAt = Date.parse('2026-11-21T19:54:00Z')
  expect(withRetryAt({ class: 'window', message }, now)).toEqual({ class: 'window', message, retryAt })
  expect(withRetryAt({ class: 'throttle', message: 'try again in 2s' }, now).retryAt).toBe(now + 2000)
  expect(withRetryAt({ class: 'window', message: 'no' }, now)).toEqual({ class: 'window', message: 'no' })
  expect(withRetryAt({ class: 'window', message: null }, now)).toEqual({ class: 'window', message: null })
  expect(withRetryAt({ class: 'quota', message }, now)).toEqual({ class: 'quota', message })
})

test('a time of day that has just passed is not that of the next day', () => {
  const at = (hour: number, minute: number) => new Date(2026, 10, 21, hour, minute).getTime()
  expect(retryAtInText('try again at 10:56 AM.', at(10, 58))).toBeNull()
  expect(retryAtInText('try again at 11:58 PM.', at(0, 1))).toBeNull()
  expect(retryAtInText('try again at 10:56 AM.', at(12, 0))).toBe(new Date(2026, 10, 22, 10, 56).getTime())
})
