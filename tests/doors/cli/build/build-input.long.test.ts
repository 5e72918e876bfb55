import { symlinkSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import {
  always,
  inTurn,
  makePart,
  openSmallBuild,
  planOf,
  readAt,
  runAgent,
  smallBuild,
  UNATTENDED,
  verdictsOf,
  WRITE_PLAN,
  workOf,
  writeAt,
} from '../../../support/build-scene.ts'
import { BIN } from '../../../support/codemachine.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'

const BAD_PLAN = `mkdir -p .codemachine/plan; echo '{ "tasks": [{ "id": "T1", "name": "Make it", "done": false, "phase": "Later" }] }' > .codemachine/plan/tasks.json`

test('a plan that does not fit goes back with what is wrong, and is taken when it is mended', async () => {
  await using scene = await openSmallBuild(() => ({
    'agents-builder': inTurn(
      [reply(shell(BAD_PLAN)), says('There is a plan.')],
      [reply(shell(WRITE_PLAN)), says('It is mended.')],
    ),
  }))
  await using build = scene.start('start', ...UNATTENDED)
  const refused = await build.event('answer-refused')
  expect(refused).toMatchObject({ name: 'plan', problem: expect.stringContaining('phase') })
  expect(await build.event('plan-ready')).toMatchObject({ tasks: [{ id: 'T1' }, { id: 'T2' }] })
  expect(scene.input(2)).toContain('Later')
})

test('a plan that does not fit three times is left to a person', async () => {
  await using scene = await openSmallBuild(() => ({
    'agents-builder': always(reply(shell(BAD_PLAN)), says('There is a plan.')),
  }))
  const { exitCode, events } = await scene.run('start', ...UNATTENDED)
  expect(exitCode).toBe(4)
  expect(eventsOf(events, 'answer-refused').map(({ name }) => name)).toEqual(Array(3).fill('plan'))
  expect(eventsOf(events, 'round-started').map(({ part }) => part)).toEqual(Array(3).fill('team-building'))
})

test('what a person writes into the plan while it is carried out is taken over; what is gone from it is put back, and done without an agent is not', async () => {
  const edited = Promise.withResolvers<void>()
  await using scene = await openSmallBuild(() => ({
    'master-mind': inTurn(
      [reply(message('I look.'), hold(edited.promise), shell('true')), says('That was all.')],
      [reply(shell('sleep 600'))],
    ),
  }))
  await using build = scene.start('start', ...UNATTENDED)
  await build.event('turn-started', ({ round }) => round === 2)
  const task = { details: 'A file.', acceptanceCriteria: 'back/part.txt', phase: 'Building', subtasks: [] }
  await writeAt(
    scene,
    '.codemachine/plan/tasks.json',
    JSON.stringify({
      tasks: [
        { ...task, id: 'T1', name: 'Make the back', done: true },
        { ...task, id: 'T3', name: 'Make the roof', done: false },
      ],
    }),
  )
  edited.resolve()
  await build.event('tasks-judged')
  build.signal('SIGTERM')
  const { events } = await build.ended
  expect(verdictsOf(events).toSorted()).toEqual(['T1 changed', 'T1 refused', 'T2 put-back', 'T3 added'])
  expect(planOf(scene).map(({ id, done }) => [id, done])).toEqual([
    ['T1', false],
    ['T3', false],
    ['T2', false],
  ])
})

test('an agent asks for another one on the command line, in the sandbox; never for itself', async () => {
  const ask = (agent: string, task: string) => reply(shell(`"${process.execPath}" "${BIN}" --agent ${agent} "${task}"`))
  await using scene = await openSmallBuild(
    () => ({
      'master-mind': always(ask('backend-dev', 'T1: make the back'), reply(shell(WRITE_PLAN)), says('That was all.')),
      'backend-dev': always(
        ask('backend-dev', 'T1: you do it'),
        request => reply(message(request.lastOutputs.join('')), shell('true')),
        makePart('back'),
        says('The back is made.'),
      ),
    }),
    openRealScene,
  )
  await using build = scene.start('start', ...UNATTENDED)
  await build.event('tasks-judged')
  build.process.kill('SIGKILL')
  const { events } = await build.ended
  expect(workOf(events)).toEqual(['backend-dev T1 completed'])
  expect(eventsOf(events, 'agent-started')).toMatchObject([{ door: 'command-line', parent: null }])
  const said = eventsOf(events, 'item-completed').flatMap(({ item, instance }) =>
    instance !== undefined && item.kind === 'agent-message' ? [item.text] : [],
  )
  expect(said[0]).toMatch(/itself/)
  expect(verdictsOf(events)).toContain('T1 done')
})

promise('B6')
test('a memory file that is a link is not written through', async () => {
  await using scene = await openSmallBuild()
  const outside = join(scene.place.root, 'outside.md')
  await writeFile(outside, 'mine')
  await mkdir(join(scene.place.directory, '.codemachine/memory'), { recursive: true })
  symlinkSync(outside, join(scene.place.directory, '.codemachine/memory/.backend-memory.md'))
  await using build = scene.start('start', ...UNATTENDED)
  await build.event('tasks-judged')
  build.signal('SIGTERM')
  const { events } = await build.ended
  expect(await readFile(outside, 'utf8')).toBe('mine')
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContainEqual(
    expect.stringContaining('.backend-memory.md is a link'),
  )
  expect(readAt(scene, '.codemachine/memory/.frontend-memory.md')).toContain('The front is made.')
})

test('a second build in the same directory keeps the plan of the first one aside, and what it made', async () => {
  const plan = JSON.stringify({
    tasks: [
      {
        id: 'T1',
        name: 'Join the parts',
        details: 'whole.txt',
        acceptanceCriteria: 'cat whole.txt',
        phase: 'Runtime',
        done: false,
      },
    ],
  })
  const write = (text: string) => reply(shell(`cat > .codemachine/plan/tasks.json <<'END'\n${text}\nEND`))
  await using scene = await openSmallBuild(scene => ({
    'agents-builder': inTurn(
      [reply(shell(WRITE_PLAN)), says('There is a plan.')],
      [write(plan), says('There is another plan.')],
    ),
    'master-mind': inTurn(smallBuild(scene)['master-mind'](), [
      reply(runAgent('technical-writer', 'T1: join the parts')),
      write(plan.replace('false', 'true')),
      says('They are joined.'),
    ]),
    'technical-writer': always(reply(shell('cat back/part.txt front/part.txt > whole.txt')), says('Joined.')),
  }))
  const first = await scene.run('start', ...UNATTENDED)
  const second = await scene.run('start', ...UNATTENDED)
  expect([first.exitCode, second.exitCode]).toEqual([0, 0])
  const earlier = readAt(scene, `.codemachine/plan/earlier/${first.events[0]?.session}.json`)
  expect(JSON.parse(earlier ?? '{}')).toMatchObject({
    tasks: [{ id: 'T1', name: 'Make the back', done: true }, { id: 'T2' }],
  })
  expect(planOf(scene)).toMatchObject([{ id: 'T1', name: 'Join the parts', done: true }])
  expect(verdictsOf(second.events)).toEqual(['T1 done'])
  expect(readAt(scene, 'whole.txt')).toBe('This is the back.\nThis is the front.\n')
})
