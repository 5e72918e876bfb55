import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { higherEffort, stallStep } from '../../../src/core/rules/stall.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { readJournal } from '../../../src/records/journal.ts'
import { fold } from '../../support/session-events.ts'

/**
 * What the rule does, round by round, in a session that was recorded without it (`recorded/`: the real codex, a scripted
 * model, `stall_rounds = 100`; paths and the machine's name replaced).
 */
async function stepsIn(name: string): Promise<(readonly [round: number, step: string])[]> {
  const path = fileURLToPath(new URL(`recorded/${name}.ndjson`, import.meta.url))
  let state = emptyState('20261121_1')
  const steps: (readonly [number, string])[] = []
  const look = (event: Recorded) => {
    const step = state.last === null || event.type === 'session-created' ? null : stallStep(state.stall, 3)
    if (step === null || state.last === null) return
    const { round } = state.last
    const { why, rounds } = step
    steps.push([round, step.kind === 'end' ? `end: ${why}` : `${step.remedy}: ${why}`])
    if (step.kind === 'end') return
    const stuck: SessionEvent = { type: 'stuck', round, rounds, why, remedy: step.remedy }
    state = fold(state, { v: 1, at: event.at, session: event.session, ...stuck })
  }
  for await (const event of readJournal(path)) {
    if (event.type === 'round-started' || event.type === 'session-ended') look(event)
    state = fold(state, event)
  }
  if (state.roundsUsed < 4) throw new Error(`${path} holds ${state.roundsUsed} rounds.`)
  return steps
}

test('rounds that look around and change nothing: another way after three, more effort after one more, then the end', async () => {
  expect(await stepsIn('nothing-changes')).toEqual([
    [3, 'another-way: nothing-changed'],
    [4, 'more-effort: nothing-changed'],
    [5, 'end: nothing-changed'],
  ])
})

test('rounds that make a file, and remove it again', async () => {
  expect(await stepsIn('to-and-fro')).toEqual([
    [4, 'another-way: nothing-changed'],
    [5, 'more-effort: nothing-changed'],
    [6, 'end: nothing-changed'],
  ])
})

test('rounds that change files, and claim done each time with the same work left', async () => {
  expect(await stepsIn('same-refusal')).toEqual([
    [3, 'another-way: same-refusal'],
    [4, 'more-effort: same-refusal'],
    [5, 'end: same-refusal'],
  ])
})

test.each([
  ['rounds that each change a file', 'progress'],
  ['rounds in which a person talks to the agent', 'a-person-talks'],
  ['rounds that each wait five minutes for a build', 'a-long-build'],
])('no stall: %s', async (_what, name) => {
  expect(await stepsIn(name)).toEqual([])
})

test('codex’s own effort, and every lower one, becomes high; the highest stays', () => {
  expect([null, 'minimal', 'low', 'medium', 'high', 'xhigh', 'ultra'].map(higherEffort)).toEqual([
    'high',
    'high',
    'high',
    'high',
    'xhigh',
    'xhigh',
    'ultra',
  ])
})
