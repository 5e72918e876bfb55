import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import { functionCall, message, reply, type ScriptStep } from '../../../../src/demo/model/reply.ts'
import { inTurn, makePart, openSmallBuild, type Parts, UNATTENDED, workOf } from '../../../support/build-scene.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../../support/scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { test } from '../../../support/side-by-side.ts'

/** A build whose backend-dev works until it is told something or ended, while its frontend-dev has ended already. */
async function buildAtWork(scene: Scene) {
  const running = scene.start('start', ...UNATTENDED)
  const saysSo = ({ item, instance }: { item: { kind: string }; instance?: string }) =>
    item.kind === 'agent-message' && instance?.startsWith('backend-dev-') === true
  const { instance: backend } = (await running.event('item-completed', saysSo)) as Recorded & { instance: string }
  const { instance: frontend } = (await running.event('agent-ended', ({ instance }) =>
    instance.startsWith('frontend-dev-'),
  )) as Recorded & { instance: string }
  return { running, backend, frontend }
}

/** A backend-dev that is at it, the first time, until `gate` resolves, and does its work the second time; it does `first` before. */
function waitingFor(gate: Promise<void>, ...first: readonly ScriptStep[]): Parts {
  const waits = reply(message('I am at it.'), hold(gate))
  return { 'backend-dev': inTurn([...first, waits], [makePart('back'), says('The back is made.')]) }
}

promise(
  'O50',
  '`steer` says who reads it; `steer --agent` and `stop --agent` reach one agent at work, and a name that is not at work is refused with the nearest',
)
test('a person tells the leader of a build something, and one of its agents, and is told who reads it', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openSmallBuild(() => waitingFor(gate.promise))
  const { running, backend, frontend } = await buildAtWork(scene)
  await using _ = running

  const toLeader = await scene.run('steer', 'mind the budget')
  expect([toLeader.exitCode, toLeader.stdout]).toEqual([
    0,
    'The agent of round 2 (building) reads it with its next step, once the agents that it waits for have ended. They are not told: backend-dev (T1). To tell one of them: codemachine steer --agent backend-dev "…"\n',
  ])

  const mistyped = await scene.run('steer', '--agent', 'bakend-dev', 'use tabs')
  expect([mistyped.exitCode, mistyped.stdout, mistyped.stderr]).toEqual([
    2,
    '',
    expect.stringMatching(
      /^codemachine: There is no agent "bakend-dev" at work in \d{8}_1; did you mean "backend-dev"\? At work: backend-dev \(T1\)\. \(CM0617\)\n {2}What it is doing: codemachine status\n$/,
    ),
  ])
  for (const named of [frontend, 'frontend-dev']) {
    const over = await scene.run('steer', '--agent', named, 'use tabs')
    expect([over.exitCode, over.stderr]).toEqual([
      2,
      expect.stringContaining('codemachine: frontend-dev has ended already; at work: backend-dev (T1). (CM0617)\n'),
    ])
  }

  const toAgent = await scene.run('steer', '--agent', 'backend-dev', 'use', 'tabs')
  expect([toAgent.exitCode, toAgent.stdout]).toEqual([
    0,
    'backend-dev reads it with its next step; the agent of round 2 is not told.\n',
  ])
  gate.resolve()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'steered')).toMatchObject([
    { round: 2, text: 'mind the budget', delivered: true },
    { round: 2, text: 'use tabs', delivered: true, agent: backend },
  ])
  const toldOf = (text: string) => [
    ...new Set(scene.model.requests.filter(({ userTexts }) => userTexts.includes(text)).map(each => each.conversation)),
  ]
  const conversationOf = (text: string) =>
    scene.model.requests.find(({ userTexts }) => userTexts.some(each => each.includes(text)))?.conversation
  expect(toldOf('use tabs')).toEqual([conversationOf('T1: make the back')])
  expect(toldOf('mind the budget')).toHaveLength(1)
  expect(toldOf('mind the budget')).not.toEqual(toldOf('use tabs'))
  const { stdout: logs } = await scene.run('logs')
  expect(logs).toContain('a person says to backend-dev T1: use tabs')
})

promise('O50')
test('a person ends one agent: who gave it its work is told that a person did, and the round goes on', async () => {
  await using scene = await openSmallBuild(() => waitingFor(new Promise<never>(() => {})))
  const { running, backend } = await buildAtWork(scene)
  await using _ = running
  const { exitCode: stopped, stdout } = await scene.run('stop', '--agent', backend)
  expect([stopped, stdout]).toEqual([
    0,
    'backend-dev is stopped now; the agent of round 2 is told that a person did it, and continues.\n',
  ])
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'stop-asked')).toMatchObject([{ now: true, agent: backend }])
  expect(eventsOf(events, 'round-ended')[1]).toMatchObject({ round: 2, outcome: { class: 'worked' } })
  expect(workOf(events).toSorted()).toEqual([
    'backend-dev T1 completed',
    'backend-dev T1 terminated',
    'frontend-dev T2 completed',
  ])
  expect(scene.model.requests.flatMap(({ lastOutputs }) => lastOutputs).join('\n')).toContain(
    'backend-dev was stopped by a person before its work was done; only this agent was.',
  )
  expect((await scene.run('logs')).stdout).toContain('backend-dev T1 was stopped by a person; the round continues')
})

promise('O50')
test('where no agent works for another, or nothing runs, a person is told so, and nothing is stopped', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[reply(message('Working.'), hold(gate.promise)), says('That is it for now.')]])
  for (const command of [
    ['steer', '--agent', 'backend-dev', 'hello'],
    ['stop', '--agent', 'backend-dev'],
  ]) {
    expect(await scene.run(...command)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /^codemachine: No codemachine runs in .+, so there is nothing to (steer|stop)\. \(CM0613\)\n/,
      ),
    })
  }
  await using running = scene.start('--json', '--rounds', '1', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  for (const command of [
    ['steer', '--agent', 'backend-dev', 'hello'],
    ['stop', '--agent', 'backend-dev'],
  ]) {
    expect(await scene.run(...command)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(
        /^codemachine: Only the agent of the round is at work in \d{8}_1 now\. \(CM0617\)\n {2}What it is doing: codemachine status\n$/,
      ),
    })
  }
  const both = await scene.run('stop', '--now', '--agent', 'backend-dev')
  expect([both.exitCode, both.stderr]).toEqual([2, expect.stringContaining('--agent and --now exclude each other')])
  gate.resolve()
  const { exitCode, events } = await running.ended
  expect([exitCode, eventsOf(events, 'stop-asked')]).toEqual([3, []])
})

promise('O51')
test('the answer to a question of an agent that still works reaches it and its leader', async () => {
  const gate = Promise.withResolvers<void>()
  const asks = reply(functionCall('ask_person', { question: 'Which tone?', assumption: 'friendly' }))
  await using scene = await openSmallBuild(() => waitingFor(gate.promise, asks))
  const { running, backend } = await buildAtWork(scene)
  await using _ = running
  const { exitCode, stdout } = await scene.run('questions', 'answer', 'Q1', 'dry')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(
      /Q1: dry\nThe agent of round 2 \(building\) reads it with .+ So does backend-dev, which asked\.\n$/,
    ),
  ])
  gate.resolve()
  const { exitCode: end, events } = await running.ended
  expect(end).toBe(0)
  expect(eventsOf(events, 'question-asked')).toMatchObject([{ question: 'Q1', agent: backend }])
  expect(eventsOf(events, 'steered')).toMatchObject([
    { answers: 'Q1', agent: backend, delivered: true },
    { answers: 'Q1', delivered: true },
  ])
  expect(eventsOf(events, 'session-created')).toHaveLength(1)
})

test('on the screen an agent is chosen, told something, and ended; a name that is not at work goes back into the field', async () => {
  await using scene = await openSmallBuild(() => waitingFor(new Promise<never>(() => {})))
  const { running, backend } = await buildAtWork(scene)
  await using _ = running
  await using seen = startInEmulator(scene.place, ['watch'], { columns: 100, rows: 34 })
  await seen.until('● backend-dev')
  seen.type('/steer')
  await seen.until('Tell an agent at work something')
  seen.press('enter')
  await seen.until(/Tell which agent\?[\s\S]*backend-dev T1/)
  seen.press('enter')
  await seen.until('What is backend-dev to know?')
  seen.type('use tabs')
  seen.press('enter')
  await seen.untilInAll('backend-dev reads it with its next step')
  await seen.untilInAll('a person says to backend-dev T1: use tabs')
  await running.event('steered', ({ agent, text }) => agent === backend && text === 'use tabs')

  const mistyped = '/steer bakend-dev and no semicolons'
  seen.type(mistyped)
  await seen.until(`› ${mistyped}`)
  seen.press('enter')
  await seen.untilInAll('did you mean "backend-dev"?')
  // It is edited, where it would give way to what is typed anew.
  seen.press('left')
  seen.press('right')
  seen.type(' please')
  await seen.until(`› ${mistyped} please`)
  seen.press('ctrl+u')
  seen.type('/stop backend-dev')
  await seen.until('› /stop backend-dev')
  seen.press('enter')
  await seen.until('/stop-agent NAME ends one')
  seen.type('/stop-agent backend-dev')
  await seen.until('› /stop-agent backend-dev')
  seen.press('enter')
  await seen.untilInAll('backend-dev T1 was stopped by a person')
  expect((await running.ended).exitCode).toBe(0)
  expect(await seen.ended).toEqual({ exitCode: 0 })
})
