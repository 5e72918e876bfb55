import { expect, test } from 'vitest'
import { RetryNotices } from '../../../src/engines/codex/round-feed.ts'

const notice = (message: string, details: string | null = null) => ({
  type: 'error' as const,
  round: 1,
  message,
  details,
  willRetry: true,
  waitsForNetwork: message.includes('waiting for network'),
})
const AWAY = 'Reconnecting... waiting for network'
const MINUTE = 60_000

test('ten hours without a network are told about every five minutes, and not each time that codex tries', () => {
  const notices = new RetryNotices()
  let told = 0
  for (let now = 0; now < 600 * MINUTE; now += 45_000) {
    if (notices.isNews(notice(AWAY, now % 2 === 0 ? 'dns error' : 'refused'), now)) told++
  }
  expect(told).toBeGreaterThan(80)
  expect(told).toBeLessThanOrEqual(120)
})

test('a notice that says something else is told, and one that comes back soon is not', () => {
  const notices = new RetryNotices()
  const told = [AWAY, 'Reconnecting... 1/5', AWAY, 'Reconnecting... 2/5', 'Reconnecting... 1/5']
  expect(told.map((message, n) => notices.isNews(notice(message), n * 1000))).toEqual([true, true, false, true, false])
})

test('once the turn has gone on, the next break is told at once', () => {
  const notices = new RetryNotices()
  expect(notices.isNews(notice(AWAY), 0)).toBe(true)
  notices.forget()
  expect(notices.isNews(notice(AWAY), 1000)).toBe(true)
})

test('texts that are never twice the same fill no memory', () => {
  const notices = new RetryNotices()
  for (let n = 0; n < 10_000; n++) expect(notices.isNews(notice(`Reconnecting... ${n}`), 0)).toBe(true)
})
