import { expect } from 'vitest'
import { functionCall, message, reply } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { hold, usageLimitReached } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'

const ask = (args: object) => functionCall('ask_person', args)
const database = { question: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' }

promise(
  'O51',
  'An answer to a question reaches the running turn, or the next round; after the session it becomes a queued prompt',
)
test('what an agent asks at night is there in the morning, and an answer that is given while it works reaches its turn', async () => {
  const answered = Promise.withResolvers<void>()
  await using scene = await openScene([
    [
      // One after the other: calls of one answer are handed over in any order.
      reply(ask(database)),
      reply(ask({ question: 'What name?', assumption: 'app' })),
      reply(ask({ question: 'Nothing assumed?' })),
      says('Went on.'),
    ],
    [
      reply(ask({ ...database, question: 'which  database?' })),
      reply(message('Working.'), hold(answered.promise)),
      ...round(claimDone),
    ],
    round(claimDone),
  ])
  await using running = scene.start('--json', 'build a shop')
  await running.event('item-completed', event => event.round === 2 && event.item.kind === 'agent-message')
  const { stdout } = await scene.run('questions')
  expect(stdout).toMatch(/^\d{8}_1\/Q1 {2}round 1, .+\n {2}Which database\?\n {4}1 {2}SQLite\n {4}2 {2}Postgres\n/)
  const answer = await scene.run('questions', 'answer', 'Q1', '2')
  expect([answer.exitCode, answer.stdout]).toEqual([
    0,
    expect.stringMatching(/^Answered \d{8}_1\/Q1: Postgres\nThe agent of round 2 reads it with its next step\.\n$/),
  ])
  answered.resolve()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'question-asked').map(({ question, text }) => [question, text])).toEqual([
    ['Q1', 'Which database?'],
    ['Q2', 'What name?'],
  ])
  const outputs = scene.model.requests.flatMap(({ lastOutputs }) => lastOutputs)
  expect(outputs.filter(text => text.includes('Continue with your assumption'))).toHaveLength(4)
  expect(outputs).toContain('`assumption` is missing. Nothing was kept; call it again.')
  expect(outputs.join()).toContain('kept already, as Q1')
  const words =
    /^"Which database\?" – Postgres \(\d{8}_1\/Q1\)\n\nIn round 1 of this session this question came up:\n\n> Which database\?\n[\s\S]+> SQLite\n[\s\S]+My answer is:\n\nPostgres\n/
  expect(eventsOf(events, 'steered')).toMatchObject([
    { round: 2, delivered: true, answers: 'Q1', text: expect.stringMatching(words) },
  ])
  const told = scene.model.requests.filter(({ userTexts }) => userTexts.some(text => words.test(text)))
  expect([...new Set(told.map(({ conversation }) => conversation))]).toEqual([1])
  // It is told once, and no session of its own.
  expect(eventsOf(events, 'session-created')).toHaveLength(1)
  expect(JSON.parse((await scene.run('questions', '--all', '--json')).stdout)).toMatchObject([
    { id: expect.stringMatching(/_1\/Q1$/), answer: { answer: 'Postgres', told: 'round' } },
    { answer: null },
  ])
  expect((await scene.run('logs')).stdout).toContain('a person answers Q1: "Which database?" – Postgres')
  const again = await scene.run('questions', 'answer', 'Q1', 'SQLite')
  expect([again.exitCode, again.stderr]).toEqual([
    2,
    expect.stringMatching(/You answered .+_1\/Q1 at .+: Postgres \(CM0615\)\n/),
  ])
})

promise('O51')
test('an answer that is given between two rounds is told to the next one', async () => {
  const usedUp = usageLimitReached(Math.round(Date.now() / 1000) + 3600)
  await using scene = await openScene([[reply(ask(database)), says('Went on.')], [usedUp], [says('Here again.')]])
  await using running = scene.start('--json', '--rounds', '2', 'build a shop')
  await running.event('waiting')
  const { exitCode, stdout } = await scene.run('questions', 'answer', 'Q1', 'none', 'of them')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^Answered .+: none of them\nThe next round reads it first: \d{8}_1 waits \(.+\)\.\n$/),
  ])
  await scene.run('retry')
  const { events } = await running.ended
  expect(eventsOf(events, 'steered')).toMatchObject([{ round: null, delivered: false, answers: 'Q1' }])
  expect(scene.input(3)).toContain('A person answers Q1: "Which database?" – none of them')
  expect(eventsOf(events, 'session-created')).toHaveLength(1)
  const [asked] = JSON.parse((await scene.run('questions', '--all', '--json')).stdout)
  expect(asked.answer).toMatchObject({ told: 'next-round' })
})

promise('O51')
test('an answer to a session that has ended becomes a session of its own, also where another one runs', async () => {
  const answered = Promise.withResolvers<void>()
  await using scene = await openScene([
    [reply(ask(database)), says('Went on.')],
    [reply(message('Working.'), hold(answered.promise)), says('That is it for now.')],
    [says('Changed.')],
  ])
  expect((await scene.run('--rounds', '1', 'build a shop')).exitCode).toBe(3)
  await using running = scene.start('--json', '--rounds', '1', 'build another one')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  const { exitCode, stdout } = await scene.run('questions', 'answer', 'Q1', '2')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^Answered (\d{8})_1\/Q1: Postgres\n\1_2 runs, and not \1_1\. It waits in the queue as 000001, and becomes a session of its own\.\n$/,
    ),
  ])
  answered.resolve()
  const { events } = await running.ended
  expect(eventsOf(events, 'steered')).toEqual([])
  expect((await scene.run('queue', 'list')).stdout).toContain('"Which database?" – Postgres')
})
