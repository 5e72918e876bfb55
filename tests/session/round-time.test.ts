import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Template } from '../../src/core/template.ts'
import { runSession as runWithPerson } from '../support/breaking-in.ts'
import { endsAs, ofType, type Play, type PlayOptions, playSession } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-round-time-'))
})
afterAll(() => rm(folder, { recursive: true }))

const MINUTE = 60_000
const thread = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }
const END = { kind: 'needs-person', reason: 'Both rounds are over.', hint: null } as const
const STEP = { class: 'interrupted', message: 'Its time of 10 minutes is over.' } as const

/** Has two rounds, of which each may take ten minutes. */
const TEMPLATE: Template = {
  threads: [],
  ahead: () => null,
  next: ({ last }) =>
    last?.round === 2
      ? { kind: 'end', outcome: END }
      : { kind: 'round', round: { thread, input: 'Go on.', timeoutMs: 10 * MINUTE } },
}

const play = (plays: readonly Play[], options: Partial<PlayOptions> = {}) =>
  playSession(plays, { folder, template: TEMPLATE, limits: { rounds: 9 }, ...options })
const untilTold: Play = async ({ steered }) => {
  await steered
  return worked
}
const forEver: Play = () => new Promise(() => {})

promise(
  'L13',
  'A round that takes longer than its template gives it is brought to a safe stop, and is not taken for one that a person ended',
)
test('a round that takes longer than its template gives it is asked to stop safely, and the next one has its own time', async () => {
  const { outcome, events, tookMs } = await play([untilTold, endsAs(worked, 9 * MINUTE)])
  expect(outcome).toEqual(END)
  expect(ofType(events, 'winding-down')).toMatchObject([{ round: 1, limit: 'round', graceMs: 5 * MINUTE }])
  expect(ofType(events, 'round-ended').map(({ outcome: { class: end }, counts }) => [end, counts])).toEqual([
    ['worked', true],
    ['worked', true],
  ])
  expect(tookMs).toBe(19 * MINUTE)
})

promise('L13')
test('one that does not stop is interrupted, says that its time is over, and is not taken for one that a person ended', async () => {
  const { outcome, events, inputs, tookMs } = await play([forEver])
  expect(outcome).toEqual(END)
  expect(ofType(events, 'round-ended').map(ended => [ended.outcome, ended.counts])).toEqual([
    [STEP, true],
    [STEP, true],
  ])
  expect(ofType(events, 'held')).toEqual([])
  expect(inputs).toEqual(['Go on.', 'Go on.'])
  expect(tookMs).toBe(30 * MINUTE)
})

test('one that a person interrupts while it comes to its end is the person’s', async () => {
  const { events } = await runWithPerson(
    [forEver, endsAs(worked)],
    [
      { on: 'winding-down', say: ['interrupt'] },
      { on: 'held', say: ['unpause'] },
    ],
    { template: TEMPLATE, limits: { rounds: 9 } },
  )
  expect(ofType(events, 'winding-down')).toHaveLength(1)
  expect(ofType(events, 'round-ended').map(ended => ended.outcome)).toEqual([
    { class: 'interrupted', message: null },
    worked,
  ])
})

test('where the time of the session is over first, the round ends for that', async () => {
  const { outcome, events } = await play([forEver], { limits: { timeMs: 10 * MINUTE } })
  expect(outcome).toEqual({ kind: 'limit', limit: 'time' })
  expect(ofType(events, 'winding-down')).toMatchObject([{ limit: 'time' }])
  expect(ofType(events, 'round-ended')).toMatchObject([{ outcome: { class: 'interrupted', message: null } }])
})

test('a turn that the network breaks off while the time is up is not gone on with in its thread', async () => {
  const lost: Play = async ({ steered }) => {
    await steered
    return { class: 'network', message: 'gone' }
  }
  const { events } = await play([lost, endsAs(worked)], { carryOn: endsAs(worked) })
  expect(ofType(events, 'turn-continued')).toEqual([])
})
