import fc from 'fast-check'
import { expect, test } from 'vitest'
import { taskLines } from '../../../../src/doors/screen/header/tasks.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { hostileText } from '../hostile-text.ts'
import { sampleEvents } from '../samples.ts'
import { withoutColours } from '../without-colours.ts'
import { board, coloured, forReader, plain } from './session.ts'

const plan = sampleEvents['plan-updated'].steps
const place = { columns: 60, rows: 30, theme: plain }
const few = { ...board, tasks: board.tasks.slice(3, 7), current: 'T5' }

test('the tasks are a checklist under their phases, the plan of the round below', () => {
  expect(taskLines({ board: few, plan }, place)).toEqual([
    'Core',
    '  ○ T4  Read the page',
    '  ▸ T5  Follow redirects',
    'Report',
    '  ○ T6  Report what is broken',
    '  ○ T7  Read the page',
    'Plan of this round',
    '  ✔ a',
    '  ▸ b',
    '  ○ c',
  ])
})

test('the last line says how many sentences of the contract hold', () => {
  const contract = '3 of 6 sentences hold'
  expect(taskLines({ board: few, plan: [], contract }, { ...place, rows: 3 }).at(-1)).toBe(`contract: ${contract}`)
  expect(taskLines({ board: null, plan: [], contract }, place)).toEqual(['No tasks yet.', `contract: ${contract}`])
  expect(taskLines({ board: few, plan: [], contract }, { ...place, rows: 1 })).toHaveLength(1)
})

test('a screen reader hears how each stands', () => {
  expect(
    taskLines({ board: { ...board, tasks: board.tasks.slice(0, 3) }, plan: [] }, { ...place, theme: forReader }),
  ).toEqual(['Core', 'done: T1  Read the page', 'now: T2  Follow redirects', 'to do: T3  Report what is broken'])
})

test('of more tasks than there is room for, those around the one at work are there', () => {
  expect(taskLines({ board: { ...board, current: 'T9' }, plan }, { ...place, rows: 6 })).toEqual([
    '  … 6 more above',
    '  ○ T7  Read the page',
    '  ○ T8  Follow redirects',
    '  ▸ T9  Report what is broken',
    '  ○ T10  Read the page',
    '  … 5 more below',
  ])
})

test('the one at work is in sight, and what is left out is counted, wherever it is', () => {
  fc.assert(
    fc.property(fc.nat(14), fc.integer({ min: 1, max: 20 }), (at, rows) => {
      const current = `T${at + 1}`
      const lines = taskLines(
        { board: { ...board, current, tasks: board.tasks.map(t => ({ ...t, done: false })) }, plan: [] },
        { ...place, rows },
      )
      expect(lines.length).toBe(Math.min(rows, 17))
      expect(lines.filter(line => line.startsWith(`  ▸ ${current} `)).length).toBe(1)
      if (rows < 4) return
      const counts = lines.map(line => Number(/ (\d+) more /.exec(line)?.[1] ?? (line.startsWith('  ') ? 1 : 0)))
      expect(counts.reduce((sum, count) => sum + count)).toBe(15)
    }),
  )
})

test('once all are done, the end is in sight', () => {
  const done = { ...board, current: null, tasks: board.tasks.map(task => ({ ...task, done: true })) }
  expect(taskLines({ board: done, plan: [] }, { ...place, rows: 4 }).at(-1)).toBe('  ✔ T15  Report what is broken')
})

test('without tasks there is the plan, and without both a sentence', () => {
  expect(taskLines({ board: null, plan }, { ...place, rows: 3 })).toEqual(['  ✔ a', '  ▸ b', '  ○ c'])
  expect(taskLines({ board: null, plan: [] }, place)).toEqual(['No tasks yet.'])
})

test('there are never more lines or wider ones than there is room for, and none steers the terminal', () => {
  const task = fc.record({ id: hostileText, name: hostileText, phase: fc.option(hostileText), done: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(task, { maxLength: 12 }),
      hostileText,
      fc.integer({ min: 1, max: 200 }),
      fc.nat(30),
      fc.constantFrom(plain, coloured, forReader),
      (tasks, step, columns, rows, theme) => {
        const current = tasks[0]?.id ?? null
        const shown = { board: { title: null, tasks, current }, plan: [{ step, status: 'pending' as const }] }
        const lines = taskLines(shown, { columns, rows, theme })
        expect(lines.length).toBeLessThanOrEqual(rows)
        for (const line of lines) {
          expect(widthOf(line)).toBeLessThanOrEqual(columns)
          expect(withoutColours(line)).not.toMatch(/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u)
        }
      },
    ),
  )
})
