import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { type BuildPart, summaryOfEnd } from '../../../src/templates/build/build.ts'
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

test('a build that ended before it was summed up says what is done, left and parked', () => {
  const text = summaryOfEnd(foldAll(wentOn))
  expect(text).toMatch(
    /## Done\n\n- T1 first\n\n## Left\n\n- T2 second\n\n## Parked\n\n- T3 third: It wants the network\./,
  )
  expect(text).toContain('Half of it is there.')
})

test('what was summed up last is left as it is, and there is nothing to say of no plan', () => {
  expect(summaryOfEnd(foldAll(summedUp))).toBeNull()
  expect(summaryOfEnd(foldAll([begun, ...team]))).toBeNull()
})
