import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import { headerLines } from '../../../../src/doors/screen/header/header.ts'
import type { Theme } from '../../../../src/doors/screen/terminal/theme.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { hostileText } from '../hostile-text.ts'
import { local, moreSamples, sampleEvents } from '../samples.ts'
import { withoutColours } from '../without-colours.ts'
import { atWork, board, coloured, forReader, liveItem, NOW, npmTest, plain, stateAfter } from './session.ts'

const data = { state: stateAfter(atWork), board, live: [npmTest], queued: 2 }

function header(columns: number, rows: 1 | 2 = 2, theme: Theme = plain, now = NOW): string[] {
  return headerLines(data, { columns, rows, theme, now })
}

test('on a wide terminal all of it is there', () => {
  expect(header(120)).toEqual([
    'linkcheck · Task 2/15: Follow redirects · Core · round 4 of 20 · 3:53 of 8 h',
    'running npm test 0:42 · 45.2k of 5M tokens · context 34 % · usage 40 % of 5 h, resets 05:02 · gpt-6 high · 2 queued',
  ])
})

test('on a narrow one it is said in few words, and the least important is left out', () => {
  expect(header(80)[1]).toBe('npm test 0:42 · 45.2k tok · ctx 34% · 40 %, resets 05:02 · gpt-6 high · 2 queued')
  expect(header(40)).toEqual(['linkcheck · T2/15 · Core · R4/20 · 3:53', 'npm test 0:42 · usage 40 %, resets 05:02'])
  expect(header(80, 1)).toEqual(['linkcheck · T2/15 · R4/20 · 3:53 · npm test 0:42 · 40 %, resets 05:02 · 2 queued'])
  expect(header(20, 1)).toEqual(['npm test 0:42'])
})

test('what the session has cost is there where there are prices, beside what it may', () => {
  const priced: SessionEvent = {
    ...moreSamples['every limit'],
    limits: { ...moreSamples['every limit'].limits, cost: 10 },
    prices: [{ model: 'gpt-6', in: 50, cached: 50, out: 50 }],
  }
  const usage = (model: string): SessionEvent => ({ ...sampleEvents.usage, round: 4, model })
  const line = (columns: number, model = 'gpt-6') =>
    headerLines(
      { ...data, state: stateAfter([...atWork.slice(0, 2), usage(model)], priced) },
      { columns, rows: 2, theme: plain, now: NOW },
    )[1]
  expect(line(120)).toContain(' · 45.2k of 5M tokens · cost 2.26 of 10.00 · context ')
  expect(line(60)).toContain(' · cost 2.26 · ')
  expect(line(40)).not.toContain('cost')
  expect(line(160, 'other')).toContain(' · cost 0.00 of 10.00, without 45.2k tokens that have no price · ')
  expect(header(160).join()).not.toContain('cost')
})

test('a long command and a long name take what room is left, and the time of the command stays', () => {
  const command = { ...npmTest.item, command: `npm test -- ${'x'.repeat(300)}` } as typeof npmTest.item
  const [upper = '', lower = ''] = headerLines(
    {
      ...data,
      live: [liveItem(command, NOW - 42_000)],
      board: { ...board, tasks: [{ id: 'T2', name: 'n'.repeat(300), phase: null, done: false }] },
    },
    { columns: 100, rows: 2, theme: plain, now: NOW },
  )
  expect(upper).toMatch(/^linkcheck · Task 1\/1: n+… · round 4 of 20 · 3:53 of 8 h$/)
  expect(lower).toMatch(/^running npm test -- x+… 0:42 · /)
  expect([upper, lower].map(widthOf)).toEqual([100, 100])
})

test('the name of a task leaves room for the title', () => {
  const tasks = [{ id: 'T2', name: 'n'.repeat(300), phase: null, done: false }]
  const title = 'A link checker for Markdown files'
  const upper = (columns: number) =>
    headerLines({ ...data, board: { ...board, title, tasks } }, { columns, rows: 2, theme: plain, now: NOW })[0]
  expect(upper(120)).toMatch(/^A link checker for Markdown files · Task 1\/1: n{38,}… · round 4 of 20 · 3:53 of 8 h$/)
  expect(upper(80)).toMatch(/^A link chec… · Task 1\/1: n+… · round 4 of 20 · 3:53 of 8 h$/)
})

test('what it is asked to do next stays to the last', () => {
  const state = stateAfter([...atWork, sampleEvents['stop-asked']])
  const lines = (columns: number) => headerLines({ ...data, state }, { columns, rows: 2, theme: plain, now: NOW })[1]
  expect(lines(120)).toContain('running npm test 0:42 · stopping after this round · ')
  expect(lines(40)).toBe('running npm test 0:42 · stopping')
})

test('to a screen reader all is said in words', () => {
  expect(header(120, 2, forReader)).toEqual([
    'linkcheck, Task 2/15: Follow redirects, Core, round 4 of 20, 3:53 of 8 h',
    'running npm test 0:42, 45.2k of 5M tokens, context 34 %, usage 40 % of 5 h, resets 05:02, gpt-6 high, 2 queued',
  ])
  for (const line of header(40, 2, forReader)) expect(line).not.toMatch(/[·▸]|ctx|R4/)
})

test('elapsed and running time move each second', () => {
  expect(header(120, 2, plain, NOW + 1000).join('\n')).toMatch(/3:54 of 8 h\nrunning npm test 0:43/)
})

test('of a session without limits, tasks or a title, what there is', () => {
  const state = stateAfter([], { ...moreSamples['no limit'], prices: [], goal: '\n  Build X.\nQuickly.' })
  const bare = { state, board: null, live: [], queued: 0 }
  expect(headerLines(bare, { columns: 80, rows: 2, theme: plain, now: NOW })).toEqual([
    'Build X. · 0 rounds · 3:53',
    'starting · 0 tokens',
  ])
})

test('the model that works is named, also where the person named none', () => {
  const { 'turn-started': turn, 'model-rerouted': rerouted } = sampleEvents
  let begun: (typeof sampleEvents)['round-started'] = sampleEvents['round-started']
  const modelAfter = (...events: (typeof turn | typeof rerouted)[]) => {
    const state = stateAfter([begun, ...events], { ...moreSamples['no limit'], prices: [] })
    const place = { columns: 200, rows: 2, theme: plain, now: NOW } as const
    return headerLines({ state, board: null, live: [], queued: 0 }, place)[1]?.split(' · ').at(-1)
  }
  expect(modelAfter()).toBe('0 tokens')
  expect(modelAfter(turn)).toBe('gpt-6 high')
  expect(modelAfter({ ...turn, effort: null })).toBe('gpt-6')
  expect(modelAfter(turn, { ...rerouted, to: 'gpt-6-mini' })).toBe('gpt-6-mini high')
  begun = { ...begun, provider: 'local' }
  expect(modelAfter(turn)).toBe('gpt-6 high of local')
})

test('what is full of a context or a window is said only while it is true', () => {
  const over = stateAfter([...atWork, { ...sampleEvents['round-ended'], round: 4 }])
  const lines = headerLines({ ...data, state: over }, { columns: 200, rows: 2, theme: plain, now: local(21, 5, 3) })
  expect(lines[0]).toContain('1 of 20 rounds')
  expect(lines[1]).not.toMatch(/context|usage/)
  const again = stateAfter([
    ...atWork,
    { ...sampleEvents['round-ended'], round: 4 },
    { ...sampleEvents['round-started'], round: 5 },
    { ...sampleEvents['turn-started'], round: 5, thread: 't2' },
  ])
  expect(headerLines({ ...data, state: again }, { columns: 200, rows: 2, theme: plain, now: NOW })[1]).not.toContain(
    'context',
  )
})

test('of two windows the fuller one counts', () => {
  const { primary } = sampleEvents.limits
  const limits = {
    ...sampleEvents.limits,
    primary,
    secondary: { usedPercent: 88, windowMinutes: 10_080, resetsAt: local(25, 9, 0) },
  }
  const lines = headerLines({ ...data, state: stateAfter([limits]) }, { columns: 200, rows: 2, theme: plain, now: NOW })
  expect(lines[1]).toContain('usage 88 % of 7 d, resets 2026-11-25 09:00')
})

test('once all tasks are done it says so', () => {
  const done = { ...board, tasks: board.tasks.map(task => ({ ...task, done: true })), current: null }
  expect(headerLines({ ...data, board: done }, { columns: 120, rows: 2, theme: plain, now: NOW })[0]).toContain(
    '15 of 15 tasks done',
  )
  expect(headerLines({ ...data, board: done }, { columns: 40, rows: 2, theme: plain, now: NOW })[0]).toContain(
    '15/15 tasks',
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
    fc.property(
      hostileText,
      more,
      fc.integer({ min: 1, max: 200 }),
      fc.constantFrom<1 | 2>(1, 2),
      themes,
      (text, events, columns, rows, theme) => {
        const created = { ...moreSamples['every limit'], goal: text, model: text, effort: text }
        const turn = { ...sampleEvents['turn-started'], round: 4, model: text, effort: text }
        const state = stateAfter([...atWork, turn, ...events], created)
        const board = { title: text, tasks: [{ id: text, name: text, phase: text, done: false }], current: text }
        const live = [liveItem({ ...npmTest.item, command: text } as typeof npmTest.item)]
        const lines = headerLines({ state, board, live, queued: 3 }, { columns, rows, theme, now: NOW })
        expect(lines.length).toBe(rows)
        for (const line of lines) {
          expect(widthOf(line)).toBeLessThanOrEqual(columns)
          const words = withoutColours(line)
          expect(words).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
          expect(words.isWellFormed()).toBe(true)
          if (columns >= 20) expect(words).not.toBe('')
        }
      },
    ),
  )
})
