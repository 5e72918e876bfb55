import { expect, test } from 'vitest'
import type { ThreadSpec } from '../../../src/core/engine.ts'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { RoundOutcome } from '../../../src/core/events/outcome.ts'
import type { MemorySnapshot } from '../../../src/core/shapes/memory.ts'
import type { SessionState } from '../../../src/core/state/state.ts'
import { buildKind } from '../../../src/modes/from-specification/build.ts'
import { type BuildPart, nextOfBuild, workOf } from '../../../src/modes/from-specification/next.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { created, foldAll, says, worked } from '../../support/session-events.ts'

const threadOf = (agent: string): ThreadSpec => ({ agent, developerInstructions: agent, model: null, effort: null })
const template = nextOfBuild(
  {
    teamBuilder: threadOf('agents-builder'),
    masterMind: threadOf('master-mind'),
    lastLook: threadOf('last-look'),
    summarizer: threadOf('project-summarizer'),
    replan: threadOf('replan'),
  },
  ({ lastTask, summary }) => `after ${lastTask}: ${summary}`,
)

const memory = {
  main: { status: '', finiteIncantatem: false, shortTitle: null, open: [] },
  tasks: [],
  problems: [],
  fingerprint: '',
  texts: { main: '', tasks: '' },
}

const begun: SessionEvent = { ...created({ rounds: 50 }), template: 'build' }
const plan: SessionEvent = {
  type: 'plan-ready',
  round: 1,
  tasks: [
    { id: 'T1', name: 'first', phase: 'Building' },
    { id: 'T2', name: 'second', phase: 'Testing' },
  ],
  agents: [],
}

/** A round of a build that ended so, with what else happened in it. */
function round(
  number: number,
  part: BuildPart | null,
  {
    outcome = worked,
    counts = true,
    says: words = 'words',
  }: { outcome?: RoundOutcome; counts?: boolean; says?: string } = {},
): SessionEvent[] {
  const of = part === null ? {} : { part }
  return [
    { type: 'round-started', round: number, agent: 'a', engine: 'codex', codex: '1', model: null, input: '', ...of },
    says(number, words),
    {
      type: 'round-ended',
      round: number,
      outcome,
      counts,
      durationMs: 1,
      tokens: null,
      treeBefore: 'a',
      treeAfter: 'b',
      changed: [],
      changedCount: 0,
      memory: String(number),
    },
  ]
}

const judged = (task: string, verdict: 'done' | 'parked' | 'refused', detail: string | null = null): SessionEvent => ({
  type: 'task-judged',
  round: 2,
  task,
  name: task,
  phase: null,
  verdict,
  detail,
})
const lookedAt: SessionEvent = { type: 'tasks-judged', round: 2 }
const network: RoundOutcome = { class: 'network', message: 'gone' }

/** The memory where `tasks.json` has the tasks that are known. */
function asPlanned({ taskPlan }: SessionState): MemorySnapshot {
  const tasks = taskPlan?.tasks ?? []
  return { ...memory, tasks: tasks.map(({ id, name, done }) => ({ id, name, done })) }
}

/** What comes next after these events: the part of the next round with its input, the check, or the end. */
function next(...events: (SessionEvent | SessionEvent[])[]): unknown {
  const state = foldAll([begun, ...events.flat()])
  const step = template.next(state, asPlanned(state))
  switch (step.kind) {
    case 'round':
      return { part: step.round.part, agent: step.round.thread.agent, input: step.round.input }
    case 'check':
      return step.check
    case 'replan':
      return { kind: step.kind, agent: step.round.thread.agent }
    case 'end':
      return step.outcome
  }
}

const team = round(1, 'team-building')
const work = round(2, 'orchestration')
const summary = round(3, 'summary', { counts: false, says: 'half of it is there' })
const done = [judged('T1', 'done'), judged('T2', 'done'), lookedAt]

test('the team is built before anything else, and what it wrote is looked at', () => {
  expect(next()).toEqual({
    part: 'team-building',
    agent: 'agents-builder',
    input: expect.stringContaining('make the plan'),
  })
  expect(next(team)).toBe('plan')
})

test('a team builder that was cut off begins again, and its half plan is not judged', () => {
  expect(next(round(1, 'team-building', { outcome: network, counts: false }))).toMatchObject({ part: 'team-building' })
})

const refusal = (problem: string): SessionEvent => ({ type: 'answer-refused', round: 1, name: 'plan', problem })

test.each([
  ['as it is journaled', refusal('tasks[0].phase is "Build".')],
  ['as version 0.1 did', { type: 'plan-refused', round: 1, problem: 'tasks[0].phase is "Build".' } as const],
])('what is wrong with a plan, %s, goes back to the team builder, three times at most', (_, refused) => {
  const again = next(team, refused)
  expect(again).toMatchObject({ part: 'team-building', input: expect.stringContaining('tasks[0].phase is "Build".') })
  expect(next(team, refused, team)).toBe('plan')
  expect(next(team, refused, team, refused)).toMatchObject({ part: 'team-building' })
  expect(next(team, refused, team, refused, team, refused)).toMatchObject({ kind: 'needs-person', goalOnly: true })
})

test('with a plan the master mind works, its tasks are judged, the state is summed up, and it goes on with that', () => {
  expect(next(team, plan)).toEqual({
    part: 'orchestration',
    agent: 'master-mind',
    input: expect.stringContaining('no task has been begun'),
  })
  expect(next(team, plan, work)).toBe('tasks')
  expect(next(team, plan, work, judged('T1', 'done'), lookedAt)).toMatchObject({
    part: 'summary',
    agent: 'project-summarizer',
  })
  expect(next(team, plan, work, judged('T1', 'done'), lookedAt, summary)).toEqual({
    part: 'orchestration',
    agent: 'master-mind',
    input: 'after T1 first: half of it is there',
  })
})

test('what the master mind got wrong about a task is told to it when it goes on', () => {
  const said = next(team, plan, work, judged('T1', 'refused', 'No agent has worked on it.'), lookedAt, summary)
  expect(said).toMatchObject({
    part: 'orchestration',
    agent: 'master-mind',
    input: expect.stringContaining('No agent has worked on it.'),
  })
})

test('a round that the network broke off is tried again, and not summed up', () => {
  const broken = round(2, 'orchestration', { outcome: network, counts: false })
  expect(next(team, plan, broken)).toMatchObject({ part: 'orchestration' })
  const brokenSummary = round(3, 'summary', { outcome: network, counts: false })
  expect(next(team, plan, work, lookedAt, brokenSummary)).toMatchObject({ part: 'summary' })
})

test('only when all tasks are done, a last look may claim it', () => {
  expect(next(team, plan, work, ...done, summary)).toMatchObject({ part: 'last-look', agent: 'last-look' })
  const claiming = Object.entries(buildKind.parts).filter(([, { claims }]) => claims)
  expect(claiming.map(([part]) => part)).toEqual(['last-look'])
})

test('a last look that changed something is taken once more; one that was refused for a gate leads back to work', () => {
  const look = round(4, 'last-look')
  const refused = (reason: 'tree-changed' | 'gate-failed'): SessionEvent[] => [
    { type: 'done-nominated', round: 4, by: ['tasks.json'] },
    { type: 'done-refused', round: 4, reason, detail: 'so' },
  ]
  const before = [team, plan, work, ...done, summary, look]
  expect(next(...before, refused('tree-changed'))).toBe('tasks')
  expect(next(...before, refused('tree-changed'), lookedAt)).toMatchObject({ part: 'last-look' })
  const mends = [...before, ...refused('gate-failed'), lookedAt]
  expect(next(...mends)).toMatchObject({ part: 'summary' })
  expect(next(...mends, round(5, 'summary', { counts: false }))).toMatchObject({ part: 'orchestration' })
  const mended = [...mends, round(5, 'summary', { counts: false }), round(5, 'orchestration'), lookedAt]
  expect(next(...mended, round(6, 'summary', { counts: false }))).toMatchObject({ part: 'last-look' })
})

test('with all others done, parked tasks are left to the person, with their reasons', () => {
  const parked = [judged('T1', 'done'), judged('T2', 'parked', 'It failed 5 times. It wants the network.'), lookedAt]
  expect(next(team, plan, work, ...parked)).toMatchObject({ part: 'summary' })
  expect(next(team, plan, work, ...parked, summary)).toMatchObject({
    kind: 'needs-person',
    reason: 'One task is parked; all other tasks are done: T2 second (It failed 5 times. It wants the network).',
  })
})

test('a change of plan comes first, and its tasks are looked at after it', () => {
  const asked: SessionEvent = { type: 'replan-asked', text: 'no tests' }
  expect(next(team, plan, work, lookedAt, asked)).toEqual({ kind: 'replan', agent: 'replan' })
  const replanned: SessionEvent = { type: 'replanned', round: 3, files: [] }
  const after = [team, plan, work, lookedAt, asked, ...round(3, null, { counts: false }), replanned]
  expect(next(...after)).toBe('tasks')
  expect(next(...after, lookedAt)).toMatchObject({ part: 'orchestration' })
})

test('the thread that is started ahead is the one that comes next, where that is known', () => {
  const running = (...events: SessionEvent[]) => foldAll([begun, ...events])
  const start = (part: BuildPart) => round(9, part).slice(0, 1)
  expect(template.ahead(running())?.agent).toBe('agents-builder')
  expect(template.ahead(running(...start('team-building')))).toBeNull()
  expect(template.ahead(running(...team, plan, ...start('orchestration')))?.agent).toBe('project-summarizer')
  expect(template.ahead(running(...team, plan, ...work, lookedAt, ...start('summary')))?.agent).toBe('master-mind')
  expect(template.ahead(running(...team, plan, ...work, ...done, ...start('summary')))?.agent).toBe('last-look')
})

test('what a person puts into the plan, or takes out, between two rounds is looked at before the next one', () => {
  const state = foldAll([begun, ...team, plan, ...work, lookedAt, ...summary])
  const nextWith = (...ids: string[]) =>
    template.next(state, { ...memory, tasks: ids.map(id => ({ id, name: id, done: false })) })
  expect(nextWith('T1', 'T2', 'T3')).toEqual({ kind: 'check', check: 'tasks' })
  expect(nextWith('T1')).toEqual({ kind: 'check', check: 'tasks' })
  expect(nextWith('T1', 'T2')).toMatchObject({ kind: 'round' })
})

test('a plan without a task is not done', () => {
  const removed = ['T1', 'T2'].map(task => ({ ...judged(task, 'done'), verdict: 'removed' }) as SessionEvent)
  expect(next(team, plan, work, ...removed, lookedAt, summary)).toMatchObject({ kind: 'needs-person' })
})

test('the last look is given what the person asked for, whatever the files say by then', () => {
  expect(next(team, plan, work, ...done, summary)).toMatchObject({ input: expect.stringContaining('build X') })
})

test('a round of work that broke off does not count as mending, and a summary that broke off says nothing', () => {
  const claimed: SessionEvent[] = [
    { type: 'done-nominated', round: 4, by: ['MAIN.md'] },
    { type: 'done-refused', round: 4, reason: 'gate-failed', detail: 'so' },
  ]
  const before = [team, plan, work, ...done, summary, round(4, 'last-look'), claimed, lookedAt]
  const broken = round(5, 'orchestration', { outcome: network, counts: false })
  expect(next(...before, round(5, 'summary', { counts: false }), broken, lookedAt)).toMatchObject({
    part: 'orchestration',
  })
  const half = round(3, 'summary', { counts: false, outcome: network, says: 'I will look first.' })
  const state = foldAll([begun, ...team, plan, ...work, lookedAt, ...summary, ...half])
  expect(workOf(state).summary).toBe('half of it is there')
})

test('what a person is told to mend are the files in which the problems are', () => {
  const refusedFor = (problem: string) => next(...Array.from({ length: 3 }, () => refusal(problem)))
  const mends = (...files: string[]) => ({ hint: { do: 'mend-plan', files, more: false } })
  expect(refusedFor('.codemachine/agents/nobody.md: There is no agent "nobody".')).toMatchObject(
    mends('.codemachine/agents/nobody.md'),
  )
  const both =
    '.codemachine/plan/tasks.json: tasks is empty.\n.codemachine/plan/tasks.json: so.\n.codemachine/agents/a.md is empty; write it.'
  expect(refusedFor(both)).toMatchObject(mends('.codemachine/plan/tasks.json', '.codemachine/agents/a.md'))
  expect(refusedFor('… and 2 more.')).toMatchObject(mends('.codemachine/plan/tasks.json'))
})

test('what comes next in a plan of 500 tasks is decided in less than 5 ms', () => {
  const tasks = Array.from({ length: 500 }, (_, n) => ({ id: `T${n}`, name: `task ${n}`, phase: 'Building' }))
  const state = foldAll([begun, ...team, { ...plan, tasks }, ...work])
  const snapshot = asPlanned(state)
  const before = cpuMs()
  for (let time = 0; time < 50; time++) template.next(state, snapshot)
  expect((cpuMs() - before) / 50).toBeLessThan(5 * timesSlower())
})
