import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isEvent, upgradeEvent } from '../../../src/core/events/checks.ts'
import type { Recorded } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { fold } from '../../support/session-events.ts'

const HEAD = { v: 1, at: '2026-11-22T11:45:21.043Z', session: '20261122_1' } as const

/** As it comes from the journal of any version: nothing is known of it but that it is an object. */
const read = (event: object) => {
  const recorded: object = { ...HEAD, ...event }
  expect(isEvent({ ...recorded })).toBe(true)
  // Its check has said so.
  return upgradeEvent(recorded as Recorded)
}

test('what this version writes stays as it is', () => {
  for (const event of Object.values(sampleEvents)) expect(read(event)).toEqual({ ...HEAD, ...event })
})

const TESTS = fileURLToPath(new URL('../..', import.meta.url))
const JOURNALS = globSync('{data/records-0.1/**/journal.ndjson,core/rules/recorded/*.ndjson}', { cwd: TESTS })

test.each(JOURNALS)('every event of an earlier journal is still one, and folds: %s', path => {
  const lines = readFileSync(`${TESTS}/${path}`, 'utf8').trimEnd().split('\n')
  const events = lines.map(line => JSON.parse(line)).filter(each => each.format === undefined)
  expect(events.length).toBeGreaterThan(3)
  const state = events.map(read).reduce(fold, emptyState('20261122_1'))
  expect(state.events).toBe(events.length)
  expect(state.createdAt).toBeGreaterThan(0)
})

test('a hint that an earlier version journaled as a sentence is that sentence, and one that is not known is none', () => {
  const end = (hint: unknown) => {
    const outcome = { kind: 'needs-person', reason: 'You are logged out.', hint }
    const event = read({ type: 'session-ended', outcome, exitCode: 4, rounds: 1, tokens: 0, durationMs: 1 })
    return event.type === 'session-ended' && event.outcome.kind === 'needs-person' ? event.outcome.hint : undefined
  }
  expect(end('Log in.')).toEqual({ do: 'say', text: 'Log in.' })
  expect(end(null)).toBeNull()
  expect(end({ do: 'log-in' })).toEqual({ do: 'log-in' })
  for (const unknown of [7, undefined, {}, { do: 'sing' }, { do: 'say' }, { do: 'mend-plan', files: 'a', more: false }])
    expect(end(unknown)).toBeNull()
})

test.each([
  ['window', '95 % of it are used, and --max-usage is 90 %.', 'max-usage'],
  ['window', 'The usage limit is reached.', 'usage-limit'],
  ['window', 'You’ve hit your usage limit. Try again at 12:46 PM.', 'round-failed'],
  ['window', null, 'round-failed'],
  ['network', 'The usage limit is reached.', 'round-failed'],
])('the reason of an earlier wait is read from its cause: %s, %s', (end, message, reason) => {
  const wait = { type: 'waiting', round: 2, cause: { class: end, message }, until: HEAD.at }
  expect(read(wait)).toEqual({ ...HEAD, ...wait, reason })
})

test('a warning by which an earlier version said that the settings were changed is the event of that', () => {
  const message = 'Round 12 changed codemachine.toml; what it says now counts from the next run on.'
  expect(read({ type: 'warning', round: null, message })).toEqual({ ...HEAD, type: 'settings-changed', round: 12 })
  for (const other of [
    { type: 'warning', round: 12, message },
    { type: 'warning', round: null, message: `${message} So it is.` },
  ]) {
    expect(read(other)).toEqual({ ...HEAD, ...other })
  }
})
