import { expect } from 'vitest'
import { openSmallBuild } from '../support/build-scene.ts'
import { openRealScene } from '../support/real-scene.ts'
import { eventsOf } from '../support/scene.ts'
import { test } from '../support/side-by-side.ts'
import { openClient } from './mcp-client.ts'

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
  expect(await refused({ answer: 'change' })).toBe('"change" needs a text; say what you want with it.')
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
