import { describe, expect, test } from 'vitest'
import type { EventOf, SessionEvent } from '../../../src/core/events/events.ts'
import { markFlaky } from '../../../src/core/state/fold-claim.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { created, ended, foldAll, resumed, started, worked } from '../../support/session-events.ts'

const gates = ['tests', 'lint'].map(name => ({ name, run: `run ${name}`, required: true, protect: [], timeoutMs: 1 }))
const begun = { ...created(), gates } as unknown as SessionEvent
const nominated: SessionEvent = { type: 'done-nominated', round: 1, by: ['MAIN.md'], tree: 'b' }
const accepted: SessionEvent = { type: 'done-accepted', round: 1, tree: 'b' }
const over: SessionEvent = { ...sampleEvents['session-ended'], outcome: { kind: 'limit', limit: 'time' } }
const ran = (change: Partial<EventOf<'gate-ended'>> = {}): SessionEvent => ({
  ...sampleEvents['gate-ended'],
  ...change,
})
const refusedFor = (reason: EventOf<'done-refused'>['reason'], detail = 'x'): SessionEvent => ({
  type: 'done-refused',
  round: 1,
  reason,
  detail,
})

test('a claim of codemachine’s own is the end of that step', () => {
  const step: SessionEvent = { type: 'step-started', step: 4, kind: 'claim', name: 'claim' }
  expect(foldAll([begun, step, { ...nominated, step: 4 }])).toMatchObject({ step: null, steps: 4 })
  expect(foldAll([begun, step, nominated])).toMatchObject({ step: { number: 4 }, steps: 0 })
  expect(foldAll([begun, nominated]).claim).toEqual({ state: 'nominated', by: ['MAIN.md'], tree: 'b', results: [] })
})

test('that nothing was done is remembered once it was a reason', () => {
  const told = (...reasons: EventOf<'done-refused'>['reason'][]) =>
    foldAll([begun, ...reasons.map(reason => refusedFor(reason))]).toldNothingDone
  expect([told('tree-changed'), told('nothing-done'), told('nothing-done', 'tree-changed')]).toEqual([
    false,
    true,
    true,
  ])
})

test('the same gates that fail the same way are the same refusal, whatever they print', () => {
  const claim = (exitCode: number, detail: string) => [
    nominated,
    ran({ exitCode }),
    ran({ gate: 'lint', status: 'passed', exitCode: 0, durationMs: exitCode }),
    refusedFor('gate-failed', detail),
  ]
  const same = (first: number, second: number) =>
    foldAll([begun, ...claim(first, 'one'), ...claim(second, 'other')]).stall.sameRefusals
  expect([same(1, 1), same(1, 2)]).toEqual([2, 1])
  const unlike = [
    nominated,
    ran(),
    refusedFor('tree-changed', 'one'),
    nominated,
    ran(),
    refusedFor('tree-changed', 'two'),
  ]
  expect(foldAll([begun, ...unlike]).stall.sameRefusals).toBe(1)
})

describe('of what gates have done is kept', () => {
  test('the last run of each, and of a claim the last result of each', () => {
    const state = foldAll([begun, nominated, ran(), ran({ gate: 'lint' }), ran({ exitCode: 7 })])
    expect(state.gateRuns.map(({ gate, exitCode }) => [gate, exitCode])).toEqual([
      ['lint', 1],
      ['tests', 7],
    ])
    expect(state.claim).toMatchObject({ results: [{ gate: 'lint' }, { gate: 'tests', exitCode: 7 }] })
    expect(foldAll([begun, ran()]).claim).toEqual({ state: 'none' })
    expect(foldAll([begun, sampleEvents['gate-started']]).checking).toMatchObject({ kind: 'gate', gate: 'tests' })
  })

  test('which were flaky, each once, the last 100', () => {
    const flaky = (gate: string) => ran({ gate, status: 'flaky' })
    expect(foldAll([begun, flaky('tests'), flaky('lint'), flaky('tests')]).flakyGates).toEqual(['lint', 'tests'])
    const many = Array.from({ length: 101 }, (_, i) => flaky(`g${i}`))
    expect(foldAll([begun, ...many]).flakyGates).toHaveLength(100)
  })

  test('on which trees each has failed, and not what timed out or is no gate any more', () => {
    const failures = (...runs: Partial<EventOf<'gate-ended'>>[]) =>
      foldAll([begun, ...runs.map(ran)]).gateFailures.map(({ gate, tree, exitCode }) => `${gate} ${tree} ${exitCode}`)
    const tree = 'a'
    expect(failures({ tree }, { tree: 'b' }, { tree, gate: 'lint' }, { tree, exitCode: 2 })).toEqual([
      'tests b 1',
      'lint a 1',
      'tests a 2',
    ])
    expect(failures({ tree, status: 'flaky' }, { gate: 'gone' }, { status: 'timed-out' })).toEqual(['tests a 1'])
    expect(failures(...Array.from({ length: 101 }, (_, i) => ({ tree: `${i}` })))).toHaveLength(100)
  })

  test('a bad result is told, a good one is not', () => {
    const told = (change: Partial<EventOf<'gate-ended'>>) => foldAll([begun, ran(change)]).notices.length
    const when = ['before', 'tasks', 'after-round', 'limit', 'claim'] as const
    expect(when.map(each => told({ when: each }))).toEqual([1, 1, 1, 1, 0])
    expect(when.map(each => told({ when: each, status: 'passed' }))).toEqual([0, 0, 0, 0, 0])
  })
})

test('a gate that passes where the same command failed on the same tree is flaky, another gate is not', () => {
  const { type: _, round: __, when: ___, treeAfter: ____, ...result } = sampleEvents['gate-ended']
  const passed = { ...result, status: 'passed', exitCode: 0, tree: 'a' } as const
  const failure = { gate: 'tests', run: 'run tests', tree: 'a', exitCode: 3 }
  const marked = (change: Partial<typeof failure>) =>
    markFlaky(passed, gates[0] as never, [{ ...failure, ...change }]).status
  expect([{}, { gate: 'lint' }, { run: 'other' }, { tree: 'b' }].map(marked)).toEqual([
    'flaky',
    'passed',
    'passed',
    'passed',
  ])
  expect(markFlaky(passed, gates[0] as never, [failure])).toMatchObject({ exitCode: 3, output: '' })
})

test('of protected files that were changed the last 50 are kept, each once', () => {
  const changed = (...paths: string[]): SessionEvent => ({
    ...sampleEvents['protected-changed'],
    files: paths.map(path => ({ path, how: 'changed' as const, gates: ['tests'] })),
  })
  expect(foldAll([begun, changed('a', 'b'), changed('b', 'c')]).protectedChanged).toEqual(['a', 'b', 'c'])
  const many = Array.from({ length: 60 }, (_, i) => `f${i}`)
  expect(foldAll([begun, changed(...many)]).protectedChanged).toEqual(many.slice(10))
})

describe('a claim that a session goes on with', () => {
  const atResume = (...events: SessionEvent[]) => foldAll([begun, ...events, resumed()]).claim
  test('is proved again from the beginning, also one that was accepted', () => {
    const again = { state: 'nominated', by: ['MAIN.md'], tree: 'b', results: [] }
    expect(atResume(nominated, ran({ treeAfter: undefined } as never))).toEqual(again)
    expect(atResume(nominated, accepted)).toEqual(again)
    expect(atResume(accepted)).toEqual({ ...again, by: [] })
  })

  test('is none where it was refused, was of no tree, or the session had ended', () => {
    const { tree: _, ...ofNone } = nominated as EventOf<'done-nominated'>
    const none = { state: 'none' }
    expect([atResume(), atResume(refusedFor('tree-changed')), atResume(ofNone)]).toEqual([none, none, none])
    expect(atResume(nominated, over)).toEqual(none)
  })
})

test('what is accepted is as it was claimed, and verified only where that is said', () => {
  const by = ['MAIN.md']
  expect(foldAll([begun, nominated, accepted]).claim).toMatchObject({ state: 'accepted', by, verified: false })
  expect(foldAll([begun, accepted]).claim).toEqual({
    state: 'accepted',
    by: [],
    tree: 'b',
    verified: false,
    results: [],
  })
})

describe('a review', () => {
  const review = sampleEvents['review-started']
  const answered = sampleEvents['review-ended']
  const agreed: SessionEvent = { ...answered, answer: { verdict: 'agreed', summary: '', findings: [] } }
  const failed = (end: 'worked' | 'crashed' | 'network'): SessionEvent => ({
    ...answered,
    answer: null,
    outcome: { class: end, message: null },
  })

  test('that fails is a failure, and one that comes to its end forgets those before it', () => {
    const failures = (...ends: SessionEvent[]) => foldAll([begun, ...ends.flatMap(each => [review, each])]).failures
    expect(failures(failed('network'), failed('crashed'))).toMatchObject({ inARow: 2, idleCrashes: 0 })
    expect(failures(failed('network')).since).not.toBeNull()
    expect(failures(failed('network'), answered).inARow).toBe(0)
  })

  test('holds after it only where a pause was asked for', () => {
    const heldSince = (...events: SessionEvent[]) => foldAll([begun, review, ...events, answered]).heldSince
    expect([heldSince() === null, heldSince({ type: 'paused' }) === null]).toEqual([true, false])
  })

  test('that agrees agrees to the configuration that it saw, and one with findings leaves what was agreed to', () => {
    const seen: SessionEvent = { ...sampleEvents['gate-configuration'], digest: 'one' }
    const other: SessionEvent = { ...seen, digest: 'two' }
    const once = [begun, seen, review, agreed]
    expect(foldAll(once).reviews).toMatchObject({ agreedConfiguration: 'one', answered: 1 })
    expect(foldAll([...once, other, review, answered]).reviews).toMatchObject({
      agreedConfiguration: 'one',
      agreedTo: null,
    })
  })

  test('is counted anew once a person has looked at the end of a session, and not after a cut', () => {
    const done = [begun, review, answered]
    const anew = { answered: 0, withoutAnswer: 0, seen: [], repeated: [] }
    expect(foldAll([...done, over, resumed()]).reviews).toMatchObject(anew)
    expect(foldAll([...done, resumed()]).reviews).toMatchObject({ answered: 1 })
  })
})

test('of what a person said the last 100 texts are kept, and at most 250,000 characters', () => {
  const all = (...texts: string[]) =>
    foldAll([begun, ...texts.map((text): SessionEvent => ({ ...sampleEvents.steered, text }))]).personSaid
  const said = Array.from({ length: 105 }, (_, i) => `${i}`)
  expect(all(...said)).toEqual(said.slice(5))
  const long = 'x'.repeat(100_000)
  expect(all('first', long, long, 'last')).toEqual(['first', long, long, 'last'])
  expect(all('first', long, long, long, 'last')).toEqual([long, long, 'last'])
  expect(all('first', 'x'.repeat(300_000))).toEqual(['x'.repeat(300_000)])
})

test('a round that changed nothing leaves the session without changed files', () => {
  const round = (treeAfter: string) => [started(1), ended(1, worked, { treeBefore: 'a', treeAfter })]
  const changed = (...trees: string[]) => foldAll([begun, ...trees.flatMap(round)]).hasChangedFiles
  expect([changed('a'), changed('b'), changed('b', 'a')]).toEqual([false, true, true])
})
