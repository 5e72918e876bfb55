import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import type { Reply } from '../../../src/core/shapes/reply.ts'
import type { StateName } from '../../../src/modes/change/work.ts'
import {
  answering,
  askIn,
  breakingIn,
  type ChangePlay,
  changeAfter,
  planOf,
  playChange,
  SESSION_FOLDER,
  sessionAfter,
  statesIn,
} from '../../support/change-session.ts'
import { ofType, type Play } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-change-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** A task as a planner answers it. */
const asked = (id: string, type: string, said: object = {}) => ({
  id,
  type,
  description: `Do ${id}.`,
  inputs: [],
  outputs: [],
  files: [],
  run: null,
  ...said,
})
const FIRST = [
  asked('look', 'INFO_GATHERING', { outputs: [{ name: 'found', what: 'where it is' }] }),
  asked('count', 'ACTION', { files: ['api.js'] }),
  asked('check', 'VERIFICATION', { run: 'node --test api.js' }),
]
const SECOND = [
  asked('more', 'ACTION', { files: ['redis.js'] }),
  asked('again', 'VERIFICATION', { run: 'node --test more' }),
]

/** Answers whatever a round is asked for; after each plan come the tasks of it. */
function model(then = SECOND): Play {
  let plans = 0
  return played => {
    const schema = (played.run.outputSchema ?? {}) as { properties?: Record<string, { properties?: object }> }
    const { properties = {} } = schema
    if ('description' in properties)
      return answering(planOf({ description: `Plan ${++plans}.`, verification: [] }))(played)
    if ('tasks' in properties) return answering({ tasks: plans === 1 ? FIRST : then })(played)
    const { outputs } = properties
    const names = Object.keys(outputs?.properties ?? {})
    return answering({ outputs: Object.fromEntries(names.map(name => [name, 'In api.js.'])) })(played)
  }
}

const STATES: StateName[] = [
  'EXECUTING_TASKS.decomposition',
  'EXECUTING_TASKS.queue',
  'EXECUTING_TASKS.info-gathering',
  'EXECUTING_TASKS.action',
  'EXECUTING_TASKS.verification',
  'EXECUTING_TASKS.result',
  'EXECUTING_TASKS.fixing',
  'EXECUTING_TASKS.failure',
  'GENERATING_SUMMARY',
  'WAITING_FOR_INPUT',
]
const REFINEMENT: StateName = 'REVIEWING_PLAN.refinement'
const MOMENTS = ['as it is entered', 'in what is done in it'] as const

/** Commands of which those fail that are to: whether a command runs for the first time, and its name. */
function failing(fails: (isFirst: boolean, name: string) => boolean): NonNullable<ChangePlay['command']> {
  const ran = new Set<string>()
  return name => {
    const isFirst = !ran.has(name)
    ran.add(name)
    return fails(isFirst, name) ? { status: 'failed', exitCode: 1 } : {}
  }
}

/** The state that was entered next after a person broke in. */
function next(events: readonly Recorded[]): string | undefined {
  return statesIn(events.slice(events.findIndex(({ type }) => type === 'replan-asked')))[0]
}

for (const state of STATES) {
  // The session ends in the last one, where nothing is done.
  for (const moment of state === 'WAITING_FOR_INPUT' ? MOMENTS.slice(0, 1) : MOMENTS) {
    promise(
      'C12',
      'A person can change the plan in every state of a change; tasks that are done stay, the rest is cut anew',
    )
    test(`a person changes the plan in ${state}, ${moment}: what is done stays, and the rest is cut anew`, async () => {
      let isSaid = false
      const on = (type: Recorded['type']) => (type === 'state-entered') === (moment === 'as it is entered')
      const breakIn = breakingIn(state, 'Use Redis.', { on })
      const fails = state === 'EXECUTING_TASKS.fixing' || state === 'EXECUTING_TASKS.failure'
      const { outcome, events, inputs } = await playChange([model()], {
        folder,
        says: [['accept'], ['accept']],
        change: { fixAttempts: 1 },
        looks: { lines: async () => ({}) },
        // What is to be checked fails before it is worked on, and after that as long as a test wants it.
        command: failing(isFirst => isFirst || (fails && !isSaid)),
        onEvent(event, playing) {
          isSaid ||= event.type === 'replan-asked'
          breakIn(event, playing)
        },
      })
      expect(outcome).toMatchObject({ kind: 'done' })
      expect(isSaid).toBe(true)
      expect(inputs.find(input => input.includes('Use Redis.'))).toContain('Version 1 of the plan')
      expect(next(events)).toBe(REFINEMENT)
      const { planning, execution } = changeAfter(events)
      expect(planning.accepted).toMatchObject({ version: 2, by: 'person' })
      expect(execution.tasks.every(({ status }) => status === 'COMPLETED')).toBe(true)
      const ids = execution.tasks.map(({ spec }) => spec.id)
      expect(ids.slice(-2)).toEqual(['more', 'again'])
      const before = events.findIndex(({ type }) => type === 'replan-asked')
      const done = changeAfter(events.slice(0, before + 1)).execution.tasks.filter(each => each.status === 'COMPLETED')
      expect(ids.slice(0, -2)).toEqual(done.map(({ spec }) => spec.id))
      const planner = inputs.find(input => input.includes('Use Redis.')) ?? ''
      expect(done.filter(({ spec }) => !planner.includes(`- ${spec.id}: Do ${spec.id}.`))).toEqual([])
      expect(planner.includes('these tasks are done, and stay so')).toBe(done.length > 0)
      expect(ofType(events, 'state-entered').filter(each => each.why === 'the person changes the plan')).toHaveLength(1)
      const written = JSON.parse(await readFile(join(folder, SESSION_FOLDER, 'tasks.json'), 'utf8'))
      expect(written.tasks.map(({ id, done }: { id: string; done: boolean }) => [id, done])).toEqual(
        ids.map(id => [id, true]),
      )
    })
  }
}

test('what was done of an earlier plan may be verified by a command that passes already', async () => {
  const then = [
    asked('seen', 'VERIFICATION', { run: 'grep -q count api.js' }),
    asked('more', 'ACTION', { files: ['api.js'] }),
    asked('again', 'VERIFICATION', { run: 'grep -q redis api.js' }),
  ]
  const { outcome, events } = await playChange([model(then)], {
    folder,
    says: [['accept'], ['accept']],
    looks: { lines: async () => ({}) },
    command: failing((isFirst, name) => isFirst && name !== 'grep -q count api.js'),
    onEvent: breakingIn('EXECUTING_TASKS.verification', 'Use Redis.'),
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(changeAfter(events).execution.tasks.map(({ spec, status }) => [spec.id, status])).toEqual(
    ['look', 'count', 'seen', 'more', 'again'].map(id => [id, 'COMPLETED']),
  )
})

test('what a person said as they accepted a plan is told whoever plans it anew', async () => {
  const { outcome, inputs } = await playChange([model()], {
    folder,
    says: [['accept', 'No new packages.'], ['accept']],
    looks: { lines: async () => ({}) },
    command: failing(isFirst => isFirst),
    onEvent: breakingIn('EXECUTING_TASKS.queue', 'Use Redis.'),
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(inputs.find(input => input.includes('Use Redis.'))).toContain('No new packages.')
})

/** Ten versions, of which the last one is accepted and carried out; what a person asks as that event happens. */
async function afterTenVersions(is: (type: string, part: string | undefined) => boolean) {
  const replies: Promise<Reply>[] = []
  const onEvent: ChangePlay['onEvent'] = (event, playing) => {
    const part = event.type === 'round-started' ? event.part : undefined
    if (replies.length > 0 || !is(event.type, part) || changeAfter(playing.events).planning.accepted === null) return
    replies.push(askIn(playing, { type: 'replan', text: 'Use Redis.' }))
  }
  let plans = 0
  const plays: Play = played => {
    const properties = Object.keys(Object(Object(played.run.outputSchema).properties))
    if (properties.includes('description'))
      return answering(planOf({ description: `Plan ${++plans}.`, verification: [] }))(played)
    return answering(properties.includes('tasks') ? { tasks: FIRST.slice(1) } : { outputs: {} })(played)
  }
  const played = await playChange([plays], {
    folder,
    says: [...Array.from({ length: 9 }, (_, at) => ['change', `Change ${at + 1}.`] as const), ['accept']],
    looks: { lines: async () => ({}) },
    command: failing(isFirst => isFirst),
    onEvent,
  })
  return { ...played, reply: await replies[0] }
}

promise('C10')
test('after ten versions a change of the plan is refused before anything is broken off', async () => {
  const { outcome, events, reply } = await afterTenVersions((_, part) => part === 'act')
  expect(reply).toEqual({
    code: 'limit-reached',
    message:
      'The plan has 10 versions, the most it may have, so it stays as it is. To change it, stop this session and begin another change.',
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(ofType(events, 'replan-asked')).toEqual([])
  expect(ofType(events, 'round-ended').map(each => each.outcome.class)).not.toContain('interrupted')
})

promise('C10')
test('and what was accepted as done stays so: it is claimed and summed up once', async () => {
  const { outcome, events, reply } = await afterTenVersions((_, part) => part === 'summary')
  expect(reply?.code).toBe('limit-reached')
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(sessionAfter(events).claim.state).toBe('accepted')
  const parts = ofType(events, 'round-started').map(({ part }) => part)
  expect(parts.filter(part => part === 'summary')).toHaveLength(1)
})
