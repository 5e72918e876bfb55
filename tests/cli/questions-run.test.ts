import { expect, test } from 'vitest'
import { functionCall, hold, reply } from '../../src/demo/model/reply.ts'
import { claimDone, round, says } from '../support/rounds.ts'
import { eventsOf, openScene } from '../support/scene.ts'

const ask = (args: object) => functionCall('ask_person', args)
const database = { question: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' }

test('what an agent asks at night is there in the morning, and its answer, given while the session still runs, is worked on next', async () => {
  const answered = Promise.withResolvers<void>()
  await using scene = await openScene([
    [
      // One after the other: calls of one answer are handed over in any order.
      reply(ask(database)),
      reply(ask({ question: 'What name?', assumption: 'app' })),
      reply(ask({ question: 'Nothing assumed?' })),
      says('Went on.'),
    ],
    [reply(ask({ ...database, question: 'which  database?' }), hold(answered.promise)), ...round(claimDone)],
    round(claimDone),
  ])
  await using running = scene.start('--json', 'build a shop')
  await running.event('round-started', event => event.round === 2)
  await running.event('item-completed', event => event.round === 2 && event.item.kind === 'user-message')
  const { stdout } = await scene.run('questions')
  expect(stdout).toMatch(/^\d{8}_1\/Q1 {2}round 1, .+\n {2}Which database\?\n {4}1 {2}SQLite\n {4}2 {2}Postgres\n/)
  const answer = await scene.run('questions', 'answer', 'Q1', '2')
  expect([answer.exitCode, answer.stdout]).toEqual([
    0,
    expect.stringMatching(/^Answered \d{8}_1\/Q1: Postgres\nIt waits in the queue as 000001\.\n$/),
  ])
  answered.resolve()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'question-asked').map(({ question, text }) => [question, text])).toEqual([
    ['Q1', 'Which database?'],
    ['Q2', 'What name?'],
  ])
  const outputs = scene.model.requests.flatMap(({ lastOutputs }) => lastOutputs)
  expect(outputs.filter(text => text.includes('Go on with your assumption'))).toHaveLength(3)
  expect(outputs).toContain('`assumption` is missing. Nothing was kept; call it again.')
  expect(outputs.join()).toContain('kept already, as Q1')
  const created = eventsOf(events, 'session-created')
  expect(created[1]?.goal).toMatch(/> Which database\?[\s\S]+> SQLite[\s\S]+My answer is:\n\nPostgres\n/)
  expect(scene.memory('MAIN.md', 2)).toContain('My answer is:')
  const again = await scene.run('questions', 'answer', 'Q1', 'SQLite')
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringMatching(/_1\/Q1 was answered at .+: Postgres\n/)])
})
