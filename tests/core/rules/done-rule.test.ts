import { expect, test } from 'vitest'
import type { MemorySnapshot } from '../../../src/core/contracts/memory.ts'
import { judgeDone, nextProof } from '../../../src/core/rules/done-rule.ts'
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
const claimed: MemorySnapshot = {
  main: { status: 'in-progress', finiteIncantatem: true, shortTitle: null, open: [] },
  tasks: [{ id: 'T1', name: 'Build', done: true }],
  problems: [],
  fingerprint: 'm',
  texts: { main: '', tasks: '' },
}

test('a claim in a round that changed nothing, with nothing left to do, is accepted with its tree', () => {
  expect(judgeDone(claimed, round)).toEqual({ kind: 'nominated', by: ['MAIN.md', 'tasks.json'], tree: 'aaa' })
})

test.each([
  [
    'status: done',
    { ...claimed, main: { ...claimed.main, finiteIncantatem: false, status: 'done' }, tasks: [] },
    ['MAIN.md'],
  ],
  ['all tasks done', { ...claimed, main: { ...claimed.main, finiteIncantatem: false } }, ['tasks.json']],
])('%s nominates by itself', (_name, memory, by) => {
  expect(judgeDone(memory, round)).toMatchObject({ kind: 'nominated', by })
})

test('nothing is claimed while no flag is set and there are no tasks, or some are open', () => {
  const silent = { ...claimed, main: { ...claimed.main, finiteIncantatem: false } }
  expect(judgeDone({ ...silent, tasks: [] }, round).kind).toBe('none')
  expect(judgeDone({ ...silent, tasks: [{ id: 'T1', name: 'Build', done: false }] }, round).kind).toBe('none')
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
  const verdict = judgeDone(memory, { ...round, ...changes })
  expect(verdict).toMatchObject({ kind: 'refused', reason })
  expect(verdict.kind === 'refused' && verdict.detail).toMatch(detail)
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
