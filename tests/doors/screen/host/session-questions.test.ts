import { expect, test } from 'vitest'
import { functionCall, message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { drawHere } from '../../../support/drawn-here.ts'
import { promise } from '../../../support/promise.ts'
import { claimDone, round, says } from '../../../support/rounds.ts'
import { openScene } from '../../../support/scene.ts'
import { expectOnceEach } from '../../../support/screen-scene.ts'
import { hold } from '../../../support/scripted-model.ts'

const ask = (args: object) => functionCall('ask_person', args)
const database = { question: 'Which database?', options: ['SQLite', 'Postgres'], assumption: 'SQLite' }
const LINE = '? Q1  Which database?  1 SQLite · 2 Postgres  Tab answers'
const LINE_OF_TWO = `${LINE}, 1 more`

promise(
  'O100',
  'An open question is answered where one sits, in the field and by `/answer`; in the composer a digit is a digit, and what is answered elsewhere leaves at once',
)
test('a question is answered where one sits: Tab and a digit, and the agent at work reads it', async () => {
  const [go, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using scene = await openScene([
    [
      reply(ask(database)),
      reply(ask({ question: 'What name?', assumption: 'app' })),
      reply(message('Working.'), hold(go.promise), shell('true')),
      reply(message('Still at it.'), hold(end.promise), shell('true')),
      ...round(claimDone),
    ],
    round(claimDone),
  ])
  await using terminal = drawHere(scene, ['build a shop'], { columns: 100, rows: 30 })
  await terminal.until('Working.')
  await using watching = drawHere(scene, ['watch'], { columns: 80, rows: 24 })
  await Promise.all([terminal.until(LINE_OF_TWO), watching.until(LINE_OF_TWO)])
  // In the field a digit is a digit.
  terminal.type('2 more tests, please')
  await terminal.until('› 2 more tests, please')
  terminal.press('ctrl+u')
  await terminal.until(LINE_OF_TWO)
  terminal.press('tab')
  await terminal.until('2 things wait for your answer')
  terminal.press('enter')
  await terminal.until('Until you answer, the agent assumes: SQLite')
  terminal.press({ text: '2' })
  await terminal.until('Answered Q1: Postgres. The agent of round 1 reads it with its next step.')
  await Promise.all([terminal.until('? Q2  What name?  Tab answers'), watching.until('? Q2  What name?  Tab answers')])
  go.resolve()
  await terminal.until('Still at it.')
  watching.type('/answer 2 Shop 2000')
  await watching.until('› /answer 2 Shop 2000')
  watching.press('enter')
  await watching.until('Answered Q2: Shop 2000. The agent of round 1 reads it with its next step.')
  await terminal.until(rows => !rows.some(row => row.startsWith('? Q')))
  end.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
  const told = scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')
  expect(told).toMatch(/"Which database\?" – Postgres \(\d{8}_1\/Q1\)[\s\S]*"What name\?" – Shop 2000 \(\d{8}_1\/Q2\)/)
  expectOnceEach(terminal, ['question Q1: Which database?', 'question Q2: What name?'])
})

promise('O100')
test('an answer that another terminal gives takes the question from the line; what is typed into its field stays', async () => {
  const end = Promise.withResolvers<void>()
  await using scene = await openScene([
    [reply(ask(database)), reply(message('Working.'), hold(end.promise), shell('true')), says('That is all.')],
    round(claimDone),
    round(claimDone),
  ])
  await using terminal = drawHere(scene, ['build a shop'], { columns: 80, rows: 24 })
  await terminal.until(LINE)
  terminal.press('tab')
  await terminal.until('Until you answer')
  terminal.type('neither')
  await terminal.until('› neither')
  expect((await scene.run('questions', 'answer', 'Q1', '1')).exitCode).toBe(0)
  await terminal.until('Q1 has been answered meanwhile')
  await terminal.until(rows => rows.includes('› neither') && !rows.some(row => row.startsWith('? Q')))
  terminal.press('ctrl+u')
  end.resolve()
  expect(await terminal.ended).toEqual({ exitCode: 0 })
})
