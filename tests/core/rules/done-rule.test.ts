import { describe, expect, test } from 'vitest'
import { judgeDone, nextProof, type WorkSoFar } from '../../../src/core/rules/done-rule.ts'
import { type Notice, personNotice } from '../../../src/core/rules/notices.ts'
import type { MemorySnapshot } from '../../../src/core/shapes/memory.ts'
import { type EndedRound, emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { promise } from '../../support/promise.ts'

const round: EndedRound = {
  round: 4,
  part: null,
  isReplan: false,
  outcome: { class: 'worked', message: null },
  counts: true,
  durationMs: 1,
  tokens: null,
  treeBefore: 'aaa',
  treeAfter: 'aaa',
  changed: [],
  changedCount: 0,
}
/** A session that has changed files. */
const WORKED: WorkSoFar = {
  savepoint: { round: 3, commit: 'c', tree: 'aaa', start: 'start' },
  hasChangedFiles: true,
  toldNothingDone: false,
}
const claimed: MemorySnapshot = {
  main: { status: 'in-progress', finiteIncantatem: true, shortTitle: null, open: [] },
  tasks: [{ id: 'T1', name: 'Build', done: true }],
  problems: [],
  fingerprint: 'm',
  texts: { main: '', tasks: '' },
}

test('a claim in a round that changed nothing, with nothing left to do, is accepted with its tree', () => {
  expect(judgeDone(claimed, round, WORKED)).toEqual({
    kind: 'nominated',
    by: ['MAIN.md', 'tasks.json'],
    tree: 'aaa',
    whyNothing: null,
  })
})

test.each([
  [
    'status: done',
    { ...claimed, main: { ...claimed.main, finiteIncantatem: false, status: 'done' }, tasks: [] },
    ['MAIN.md'],
  ],
  ['all tasks done', { ...claimed, main: { ...claimed.main, finiteIncantatem: false } }, ['tasks.json']],
])('%s nominates by itself', (_name, memory, by) => {
  expect(judgeDone(memory, round, WORKED)).toMatchObject({ kind: 'nominated', by })
})

test('nothing is claimed while no flag is set and there are no tasks, or some are open', () => {
  const silent = { ...claimed, main: { ...claimed.main, finiteIncantatem: false } }
  expect(judgeDone({ ...silent, tasks: [] }, round, WORKED).kind).toBe('none')
  expect(judgeDone({ ...silent, tasks: [{ id: 'T1', name: 'Build', done: false }] }, round, WORKED).kind).toBe('none')
})

test.each<[string, MemorySnapshot, Partial<EndedRound>, string, RegExp]>([
  [
    'tasks are left',
    { ...claimed, tasks: [{ id: 'T2', name: 'Test it', done: false }] },
    {},
    'tasks-left',
    /1 task that is not done: T2 Test it/,
  ],
  [
    'MAIN.md lists open work',
    { ...claimed, main: { ...claimed.main, open: ['write docs'] } },
    {},
    'progress-left',
    /write docs/,
  ],
  [
    'the round changed files',
    claimed,
    { treeAfter: 'bbb', changed: ['src/a.ts'], changedCount: 1 },
    'tree-changed',
    /1 file \(src\/a\.ts\)/,
  ],
  [
    'a memory file was broken',
    { ...claimed, problems: [{ file: 'tasks.json', problem: 'x', setAside: null, restored: true }] },
    {},
    'memory-broken',
    /tasks\.json/,
  ],
  [
    'the round did not end well',
    claimed,
    { outcome: { class: 'context-full', message: null } },
    'round-not-completed',
    /was cut off/,
  ],
])('a claim is refused with its reason when %s', (_name, memory, changes, reason, detail) => {
  const verdict = judgeDone(memory, { ...round, ...changes }, WORKED)
  expect(verdict).toMatchObject({ kind: 'refused', reason })
  expect(verdict.kind === 'refused' && verdict.detail).toMatch(detail)
})

promise('D47', 'The flag alone is refused once, and then needs a reason in MAIN.md, which card and report show')
test('the flag alone, without a task or a changed file, is refused once with the reason, and then wants one in MAIN.md', () => {
  const flag = { ...claimed, tasks: [] }
  const withReason = { ...flag, main: { ...flag.main, whyNothing: 'The test was there already.' } }
  const idle: WorkSoFar = { ...WORKED, hasChangedFiles: false }
  const takenBack: WorkSoFar = { ...WORKED, savepoint: { round: 3, commit: 'c', tree: 'aaa', start: 'aaa' } }
  const reason = 'nothing-done'
  for (const work of [idle, takenBack]) {
    expect(judgeDone(flag, round, work)).toMatchObject({
      kind: 'refused',
      reason,
      detail: expect.stringContaining('no file'),
    })
    expect(judgeDone(withReason, round, work)).toMatchObject({ kind: 'refused', reason })
    const told = { ...work, toldNothingDone: true }
    expect(judgeDone(flag, round, told)).toMatchObject({
      kind: 'refused',
      reason,
      detail: expect.stringContaining('why'),
    })
    expect(judgeDone(withReason, round, told)).toMatchObject({
      kind: 'nominated',
      tree: 'aaa',
      whyNothing: 'The test was there already.',
    })
  }
  expect(judgeDone(flag, round, WORKED)).toMatchObject({ kind: 'nominated', whyNothing: null })
  expect(judgeDone(claimed, round, idle)).toMatchObject({ kind: 'nominated', whyNothing: null })
})

test('what a person said and no round was told refuses a claim, and what codemachine tells in the same words does not', () => {
  const proofOf = (notices: readonly Notice[]) =>
    nextProof(
      { ...emptyState('20261122_1'), notices },
      { tree: 'aaa', isProtectedChanged: false, hasHook: false, ran: new Set(), pass: 1, from: 'aaa', strayed: [] },
    )
  expect(proofOf([personNotice('use tabs')])).toMatchObject({ kind: 'refuse', reason: 'person-said-more' })
  expect(proofOf([{ from: 'codemachine', text: 'A person says: (T1) is parked.' }])).toMatchObject({ kind: 'accept' })
})

test('what is left is named up to five entries of bounded length, and counted', () => {
  const tasks = Array.from({ length: 7 }, (_, i) => ({ id: `T${i}`, name: 'n'.repeat(200), done: i === 6 }))
  const verdict = judgeDone({ ...claimed, tasks }, round, WORKED)
  const entry = (i: number) => `T${i} ${'n'.repeat(117)}`
  expect(verdict).toMatchObject({
    detail: `tasks.json still has 6 tasks that are not done: ${[0, 1, 2, 3, 4].map(entry).join('; ')}; and 1 more.`,
  })
  const silent = { ...claimed, main: { ...claimed.main, finiteIncantatem: false }, tasks }
  expect(judgeDone(silent, round, WORKED).kind).toBe('none')
})

test('without a savepoint a session that changed files has done something', () => {
  const work = { ...WORKED, savepoint: null }
  expect(judgeDone({ ...claimed, tasks: [] }, round, work)).toMatchObject({ kind: 'nominated', whyNothing: null })
})

describe('the proof of a claim', () => {
  const now = {
    tree: 'aaa',
    isProtectedChanged: false,
    hasHook: false,
    ran: new Set<string>(),
    pass: 1,
    from: 'aaa',
    strayed: [],
  } as const
  const state: SessionState = { ...emptyState('s'), last: { ...round } }
  const proof = (change: Partial<SessionState>, of: Partial<Parameters<typeof nextProof>[1]> = {}) =>
    nextProof({ ...state, ...change }, { ...now, ...of })
  const review = { model: null, effort: null } as unknown as NonNullable<SessionState['review']>
  const gates = [{ name: 'tests', run: 'x', required: true, protect: [] }] as unknown as SessionState['gates']
  const ran = new Set(['tests'])
  const proved = (tree: string, doubts: readonly string[] = []) =>
    [{ gate: 'tests', tree, doubts }] as unknown as SessionState['counterProofs']
  const finding = { severity: 'major', file: null, line: null, problem: 'It fails.', mend: 'Mend it.' } as const
  type Answer = NonNullable<SessionState['reviews']['last']>
  const reviews = (change: Partial<SessionState['reviews']>, last: Partial<Answer> | null = {}) => {
    const answer = { verdict: 'findings', summary: '', findings: [finding], ...last } as Answer
    const of = { round: 4, tree: 'aaa' }
    return { review, reviews: { ...state.reviews, of, last: last === null ? null : answer, ...change } }
  }

  test('goes over the gates once more where they left another tree, and refuses where that goes on', () => {
    const of = { ran, tree: 'bbb' }
    expect(proof({ gates })).toMatchObject({ kind: 'gate', gate: { name: 'tests' } })
    expect(proof({ gates }, of)).toEqual({ kind: 'again' })
    expect(proof({ gates, counterProofs: proved('bbb') }, { ...of, pass: 2 })).toEqual({
      kind: 'accept',
      verified: true,
    })
    const strayed = (n: number) => proof({}, { ...of, pass: 2, strayed: Array.from({ length: n }, (_, i) => `f${i}`) })
    expect(strayed(3)).toMatchObject({
      kind: 'refuse',
      reason: 'tree-changed',
      detail: expect.stringMatching(/f0; f1; f2/),
    })
    expect(strayed(3)).toMatchObject({ detail: expect.not.stringContaining('more') })
    expect(strayed(30)).toMatchObject({ detail: expect.stringMatching(/; and \d+ more/) })
    expect(proof({}, { pass: 2, strayed: ['a'] })).toEqual({ kind: 'accept', verified: false })
  })

  test('runs each required gate without the work once it has passed, on each tree anew', () => {
    expect(proof({ gates }, { ran })).toMatchObject({ kind: 'counter-proof', gate: { name: 'tests' } })
    expect(proof({ gates, counterProofs: proved('older') }, { ran })).toMatchObject({ kind: 'counter-proof' })
    expect(proof({ gates, counterProofs: proved('aaa') }, { ran })).toEqual({ kind: 'accept', verified: true })
    const onlyReported = gates.map(gate => ({ ...gate, required: false }))
    expect(proof({ gates: onlyReported }, { ran })).toEqual({ kind: 'accept', verified: false })
  })

  test('a gate that leaves doubts needs a review that agrees to this very tree', () => {
    const counterProofs = proved('aaa', ['blind'])
    expect(proof({ gates, counterProofs }, { ran })).toEqual({ kind: 'review', causes: ['counter-proof'] })
    const agreed = (tree: string) => ({ ...reviews({ agreedTo: tree }, null), review: null })
    expect(proof({ gates, counterProofs, ...agreed('older') }, { ran })).toMatchObject({ kind: 'review' })
    expect(proof({ gates, counterProofs, ...agreed('aaa') }, { ran })).toEqual({ kind: 'accept', verified: true })
  })

  test('says of a gate that failed whether it was like that before', () => {
    const result = {
      gate: 'tests',
      status: 'failed',
      exitCode: 1,
      durationMs: 1,
      output: '',
      problem: null,
      tree: 'aaa',
    } as const
    const claim = { state: 'nominated', by: [], tree: 'aaa', results: [result] } as unknown as SessionState['claim']
    const detail = (...before: object[]) => {
      const next = proof({ gates, claim, before: before as never }, { ran })
      return next.kind === 'refuse' ? next.detail : next
    }
    const [fresh, old, other, good] = [
      detail(),
      detail(result, { ...result, gate: 'lint', status: 'passed' }),
      detail({ ...result, gate: 'lint' }),
      detail({ ...result, status: 'passed' }),
    ]
    expect(old).not.toBe(fresh)
    expect([other, good]).toEqual([fresh, fresh])
  })

  test('asks for reviews as often as three times, and for one that gives no answer as often', () => {
    const none = { answered: 0, withoutAnswer: 0 }
    expect(proof(reviews({ ...none, of: null }, null))).toEqual({ kind: 'review', causes: ['asked'] })
    expect(proof(reviews({ ...none, answered: 2, of: { round: 3, tree: 'aaa' } }))).toMatchObject({ kind: 'review' })
    expect(proof(reviews({ ...none, answered: 2, of: { round: 4, tree: 'bbb' } }))).toMatchObject({ kind: 'review' })
    expect(proof(reviews({ ...none, answered: 3, of: { round: 3, tree: 'aaa' } }))).toMatchObject({
      kind: 'end',
      outcome: { reason: expect.stringContaining('(3 reviews); one finding is left to you.') },
    })
    expect(proof(reviews({ withoutAnswer: 2, of: null }, null)).kind).toBe('review')
    expect(proof(reviews({ withoutAnswer: 3, of: null }, null)).kind).toBe('end')
    const agreedThen = reviews({ answered: 3, of: { round: 3, tree: 'aaa' } }, { verdict: 'agreed', findings: [] })
    expect(proof(agreedThen)).toMatchObject({
      kind: 'end',
      outcome: { reason: expect.not.stringContaining('does not agree') },
    })
  })

  test('is refused with what the review found, and is left to a person where that is not new or has come too often', () => {
    const found = (change: object, last: Partial<Answer> = {}) => proof(reviews(change, last))
    expect(found({ answered: 1, repeated: [] })).toMatchObject({
      kind: 'refuse',
      detail: expect.stringContaining(' It fails.'),
    })
    const place = { findings: [{ ...finding, file: 'a.ts', line: 3 }] }
    expect(found({ answered: 1 }, place)).toMatchObject({ detail: expect.stringContaining(' a.ts:3:') })
    expect(found({ answered: 1 }, { findings: [{ ...finding, file: 'a.ts' }] })).toMatchObject({
      detail: expect.stringContaining(' a.ts: It'),
    })
    expect(found({ answered: 2 }).kind).toBe('refuse')
    expect(found({ answered: 3 }).kind).toBe('end')
    expect(found({ answered: 1, repeated: [finding] })).toMatchObject({
      outcome: { reason: expect.stringContaining('(one review); one finding is left to you.') },
    })
    const other = { ...finding, problem: 'Errors are swallowed.' }
    expect(found({ answered: 1, repeated: [finding] }, { findings: [finding, other] }).kind).toBe('refuse')
    const two = { findings: [finding, { ...finding, problem: 'Other.' }] }
    expect(found({ answered: 3 }, two)).toMatchObject({
      outcome: { reason: expect.stringContaining('; 2 findings are left to you.') },
    })
  })
})
