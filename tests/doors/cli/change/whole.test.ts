import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import { reply, shell } from '../../../../src/demo/model/reply.ts'
import {
  type ChangeScene,
  cuts,
  openRealChangeScene,
  outputs,
  PROJECT,
  plans,
  TASKS,
  writes,
} from '../../../support/change-scene.ts'
import { git } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

const statesOf = (events: readonly Recorded[]) => eventsOf(events, 'state-entered').map(({ state }) => state)

/** The text of a file of the session's folder in the work directory. */
const kept = ({ place }: ChangeScene, session: string, file: string) =>
  readFile(join(place.directory, '.codemachine', 'projects', session, file), 'utf8')

promise(
  'C61',
  'A change is planned by the remote model, carried out by the local one and proved by a gate; with `--auto` nobody is asked',
)
promise('C63', 'Who plans, cuts the plan into tasks, looks something up or sums up can write nothing')
promise('E3', 'A change is planned, carried out by a local model, and proved')
test('a change is planned by the remote model, carried out by the local one, proved by a gate, and nobody is asked; only who carries it out can write', async () => {
  const tries = reply(shell('echo planned > written.txt; echo done'))
  const script = {
    planner: [[tries, plans()]],
    decomposer: [[tries, cuts(...TASKS)]],
    executor: [[tries, outputs({ limit: 'It is 10.' })], writes('10')],
    summary: [[tries, says('The limit is 10 now.')]],
  }
  await using scene = await openRealChangeScene(script, { files: PROJECT })
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
  const commands = eventsOf(events, 'item-completed').flatMap(({ item }) =>
    item.kind === 'command' ? [item.output] : [],
  )
  expect(commands.filter(output => /read-only|permission denied/i.test(output))).toHaveLength(4)
  // It is not committed, and nothing else was written.
  expect(git(scene.place, 'status', '--porcelain')).toBe('?? check.sh\n?? limit.txt')
  // What nobody was asked about stands in the log.
  const { stdout } = await scene.run('logs')
  expect(stdout).toContain('plan v1 was accepted automatically')
  expect(stdout).toMatch(/# Plan\n[\s\S]*## Files\n/)
})
