import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Gate, GateStatus } from '../../../src/core/events/outcome.ts'
import { judgeDone } from '../../../src/core/rules/done-rule.ts'
import {
  changedTasks,
  claimedTasks,
  editedTasks,
  gatesForTasks,
  judgeTasks,
} from '../../../src/core/rules/plan-rule.ts'
import { emptyPlan, type PlanTask, type TaskPlan } from '../../../src/core/state/plan.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { incident, promise } from '../../support/promise.ts'
import { created, ended, foldAll, resumed, SESSION, started, worked } from '../../support/session-events.ts'

const task: PlanTask = {
  id: 'T1',
  name: 'first',
  phase: 'Building',
  wasMovedFromGates: false,
  done: false,
  failures: 0,
  parked: null,
  workedIn: 0,
  failedIn: 0,
  givenTo: {},
}

function planOf(one: Partial<PlanTask>, passedGates: string[] = []): TaskPlan {
  return { ...emptyPlan(false), state: 'ready', tasks: [{ ...task, ...one }], passedGates }
}

/** What is made of T1 in round 4, where `tasks.json` says this of it. */
function judge(
  one: Partial<PlanTask>,
  done: boolean,
  failed: string[] = [],
  passedGates: string[] = [],
  status: GateStatus = 'failed',
): unknown {
  const results = failed.map(gate => ({ gate, status }))
  const facts = { tasks: [{ id: 'T1', name: 'first', done }], round: 4, results, hasWorked: true, isAfterRound: true }
  return judgeTasks(planOf(one, passedGates), facts).map(({ verdict, detail }) => [verdict, detail])
}

test('a task that an agent has worked on is done when it is said to be', () => {
  expect(judge({ workedIn: 4 }, true)).toEqual([['done', null]])
  expect(judge({ workedIn: 2 }, true)).toEqual([['done', null]])
})

promise('L9', 'Of a build, a task is done only if an agent has worked on it and its gates stand')
test('a task that nobody worked on is not done by being called so', () => {
  expect(judge({}, true)).toEqual([['refused', 'No agent has finished any work on it.']])
})

promise('L9')
test('a gate that has passed before and fails now stands in the way of every task', () => {
  expect(judge({ workedIn: 4 }, true, ['tests'], ['tests'])).toEqual([['refused', 'The gate "tests" does not pass.']])
})

incident('false done', 'A gate that came to no end could tick off a task', {
  since: '2026-11-22',
  fixed: '2026-11-22',
  foundBy: 'mutation tests',
})
promise('D20', 'A gate that came to no end, or could not be started, has not passed: no task is ticked off by it')
test('a gate that came to no end, or could not be started, stands in the way as one that fails; a flaky one has passed', () => {
  const statuses: GateStatus[] = ['timed-out', 'not-started', 'broken-off', 'passed', 'flaky']
  const verdicts = statuses.map(status => judge({ workedIn: 4 }, true, ['tests'], ['tests'], status))
  const refused = [['refused', 'The gate "tests" does not pass.']]
  expect(verdicts).toEqual([refused, refused, refused, [['done', null]], [['done', null]]])
})

test('a gate that has never passed holds up what tests and runs, and not what is only being built', () => {
  expect(judge({ workedIn: 4 }, true, ['tests'])).toEqual([['done', null]])
  expect(judge({ workedIn: 4, phase: 'Testing' }, true, ['tests'])).toMatchObject([['refused', expect.anything()]])
  const gate = { name: 'tests', required: true } as Gate
  const [building] = planOf({}).tasks
  expect(gatesForTasks([gate], planOf({}), building ? [building] : [])).toEqual([])
  expect(gatesForTasks([gate], planOf({}, ['tests']), building ? [building] : [])).toEqual([gate])
  expect(gatesForTasks([gate], planOf({}, ['tests']), [])).toEqual([])
})

test('a task that was worked on in this round and is not done has failed; one that was left alone has not', () => {
  expect(judge({ workedIn: 4 }, false)).toMatchObject([['failed', expect.anything()]])
  expect(judge({ workedIn: 3 }, false)).toEqual([])
  expect(judge({}, false)).toEqual([])
})

promise('L10', 'A task that fails for the fifth time is parked, and the rest goes on')
test('a task that fails for the fifth time is parked, and stays so whatever the file says', () => {
  expect(judge({ workedIn: 4, failures: 3 }, false)).toMatchObject([['failed', expect.anything()]])
  const because = 'It failed 5 times. An agent worked on it, but it does not meet its acceptance criteria yet.'
  expect(judge({ workedIn: 4, failures: 4 }, false)).toEqual([['parked', because]])
  expect(judge({ workedIn: 4, failures: 5, parked: 'It is too hard.' }, true)).toMatchObject([
    ['refused', expect.stringContaining('parked')],
  ])
})

test('a task that was done and is flipped back, and one that is gone, are told of', () => {
  expect(judge({ done: true, workedIn: 1 }, false)).toEqual([['reopened', null]])
  expect(judge({ done: true, workedIn: 1 }, true)).toEqual([])
  const none = { tasks: [], round: 4, results: [], hasWorked: true }
  const byPerson = { ...none, isAfterRound: false }
  expect(judgeTasks(planOf({}), byPerson)).toMatchObject([{ task: 'T1', verdict: 'removed' }])
  const byAgent = { ...none, isAfterRound: true }
  expect(judgeTasks(planOf({}), byAgent)).toMatchObject([{ task: 'T1', verdict: 'put-back' }])
})

test('a task that somebody adds is taken over, but not as done', () => {
  const facts = {
    tasks: [{ id: 'T9', name: 'more', phase: 'Runtime', done: true }],
    round: 4,
    results: [],
    hasWorked: true,
    isAfterRound: true,
  }
  const [, ...added] = judgeTasks({ ...planOf({}), tasks: [] }, facts)
  expect(added).toMatchObject([{ task: 'T9', verdict: 'refused', phase: 'Runtime' }])
})

let instances = 0

/** An agent was given this, and ended so. */
function given(task: string, agent = 'backend-dev', status: 'completed' | 'error' = 'completed'): SessionEvent[] {
  const of = { round: 2, instance: `${agent}-${instances++}` }
  const request = { tasks: [task], request: `${task}: do it`, door: 'tool', parent: null, paths: null } as const
  return [
    { type: 'agent-started', ...of, agent, ...request, model: null, effort: null },
    { type: 'agent-ended', ...of, status, result: '', durationMs: 1, tokens: null },
  ]
}
const plan: SessionEvent = {
  type: 'plan-ready',
  round: 1,
  tasks: [{ id: 'T1', name: 'first', phase: 'Building' }],
  agents: [],
}
const begun: SessionEvent = { ...created(), template: 'build' }

function workOf(...events: SessionEvent[][]) {
  return foldAll([begun, plan, started(2), ...events.flat()]).taskPlan?.tasks
}

test('that the same agent comes to the end of a task again in a round shows that it fell short; another agent does not', () => {
  const twice = workOf(given('T1'), given('T1'), given('T1', 'qa-engineer'))
  expect(twice).toMatchObject([{ failures: 1, workedIn: 2 }])
})

test('the parts of a task are many, and none of them is a failure of the whole', () => {
  expect(workOf(given('T1.1'), given('T1.2'), given('T1.3'))).toMatchObject([{ failures: 0, workedIn: 2 }])
})

test('an agent that did not come to its end has neither worked on a task nor failed it', () => {
  const broken = workOf(given('T1', 'backend-dev', 'error'), given('T1', 'backend-dev', 'error'))
  expect(broken).toMatchObject([{ failures: 0, workedIn: 0 }])
})

test('what is worked on in a round that did not come to its end has not failed', () => {
  const facts = { tasks: [{ id: 'T1', name: 'first', done: false }], round: 4, results: [], isAfterRound: true }
  expect(judgeTasks(planOf({ workedIn: 4 }), { ...facts, hasWorked: false })).toEqual([])
})

test('a person who resumes has parked tasks tried again; a crash does not', () => {
  const parked: SessionEvent = {
    type: 'task-judged',
    round: 2,
    task: 'T1',
    name: 'first',
    phase: null,
    verdict: 'parked',
    detail: 'It failed.',
  }
  const end: SessionEvent = {
    type: 'session-ended',
    outcome: { kind: 'needs-person', reason: 'parked', hint: null },
    exitCode: 4,
    rounds: 2,
    tokens: 0,
    durationMs: 1,
  }
  const stateAfter = (...events: SessionEvent[]) => foldAll([begun, plan, parked, ...events]).taskPlan?.tasks
  expect(stateAfter(resumed())).toMatchObject([{ parked: 'It failed.' }])
  expect(stateAfter(end, resumed())).toMatchObject([{ parked: null, failures: 0 }])
})

test('only the word of the last look itself is a claim, for all tasks are done before it', () => {
  const last = foldAll([
    begun,
    plan,
    { ...started(3), part: 'last-look' as const },
    ended(3, worked, { treeAfter: 'a' }),
  ]).last
  if (last === null) throw new Error('There is no last round.')
  const main = { status: 'in-progress', finiteIncantatem: false, shortTitle: null, open: [] }
  const snapshot = {
    tasks: [{ id: 'T1', name: 'first', done: true }],
    problems: [],
    fingerprint: '',
    texts: { main: '', tasks: '' },
  }
  expect(judgeDone({ ...snapshot, main }, last, emptyState(SESSION))).toEqual({ kind: 'none' })
  const claimed = judgeDone({ ...snapshot, main: { ...main, finiteIncantatem: true } }, last, emptyState(SESSION))
  expect(claimed).toMatchObject({ kind: 'nominated', by: ['MAIN.md', 'tasks.json'] })
})

test('the same refusal of one last look after another is a stall, whatever rounds lie between', () => {
  const look = (round: number): SessionEvent[] => [
    { ...started(round), part: 'last-look' as const },
    ended(round, worked, { treeAfter: `${round}`, memory: `${round}` }),
    { type: 'done-nominated', round, by: ['MAIN.md'], tree: `${round}` },
    { type: 'done-refused', round, reason: 'gate-failed', detail: 'so' },
    { ...started(round + 1), part: 'orchestration' as const },
    ended(round + 1, worked, { treeAfter: `o${round}`, memory: `o${round}` }),
  ]
  expect(foldAll([begun, plan, ...look(2), ...look(4), ...look(6)]).stall.sameRefusals).toBe(3)
})

test('a plan that waits for the person waits until they let it go on, also after a crash', () => {
  const asks: SessionEvent = { ...created(), template: 'build', asksPlan: true }
  const letGo = (...events: SessionEvent[]) => foldAll([asks, plan, ...events]).taskPlan?.isLetGo
  expect(letGo({ type: 'paused' }, { type: 'held' }, resumed())).toBe(false)
  expect(letGo({ type: 'paused' }, { type: 'unpaused' }, resumed())).toBe(true)
})

test('a task of which a round changed what it asks for is told of; one that was only worked on is not', () => {
  const written = (more: object) =>
    new Map([['T1', { id: 'T1', name: 'first', acceptanceCriteria: 'npm test', ...more }]])
  const changed = (more: object) => {
    const files = { before: written({ done: false }), now: written(more) }
    return changedTasks(planOf({}), [{ id: 'T1', name: 'first', phase: 'Building', done: false, ...more }], files)
  }
  expect(changed({ done: true, parked: 'so', note: 'mine' })).toEqual([])
  expect(changed({ acceptanceCriteria: 'true' })).toMatchObject([
    { task: 'T1', verdict: 'changed', detail: 'A round changed its acceptanceCriteria.' },
  ])
  expect(changed({ name: 'other', phase: 'Testing' })).toEqual([
    { task: 'T1', name: 'other', phase: 'Testing', verdict: 'changed', detail: 'A round changed its name and phase.' },
  ])
})

test('claimed are tasks that are said to be done, that an agent worked on, and that are not done or parked', () => {
  const claimed = (one: Partial<PlanTask>, written: object = {}) =>
    claimedTasks(planOf({ workedIn: 3, ...one }), [{ id: 'T1', name: 'first', done: true, ...written }]).map(
      ({ id, phase }) => `${id} ${phase}`,
    )
  expect([claimed({}), claimed({}, { phase: 'Testing' }), claimed({}, { phase: 'Planning' })]).toEqual([
    ['T1 Building'],
    ['T1 Testing'],
    ['T1 Building'],
  ])
  const none = [
    claimed({ done: true }),
    claimed({ workedIn: 0 }),
    claimed({ parked: 'x' }),
    claimed({}, { done: false }),
  ]
  expect([...none, claimed({}, { id: 'T2' })]).toEqual([[], [], [], [], []])
})

test('a parked task does not fail once more', () => {
  expect([judge({ workedIn: 4 }, false), judge({ workedIn: 4, parked: 'x' }, false)]).toEqual([
    [['failed', expect.any(String)]],
    [],
  ])
})

test.each<[string, object | null, object, string | null]>([
  ['nothing', { details: { a: [1, 2], b: null } }, { details: { b: null, a: [1, 2] } }, null],
  ['a list', { details: [1, 2] }, { details: [2, 1] }, 'details'],
  ['a list that became an object', { details: ['a'] }, { details: { 0: 'a' } }, 'details'],
  ['an object that has more', { details: { a: 1 } }, { details: { a: 1, b: 2 } }, 'details'],
  ['an object that has less', { details: { a: 1, b: 2 } }, { details: { a: 1 } }, 'details'],
  ['a key', { details: { a: undefined } }, { details: { b: undefined } }, 'details'],
  ['an object that became null', { details: {} }, { details: null }, 'details'],
  ['an object that became a text', { details: {} }, { details: 'x' }, 'details'],
  [
    'two fields',
    { details: 1, acceptanceCriteria: 1 },
    { details: 2, acceptanceCriteria: 2 },
    'details and acceptanceCriteria',
  ],
  ['what was not known', null, { details: 1 }, null],
])('a round that changed %s of a task', (_, was, is, changed) => {
  const written = (fields: object) => new Map([['T1', { id: 'T1', ...fields }]])
  const before = was === null ? null : written(was)
  const now = [{ id: 'T1', name: 'first', phase: 'Building', done: false }]
  const judged = changedTasks(planOf({}), now, { before, now: written(is) }).map(({ detail }) => detail)
  expect(judged).toEqual(changed === null ? [] : [`A round changed its ${changed}.`])
})

test('another name or phase is a change, be it a round’s or a person’s', () => {
  const now = [
    { id: 'T1', name: 'other', done: false },
    { id: 'T9', name: 'unknown', done: false },
  ]
  const facts = { before: null, now: new Map() }
  expect(changedTasks(planOf({}), now, facts)).toMatchObject([{ detail: 'A round changed its name and phase.' }])
  expect(editedTasks(planOf({}), now)).toMatchObject([
    { task: 'T1', phase: null, detail: 'A person changed its name and phase, or had it changed.' },
  ])
  expect(editedTasks(planOf({}), [{ id: 'T1', name: 'first', phase: 'Building', done: true }])).toEqual([])
})
