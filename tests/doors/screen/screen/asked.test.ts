import { describe, expect, test } from 'vitest'
import { UserError } from '../../../../src/base/errors.ts'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import type { Key } from '../../../../src/doors/screen/composer/keys.ts'
import { answerCommand, answerMeant } from '../../../../src/doors/screen/screen/asked.ts'
import { Controls } from '../../../../src/doors/screen/screen/controls.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import { openTheme } from '../../../../src/doors/screen/terminal/theme.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import type { AskedQuestion } from '../../../../src/session/records/questions.ts'
import { widthOf } from '../../../../src/tell/words/cells.ts'
import { NO_HOST } from '../../../support/no-host.ts'
import { promise } from '../../../support/promise.ts'
import { created, foldAll, recorded, started } from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { sampleEvents } from '../samples.ts'

const text = (input: string): Key => ({ ctrl: false, meta: false, shift: false, name: null, input })
const named = (name: Key['name']): Key => ({ ...text(''), name })
const typed = (words: string) => [...words].map(text)

function asked(n: number, more: Partial<AskedQuestion> = {}): AskedQuestion {
  return {
    session: '20261121_1',
    at: '2026-11-21T23:40:00.000Z',
    round: 3,
    question: `Q${n}`,
    text: 'Which database?',
    options: ['SQLite', 'Postgres'],
    assumption: 'SQLite, as it is small',
    answer: null,
    ...more,
  }
}

/** A person before a session that has asked these questions. */
function sit(questions: readonly AskedQuestion[], { columns = 80, rows = 24, reader = false } = {}) {
  const clock = new TestClock()
  const answers: string[] = []
  const other: string[] = []
  const host = {
    ...NO_HOST,
    ask: async (ask: { type: string }) => {
      other.push(ask.type)
      return { code: 'done', message: 'done' } as const
    },
    answer: async ({ question }: AskedQuestion, answer: string) => {
      if (answer === 'too late') throw new UserError('CM0615', `${question} was answered at noon: no`)
      answers.push(`${question} ${answer}`)
      return 'The agent of round 3 reads it with its next step.'
    },
  }
  const model = new ScreenModel({
    theme: openTheme({ theme: 'plain', env: {}, reader }),
    clock,
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
    isWatching: false,
    size: () => ({ columns, rows }),
    redact: each => each,
    searchFiles: async () => [],
    onChange: () => {},
  })
  const fail = (error: unknown) => {
    throw error
  }
  const controls = new Controls({ model, host, clock, redraw: () => {}, openOutput: () => {}, onFailure: fail })
  const events: SessionEvent[] = [created(), started(3)]
  model.showsSession = true
  const show = () => {
    const last = recorded(events).at(-1)
    if (last !== undefined) model.pane.event(last, foldAll(events))
  }
  show()
  model.showAsked(questions)
  return {
    model,
    answers,
    other,
    context: { model, host, clock },
    happens: (event: SessionEvent) => {
      events.push(event)
      show()
    },
    press: async (...keys: Key[]) => {
      for (const key of keys) controls.key(key)
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    },
    lines: () => drawScreen(model, 0).lines,
    row: () => drawScreen(model, 0).lines.find(line => line.startsWith('? ')) ?? null,
  }
}

test('a question is a line above the composer with its choices; one that is too long for it has two rows, or is cut', () => {
  expect(sit([asked(1)]).row()).toBe('? Q1  Which database?  1 SQLite · 2 Postgres  Tab answers')
  const long = asked(2, {
    text: 'Which of the databases is to be used for the orders of the shop, and which for its log?',
  })
  const { lines } = sit([long])
  const at = lines().findIndex(line => line.startsWith('? Q2'))
  expect(lines()[at]).toMatch(/^\? Q2 {2}Which of the databases .*… {2}Tab answers$/)
  expect(lines()[at + 1]).toBe('  1 SQLite · 2 Postgres')
  expect(lines()[at + 2]).toMatch(/ · round 3/)
  const narrow = sit([asked(1), asked(2)], { columns: 40, rows: 10 })
  expect(narrow.row()).toMatch(/^\? Q1 {2}Which .*… {2}Tab answers, 1 more$/)
  expect(sit([asked(1)], { columns: 40, rows: 6 }).row()).toBeNull()
})

promise('O100')
test.each([
  [80, 24],
  [40, 10],
  [20, 5],
  [12, 8],
  [2, 30],
])('whatever is asked fits on %i columns and %i rows', (columns, rows) => {
  const wide = asked(1, {
    text: '日本語の質問 '.repeat(40),
    options: ['👩‍👩‍👧 '.repeat(30), '\u001b[31mred\u001b[0m\nline'],
  })
  const { lines } = sit([wide, asked(2)], { columns, rows })
  expect(lines().length).toBeLessThan(rows)
  for (const line of lines()) {
    expect(widthOf(line)).toBeLessThanOrEqual(columns)
    expect(line).not.toContain('\u001b[31m')
  }
})

promise('O100')
test('Tab on an empty field moves into it; there a digit answers, and elsewhere a digit is a digit', async () => {
  const { press, answers, model, row } = sit([asked(1)])
  await press(text('2'))
  expect([answers, model.composer.text]).toEqual([[], '2'])
  expect(row()).toMatch(/ {2}Ctrl\+X, Answer$/)
  await press(...typed(' more tests, please'), named('tab'))
  expect([answers, model.dialog]).toEqual([[], null])
  await press(named('tab'))
  expect(model.question?.title).toBe('Q1  Which database?')
  expect(row()).toBeNull()
  await press(text('2'))
  expect(answers).toEqual(['Q1 Postgres'])
  expect(model.currentNotice?.text).toBe('Answered Q1: Postgres. The agent of round 3 reads it with its next step.')
})

test('Enter answers with the choice at hand, words are typed, a digit in words is a digit, and Esc leaves', async () => {
  const { press, answers, model } = sit([asked(1)])
  await press(named('tab'), named('down'), named('return'))
  await press(named('tab'), ...typed('one of 3'), named('return'))
  await press(named('tab'), text('3'), ...typed('2 of them'), named('return'))
  expect(answers).toEqual(['Q1 Postgres', 'Q1 one of 3', 'Q1 2 of them'])
  await press(named('tab'), named('escape'))
  expect([model.dialog, answers.length]).toEqual([null, 3])
  await press(named('tab'), ...typed('too late'), named('return'))
  expect([model.composer.text, model.currentNotice?.text]).toEqual(['too late', 'Q1 was answered at noon: no (CM0615)'])
})

test('several open questions are a list', async () => {
  const { press, answers, model, row } = sit([asked(1), asked(2, { text: 'What name?', options: [] })])
  expect(row()).toBe('? Q1  Which database?  1 SQLite · 2 Postgres  Tab answers, 1 more')
  await press(named('tab'))
  expect(model.question?.title).toBe('2 things wait for your answer')
  await press(named('down'), named('return'))
  await press(...typed('2 shops'), named('return'))
  expect(answers).toEqual(['Q2 2 shops'])
  await press(named('tab'), text('1'))
  await press(text('1'))
  expect(answers).toEqual(['Q2 2 shops', 'Q1 SQLite'])
})

test('Esc in one of several goes back to the list, and from there closes, and interrupts nothing', async () => {
  const { press, model, other, lines, answers, happens } = sit([
    asked(1),
    asked(2, { text: 'What name?', options: [] }),
  ])
  await press(named('tab'))
  expect(lines().at(-1)).toBe('A digit or Enter chooses · Esc closes · ↑ ↓ select')
  await press(named('return'))
  expect(lines().at(-1)).toBe('A digit or Enter chooses · Esc goes back to the list · ↑ ↓ select')
  await press(named('escape'))
  expect(model.question?.title).toBe('2 things wait for your answer')
  await press(text('2'))
  await press(named('escape'))
  expect(model.question?.title).toBe('2 things wait for your answer')
  model.showAsked([asked(1)])
  happens(sampleEvents['decision-asked'])
  await press(text('1'))
  expect(model.question?.title).not.toBe('2 things wait for your answer')
  await press(named('escape'))
  expect(model.question?.title).toBe('2 things wait for your answer')
  await press(named('escape'))
  expect([model.dialog, other, answers]).toEqual([null, [], []])
})

test('a question that is answered elsewhere leaves the line and its field at once, and what was typed is kept', async () => {
  const { press, model, answers, row } = sit([asked(1), asked(2)])
  await press(named('tab'), text('1'))
  await press(...typed('neither'))
  model.showAsked([asked(2)])
  expect([model.dialog, model.composer.text]).toEqual([null, 'neither'])
  expect(model.currentNotice?.text).toBe('Q1 has been answered meanwhile')
  expect(row()).toMatch(/^\? Q2/)
  model.showAsked([])
  expect([row(), answers]).toEqual([null, []])
})

promise('O101', 'What is to be decided stands in the same place')
test('what is to be decided stands in the same place, before the questions, and Tab opens it', async () => {
  const { press, model, happens, row, other } = sit([asked(1)])
  happens({ ...sampleEvents['decision-asked'], until: '2099-01-01T00:00:00.000Z' })
  expect(row()).toMatch(/^\? You decide {2}.* {2}Tab answers, 1 more$/)
  await press(named('tab'), named('return'))
  expect(model.question?.title).toBe(sampleEvents['decision-asked'].title)
  await press(named('escape'))
  model.showAsked([])
  await press(named('tab'), named('escape'))
  expect(row()).toMatch(/^\? You decide {2}.*Tab answers$/)
  expect(other).toEqual([])
})

test('on the screen of a screen reader nothing is drawn that changes by itself', () => {
  expect(
    sit([asked(1)], { reader: true })
      .lines()
      .join('\n'),
  ).not.toContain('Which database?')
})

describe('behind /answer', () => {
  const one = [asked(1)]
  const several = [asked(2), asked(3, { options: [] }), asked(5)]
  test.each([
    ['1 2', one, 'Q1 Postgres'],
    ['Q1 2', one, 'Q1 Postgres'],
    ['20261121_1/Q1 Postgres', one, 'Q1 Postgres'],
    ['1 some words', one, 'Q1 some words'],
    ['2', one, 'Q1 Postgres'],
    ['as small as it gets', one, 'Q1 as small as it gets'],
    ['2 of them', one, 'Q1 2 of them'],
    ['3 7', several, 'Q3 7'],
    ['5 1', several, 'Q5 SQLite'],
    ['q2', several, 'opens Q2'],
    ['', several, 'asks which'],
    ['2', several, 'Q2, Q3 and Q5 are open; say which first: /answer 2 2 is choice 2 of Q2'],
    ['some words', several, 'Q2, Q3 and Q5 are open; say which first: /answer 2 2 is choice 2 of Q2'],
    ['4 1', several, 'Q4 needs no answer; Q2, Q3 and Q5 do'],
    ['2 1', one, 'Q2 needs no answer; Q1 does'],
    ['Q7 yes', one, 'Q7 needs no answer; Q1 does'],
    ['5', one, 'Q1 has no option 5; use a number from 1 to 2, or answer in words. (CM0615)'],
  ])('"%s" is understood', (said, open, expected) => {
    const meant = answerMeant(said, open)
    const words = {
      answer: () => meant.kind === 'answer' && `${meant.asked.question} ${meant.answer}`,
      open: () => meant.kind === 'open' && `opens ${meant.asked.question}`,
      choose: () => 'asks which',
      problem: () => meant.kind === 'problem' && meant.problem,
    }
    expect(words[meant.kind]()).toBe(expected)
  })

  test('what is not understood stands in the composer again; where nothing is open that is said', async () => {
    const { context, model, answers } = sit(several)
    await answerCommand(context, '2')
    expect([model.composer.text, answers]).toEqual(['/answer 2', []])
    await answerCommand(context, '5 1')
    expect(answers).toEqual(['Q5 SQLite'])
    const none = sit([])
    await answerCommand(none.context, '1 2')
    expect(none.model.currentNotice?.text).toBe('No question is open')
  })
})
