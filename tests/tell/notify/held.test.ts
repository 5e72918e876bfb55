import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'
import { type Opened, openForTest } from './opened.ts'
import { recorded, state } from './samples.ts'

const WHILE = 5 * 60_000
const held = [{ type: 'held' }, { type: 'hold-until', until: '2026-11-21T01:30:00.000Z', how: 'goes-on' }] as const
const { 'round-started': started, 'round-ended': ended, unpaused } = sampleEvents

/** A notifier that rings a bell, told of a session as it goes. */
async function opensBell(): Promise<Opened & { go(...events: SessionEvent[]): void }> {
  const opened = await openForTest(() => ({ bell: true, events: ['paused'] }), { isTTY: true, env: { TERM: 'dumb' } })
  let now = state
  const go = (...events: SessionEvent[]) => {
    for (const event of events) {
      now = fold(now, recorded(event))
      opened.notifier.event(recorded(event), now)
    }
  }
  return Object.assign(opened, { go })
}

test.each([
  ['paused', { type: 'paused' }],
  ['interrupted', { type: 'interrupt-asked' }],
  ['held for a change of plan', { type: 'replan-asked', text: 'x' }],
] as const)('a session that was %s is told of once it has been held for a while', async (_, why) => {
  await using opened = await opensBell()
  opened.go(started, why, ended, ...held)
  expect(opened.clock.pending).toEqual([WHILE])
  await opened.clock.over(WHILE)
  await opened.notifier.close()
  expect(opened.written).toEqual(['\x07'])
})

test('who goes on before that is told nothing', async () => {
  await using opened = await opensBell()
  opened.go(started, { type: 'interrupt-asked' }, ended, ...held, unpaused)
  expect(opened.clock.pending).toEqual([])
})

test('a pause is told of once, however often the plan is changed in it, and the next one again', async () => {
  await using opened = await opensBell()
  const replan: SessionEvent[] = [
    { type: 'replan-asked', text: 'x' },
    started,
    ended,
    { type: 'replanned', round: 1, files: [] },
  ]
  opened.go(started, { type: 'interrupt-asked' }, ended, ...held)
  await opened.clock.over(WHILE)
  opened.go(...replan, ...held)
  await opened.clock.over(WHILE)
  opened.go(unpaused, started, { type: 'paused' }, ended, ...held)
  await opened.clock.over(WHILE)
  await opened.notifier.close()
  expect(opened.written).toEqual(['\x07', '\x07'])
})

test('a session that is held as the run ends holds up nothing', async () => {
  await using opened = await opensBell()
  opened.go(started, { type: 'paused' }, ended, ...held)
  await opened.notifier.close()
  expect([opened.clock.pending, opened.written]).toEqual([[], []])
})

promise('W21', 'A network that stays away in short waits is notified once')
test('a network that is away in many short waits is told of once, when it has been away for half an hour', async () => {
  const opened = await openForTest(() => ({ bell: true, events: ['waiting'] }), { isTTY: true, env: { TERM: 'dumb' } })
  await using notifier = opened
  const failed = { ...ended, counts: false, outcome: { class: 'network', message: 'gone' } } as const
  const at = (minutes: number) => new Date(Date.parse(recorded(started).at) + minutes * 60_000).toISOString()
  let now = state
  const told: number[] = []
  for (let minute = 0; minute < 120; minute += 6) {
    const waits = {
      type: 'waiting',
      round: 1,
      reason: 'round-failed',
      cause: failed.outcome,
      until: at(minute + 5),
    } as const
    for (const event of [started, failed, waits]) {
      const happened = { ...recorded(event), at: at(minute) }
      now = fold(now, happened)
      notifier.notifier.event(happened, now)
    }
    await null
    told.push(minute)
  }
  await notifier.notifier.close()
  expect(notifier.written).toEqual(['\x07'])
})
