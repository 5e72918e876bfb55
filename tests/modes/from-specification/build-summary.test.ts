import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { exitCodeOf, type SessionOutcome } from '../../../src/core/events/outcome.ts'
import { type BuildPart, summaryOfEnd } from '../../../src/modes/from-specification/next.ts'
import { promise } from '../../support/promise.ts'
import { created, ended, foldAll, says, started, worked } from '../../support/session-events.ts'

const begun: SessionEvent = { ...created(), template: 'build' }
const plan: SessionEvent = {
  type: 'plan-ready',
  round: 1,
  tasks: [
    { id: 'T1', name: 'first', phase: 'Building' },
    { id: 'T2', name: 'second', phase: 'Building' },
    { id: 'T3', name: 'third', phase: 'Building' },
  ],
  agents: [],
}

/** A round of a build that worked, with what its agent said last. */
function round(number: number, part: BuildPart, text: string): SessionEvent[] {
  return [{ ...started(number), part }, says(number, text), ended(number, worked)]
}

const judged = (task: string, name: string, verdict: 'done' | 'parked', detail: string | null): SessionEvent => ({
  type: 'task-judged',
  round: 4,
  task,
  name,
  phase: 'Building',
  verdict,
  detail,
})

const team = round(1, 'team-building', 'There is a plan.')
const summedUp = [
  begun,
  ...team,
  plan,
  ...round(2, 'orchestration', 'I have begun.'),
  ...round(3, 'summary', 'Half of it is there.'),
]
const wentOn = [
  ...summedUp,
  ...round(4, 'orchestration', 'That was all.'),
  judged('T1', 'first', 'done', null),
  judged('T3', 'third', 'parked', 'It wants the network.'),
]

/** A build that has ended so. */
const endOf = (events: readonly SessionEvent[], outcome: SessionOutcome) =>
  summaryOfEnd(
    foldAll([
      ...events,
      { type: 'session-ended', outcome, exitCode: exitCodeOf(outcome), rounds: 4, tokens: 0, durationMs: 1 },
    ]),
  )

promise('L14')
test('a build that ended at a limit says what is done, left and parked, and what was summed up last', () => {
  const text = endOf(wentOn, { kind: 'limit', limit: 'rounds' })
  expect(text).toMatch(/^# How the build stands\n\nThe build is not done: its limit of rounds was reached\.\n/)
  expect(text).toMatch(
    /## Done\n\n- T1 first\n\n## Left\n\n- T2 second\n\n## Parked\n\n- T3 third: It wants the network\./,
  )
  expect(text).toMatch(/## What was summed up last\n\nRounds after it are not in it\.\n\nHalf of it is there\.$/)
})

promise('L14', 'However a build ended, `plan/summary.md` says so, with its tasks and the last summary')
test('a build that is done says so, and its summary is that of what was accepted', () => {
  const accepted: SessionEvent[] = [
    ...wentOn,
    ...round(5, 'summary', 'All of it is there.'),
    ...round(6, 'last-look', 'Nothing is to be changed.'),
    { type: 'done-nominated', round: 6, by: ['MAIN.md'] },
    { type: 'done-accepted', round: 6, tree: 'b', verified: true },
  ]
  const text = endOf(accepted, { kind: 'done', verified: true })
  expect(text).toContain('\n\nThe build is done, and verified: its gates pass.\n')
  expect(text).toMatch(/## What was summed up last\n\nAll of it is there\.$/)
  expect(text).not.toMatch(/before|after/)
})

promise('L14')
test.each<[string, SessionOutcome, RegExp]>([
  ['stopped', { kind: 'interrupted', by: 'stop' }, /not done: it was stopped\./],
  ['stalled', { kind: 'stalled', rounds: 6, why: 'nothing-changed' }, /not done: its last rounds made no progress\./],
  [
    'left to a person',
    { kind: 'needs-person', reason: 'One task\nis parked.', hint: null },
    /needs a person: One task is parked\.\n/,
  ],
])('a build that was %s after it was summed up has that and how it ended', (_, outcome, words) => {
  const text = endOf(summedUp, outcome)
  expect(text).toMatch(words)
  expect(text).toMatch(/## Left\n\n- T1 first\n- T2 second\n- T3 third\n/)
  expect(text).toMatch(/## What was summed up last\n\nHalf of it is there\.$/)
})

promise('L14')
test('a build that ended without a plan says that there is none', () => {
  expect(endOf([begun, ...team], { kind: 'limit', limit: 'time' })).toMatch(
    /limit of time was reached\.\n\nThere is no usable plan yet/,
  )
})
