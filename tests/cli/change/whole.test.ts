import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { reply, shell } from '../../../src/demo/model/reply.ts'
import {
  type ChangeScene,
  cuts,
  openChangeScene,
  outputs,
  PROJECT,
  plans,
  TASKS,
  THREE_TASKS,
  writes,
} from '../../support/change-scene.ts'
import type { RunningCodemachine } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { git } from '../../support/place.ts'
import { says } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

const statesOf = (events: readonly Recorded[]) => eventsOf(events, 'state-entered').map(({ state }) => state)

/** The text of a file of the session's folder in the work directory. */
const kept = ({ place }: ChangeScene, session: string, file: string) =>
  readFile(join(place.directory, '.codemachine', 'projects', session, file), 'utf8')

/** Says something from another terminal; what that printed. */
async function elsewhere(scene: ChangeScene, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await codemachineHere(scene.place, args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  return stdout
}

/** Waits until a version of the plan is asked about. */
const asked = (run: RunningCodemachine, version: number) =>
  run.event('decision-asked', ({ title }) => title.startsWith(`Version ${version} `))

test('a change is planned by the remote model, carried out by the local one, proved by a gate, and nobody is asked', async () => {
  await using scene = await openChangeScene(THREE_TASKS, { files: PROJECT })
  const typed = ['change', '--auto', '--verify', 'sh check.sh', '--json', 'write', 'the', 'limit']
  const { exitCode, events, stderr } = await scene.run(...typed)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const [created] = eventsOf(events, 'session-created')
  expect(created).toMatchObject({
    template: 'change',
    goal: 'write the limit',
    limits: { rounds: 200 },
    options: {
      review: 'auto',
      planOnly: false,
      fixAttempts: 5,
      executor: { provider: 'local', model: 'qwen' },
      planner: { model: null, effort: 'high' },
    },
  })
  expect(statesOf(events)).toEqual([
    'GATHERING_CONTEXT',
    'GENERATING_PLAN',
    'REVIEWING_PLAN.user-review',
    'REVIEWING_PLAN.auto-accepted',
    'EXECUTING_TASKS.decomposition',
    'EXECUTING_TASKS.queue',
    'EXECUTING_TASKS.info-gathering',
    'EXECUTING_TASKS.result',
    'EXECUTING_TASKS.queue',
    'EXECUTING_TASKS.action',
    'EXECUTING_TASKS.result',
    'EXECUTING_TASKS.queue',
    'EXECUTING_TASKS.verification',
    'EXECUTING_TASKS.result',
    'EXECUTING_TASKS.queue',
    'EXECUTING_TASKS.verification',
    'EXECUTING_TASKS.result',
    'EXECUTING_TASKS.queue',
    'GENERATING_SUMMARY',
    'WAITING_FOR_INPUT',
  ])
  const [ended] = eventsOf(events, 'session-ended')
  expect(ended?.outcome).toMatchObject({ kind: 'done' })
  expect(eventsOf(events, 'done-accepted')).toMatchObject([{ verified: true }])

  expect(scene.begun('planner').map(({ at, model, effort }) => [at, model, effort])).toEqual([
    ['remote', 'scripted', 'high'],
  ])
  expect(scene.begun('decomposer').map(({ at }) => at)).toEqual(['remote'])
  expect(scene.begun('executor').map(({ at, model }) => [at, model])).toEqual([
    ['local', 'qwen'],
    ['local', 'qwen'],
  ])
  expect(scene.begun('summary').map(({ at }) => at)).toEqual(['remote'])
  const [, action] = scene.begun('executor')
  expect(action?.userTexts.at(-1)).toContain('It is 10.')

  const session = created?.session ?? ''
  expect(JSON.parse(await kept(scene, session, 'tasks.json')).tasks).toMatchObject(
    ['T1', 'T2', 'T3'].map(id => ({ id, done: true, status: 'COMPLETED' })),
  )
  const summary = await kept(scene, session, 'summary.md')
  expect(summary).toContain('The limit is 10 now.')
  expect(summary).toContain(`codemachine rewind ${session}/start`)
  expect(await kept(scene, session, 'context.md')).toContain('check.sh')
  expect(await kept(scene, session, 'plan/v1.md')).toContain('Write the limit into limit.txt.')
  // It is not committed.
  expect(git(scene.place, 'status', '--porcelain')).toBe('?? check.sh\n?? limit.txt')
})

test('a plan is refused twice, accepted with a remark that whoever carries it out is told, and counts as proof then', async () => {
  await using scene = await openChangeScene(
    {
      ...THREE_TASKS,
      planner: [[plans({ description: 'Write 5.' })], [plans({ description: 'Write 7.' })], [plans()]],
    },
    { files: PROJECT },
  )
  await using run = scene.start('change', '--json', 'write the limit')
  await asked(run, 1)
  const shown = await elsewhere(scene, 'plan')
  expect(shown).toContain('Write 5.')
  expect(shown).toMatch(/## What will count as proof\n.*- `sh check.sh`\n.*To answer:/s)
  await elsewhere(scene, 'plan', 'reject', 'not 5, but more')
  await asked(run, 2)
  expect(existsSync(join(scene.place.directory, 'limit.txt'))).toBe(false)
  await elsewhere(scene, 'decide', 'change', 'it has to be 10')
  await asked(run, 3)
  expect(await elsewhere(scene, 'plan', 'show', '--diff')).toMatch(/^-Write 7\.\n\+Write the limit/m)
  const work = JSON.parse(await elsewhere(scene, 'status', '--json')).session.work
  expect(work).toMatchObject({ state: 'REVIEWING_PLAN', currentPlan: { version: 3 } })
  await elsewhere(scene, 'plan', 'accept', 'put a newline at the end')
  const { exitCode, events, stderr } = await run.ended
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })

  const told = scene.begun('planner').map(({ userTexts }) => userTexts.at(-1) ?? '')
  expect(told[1]).toContain('not 5, but more')
  expect(told[1]).toContain('Write 5.')
  expect(told[2]).toContain('it has to be 10')
  expect(told[2]).toContain('Write 7.')
  expect(scene.begun('executor').at(-1)?.userTexts.at(-1)).toContain('put a newline at the end')
  const review = statesOf(events).filter(state => state.startsWith('REVIEWING_PLAN.'))
  const round = ['user-review', 'manual-review', 'rejected', 'refinement'].map(state => `REVIEWING_PLAN.${state}`)
  expect(review).toEqual([
    ...round,
    ...round,
    'REVIEWING_PLAN.user-review',
    'REVIEWING_PLAN.manual-review',
    'REVIEWING_PLAN.accepted',
  ])
  // The command of the plan, which the person has seen.
  expect(eventsOf(events, 'done-accepted')).toMatchObject([{ verified: true }])
  const session = events[0]?.session ?? ''
  for (const version of [1, 2, 3]) expect(await kept(scene, session, `plan/v${version}.md`)).toContain('Write')
  expect(await kept(scene, session, 'summary.md')).toContain('sh check.sh')
})

test('who plans and who only looks something up can write nothing', async () => {
  const tries = reply(shell('echo planned > written.txt; echo done'))
  await using scene = await openChangeScene(
    {
      ...THREE_TASKS,
      planner: [[tries, plans()]],
      decomposer: [[tries, cuts(...TASKS)]],
      executor: [[tries, outputs({ limit: '10' })], writes('10')],
      summary: [[tries, says('It is written.')]],
    },
    { files: PROJECT },
  )
  const { exitCode, events } = await scene.run('change', '--auto', '--json', 'write the limit')
  expect(exitCode).toBe(0)
  const commands = eventsOf(events, 'item-completed').flatMap(({ item }) =>
    item.kind === 'command' ? [item.output] : [],
  )
  expect(commands.filter(output => /read-only|permission denied/i.test(output))).toHaveLength(4)
  expect(git(scene.place, 'status', '--porcelain')).toBe('?? check.sh\n?? limit.txt')
  // Nobody has seen the commands that it names.
  expect(eventsOf(events, 'done-accepted')).toMatchObject([{ verified: false }])
})

test('--plan-only ends once a plan is accepted, and resume carries it out', async () => {
  await using scene = await openChangeScene(THREE_TASKS, { files: PROJECT })
  await using run = scene.start('change', '--plan-only', '--json', 'write the limit')
  await asked(run, 1)
  await elsewhere(scene, 'plan', 'accept')
  const first = await run.ended
  expect({ exitCode: first.exitCode, stderr: first.stderr }).toEqual({
    exitCode: 0,
    stderr: `To carry it out: codemachine resume ${first.events[0]?.session}\n`,
  })
  expect(eventsOf(first.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'planned' } }])
  expect(scene.begun('decomposer')).toEqual([])
  expect(existsSync(join(scene.place.directory, 'limit.txt'))).toBe(false)
  const { exitCode, events, stderr } = await scene.run('resume', '--json')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(eventsOf(events, 'decision-asked')).toEqual([])
  expect(scene.begun('planner')).toHaveLength(1)
})
