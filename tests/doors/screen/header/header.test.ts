import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import { statusLineOf } from '../../../../src/doors/screen/header/header.ts'
import type { Theme } from '../../../../src/doors/screen/terminal/theme.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { promise } from '../../../support/promise.ts'
import { hostileText } from '../hostile-text.ts'
import { local, moreSamples, sampleEvents } from '../samples.ts'
import { withoutColours } from '../without-colours.ts'
import { atWork, board, coloured, forReader, NOW, plain, stateAfter } from './session.ts'

const data = { state: stateAfter(atWork), board, queued: 2 }

function status(columns: number, theme: Theme = plain, now = NOW): string {
  return statusLineOf(data, { columns, theme, now })
}

promise(
  'O156',
  'One status line says each fact once: state, task, tasks done, round, time and tokens; the least important goes first',
)
test('on a wide terminal all of it is there, each fact once', () => {
  expect(status(200)).toBe(
    'running · Follow redirects · 1 of 15 tasks · Core · round 4 of 20 · 3:53 of 8 h · 45.2k of 5M tokens · context 34 % · usage 40 % of 5 h, resets 05:02 · gpt-6 high · 2 queued',
  )
})

promise('O156')
test('on a narrow one the least important is left out', () => {
  expect(status(120)).toBe(
    'running · Follow redirects · 1 of 15 tasks · round 4 of 20 · 3:53 of 8 h · 45.2k of 5M tokens',
  )
  expect(status(80)).toBe('running · Follow redirects · 1 of 15 tasks · round 4 of 20 · 3:53 · 45.2k tokens')
  expect(status(60)).toBe('running · Follow redirects · 1 of 15 tasks · round 4 · 3:53')
  expect(status(40)).toBe('running · Follow redire… · 1 of 15 tasks')
  expect(status(20)).toBe('running')
})

test('what the session has cost is there where there are prices, beside what it may', () => {
  const priced: SessionEvent = {
    ...moreSamples['every limit'],
    limits: { ...moreSamples['every limit'].limits, cost: 10 },
    prices: [{ model: 'gpt-6', in: 50, cached: 50, out: 50 }],
  }
  const usage = (model: string): SessionEvent => ({ ...sampleEvents.usage, round: 4, model })
  const line = (columns: number, model = 'gpt-6') =>
    statusLineOf(
      { ...data, state: stateAfter([...atWork.slice(0, 2), usage(model)], priced) },
      { columns, theme: plain, now: NOW },
    )
  expect(line(200)).toContain(' · 45.2k of 5M tokens · cost 2.26 of 10.00 · context ')
  expect(line(80)).not.toContain('cost')
  expect(line(300, 'other')).toContain(' · cost 0.00 of 10.00, without 45.2k tokens that have no price · ')
  expect(status(300)).not.toContain('cost')
})

test('a long name takes what room is left', () => {
  const tasks = [{ id: 'T2', name: 'n'.repeat(300), phase: null, done: false }]
  const line = statusLineOf({ ...data, board: { ...board, tasks } }, { columns: 100, theme: plain, now: NOW })
  expect(line).toMatch(/^running · n+… · 0 of 1 task · round 4 · 3:53 · 45\.2k tokens$/)
  expect(widthOf(line)).toBe(100)
})

test('what it is asked to do next stays to the last', () => {
  const state = stateAfter([...atWork, sampleEvents['stop-asked']])
  const line = (columns: number) => statusLineOf({ ...data, state }, { columns, theme: plain, now: NOW })
  expect(line(140)).toContain('running · stopping after this round · ')
  expect(line(24)).toBe('running · stopping')
})

test('to a screen reader all is said in words', () => {
  expect(status(300, forReader)).toBe(status(300).replaceAll(' · ', ', '))
  expect(status(60, forReader)).not.toMatch(/[·▸]/)
})

test('elapsed time moves each second', () => {
  expect(status(120, plain, NOW + 1000)).toContain('3:54 of 8 h')
})

test('of a session without limits, tasks or a title, what there is', () => {
  const state = stateAfter([], { ...moreSamples['no limit'], prices: [], goal: '\n  Build X.\nQuickly.' })
  const bare = { state, board: null, queued: 0 }
  expect(statusLineOf(bare, { columns: 80, theme: plain, now: NOW })).toBe('starting · Build X. · 3:53 · 0 tokens')
})

test('the model that works is named, also where the person named none', () => {
  const { 'turn-started': turn, 'model-rerouted': rerouted } = sampleEvents
  let begun: (typeof sampleEvents)['round-started'] = sampleEvents['round-started']
  const modelAfter = (...events: (typeof turn | typeof rerouted)[]) => {
    const state = stateAfter([begun, ...events], { ...moreSamples['no limit'], prices: [] })
    const place = { columns: 200, theme: plain, now: NOW }
    return statusLineOf({ state, board: null, queued: 0 }, place).split(' · ').at(-1)
  }
  expect(modelAfter()).toBe('0 tokens')
  expect(modelAfter(turn)).toBe('gpt-6 high')
  expect(modelAfter({ ...turn, effort: null })).toBe('gpt-6')
  expect(modelAfter(turn, { ...rerouted, to: 'gpt-6-mini' })).toBe('gpt-6-mini high')
  begun = { ...begun, provider: 'local' }
  expect(modelAfter(turn)).toBe('gpt-6 high from local')
})

test('what is full of a context or a window is said only while it is true', () => {
  const over = stateAfter([...atWork, { ...sampleEvents['round-ended'], round: 4 }])
  const line = statusLineOf({ ...data, state: over }, { columns: 200, theme: plain, now: local(21, 5, 3) })
  expect(line).toContain('round 1 of 20')
  expect(line).not.toMatch(/context|usage/)
  const again = stateAfter([
    ...atWork,
    { ...sampleEvents['round-ended'], round: 4 },
    { ...sampleEvents['round-started'], round: 5 },
    { ...sampleEvents['turn-started'], round: 5, thread: 't2' },
  ])
  expect(statusLineOf({ ...data, state: again }, { columns: 200, theme: plain, now: NOW })).not.toContain('context')
})

test('of two windows the fuller one counts', () => {
  const { primary } = sampleEvents.limits
  const limits = {
    ...sampleEvents.limits,
    primary,
    secondary: { usedPercent: 88, windowMinutes: 10_080, resetsAt: local(25, 9, 0) },
  }
  const line = statusLineOf({ ...data, state: stateAfter([limits]) }, { columns: 200, theme: plain, now: NOW })
  expect(line).toContain('usage 88 % of 7 d, resets 2026-11-25 09:00')
})

test('once all tasks are done it says so', () => {
  const done = { ...board, tasks: board.tasks.map(task => ({ ...task, done: true })), current: null }
  expect(statusLineOf({ ...data, board: done }, { columns: 40, theme: plain, now: NOW })).toBe(
    'running · 15 of 15 tasks · round 4 of 20',
  )
})

test('no line is wider than the terminal or steers it, whatever the texts are and whatever the session does', () => {
  const { 'round-ended': ended, waiting, paused, 'stop-asked': stop, 'session-ended': over } = sampleEvents
  const more = fc.constantFrom(
    [],
    [stop],
    [ended, waiting],
    [ended, paused],
    [moreSamples['no network']],
    [ended, over],
  )
  const themes = fc.constantFrom(plain, coloured, forReader)
  fc.assert(
    fc.property(hostileText, more, fc.integer({ min: 1, max: 200 }), themes, (text, events, columns, theme) => {
      const created = { ...moreSamples['every limit'], goal: text, model: text, effort: text }
      const turn = { ...sampleEvents['turn-started'], round: 4, model: text, effort: text }
      const state = stateAfter([...atWork, turn, ...events], created)
      const board = { title: text, tasks: [{ id: text, name: text, phase: text, done: false }], current: text }
      const line = statusLineOf({ state, board, queued: 3 }, { columns, theme, now: NOW })
      expect(widthOf(line)).toBeLessThanOrEqual(columns)
      const words = withoutColours(line)
      expect(words).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
      expect(words.isWellFormed()).toBe(true)
      if (columns >= 20) expect(words).not.toBe('')
    }),
  )
})
