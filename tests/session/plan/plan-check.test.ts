import { describe, expect, test } from 'vitest'
import type { ThreadSpec } from '../../../src/core/engine.ts'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import type { Gate } from '../../../src/core/events/outcome.ts'
import { nextOfBuild } from '../../../src/modes/from-specification/next.ts'
import { redactorOf } from '../../../src/secrets/redactor.ts'
import { applyTaskMarks, rawTasksById } from '../../../src/workspace/memory/tasks-file.ts'
import { type Cue, forEver, runSession } from '../../support/breaking-in.ts'
import { ofType, type Play, type PlayOptions, UNCLAIMED } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { foldAll, worked } from '../../support/session-events.ts'

const threadOf = (agent: string): ThreadSpec => ({ agent, developerInstructions: agent, model: null, effort: null })
const { next, ahead } = nextOfBuild(
  {
    teamBuilder: threadOf('agents-builder'),
    masterMind: threadOf('master-mind'),
    lastLook: threadOf('last-look'),
    summarizer: threadOf('project-summarizer'),
    replan: threadOf('replan'),
  },
  () => 'Go on.',
)

interface WrittenTask {
  id: string
  name: string
  details: string
  phase: string
  done: boolean
}

const PLAN: readonly WrittenTask[] = [
  { id: 'T1', name: 'first', details: 'the first thing', phase: 'Testing', done: false },
  { id: 'T2', name: 'second', details: 'the second thing', phase: 'Testing', done: false },
]

/** A build of two tasks, whose plan stands in a text as it would in `tasks.json`. */
function openBuild() {
  let text = JSON.stringify({ tasks: PLAN })
  const tasks = () => [...rawTasksById(text).values()] as unknown as WrittenTask[]
  const run = (plays: readonly Play[], options: Omit<PlayOptions, 'folder'> = {}, cues: readonly Cue[] = []) =>
    runSession(plays, cues, {
      limits: { rounds: 2 },
      ...options,
      begun: { template: 'build', ...options.begun },
      memory: () => ({ ...UNCLAIMED, tasks: tasks(), texts: { main: '', tasks: text } }),
      onMark: marks => {
        text = applyTaskMarks(text, marks)
      },
      template: { threads: [], next, ahead, checkPlan: async () => ({ ok: true, tasks: tasks(), agents: [] }) },
    })
  return {
    run,
    tasks,
    write: (change: (tasks: readonly WrittenTask[]) => readonly WrittenTask[]) => {
      text = JSON.stringify({ tasks: change(tasks()) })
    },
  }
}

const NEW: WrittenTask = { id: 'T3', name: 'third', details: 'another thing', phase: 'Testing', done: false }

const works: Play = () => worked

/** What is journaled when an agent has come to the end of these tasks. */
function workOn(round: number, tasks: readonly string[]): SessionEvent[] {
  const of = { round, instance: `a-${round}`, agent: 'a' }
  return [
    {
      type: 'agent-started',
      ...of,
      tasks,
      request: 'Go.',
      door: 'tool',
      parent: null,
      model: null,
      effort: null,
      paths: null,
    },
    {
      type: 'agent-ended',
      round,
      instance: of.instance,
      status: 'completed',
      result: 'Done.',
      durationMs: 1,
      tokens: null,
    },
  ]
}

const without = (id: string) => (tasks: readonly WrittenTask[]) => tasks.filter(task => task.id !== id)
const verdicts = (events: readonly Recorded[]) =>
  ofType(events, 'task-judged').map(({ task, verdict }) => `${task} ${verdict}`)

const gate = (name: string): Gate => ({
  name,
  run: name,
  timeoutMs: 1000,
  network: false,
  everyRound: false,
  required: true,
  protect: [],
})

test('a task is not taken for done while a gate has not run, though the session is to stop after the round', async () => {
  const build = openBuild()
  const claims: Play = () => {
    build.write(tasks => tasks.map(task => ({ ...task, done: task.id === 'T1' })))
    return worked
  }
  const { events, outcome } = await build.run([works, claims], {
    begun: { gates: [gate('one'), gate('two')] },
    onEvent: (event, { runner, asked }) => {
      if (event.type === 'turn-started' && event.round === 2) for (const each of workOn(2, ['T1'])) runner.tell(each)
      if (event.type === 'gate-started' && event.when === 'tasks') asked.stopAfterRound()
    },
  })
  expect(ofType(events, 'gate-ended').filter(({ when }) => when === 'tasks')).toHaveLength(1)
  expect(verdicts(events)).toEqual([])
  expect(outcome).toEqual({ kind: 'interrupted', by: 'stop' })
})

test('a task that a round takes out of the plan is put back whole, also after the session was resumed', async () => {
  const build = openBuild()
  const { events: before } = await build.run([works], { limits: { rounds: 1 } })
  expect(ofType(before, 'plan-ready')).toHaveLength(1)
  const takesOut: Play = () => {
    build.write(without('T2'))
    return worked
  }
  const { events } = await build.run([takesOut, works], {
    journal: before,
    resumed: { limits: { ...NO_LIMITS, rounds: 2 } },
  })
  expect(verdicts(events)).toEqual(['T2 put-back'])
  expect(build.tasks()).toEqual(PLAN)
})

const NO_LIMITS = { rounds: null, timeMs: null, tokens: null }

test('a task that a round took out of the plan before it was cut off is put back, and not taken for a person’s doing', async () => {
  const build = openBuild()
  const { events } = await build.run([works])
  const inWork = events.findIndex(event => event.type === 'round-ended' && event.round === 2)
  build.write(without('T2'))
  const resumed = await build.run([works], {
    journal: events.slice(0, inWork),
    resumed: { limits: { ...NO_LIMITS, rounds: 2 } },
  })
  expect(verdicts(resumed.events)).toEqual(['T2 put-back'])
  expect(build.tasks().map(({ id }) => id)).toEqual(['T1', 'T2'])
})

test('a task that is judged again, because the run was cut off in between, has failed once', async () => {
  const build = openBuild()
  const { events } = await build.run([works], {
    onEvent: (event, { runner }) => {
      if (event.type === 'turn-started' && event.round === 2) for (const each of workOn(2, ['T1'])) runner.tell(each)
    },
  })
  expect(verdicts(events)).toEqual(['T1 failed'])
  const journal = events.slice(0, events.findIndex(({ type }) => type === 'task-judged') + 1)
  const resumed = await build.run([works], {
    journal,
    resumed: { limits: { ...NO_LIMITS, rounds: 3 } },
  })
  expect(verdicts(resumed.events)).toEqual([])
  expect(ofType(resumed.events, 'tasks-judged')).not.toEqual([])
  expect(foldAll([...journal, ...resumed.events]).taskPlan?.tasks[0]).toMatchObject({ id: 'T1', failures: 1 })
})

test('what a person changes in a task between two rounds is not told of as a round’s', async () => {
  const build = openBuild()
  const { events } = await build.run([works], {
    limits: { rounds: 3 },
    onEvent: ({ type }, { asked, events }) => {
      if (type === 'tasks-judged' && ofType(events, type).length === 1) asked.pause()
      if (type !== 'held') return
      build.write(tasks => tasks.map(task => ({ ...task, details: `${task.details}, in blue` })))
      setImmediate(() => asked.unpause())
    },
  })
  expect(ofType(events, 'held')).toHaveLength(1)
  expect(ofType(events, 'tasks-judged')).toHaveLength(2)
  expect(verdicts(events)).toEqual([])
})

const renamed = (id: string, more: Partial<WrittenTask>) => (tasks: readonly WrittenTask[]) =>
  tasks.map(task => (task.id === id ? { ...task, ...more } : task))

test('a name and a phase that a person changes between two rounds are the task’s from the next round on', async () => {
  const build = openBuild()
  const { events } = await build.run([works], {
    limits: { rounds: 3 },
    onEvent: ({ type }, { asked, events }) => {
      if (type === 'tasks-judged' && ofType(events, type).length === 1) asked.pause()
      if (type !== 'held') return
      build.write(renamed('T1', { name: 'a better name', phase: 'Building' }))
      setImmediate(() => asked.unpause())
    },
  })
  expect(verdicts(events)).toEqual(['T1 edited'])
  const [edited] = ofType(events, 'task-judged')
  expect(edited).toMatchObject({ name: 'a better name', phase: 'Building' })
  const [, , next] = ofType(events, 'round-started')
  expect(events.indexOf(edited as Recorded)).toBeLessThan(events.indexOf(next as Recorded))
  expect(foldAll(events).taskPlan?.tasks[0]).toMatchObject({ name: 'a better name', phase: 'Building' })
})

test('a name that a change of the plan gives a task is the task’s, and no round’s doing', async () => {
  const build = openBuild()
  const replans: Play = () => {
    build.write(renamed('T1', { name: 'as the person said' }))
    return worked
  }
  const { events } = await build.run([works, forEver, replans, works], { limits: { rounds: 3 } }, [
    { on: 'turn-started', nth: 2, say: ['replan Call it so'] },
    { on: 'replanned', say: ['unpause'] },
  ])
  expect(verdicts(events)).toEqual(['T1 edited'])
  expect(foldAll(events).taskPlan?.tasks[0]).toMatchObject({ name: 'as the person said' })
})

test('what an interrupted round made of a task is its doing, though a change of the plan follows', async () => {
  const build = openBuild()
  const moves: Play = async ({ interrupted }) => {
    build.write(renamed('T1', { phase: 'Building' }))
    return await new Promise(resolve => interrupted.addEventListener('abort', () => resolve(worked)))
  }
  const { events } = await build.run([works, moves, works, works], { limits: { rounds: 3 } }, [
    { on: 'turn-started', nth: 2, say: ['replan Go on'] },
    { on: 'replanned', say: ['unpause'] },
  ])
  expect(verdicts(events)).toEqual(['T1 changed'])
  expect(foldAll(events).taskPlan?.tasks[0]).toMatchObject({ phase: 'Building', wasMovedFromGates: true })
})

test('a round does not get a task out of its gates by moving it to another phase', async () => {
  const build = openBuild()
  const moves: Play = () => {
    build.write(renamed('T1', { phase: 'Building', done: true }))
    return worked
  }
  const { events } = await build.run([works, moves], {
    begun: { gates: [gate('tests')] },
    gate: () => ({ status: 'failed' }),
    onEvent: (event, { runner }) => {
      if (event.type === 'turn-started' && event.round === 2) for (const each of workOn(2, ['T1'])) runner.tell(each)
    },
  })
  expect(verdicts(events)).toEqual(['T1 changed', 'T1 refused'])
  expect(foldAll(events).taskPlan?.tasks[0]).toMatchObject({ phase: 'Building', done: false })
})

test('a task whose name holds a secret is not taken for renamed', async () => {
  const build = openBuild()
  build.write(renamed('T1', { name: 'log in with sk-very-secret-key' }))
  const { events } = await build.run([works], {
    limits: { rounds: 3 },
    redactor: redactorOf([{ name: 'API_KEY', value: 'sk-very-secret-key' }]),
  })
  expect(ofType(events, 'tasks-judged')).toHaveLength(2)
  expect(verdicts(events)).toEqual([])
})

test('a task that a person takes out of the plan while the session holds stays out', async () => {
  const build = openBuild()
  const { events } = await build.run(
    [works, forEver, works],
    {
      limits: { rounds: 3 },
      onEvent: ({ type }, { asked }) => {
        if (type !== 'held') return
        build.write(without('T2'))
        setImmediate(() => asked.unpause())
      },
    },
    [{ on: 'turn-started', nth: 2, say: ['interrupt'] }],
  )
  expect(verdicts(events)).toEqual(['T2 removed'])
  expect(build.tasks()).toEqual([PLAN[0]])
})

test('what a round took out of the plan is no part of the change that a person asks for then', async () => {
  const build = openBuild()
  const takesOut: Play = async ({ interrupted }) => {
    build.write(without('T2'))
    return await new Promise(resolve => interrupted.addEventListener('abort', () => resolve(worked)))
  }
  const replans: Play = () => {
    build.write(tasks => [...without('T1')(tasks), NEW])
    return worked
  }
  const { events } = await build.run([works, takesOut, replans, works], { limits: { rounds: 3 } }, [
    { on: 'turn-started', nth: 2, say: ['replan T3 in the place of T1'] },
    { on: 'replanned', say: ['unpause'] },
  ])
  expect(verdicts(events)).toEqual(['T2 put-back', 'T3 added', 'T1 removed'])
  expect(build.tasks()).toEqual([PLAN[1], NEW])
})

test('what a round of a build left running has ended before its plan is looked at', async () => {
  const build = openBuild()
  let isLeft = false
  const leaves: Play = () => {
    isLeft = true
    return worked
  }
  const { events } = await build.run([works, leaves, works], {
    settle: async () => {
      if (isLeft) build.write(without('T2'))
      isLeft = false
    },
  })
  expect(verdicts(events)).toEqual(['T2 put-back'])
})

describe('a plan that a person wants to see', () => {
  const asked = { begun: { asksPlan: true }, limits: { rounds: 2 } }
  const types = (events: readonly Recorded[]) => events.map(({ type }) => type)
  const answers = (events: readonly Recorded[]) =>
    ofType(events, 'decision-made').map(({ choice, text }) => [choice, text])

  test('is carried out once they have said so, and nothing is paused for it', async () => {
    const cue: Cue = { on: 'decision-asked', say: ['decide accept'] }
    const { events, codes, replies } = await openBuild().run([works], asked, [cue])
    expect([codes, replies]).toEqual([['done'], ['s continues.']])
    expect(answers(events)).toEqual([['accept', null]])
    expect(ofType(events, 'round-started').map(({ part }) => part)).toEqual([
      'team-building',
      'orchestration',
      'summary',
    ])
    expect(types(events)).not.toContain('paused')
  })

  test('is not accepted by unpause, after a pause or without one: they may not have seen it yet', async () => {
    const cue: Cue = { on: 'decision-asked', say: ['pause', 'unpause', 'unpause', 'decide stop'] }
    const { events, codes, replies } = await openBuild().run([works], asked, [cue])
    expect(codes).toEqual(['done', 'done', 'not-paused', 'done'])
    expect(replies.slice(1, 3)).toEqual([
      's is no longer paused; it asks a person to decide (codemachine decide).',
      's is not paused; it asks a person to decide (codemachine decide).',
    ])
    expect(answers(events)).toEqual([['stop', null]])
    expect(ofType(events, 'unpaused')).toHaveLength(1)
  })

  test('is changed as they say, by replan too, and asked about again', async () => {
    for (const said of ['decide change Less of it', 'replan Less of it'] as const) {
      const build = openBuild()
      const less: Play = () => {
        build.write(without('T2'))
        return worked
      }
      const { events, inputs, replies } = await build.run([works, less, works], asked, [
        { on: 'decision-asked', nth: 1, say: [said] },
        { on: 'decision-asked', nth: 2, say: ['decide accept'] },
      ])
      expect(replies[0]).toMatch(/ Then it asks about the plan again\.$/)
      expect(answers(events)).toEqual([
        ['change', 'Less of it'],
        ['accept', null],
      ])
      expect(ofType(events, 'replanned')).toHaveLength(1)
      expect(inputs[1]).toContain('Less of it')
      expect(ofType(events, 'decision-asked').map(({ title }) => title)).toEqual([
        'The plan has 2 tasks. Start the build?',
        'The plan has 1 task. Start the build?',
      ])
      expect(types(events)).not.toContain('held')
    }
  })

  promise('W34')
  test('is changed by replan --go without another question, and carried out by that', async () => {
    const build = openBuild()
    const less: Play = () => {
      build.write(without('T2'))
      return worked
    }
    const { events, inputs, replies } = await build.run([works, less, works], asked, [
      { on: 'decision-asked', nth: 1, say: ['replan --go Less of it'] },
    ])
    expect(replies[0]).toMatch(/ Then it continues without a person\.$/)
    expect(inputs[1]).toContain('Less of it')
    expect([ofType(events, 'decision-asked').length, ofType(events, 'replanned').length]).toEqual([1, 1])
    expect(types(events)).not.toContain('held')
    expect(ofType(events, 'round-started').map(({ part }) => part)).toEqual([
      'team-building',
      undefined,
      'orchestration',
      'summary',
    ])
  })

  test('is left as it is by a stop, and asked about when the session goes on', async () => {
    const build = openBuild()
    const { events, outcome, replies } = await build.run([works], asked, [
      { on: 'decision-asked', say: ['decide stop'] },
    ])
    expect(outcome).toEqual({ kind: 'interrupted', by: 'stop' })
    expect(replies).toEqual(['s stops now; codemachine resume continues.'])
    const { events: after } = await build.run([works], { journal: events, ...RESUMED }, [
      { on: 'decision-asked', say: ['decide accept'] },
    ])
    expect(types(after).slice(0, 2)).toEqual(['session-resumed', 'decision-asked'])
    expect(answers(after)).toEqual([['accept', null]])
  })

  test('that an earlier version paused for is asked about when the session goes on; one that was let go is not', async () => {
    const build = openBuild()
    const { events } = await build.run([works], asked, [{ on: 'decision-asked', say: ['stop'] }])
    const planned = events.slice(0, types(events).indexOf('decision-asked'))
    const { at, session } = planned.at(-1) as Recorded
    const journalOf = (...more: ('paused' | 'held' | 'unpaused')[]): Recorded[] => [
      ...planned,
      ...more.map(type => ({ v: 1 as const, at, session, type })),
    ]
    const held = await build.run([works], { journal: journalOf('paused', 'held'), ...RESUMED }, [
      { on: 'decision-asked', say: ['decide accept'] },
    ])
    expect(types(held.events)).not.toContain('paused')
    expect(answers(held.events)).toEqual([['accept', null]])
    const goesOn = await build.run([works], { journal: journalOf('paused', 'held', 'unpaused'), ...RESUMED })
    expect(ofType(goesOn.events, 'decision-asked')).toEqual([])
    expect(ofType(goesOn.events, 'round-started')).not.toEqual([])
  })
})

const RESUMED = { resumed: { limits: { ...NO_LIMITS, rounds: 2 } } }
