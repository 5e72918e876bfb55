import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Gate, GateResult } from '../../../src/core/events/outcome.ts'
import { gatesOfPerson } from '../../../src/core/state/scope.ts'
import type { SessionState } from '../../../src/core/state/state.ts'
import { promise } from '../../support/promise.ts'
import { created, foldAll, resumed } from '../../support/session-events.ts'

const folded = (...events: SessionEvent[]) => foldAll(events)
const gate = (name: string, run = name): Gate => ({
  name,
  run,
  timeoutMs: 1000,
  required: true,
  network: false,
  protect: [],
  everyRound: false,
})
const added = (...gates: Gate[]): SessionEvent => ({ type: 'gates-added', step: 1, gates, why: 'x' })
const begun: SessionEvent = { ...created(), gates: [gate('tests', 'npm test')] }
const ran = (name: string): SessionEvent => {
  const result: GateResult = {
    gate: name,
    status: 'passed',
    exitCode: 0,
    durationMs: 1,
    output: '',
    problem: null,
    tree: 'a',
    changed: [],
    changedCount: 0,
  }
  return { type: 'gate-ended', round: 0, when: 'before', ...result }
}
const runs = ({ gates }: Pick<SessionState, 'gates'>) => gates.map(({ name, run }) => [name, run])

describe('the gates that a template adds', () => {
  test('stand behind those of the person, and one that is a gate already adds nothing', () => {
    const state = folded(begun, added(gate('lint'), gate('all tests', 'npm test'), gate('tests', 'node tests.js')))
    expect(runs(state)).toEqual([
      ['tests', 'npm test'],
      ['lint', 'lint'],
      ['tests (2)', 'node tests.js'],
    ])
    expect(gatesOfPerson(state).map(({ run }) => run)).toEqual(['npm test'])
    expect(state).toMatchObject({ steps: 1, step: null })
  })

  test('take the place of those that it has added before: what stays has run, and what is new has not', () => {
    const state = folded(
      begun,
      added(gate('a'), gate('b')),
      ran('tests'),
      ran('a'),
      ran('b'),
      added(gate('b'), gate('a', 'other')),
    )
    expect(runs(state)).toEqual([
      ['tests', 'npm test'],
      ['b', 'b'],
      ['a', 'other'],
    ])
    expect(state.before.map(each => each.gate)).toEqual(['tests', 'b'])
    expect(state.gateRuns.map(each => each.gate)).toEqual(['tests', 'b'])
    expect(runs(folded(begun, added(gate('a')), added()))).toEqual([['tests', 'npm test']])
  })

  promise('C91')
  test('stay when the session is resumed, with whatever else has to pass then', () => {
    const on = (gates?: Gate[]) => folded(begun, added(gate('lint')), { ...resumed(9), ...(gates && { gates }) })
    expect(runs(on())).toEqual([
      ['tests', 'npm test'],
      ['lint', 'lint'],
    ])
    expect(runs(on([]))).toEqual([['lint', 'lint']])
    expect(runs(on([gate('lint', 'npm run lint')]))).toEqual([
      ['lint', 'npm run lint'],
      ['lint (2)', 'lint'],
    ])
    expect(runs(on([gate('style', 'lint')]))).toEqual([['style', 'lint']])
  })

  test('withdraw what was accepted without them', () => {
    const accepted: SessionEvent = { type: 'done-accepted', round: 1, tree: 'a', verified: true }
    expect(folded(begun, accepted).claim.state).toBe('accepted')
    expect(folded(begun, accepted, added(gate('a'))).claim.state).toBe('none')
  })
})
