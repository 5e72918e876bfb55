import { expect, test } from 'vitest'
import { newBuild } from '../../../src/core/state/plan.ts'
import { summaryOfEnd } from '../../../src/templates/build/build.ts'

const task = {
  phase: null,
  wasMovedFromGates: false,
  done: false,
  failures: 0,
  parked: null,
  workedIn: 0,
  failedIn: 0,
  givenTo: {},
}
const build = {
  ...newBuild(false),
  plan: 'ready' as const,
  summary: 'Half of it is there.',
  tasks: [
    { ...task, id: 'T1', name: 'first', done: true },
    { ...task, id: 'T2', name: 'second' },
    { ...task, id: 'T3', name: 'third', parked: 'It wants the network.' },
  ],
}

test('a build that ended before it was summed up says what is done, left and parked', () => {
  const text = summaryOfEnd(build, 'orchestration')
  expect(text).toMatch(
    /## Done\n\n- T1 first\n\n## Left\n\n- T2 second\n\n## Parked\n\n- T3 third: It wants the network\./,
  )
  expect(text).toContain('Half of it is there.')
})

test('what was summed up last is left as it is, and there is nothing to say of no plan', () => {
  expect(summaryOfEnd(build, 'summary')).toBeNull()
  expect(summaryOfEnd(newBuild(false), 'team-building')).toBeNull()
})
