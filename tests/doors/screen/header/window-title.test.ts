import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import { windowTitle } from '../../../../src/doors/screen/header/header.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { hostileText } from '../hostile-text.ts'
import { sampleEvents } from '../samples.ts'
import { atWork, board, liveItem, NOW, npmTest, stateAfter } from './session.ts'

const ended = { ...sampleEvents['round-ended'], round: 4 }
const { 'session-ended': over, waiting, paused } = sampleEvents

test.each<[string, string, SessionEvent[]]>([
  [
    '▸ npm test · 1 of 15 tasks · round 4 of 20 — linkcheck',
    'running npm test, 1 of 15 tasks, round 4 of 20 — linkcheck',
    [],
  ],
  [
    '⏸ paused · 1 of 15 tasks · round 1 of 20 — linkcheck',
    'paused, 1 of 15 tasks, round 1 of 20 — linkcheck',
    [ended, paused],
  ],
  [
    '▸ gate tests · 1 of 15 tasks · round 1 of 20 — linkcheck',
    'running gate tests, 1 of 15 tasks, round 1 of 20 — linkcheck',
    [ended, sampleEvents['gate-started']],
  ],
  [
    '⏳ until 05:02 · 1 of 15 tasks · round 1 of 20 — linkcheck',
    'waiting until 05:02, 1 of 15 tasks, round 1 of 20 — linkcheck',
    [ended, waiting],
  ],
  ['✔ done, not verified — linkcheck', 'done, not verified — linkcheck', [ended, over]],
  ['✖ stopped — linkcheck', 'stopped — linkcheck', [{ ...over, outcome: { kind: 'interrupted', by: 'stop' } }]],
])('%s', (title, inWords, events) => {
  const data = { state: stateAfter([...atWork, ...events]), board, live: [npmTest] }
  expect(windowTitle(data, { symbols: true, now: NOW })).toBe(title)
  expect(windowTitle(data, { symbols: false, now: NOW })).toBe(inWords)
})

test('it changes when something does, not with the time', () => {
  const data = { state: stateAfter([...atWork, ended, waiting]), board, live: [] }
  expect(windowTitle(data, { symbols: true, now: NOW + 61_000 })).toBe(windowTitle(data, { symbols: true, now: NOW }))
})

test('it is one line of at most 80 cells without control characters, whatever the texts are', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        hostileText,
        hostileText.map(text => text.repeat(50)),
      ),
      fc.boolean(),
      (text, symbols) => {
        const live = [liveItem({ ...npmTest.item, command: text } as typeof npmTest.item)]
        const tasks = [{ id: text, name: text, phase: null, done: false }]
        const data = { state: stateAfter(atWork), board: { title: text, tasks, current: text }, live }
        const title = windowTitle(data, { symbols, now: NOW })
        expect(widthOf(title)).toBeLessThanOrEqual(80)
        expect(title).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
      },
    ),
  )
})
