import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { NO_FAILURES } from '../../../src/core/state/state.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { created, ended, FIRST_AT, foldAll, refused, resumed, started, worked } from '../../support/session-events.ts'

const cutShort = { class: 'interrupted', message: null } as const
const interrupt: SessionEvent = { type: 'interrupt-asked' }
const told: SessionEvent = { type: 'steered', round: null, text: 'use tabs', delivered: false }
const changed: SessionEvent = { type: 'replanned', round: 1, files: [{ file: 'MAIN.md', diff: '+x' }] }

test('a round that came to its end all the same was not broken off, and what it was told is done with', () => {
  expect(foldAll([created(), told, started(1), interrupt, ended(1, worked)]).notices).toEqual([])
  const broken = foldAll([created(), told, started(1), interrupt, ended(1, cutShort)]).notices
  expect(broken).toEqual([
    { from: 'person', text: 'A person says: use tabs' },
    { from: 'codemachine', text: expect.stringContaining('A person interrupted the last round') },
  ])
})

promise('R26', 'What a person said to a round that was killed is told to the next one')
test('what a person said to a round that was killed is told to the next one when the session goes on', () => {
  const said: SessionEvent = { type: 'steered', round: 1, text: 'mind the gap', delivered: true }
  const killed = foldAll([created(), told, started(1), said, resumed()])
  expect(killed.notices.map(({ text }) => text)).toEqual([
    'A person says: use tabs',
    'A person says: mind the gap',
    expect.stringContaining('cut off'),
  ])
  // One that changes the plan has it in what is asked of it.
  const replan: SessionEvent = { type: 'replan-asked', text: 'the docs first' }
  expect(foldAll([created(), replan, started(1), said, resumed()]).replan).toContain('mind the gap')
})

test('what a person said to a session that they then skipped is told once it is resumed', () => {
  const skipped: SessionEvent = { ...sampleEvents['session-ended'], outcome: { kind: 'interrupted', by: 'skip' } }
  const { notices } = foldAll([created(), told, { type: 'skip-asked' }, skipped, resumed()])
  expect(notices).toEqual([{ from: 'person', text: 'A person says: use tabs' }])
})

test('of an interrupted round that did not count, nothing is told: it is begun again', () => {
  const again = foldAll([created(), told, started(1), interrupt, ended(1, cutShort, { counts: false })])
  expect(again.notices).toEqual([{ from: 'person', text: 'A person says: use tabs' }])
})

test('a plan that was changed gives rounds that did not get on another chance', () => {
  const idle = [started(1), ended(1, worked), started(2), ended(2, worked)]
  expect(foldAll([created(), ...idle]).stall.idleRounds).toBe(2)
  expect(foldAll([created(), ...idle, changed]).stall).toMatchObject({ idleRounds: 0, seen: [], remedy: null })
  expect(foldAll([created(), ...idle, { ...changed, files: [] }]).stall.idleRounds).toBe(2)
})

test('with a change of plan that is over the count of failures begins anew, however it ended', () => {
  const replan = [{ type: 'replan-asked', text: 'x' } as const, started(1)]
  const failed = [...replan, ended(1, { class: 'refused', message: null }, { counts: false })]
  expect(foldAll([created(), ...failed]).failures.inARow).toBe(1)
  expect(foldAll([created(), ...failed, { ...changed, files: [] }]).failures).toEqual(NO_FAILURES)
})

promise('W34')
test('a session is paused once its plan is to be changed, unless it is to go on by itself', () => {
  const replan = { type: 'replan-asked', text: 'the docs first' } as const
  expect(foldAll([created(), started(1), replan]).pausedAt).toBe(FIRST_AT + 2000)
  expect(foldAll([created(), started(1), { ...replan, goesOn: true }]).pausedAt).toBeNull()
})

test('a session is paused since it was first asked to be', () => {
  expect(foldAll([created(), started(1), { type: 'paused' }, interrupt]).pausedAt).toBe(FIRST_AT + 2000)
})

test('a claim that is refused of a round that was broken off says nothing of those before', () => {
  const round = (n: number) => [started(n), ended(n, worked, { treeAfter: String(n) })]
  const before = [created(), ...round(1), refused(1, 'x'), ...round(2), refused(2, 'x')]
  const { stall } = foldAll([...before, started(3), interrupt, ended(3, cutShort), refused(3, 'x')])
  expect(stall).toEqual(foldAll(before).stall)
})

test('time for which a session was held moves on the beginning of its failures', () => {
  const failed = [created(), started(1), { type: 'paused' }, ended(1, { class: 'throttle', message: null })] as const
  const since = foldAll(failed).failures.since
  expect(since).toBe(FIRST_AT + 3000)
  expect(foldAll([...failed, told, { type: 'unpaused' }]).failures.since).toBe(FIRST_AT + 5000)
})
