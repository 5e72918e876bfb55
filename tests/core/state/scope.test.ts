import { expect, test } from 'vitest'
import type { EventOf, SessionEvent } from '../../../src/core/events/events.ts'
import { judgeDone } from '../../../src/core/rules/done-rule.ts'
import type { MemorySnapshot } from '../../../src/core/shapes/memory.ts'
import { agreedBefore, gatesOfAll, withoutScope } from '../../../src/core/state/scope.ts'
import type { EndedRound } from '../../../src/core/state/state.ts'
import { protectedSince } from '../../../src/session/proof/proof.ts'
import { created, ended, foldAll, resumed, started, worked } from '../../support/session-events.ts'

const gate = { timeoutMs: 1_000, required: true, network: false, protect: [], everyRound: false }
const OWN = { ...gate, name: 'own', run: 'own' }
const CHECK = { ...gate, name: 'check', run: 'check' }
const begun = { ...created(), gates: [OWN] }
const entered: EventOf<'scope-entered'> = {
  type: 'scope-entered',
  name: 'fix',
  goal: 'Fix it.',
  gates: [CHECK],
  tree: 'there',
}
const left: SessionEvent = { type: 'scope-left', name: 'fix', outcome: 'given-up', why: 'It is over.' }
const start: SessionEvent = {
  type: 'savepoint',
  round: 0,
  commit: 'c',
  tree: 'start',
  changes: { files: 0, added: 0, removed: 0, paths: [] },
  head: null,
  commits: [],
}
const ran = (name: string, scope?: string): EventOf<'gate-ended'> => ({
  type: 'gate-ended',
  round: 1,
  when: 'claim',
  gate: name,
  status: 'failed',
  exitCode: 1,
  durationMs: 1,
  output: '',
  problem: null,
  tree: 'there',
  changed: [],
  changedCount: 0,
  ...(scope === undefined ? {} : { scope }),
})
const agreed: EventOf<'review-ended'> = {
  type: 'review-ended',
  round: 1,
  review: 1,
  outcome: worked,
  answer: { verdict: 'agreed', summary: '', findings: [] },
  repeated: [],
  tree: 'there',
  durationMs: 1,
  tokens: null,
}

test('what gates and reviews of a scope come to is of the scope, and gone when that is left', () => {
  const inside = foldAll([begun, entered, ran('check', 'fix'), { ...agreed, scope: 'fix' }])
  expect(inside.gateRuns.map(run => run.gate)).toEqual(['check'])
  expect([inside.reviews.answered, withoutScope(inside).reviews.answered]).toEqual([1, 0])
  expect([withoutScope(inside).gateRuns, withoutScope(inside).gateFailures]).toEqual([[], []])
  expect(gatesOfAll(inside)).toEqual([OWN, CHECK])
  const after = foldAll([begun, entered, ran('check', 'fix'), { ...agreed, scope: 'fix' }, left])
  expect([after.gates, after.gateRuns, after.reviews.agreedTo, after.scope]).toEqual([[OWN], [], null, null])
})

test('what is of the session itself, or of another scope, changes nothing in the scope', () => {
  const inside = foldAll([begun, entered, ran('own'), ran('check', 'other')])
  expect(inside.gateRuns).toEqual([])
  expect(withoutScope(inside).gateRuns.map(run => run.gate)).toEqual(['own'])
  // A journal may have lost the line by which a scope was entered.
  const torn = foldAll([
    begun,
    ran('check', 'fix'),
    { type: 'done-nominated', round: 1, by: ['MAIN.md'], tree: 'there', scope: 'fix' },
    { type: 'done-accepted', round: 1, tree: 'there', verified: true, scope: 'fix' },
    left,
  ])
  expect([torn.gateRuns, torn.claim, torn.gates]).toEqual([[], { state: 'none' }, [OWN]])
})

test('a claim is not accepted in the state while the session is in a scope, by whatever event', () => {
  const accepted: SessionEvent = { type: 'done-accepted', round: 1, tree: 'there', verified: true }
  for (const event of [accepted, { ...accepted, scope: 'fix' }]) {
    const claimed: SessionEvent = { type: 'done-nominated', round: 1, by: ['MAIN.md'], tree: 'there', scope: 'fix' }
    expect(foldAll([begun, entered, claimed, event]).claim.state).toBe('nominated')
    expect(foldAll([begun, entered, claimed, event, left]).claim).toEqual({ state: 'none' })
  }
})

test('that rounds of a scope have changed files is known of the session when it is left, and not of the next scope', () => {
  const inside = foldAll([begun, entered, started(1), ended(1, worked)])
  expect([inside.hasChangedFiles, inside.scope?.rounds]).toEqual([true, 1])
  expect(foldAll([begun, entered, started(1), ended(1, worked), left]).hasChangedFiles).toBe(true)
  expect(foldAll([begun, entered, started(1), ended(1, worked), left, entered]).hasChangedFiles).toBe(false)
})

test('a session that goes on may have its reviews made anew, of a scope and of itself', () => {
  const end: SessionEvent = {
    type: 'session-ended',
    outcome: { kind: 'limit', limit: 'rounds' },
    exitCode: 3,
    rounds: 1,
    tokens: 0,
    durationMs: 1,
  }
  const other = { ...OWN, name: 'other' }
  const on = foldAll([begun, agreed, entered, { ...agreed, scope: 'fix' }, end, { ...resumed(), gates: [other] }])
  expect([on.scope?.name, on.gates, withoutScope(on).gates]).toEqual(['fix', [CHECK], [other]])
  expect([on.reviews.answered, withoutScope(on).reviews.answered]).toEqual([0, 0])
  expect(foldAll([begun, agreed, entered, { ...agreed, scope: 'fix' }, resumed()]).reviews.answered).toBe(1)
})

test('what a scope is compared with is what it was entered with', () => {
  expect(protectedSince(foldAll([begun, start]))).toBe('start')
  expect(protectedSince(foldAll([begun, start, entered]))).toBe('there')
  expect(protectedSince(foldAll([begun, start, entered, left]))).toBe('start')
})

test('what a scope changed of what its gates protect stays known until that scope is done, and not another', () => {
  const changed: SessionEvent = {
    type: 'protected-changed',
    round: 1,
    files: [{ path: 'a.test.ts', how: 'changed', gates: ['check'] }],
    count: 1,
    scope: 'fix',
  }
  const configured: SessionEvent = {
    type: 'gate-configuration',
    round: 1,
    files: [{ path: '.npmrc', how: 'added' }],
    count: 1,
    digest: 'd',
    scope: 'fix',
  }
  const known = { name: 'fix', tree: 'there', programs: 'p' }
  const first = { ...entered, programs: 'p' }
  const again = { ...entered, tree: 'now', protectFrom: 'there', programs: 'p' }
  expect(foldAll([begun, first, left]).givenUp).toEqual([])
  expect(foldAll([begun, first, configured, left]).givenUp).toEqual([known])
  const givenUp = foldAll([begun, first, changed, left])
  expect([givenUp.givenUp, agreedBefore(givenUp, 'fix'), agreedBefore(givenUp, 'next')]).toMatchObject([
    [known],
    known,
    known,
  ])
  const twice = foldAll([begun, first, changed, left, again])
  expect([protectedSince(twice), twice.scope?.tree]).toEqual(['there', 'now'])
  expect(foldAll([begun, first, changed, left, again, left]).givenUp).toEqual([known])
  const done: SessionEvent = { type: 'scope-left', name: 'fix', outcome: 'done', why: null }
  expect(foldAll([begun, first, changed, left, { ...again, name: 'next' }, { ...done, name: 'next' }]).givenUp).toEqual(
    [known],
  )
  expect(foldAll([begun, first, changed, left, again, done]).givenUp).toEqual([])
  expect(agreedBefore(foldAll([{ ...begun, protectFrom: 'older' }]), 'fix')).toEqual({ tree: 'older', programs: null })
})

test('a scope in which nothing was done is not done by the flag alone, whatever was done before it', () => {
  const memory: MemorySnapshot = {
    main: { status: 'done', finiteIncantatem: true, shortTitle: null, open: [] },
    tasks: [],
    problems: [],
    fingerprint: '',
    texts: { main: '', tasks: '' },
  }
  const round: EndedRound = {
    round: 2,
    part: 'work',
    isReplan: false,
    outcome: worked,
    counts: true,
    durationMs: 1,
    tokens: null,
    treeBefore: 'there',
    treeAfter: 'there',
    changed: [],
    changedCount: 0,
  }
  const before: SessionEvent[] = [begun, start, started(1), ended(1, worked)]
  expect(judgeDone(memory, round, foldAll(before)).kind).toBe('nominated')
  expect(judgeDone(memory, round, foldAll([...before, entered]))).toMatchObject({
    kind: 'refused',
    reason: 'nothing-done',
  })
  // What was changed and taken back is nothing done either.
  const changed = foldAll([...before, entered, started(2), ended(2, worked)])
  expect(judgeDone(memory, round, changed)).toMatchObject({ kind: 'refused', reason: 'nothing-done' })
  expect(judgeDone(memory, { ...round, treeBefore: 'b', treeAfter: 'b' }, changed).kind).toBe('nominated')
  // Tasks that are all done are a claim there, though its rounds have a part.
  const done = {
    ...memory,
    main: { ...memory.main, status: '', finiteIncantatem: false },
    tasks: [{ id: 'T1', name: 'x', done: true }],
  }
  expect(judgeDone(done, round, foldAll(before)).kind).toBe('none')
  expect(judgeDone(done, round, foldAll([...before, entered]))).toMatchObject({ kind: 'nominated', by: ['tasks.json'] })
})
