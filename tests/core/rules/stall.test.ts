import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Recorded, RecordedOf, SessionEvent } from '../../../src/core/events/events.ts'
import { higherEffort, NO_STALL, type Stall, stallAfterRound, stallStep } from '../../../src/core/rules/stall.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { readJournal } from '../../../src/session/records/journal.ts'
import { ended, fold, worked } from '../../support/session-events.ts'

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

describe('what a round leaves of a stall', () => {
  const running = { commandMs: 0, lastWords: null, steered: [], part: null, countsForStall: true }
  const idle = (change: Parameters<typeof ended>[2] = {}, outcome = worked) =>
    ended(2, outcome, change) as RecordedOf<'round-ended'>
  const once = stallAfterRound(NO_STALL, idle(), running)

  test('what the last three rounds said at their ends is kept, and a round that said nothing adds nothing', () => {
    const words = ['one', 'two', 'three', 'four', null]
    const tried = words.reduce(
      (stall: Stall, lastWords) => stallAfterRound(stall, idle(), { ...running, lastWords }),
      once,
    )
    expect(tried.tried).toEqual(['two', 'three', 'four'])
  })

  test('a result is known again for six other ones', () => {
    const idleAfter = (others: number) => {
      const results = Array.from({ length: others }, (_, i) => idle({ treeAfter: `another ${i}` }))
      return [...results, idle()].reduce((stall, event) => stallAfterRound(stall, event, running), once).idleRounds
    }
    expect([idleAfter(5), idleAfter(6)]).toEqual([2, 1])
  })

  test('the remedy stays where only the refusal is the same, from the second one on', () => {
    const of = (sameRefusals: number): Stall => ({
      ...NO_STALL,
      sameRefusals,
      refusal: { of: 'x', round: 1 },
      remedy: 'another-way',
    })
    expect([1, 2].map(n => stallAfterRound(of(n), idle(), running).remedy)).toEqual([null, 'another-way'])
  })

  test('a round that only makes a plan is left out if it worked, and counts if it failed', () => {
    const plans = { ...running, countsForStall: false }
    expect(stallAfterRound(once, idle(), plans)).toEqual(once)
    const failed = idle({ counts: true }, { class: 'refused', message: 'No.' })
    expect(stallAfterRound(once, failed, plans).idleRounds).toBe(2)
  })

  test('a round that fell silent is left out', () => {
    expect(stallAfterRound(once, idle({ counts: true }, { class: 'silent', message: null }), running)).toEqual(once)
  })

  test('a command of five minutes is waited on, if it is half of the round', () => {
    const rounds = ([commandMs, durationMs]: readonly [number, number]) =>
      stallAfterRound(once, idle({ durationMs }), { ...running, commandMs }).idleRounds
    const minutes = [
      [300_000, 600_000],
      [300_000, 600_001],
      [299_999, 300_000],
    ] as const
    expect(minutes.map(rounds)).toEqual([1, 2, 2])
  })
})

test('each remedy waits for one round more than the one before, and is named with what it is for', () => {
  const step = (rounds: number, remedy: Stall['remedy'], sameRefusals = 0) =>
    stallStep({ ...NO_STALL, idleRounds: rounds, remedy, sameRefusals }, 3)
  expect([2, 3].map(rounds => step(rounds, null)?.kind)).toEqual([undefined, 'remedy'])
  expect([3, 4].map(rounds => step(rounds, 'another-way')?.kind)).toEqual([undefined, 'remedy'])
  expect([4, 5].map(rounds => step(rounds, 'more-effort')?.kind)).toEqual([undefined, 'end'])
  expect([2, 3].map(same => step(2, null, same)?.why)).toEqual([undefined, 'same-refusal'])
  expect(step(3, null, 3)?.why).toBe('nothing-changed')
})
