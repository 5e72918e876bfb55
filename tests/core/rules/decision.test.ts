import { describe, expect, test } from 'vitest'
import {
  answerIn,
  checkedDecision,
  type Decision,
  type DecisionAnswer,
  endOfHold,
  refusalOf,
} from '../../../src/core/rules/decision.ts'
import type { SessionState } from '../../../src/core/state/state.ts'

const WAY: Decision = {
  id: 'way',
  title: 'Which way?',
  body: '',
  choices: [
    { id: 'left', label: 'Go left' },
    { id: 'right', label: 'Go right' },
  ],
  default: null,
}

test.each([
  [{ choices: Array.from({ length: 21 }, (_, n) => ({ id: `c${n}`, label: 'x' })) }, 'must have 1 to 20 choices'],
  [{ choices: [{ id: 'a b', label: 'x' }] }, 'has an id that is not a lower-case word'],
  [{ choices: [{ id: '1', label: 'x' }] }, 'has an id that is not a lower-case word'],
  [{ title: ' \n' }, 'has no title'],
] satisfies [Partial<Decision>, string][])('a decision that no template may ask for is a bug: %j', (wrong, words) => {
  expect(() => checkedDecision({ ...WAY, ...wrong })).toThrow(`The decision "way" ${words}.`)
})

test('a hint of a choice is one line of bounded length', () => {
  const [choice] = checkedDecision({ ...WAY, choices: [{ id: 'a', label: 'A', hint: 'x\n'.repeat(5000) }] }).choices
  expect(choice?.hint).toMatch(/^x x x .{193}…$/)
})

describe('an answer is not taken', () => {
  const open = { ...WAY, since: 0, until: 1 }
  const asked = { id: '20261120_1', decision: open, decided: null, ended: null }
  const byDefault = { id: 'way', choice: 'left', text: null, by: 'default', label: 'Go left' } as const
  const ended = { outcome: { kind: 'limit', limit: 'time' }, exitCode: 3, durationMs: 1 } as const
  test.each<[string, DecisionAnswer, Partial<Pick<SessionState, 'decision' | 'decided' | 'ended'>>, string, string]>([
    [
      'for another session',
      { choice: 'left', session: '20261120_2' },
      {},
      'other-session',
      '20261120_1 runs now, not 20261120_2.',
    ],
    [
      'for another decision',
      { choice: 'left', decision: 'plan' },
      {},
      'not-asked',
      '20261120_1 asks about "way" now, not about "plan".',
    ],
    ['where nothing is asked', { choice: 'left' }, { decision: null }, 'not-asked', '20261120_1 asks nothing now.'],
    [
      'after the end',
      { choice: 'left' },
      { ended },
      'not-asked',
      '20261120_1 has ended, so it takes no more decisions.',
    ],
    [
      'after the default',
      { choice: 'right' },
      { decision: null, decided: byDefault },
      'not-asked',
      '"way" of 20261120_1 was already decided: left, by default.',
    ],
    [
      'for the one before',
      { choice: 'right', decision: 'way' },
      { decision: { ...open, id: 'pace' }, decided: byDefault },
      'not-asked',
      '"way" of 20261120_1 was already decided: left, by default.',
    ],
    [
      'for one that is none',
      { choice: 'right', decision: 'pace' },
      { decision: null, decided: byDefault },
      'not-asked',
      '20261120_1 asks nothing now, not about "pace".',
    ],
  ])('%s', (_, answer, state, code, message) => {
    expect(refusalOf(answer, { ...asked, ...state })).toEqual({ code, message })
  })
  test('but is where it says which session and which decision it is for', () => {
    expect(refusalOf({ choice: 'left', session: '20261120_1', decision: 'way' }, asked)).toBeNull()
  })
})

test.each([
  ['', null],
  [' \n ', null],
  ['left', { choice: 'left' }],
  ['  right  now,  please ', { choice: 'right', text: 'now,  please' }],
  ['1', { choice: 'left' }],
  ['2 "a b"', { choice: 'right', text: 'a b' }],
  ['2 say "a"', { choice: 'right', text: 'say "a"' }],
  ['2 "a" or b', { choice: 'right', text: '"a" or b' }],
  ['2 ""', { choice: 'right' }],
  ['left two\nlines', { choice: 'left', text: 'two\nlines' }],
  ['3', { choice: '3' }],
  ['12', { choice: '12' }],
  ['1a', { choice: '1a' }],
  ['a1', { choice: 'a1' }],
])('the line %j answers %j', (line, answer) => {
  expect(answerIn(line, WAY.choices)).toEqual(answer)
})

test('a template may ask for 20 choices, and for a file to be opened where it names one', () => {
  const choices = Array.from({ length: 20 }, (_, n) => ({ id: `c${n}`, label: ' a \n\n label ' }))
  expect(checkedDecision({ ...WAY, choices }).choices.map(({ label }) => label)).toEqual(choices.map(() => 'a label'))
  const opening = [{ id: 'open', label: 'x', opensFile: true } as const, ...WAY.choices]
  expect(checkedDecision({ ...WAY, choices: opening, file: 'a.md' }).file).toBe('a.md')
  expect(() => checkedDecision({ ...WAY, choices: opening })).toThrow(
    'has a choice that opens a file, but names no file',
  )
})

test('a wait for a person ends by its default only while nobody looks, and at a limit first', () => {
  const terms = { now: 0, hasDefault: true, aloneSince: 10, decideAfterMs: 30, maxWaitMs: 100, limitAt: 1000 }
  const end = (change: Partial<typeof terms> | { aloneSince: null }) => endOfHold({ ...terms, ...change })
  expect([end({}), end({ aloneSince: null }), end({ hasDefault: false })]).toEqual([
    { at: 40, how: 'goes-on' },
    { at: 100, how: 'goes-on' },
    { at: 100, how: 'needs-person' },
  ])
  expect([end({ limitAt: 41 }), end({ limitAt: 40 }), end({ limitAt: 40, hasDefault: false })]).toEqual([
    { at: 40, how: 'goes-on' },
    { at: 40, how: 'limit' },
    { at: 40, how: 'needs-person' },
  ])
})
