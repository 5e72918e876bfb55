import { expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import type { TemplateKind } from '../../../src/core/template.ts'
import { notificationOf } from '../../../src/tell/notify/notification.ts'
import { created, judged, leading, planAsked, planned, shown, starts } from '../../doors/screen/build/night.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { relayTemplate } from '../../support/relay-template.ts'
import { fold } from '../../support/session-events.ts'

/** What is told of the last of these events of a build. */
function told(...events: readonly SessionEvent[]) {
  const all = recorded([created, ...events])
  const state = all.reduce(fold, emptyState('20261120_1'))
  const last = all.at(-1)
  return last === undefined ? null : notificationOf(last, state)
}

test('a plan that waits for the person is told at once, and once', () => {
  expect(told(...shown)).toMatchObject({
    event: 'needs-person',
    about: 'plan',
    tasks: 8,
    title: 'codemachine in work: the plan waits for you',
    message: 'The plan has 8 tasks. To start the build, type: codemachine decide accept. Goal: A shop for tea.',
  })
  expect(told(...planned), 'nobody wants to see it').toBe(null)
  const changed = { type: 'decision-made', id: 'plan', choice: 'change', text: 'Less.', by: 'person' } as const
  const round = { ...sampleEvents['round-started'], round: 2 }
  const after = [changed, round, { ...sampleEvents['round-ended'], round: 2 }, sampleEvents.replanned, planAsked]
  expect(told(...shown, ...after), 'who has it changed is there').toBe(null)
})

promise('C76', 'Each version of a plan that waits is notified with the command that shows it')
test('each version of a plan that waits is told with the command that shows it', () => {
  const plan = { author: 'planner', feedback: null, sha256: 'a', text: '', diff: null, accepted: null }
  const kind = relayTemplate({ plans: () => [1, 2].map(version => ({ ...plan, version })) }) as TemplateKind
  const asked = recorded([planAsked])[0]
  const state = { ...emptyState('20261120_1'), goal: 'Add a cart.', directory: '/home/ann/work', kind, work: {} }
  expect(asked && notificationOf(asked, state)).toMatchObject({
    event: 'needs-person',
    about: 'plan',
    version: 2,
    title: 'codemachine in work: the plan waits for you',
    message: expect.stringMatching(
      /To see the plan, type: codemachine plan\. To accept it: codemachine plan accept --version 2\. The session waits at most .+ for you.+\./,
    ),
  })
})

test('a task that is parked is told with its reason; one that only failed is not', () => {
  const failed = [...planned, ...leading, starts('frontend-dev', 1, 'T2')]
  expect(told(...failed, judged('T2', 'failed', 'No file was written.'))).toBe(null)
  expect(told(...failed, judged('T2', 'parked', 'No file was written.'))).toMatchObject({
    event: 'needs-person',
    about: 'task',
    task: 'T2',
    title: 'codemachine in work: task T2 is parked',
    message: 'Create homepage component: No file was written. The other tasks continue. Goal: A shop for tea.',
  })
})

test('a decision is told at once with its choices, and not where nobody is asked', () => {
  const wanted = sampleEvents['decision-asked']
  expect(told(wanted)).toMatchObject({
    event: 'needs-person',
    about: 'decision',
    decision: 'database',
    question: 'Which database?',
    choices: [
      { id: 'sqlite', label: 'Keep SQLite' },
      { id: 'other', label: 'Another one' },
    ],
    default: 'sqlite',
    title: 'codemachine in work: you decide',
    message: expect.stringMatching(
      /^Which database\? To answer, type: codemachine decide sqlite\|other\. After .+, codemachine chooses "sqlite"\./,
    ),
  })
  const [, { at }] = recorded([created, wanted]) as [Recorded, Recorded]
  expect(told({ ...wanted, until: at })).toBe(null)
})
