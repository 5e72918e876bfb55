import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { redactorOf } from '../../src/base/redactor.ts'
import type { LiveEvent, Recorded } from '../../src/core/events/events.ts'
import { emptyState } from '../../src/core/state/state.ts'
import { SessionLog } from '../../src/run/session-log.ts'
import { OWN_TEMPLATES } from '../../src/templates/registry.ts'

test('what only passes by on the screen holds no secret either, and is not journaled', () => {
  const shown: LiveEvent[] = []
  const kept: Recorded[] = []
  const journal = {
    append: (event: Recorded) => void kept.push(event),
    sync: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const view = { event: () => {}, live: (event: LiveEvent) => void shown.push(event) }
  const redactor = redactorOf([{ name: 'MY_API_KEY', value: 'sk-proj-0123456789' }])
  const log = new SessionLog(emptyState('20261120_1'), {
    journal,
    views: [view],
    templates: OWN_TEMPLATES,
    clock: systemClock,
    redactor,
  })
  const live = { type: 'text-delta', round: 1, item: 'm', source: 'agent-message' } as const
  log.live({ ...live, text: 'It is sk-proj-0123456789.' })
  expect(shown).toEqual([{ ...live, text: 'It is [secret MY_API_KEY].' }])
  expect(kept).toEqual([])
})
