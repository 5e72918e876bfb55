import { describe, expect, test } from 'vitest'
import { checkedDecision, type Decision, type DecisionAnswer, refusalOf } from '../../../src/core/rules/decision.ts'
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
  [{ choices: Array.from({ length: 21 }, (_, n) => ({ id: `c${n}`, label: 'x' })) }, 'has not 1 to 20 choices'],
  [{ choices: [{ id: 'a b', label: 'x' }] }, 'has an id that is no word of small letters'],
  [{ choices: [{ id: '1', label: 'x' }] }, 'has an id that is no word of small letters'],
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
      'It is 20261120_1 that runs, and not 20261120_2.',
    ],
    [
      'for another decision',
      { choice: 'left', decision: 'plan' },
      {},
      'not-asked',
      '20261120_1 asks about "way" just now, not about "plan".',
    ],
    [
      'where nothing is asked',
      { choice: 'left' },
      { decision: null },
      'not-asked',
      '20261120_1 asks nothing just now.',
    ],
    [
      'after the end',
      { choice: 'left' },
      { ended },
      'not-asked',
      '20261120_1 has ended, so nothing of it is decided any more.',
    ],
    [
      'after the default',
      { choice: 'right' },
      { decision: null, decided: byDefault },
      'not-asked',
      '"way" of 20261120_1 has been decided already: left, by default.',
    ],
    [
      'for the one before',
      { choice: 'right', decision: 'way' },
      { decision: { ...open, id: 'pace' }, decided: byDefault },
      'not-asked',
      '"way" of 20261120_1 has been decided already: left, by default.',
    ],
    [
      'for one that is none',
      { choice: 'right', decision: 'pace' },
      { decision: null, decided: byDefault },
      'not-asked',
      '20261120_1 asks nothing just now, not about "pace".',
    ],
  ])('%s', (_, answer, state, code, message) => {
    expect(refusalOf(answer, { ...asked, ...state })).toEqual({ code, message })
  })
  test('but is where it says which session and which decision it is for', () => {
    expect(refusalOf({ choice: 'left', session: '20261120_1', decision: 'way' }, asked)).toBeNull()
  })
})
