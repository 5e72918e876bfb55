import { expect } from 'vitest'
import { openSmallBuild } from '../../support/build-scene.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, folder, held, round, says, writeTasks } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { usageLimitReached } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'
import { openClient } from './mcp-client.ts'

promise(
  'O128',
  'A decision that a session waits for is told, listed and made once over MCP; a plan is changed, and a wait ended',
)
test('the plan of a build that another agent has begun waits for a decision, which is told, listed, and made once', async () => {
  await using scene = await openSmallBuild(undefined, openRealScene)
  await using client = await openClient(scene.place)
  const { value: started } = await client.call('start_session', { template: 'build' })
  const { session } = started
  expect(session).toMatch(/^\d{8}_1$/)
  const asked = await client.until({ session })
  expect(asked).toMatchObject({
    happened: 'needs-person',
    words: expect.stringContaining('The plan has 2 tasks. Start the build?'),
    session: { standing: 'running', outcome: null, tasks: { done: 0, total: 2 } },
  })
  const { value: status } = await client.call('status')
  expect(status).toMatchObject({
    runs: true,
    session: { id: session, decision: 'The plan has 2 tasks. Start the build?', round: null },
    words: expect.stringContaining('waits for you'),
  })
  const id = `${session}/plan`
  const choices = ['accept', 'change', 'stop']
  expect((await client.call('questions')).value).toEqual({
    count: 1,
    questions: [
      {
        id,
        directory: scene.place.directory,
        kind: 'decision',
        text: 'The plan has 2 tasks. Start the build?',
        options: choices.map(choice => ({ id: choice, text: expect.any(String) })),
        assumes: null,
        answer: null,
      },
    ],
  })
  const refused = async (given: object) => (await client.call('answer', { question: id, ...given })).problem
  expect(await refused({ answer: 'up' })).toBe(`${session} offers no choice "up"; use one of accept, change, stop.`)
  expect(await refused({ answer: 'change' })).toBe('"change" needs a text: describe what you want.')
  expect(await refused({ answer: 'accept', text: 'gladly' })).toBe('"accept" takes no text; leave it out.')
  expect(await refused({ question: `${session}/fix`, answer: 'accept' })).toBe(
    `Session ${session} does not ask about fix now.`,
  )
  expect(await refused({ question: 'plan', answer: 'accept' })).toBe('There is no question "plan".')
  expect((await client.call('questions')).value.count).toBe(1)
  expect((await client.call('report')).value.text).toContain('| T1 | Make the back | Building | not done |')

  const { value: answered } = await client.call('answer', { question: id, answer: 'accept' })
  expect(answered).toEqual({ message: expect.stringContaining(session), directory: scene.place.directory })
  expect(await refused({ answer: 'stop' })).toBe(`Session ${session} does not ask about plan now.`)
  expect(await client.call('questions', { all: true })).toMatchObject({ value: { count: 0 } })
  await client.until({ session, until: ['round'], seen: asked.seen })
  await client.call('stop', { now: true })
  await client.until({ session })
  const { events } = await scene.run('logs', '--json')
  expect(eventsOf(events, 'decision-made')).toMatchObject([{ id: 'plan', choice: 'accept', text: null, by: 'person' }])
})

const never = new Promise<never>(() => {})
const isWords = ({ item }: { item: { kind: string } }) => item.kind === 'agent-message'

promise('O128')
test('a plan is changed over MCP: the session holds with what has changed, or goes on by itself where that is said', async () => {
  const plan = (name: string, done = false) => writeTasks([{ id: 'T1', name, done }])
  const noEntries = `sed -i '/^- \\[ \\]/d' ${folder}/MAIN.md`
  await using scene = await openRealScene([
    [held(never)],
    round(plan('docs')),
    round(plan('French docs')),
    round(noEntries, plan('French docs', true), claimDone),
  ])
  await using client = await openClient(scene.place)
  expect((await client.call('replan', { text: 'Too early.' })).problem).toContain('No codemachine runs in')
  const { session } = (await client.call('start_session', { goal: 'build X', limits: { rounds: 4 } })).value
  await using following = scene.start('logs', '-f', '--json', session)
  await following.event('item-completed', isWords)
  expect((await client.call('replan', { text: ' ' })).problem).toContain(
    'use a text that says what should be different',
  )
  const { value: told } = await client.call('replan', { text: 'Write the docs first.' })
  expect(told).toEqual({
    message: expect.stringMatching(/Round 1 is interrupted.*unpause/),
    directory: scene.place.directory,
  })
  const holds = await client.until({ session })
  expect(holds).toMatchObject({
    happened: 'needs-person',
    session: { standing: 'running', decision: null, round: null },
  })
  expect((await client.call('status')).value).toMatchObject({ session: { state: expect.stringContaining('paused') } })
  // Without `go_on` it would hold again.
  const { value: again } = await client.call('replan', { text: 'In French.', go_on: true })
  expect(again.message).not.toContain('unpause')
  expect(await client.until({ session, seen: holds.seen })).toMatchObject({
    happened: 'ended',
    session: { outcome: 'done', tasks: { done: 1, total: 1 } },
  })
  const { events } = await following.ended
  expect(eventsOf(events, 'replan-asked').map(({ text }) => text)).toEqual(['Write the docs first.', 'In French.'])
  expect(eventsOf(events, 'replanned')).toHaveLength(2)
  expect(eventsOf(events, 'held')).toHaveLength(1)
  expect(scene.input(2)).toContain('Write the docs first.')
})

promise('O128')
test('the wait for a usage limit is ended over MCP; where a session waits for nothing, that is said', async () => {
  const gate = Promise.withResolvers<void>()
  const inAnHour = Math.round(Date.now() / 1000) + 3600
  await using scene = await openRealScene([
    [usageLimitReached(inAnHour)],
    [held(gate.promise), ...round(claimDone)],
    [says('Not reached.')],
  ])
  await using client = await openClient(scene.place)
  const { session } = (await client.call('start_session', { goal: 'build X', limits: { rounds: 1 } })).value
  await using following = scene.start('logs', '-f', '--json', session)
  await following.event('waiting')
  expect((await client.call('status', { session })).value).toMatchObject({
    session: { standing: 'running', state: expect.stringMatching(/^waiting until .*usage limit/) },
  })
  expect((await client.call('retry', { session })).value.message).toBe(
    `The wait is over; round 1 of ${session} starts.`,
  )
  await following.event('item-completed', isWords)
  const again = await client.call('retry', { session })
  expect(again).toMatchObject({ problem: expect.stringContaining('wait'), hint: 'status says what it does.' })
  gate.resolve()
  expect(await client.until({ session })).toMatchObject({ happened: 'ended', session: { outcome: 'done' } })
  expect(eventsOf((await following.ended).events, 'wait-ended')).toMatchObject([{ round: 1, reason: 'retry' }])
})
