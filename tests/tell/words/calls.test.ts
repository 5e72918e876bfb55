import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { describeEvent } from '../../../src/tell/words/event.ts'
import { KEY_HINTS, SHELL_HINTS } from '../../../src/tell/words/names.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'

const called: SessionEvent = { ...sampleEvents['session-created'], template: 'agent' }
const { 'round-started': started, 'round-ended': ended, waiting } = sampleEvents

promise('W41')
test('of a call that waits, no command is named that reaches only sessions, and no key', () => {
  const events = recorded([called, started, ended, waiting])
  const state = events.reduce(fold, emptyState('20261120_1'))
  for (const hints of [SHELL_HINTS, KEY_HINTS]) {
    const told = events.slice(-1).map(event => describeEvent(event, state, hints)?.text)
    expect(told).toEqual([
      'waiting until 2026-11-21 05:02, 6 h 21 min from now (usage limit: You have hit your usage limit); Ctrl+C in the terminal where it was started ends it',
    ])
  }
})
