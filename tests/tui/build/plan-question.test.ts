import { expect, test } from 'vitest'
import type { Ask } from '../../../src/app/library.ts'
import { systemClock } from '../../../src/base/clock.ts'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import type { ScreenHost } from '../../../src/tui/screen/controls.ts'
import { askAfterInterrupt, askDecision, type QuestionContext } from '../../../src/tui/screen/dialogs.ts'
import { ScreenModel } from '../../../src/tui/screen/model.ts'
import { fold } from '../../support/session-events.ts'
import { TestClock } from '../../support/test-clock.ts'
import { plain } from '../header/session.ts'
import { recorded } from '../samples.ts'
import { created, shown } from './night.ts'

/** A person before a plan that waits for them. */
function sit(ask: (context: QuestionContext) => Promise<unknown>) {
  const asked: Ask[] = []
  const nothing = async () => {}
  const host: ScreenHost = {
    ask: async each => {
      asked.push(each)
      return { code: 'done', message: 'done' }
    },
    enqueue: async () => '',
    takeBack: async () => false,
    begin: () => {},
    command: nothing,
    edit: async () => null,
    editFile: async () => false,
    openLogs: nothing,
    suspend: nothing,
    leave: () => {},
    leaveNow: () => {},
    remember: () => {},
  }
  const model = new ScreenModel({
    theme: plain,
    clock: systemClock,
    motion: 'reduced',
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
  for (const event of recorded([created, ...shown] satisfies SessionEvent[])) happens(event)
  const over = ask({ model, host, clock: new TestClock() })
  const answered = async (...answers: Parameters<ScreenModel['answer']>[0][]) => {
    for (const answer of answers) {
      model.answer(answer)
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
    }
  }
  return { model, asked, over, answered }
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

test('Esc leaves it as it is, and asks the same again; Stop stops', async () => {
  const { model, asked, over, answered } = sit(askAfterInterrupt)
  expect(model.dialog?.question.title).toBe('The plan has 8 tasks. Start the build?')
  await answered({ kind: 'chosen', id: 'stop' })
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
