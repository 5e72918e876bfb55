import { expect, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.ts'
import type { Recorded, SessionEvent } from '../../../../src/core/events/events.ts'
import { emptyState } from '../../../../src/core/state/state.ts'
import type { ScreenHost } from '../../../../src/doors/screen/screen/dialogs.ts'
import { answerDecision, askDecision, type QuestionContext } from '../../../../src/doors/screen/screen/dialogs.ts'
import { drawScreen } from '../../../../src/doors/screen/screen/frame.ts'
import { askAfterInterrupt } from '../../../../src/doors/screen/screen/how-it-goes-on.ts'
import { ScreenModel } from '../../../../src/doors/screen/screen/model.ts'
import type { Ask } from '../../../../src/project/library.ts'
import { Keymap } from '../../../../src/project/settings/keys.ts'
import { fold } from '../../../support/session-events.ts'
import { TestClock } from '../../../support/test-clock.ts'
import { plain } from '../header/session.ts'
import { local, recorded, sampleEvents } from '../samples.ts'
import { created, shown } from './night.ts'

/** A person before a plan that waits for them. */
function sit(
  ask: (context: QuestionContext) => Promise<unknown>,
  {
    asks = shown,
    edits = true,
    meanwhile,
  }: { asks?: readonly SessionEvent[]; edits?: boolean; meanwhile?: SessionEvent } = {},
) {
  const edited: string[] = []
  const asked: Ask[] = []
  const nothing = async () => {}
  const host: ScreenHost = {
    ask: async each => {
      asked.push(each)
      return { code: 'done', message: 'done' }
    },
    enqueue: async () => '',
    takeBack: async () => false,
    attend: () => false,
    begin: () => {},
    command: nothing,
    edit: async () => null,
    editFile: async file => {
      edited.push(file)
      for (const event of recorded([created, ...asks, ...(meanwhile === undefined ? [] : [meanwhile])]).slice(
        asks.length + 1,
      ))
        happens(event)
      return edits
    },
    showPlanChange: async () => {},
    happened: () => {},
    answer: async () => '',
    openLogs: nothing,
    openPalette: async () => {},
    openDiff: async () => {},
    suspend: nothing,
    leave: () => {},
    leaveNow: () => {},
    keepEnter: async () => {},
    remember: () => {},
    warningsOfSecret: () => [],
    storeSecret: async () => null,
  }
  const model = new ScreenModel({
    theme: plain,
    clock: systemClock,
    motion: 'reduced',
    keymap: new Keymap(undefined, 'queue'),
    isWatching: false,
    size: () => ({ columns: 80, rows: 24 }),
    redact: each => each,
    searchFiles: async () => [],
    onChange: () => {},
  })
  model.showsSession = true
  let state = emptyState('20261120_1')
  const happens = (event: Recorded) => {
    state = fold(state, event)
    model.pane.event(event, state)
  }
  for (const event of recorded([created, ...asks] satisfies SessionEvent[])) happens(event)
  const over = ask({ model, host, clock: new TestClock() })
  const answered = async (...answers: Parameters<ScreenModel['answer']>[0][]) => {
    for (const answer of answers) {
      model.answer(answer)
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    }
  }
  return { model, asked, edited, happens, over, answered }
}

const ANSWER = { type: 'decide', session: '20261120_1', decision: 'plan' }

test('a plan that waits is started, changed or left', async () => {
  const { model, asked, over, answered } = sit(askDecision)
  expect(model.dialog?.question.title).toBe('The plan has 8 tasks. Start the build?')
  expect(model.dialog?.question.options.map(({ label }) => label)).toEqual([
    'Start the build',
    'Change the plan',
    'Stop',
  ])
  await answered({ kind: 'chosen', id: 'accept' })
  await over
  expect(asked).toEqual([{ ...ANSWER, choice: 'accept' }])
})

test('a change is said in words; whoever goes back from there is asked again', async () => {
  const { model, asked, over, answered } = sit(askDecision)
  await answered({ kind: 'chosen', id: 'change' }, { kind: 'closed' })
  expect(model.dialog?.question.title).toBe('The plan has 8 tasks. Start the build?')
  await answered({ kind: 'chosen', id: 'change' }, { kind: 'text', text: 'Leave out the cart.' })
  await over
  expect(asked).toEqual([{ ...ANSWER, choice: 'change', text: 'Leave out the cart.' }])
})

test('Esc leaves it as it is, and asks the same again; Stop is asked once more, and stops', async () => {
  const { model, asked, over, answered } = sit(askAfterInterrupt)
  expect(model.dialog?.question.title).toBe('The plan has 8 tasks. Start the build?')
  await answered({ kind: 'chosen', id: 'stop' }, { kind: 'chosen', id: 'back' })
  expect([model.dialog?.question.title, asked]).toEqual(['The plan has 8 tasks. Start the build?', []])
  await answered({ kind: 'chosen', id: 'stop' }, { kind: 'chosen', id: 'end' })
  await over
  expect(asked).toEqual([{ ...ANSWER, choice: 'stop' }])
})

test('nobody who is typing is asked', async () => {
  const { model, answered, over } = sit(async asking => {
    asking.model.composer.setText('mind the gap')
    await askDecision(asking)
  })
  await answered()
  await over
  expect([model.dialog, model.composer.text]).toEqual([null, 'mind the gap'])
})

const OPEN: SessionEvent = {
  ...sampleEvents['decision-asked'],
  choices: [
    { id: 'keep', label: 'Keep it', text: 'may' },
    { id: 'edit', label: 'Edit it', opensFile: true },
  ],
  default: 'keep',
}
const OF_OPEN = { type: 'decide', session: '20261120_1', decision: 'database' }

test('with a choice that may have a text, something is said or nothing', async () => {
  const silent = sit(askDecision, { asks: [OPEN] })
  await silent.answered({ kind: 'chosen', id: 'keep' }, { kind: 'chosen', id: 'alone' })
  expect(silent.asked).toEqual([{ ...OF_OPEN, choice: 'keep' }])
  const talking = sit(askDecision, { asks: [OPEN] })
  await talking.answered({ kind: 'chosen', id: 'keep' }, { kind: 'text', text: 'for now' })
  expect(talking.asked).toEqual([{ ...OF_OPEN, choice: 'keep', text: 'for now' }])
})

test('a choice that opens the file is taken once it was edited; else it is asked again', async () => {
  const editing = sit(askDecision, { asks: [OPEN] })
  await editing.answered({ kind: 'chosen', id: 'edit' })
  expect([editing.edited, editing.asked]).toEqual([['docs/database.md'], [{ ...OF_OPEN, choice: 'edit' }]])
  const failing = sit(askDecision, { asks: [OPEN], edits: false })
  await failing.answered({ kind: 'chosen', id: 'edit' })
  expect([failing.asked, failing.model.dialog?.question.title]).toEqual([[], 'Which database?'])
})

test('what a person has edited that is decided meanwhile is not taken, and is said where it lies', async () => {
  const meanwhile = { ...sampleEvents['decision-made'], choice: 'keep' } as const
  const editing = sit(askDecision, { asks: [OPEN], meanwhile })
  await editing.answered({ kind: 'chosen', id: 'edit' })
  const typing = sit(context => answerDecision(context, 'edit'), { asks: [OPEN], meanwhile })
  await typing.over
  for (const { asked, model } of [editing, typing]) {
    expect(asked).toEqual([])
    expect(model.currentNotice?.text).toBe('It was already decided. Your text is saved in docs/database.md.')
  }
})

test('what is typed behind /decide is read as on a plain terminal, and opens the file of its choice', async () => {
  const talking = sit(context => answerDecision(context, '1 "for now"'), { asks: [OPEN] })
  await talking.over
  expect(talking.asked).toEqual([{ ...OF_OPEN, choice: 'keep', text: 'for now' }])
  const editing = sit(context => answerDecision(context, 'edit'), { asks: [OPEN] })
  await editing.over
  expect([editing.edited, editing.asked]).toEqual([['docs/database.md'], [{ ...OF_OPEN, choice: 'edit' }]])
  const failing = sit(context => answerDecision(context, 'edit'), { asks: [OPEN], edits: false })
  await failing.over
  expect(failing.asked).toEqual([])
  // The session says what there is to choose from.
  const wrong = sit(context => answerDecision(context, '7'), { asks: [OPEN] })
  await wrong.over
  expect(wrong.asked).toEqual([{ type: 'decide', choice: '7' }])
})

test('behind /decide alone the question comes, and nothing where there is none', async () => {
  const { model, answered, over } = sit(context => answerDecision(context, ' '), { asks: [OPEN] })
  expect(model.dialog?.question.title).toBe('Which database?')
  await answered({ kind: 'left' })
  expect([await over, model.currentNotice?.text]).toEqual([
    true,
    'Your decision is waiting; Esc shows the question, Ctrl+C again leaves',
  ])
  const closing = sit(context => answerDecision(context, ' '), { asks: [OPEN] })
  await closing.answered({ kind: 'closed' })
  expect([await closing.over, closing.model.currentNotice?.text]).toEqual([
    true,
    'Your decision is waiting; Esc shows the question, Ctrl+C changes the plan, twice leaves',
  ])
  const { over: nothing } = sit(context => answerDecision(context, ''), { asks: [] })
  expect(await nothing).toBe(false)
})

test('as long as something is to be decided the keys are those of a session that is held', async () => {
  const { model, happens } = sit(async () => {}, { asks: [OPEN] })
  const keys = () => drawScreen(model, local(20, 22, 45)).lines.at(-1)
  expect(keys()).toContain('Esc shows the question')
  const [, , made] = recorded([created, OPEN, { ...sampleEvents['decision-made'], choice: 'keep' }])
  if (made !== undefined) happens(made)
  expect(keys()).toContain('Ctrl+C plan')
})

test('what was decided by another door meanwhile is not sent', async () => {
  const { model, asked, happens, answered } = sit(askDecision, { asks: [OPEN] })
  const [, , made] = recorded([created, OPEN, { ...sampleEvents['decision-made'], choice: 'keep' }])
  if (made !== undefined) happens(made)
  await answered({ kind: 'chosen', id: 'keep' })
  expect([asked, model.dialog]).toEqual([[], null])
})
