import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/core/events/events.ts'
import { emptyState } from '../../../../src/core/state/state.ts'
import { plainView } from '../../../../src/doors/screen/plain-view.ts'
import { fold } from '../../../support/session-events.ts'
import { recorded, sampleEvents } from '../samples.ts'
import { created, instanceOf, leading, planAccepted, planned, shown, starts } from './night.ts'

/** What the plain view writes for the last of these events of a build. */
function last(...events: readonly SessionEvent[]): string {
  let text = ''
  const view = plainView(
    line => {
      text = line
    },
    { colour: false },
  )
  let state = emptyState('20261120_1')
  for (const event of recorded([created, ...events])) {
    text = ''
    state = fold(state, event)
    view.event(event, state)
  }
  return text.replace(/^\S+ {2}/, '')
}

test('a plan that waits says how it is started and how it is changed; a pause later on is a pause', () => {
  expect(last(...shown)).toBe(
    `the plan waits for you: codemachine decide accept starts the build, codemachine replan "…" changes the plan
          it waits until 2026-11-21 22:41 at the longest
`,
  )
  const begun = [...shown, planAccepted, ...leading, starts('frontend-dev', 1, 'T2')]
  const between = { ...sampleEvents['round-ended'], round: 2 }
  expect(last(...begun, between, { type: 'paused' }, { type: 'held' })).toBe('paused; codemachine unpause continues\n')
})

test('that a task was handed on is told of who got it; one that could not be is told of itself', () => {
  const call = (status: 'completed' | 'failed', durationMs = 5): SessionEvent => ({
    type: 'item-completed',
    round: 2,
    item: { kind: 'tool-call', id: 'x', tool: 'run_agent', status, durationMs },
  })
  expect(last(...planned, ...leading, call('completed'))).toBe('')
  expect(last(...planned, ...leading, call('failed'))).toBe('tool run_agent  → failed in 5 ms\n')
  const atWork = [...planned, ...leading, starts('frontend-dev', 1, 'T2')]
  expect(last(...atWork, call('failed', 12_200)), 'whose end is told of itself').toBe('')
  expect(last(...atWork, call('failed')), 'another one').toBe('tool run_agent  → failed in 5 ms\n')
})

test('what an agent does stands behind its name and its tasks', () => {
  const instance = instanceOf('qa-engineer', 2)
  const search: SessionEvent = {
    type: 'item-completed',
    round: 2,
    instance,
    item: { kind: 'web-search', id: 'w', query: 'node test runner' },
  }
  expect(last(...planned, ...leading, starts('qa-engineer', 2, 'T6', 'T7'), search)).toBe(
    'qa-engineer T6, T7  web search  node test runner\n',
  )
})
