import { expect, test } from 'vitest'
import type { MemorySnapshot } from '../../../src/core/contracts/memory.ts'
import { judgeDone, nextProof, type WorkSoFar } from '../../../src/core/rules/done-rule.ts'
import { type Notice, personNotice } from '../../../src/core/rules/notices.ts'
import { type EndedRound, emptyState } from '../../../src/core/state/state.ts'

const round: EndedRound = {
  round: 4,
  part: null,
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
    /did not come to its end/,
  ],
])('a claim is refused with its reason when %s', (_name, memory, changes, reason, detail) => {
  const verdict = judgeDone(memory, { ...round, ...changes }, WORKED)
  expect(verdict).toMatchObject({ kind: 'refused', reason })
  expect(verdict.kind === 'refused' && verdict.detail).toMatch(detail)
})

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
      { tree: 'aaa', isProtectedChanged: false, ran: new Set(), pass: 1, from: 'aaa', strayed: [] },
    )
  expect(proofOf([personNotice('use tabs')])).toMatchObject({ kind: 'refuse', reason: 'person-said-more' })
  expect(proofOf([{ from: 'codemachine', text: 'A person says: (T1) is parked.' }])).toMatchObject({ kind: 'accept' })
})
