import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Sentence } from '../../../src/core/rules/contract.ts'
import { reportContract } from '../../../src/tell/report/contract.ts'
import { contractSection } from '../../../src/tell/report/page/contract.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import { wordsForContract, wordsForSentence } from '../../../src/tell/words/contract.ts'
import { describeEvent } from '../../../src/tell/words/event.ts'
import { wordsForDone } from '../../../src/tell/words/proof.ts'
import { sampleEvents } from '../../doors/screen/samples.ts'
import { created, foldAll, recorded } from '../../support/session-events.ts'

const prove = { author: null, control: null, holdOut: 0, controls: 1, required: false, only: false }
const sentences = ['S1', 'S2', 'S3'].map((id): Sentence => {
  const check = { run: 'true', seconds: 5, needs: null, files: [] }
  return { id, quote: `Make ${id}.`, kind: 'must', reason: null, checks: [check] }
})
const ran = (sentence: string, when: 'before' | 'after-round', status: 'passed' | 'failed', tree: string) => ({
  ...{ ...sampleEvents['check-ended'], sentence, when, status, tree },
  exitCode: status === 'passed' ? 0 : 1,
})

test('after the checks of a round, one line says how many sentences hold', () => {
  const events: SessionEvent[] = [
    { ...created(), prove },
    { type: 'contract-drafted', version: 1, by: 'author', sentences, uncovered: [] },
    ...['S1', 'S2', 'S3'].map(id => ran(id, 'before', 'failed', 'a')),
    { type: 'contract-frozen', version: 1, by: 'person', heldOut: [], problem: null },
  ]
  const shown = (...more: SessionEvent[]) => {
    events.push(...more)
    const last = recorded(events).at(-1)
    const told = last && describeEvent(last, foldAll(events))
    return told ? [told.text, ...told.more] : null
  }
  expect(shown(ran('S1', 'after-round', 'passed', 'b'))).toBeNull()
  expect(shown(ran('S2', 'after-round', 'failed', 'b'))).toEqual(['S2, check 1: failed (exit code 1), 300 ms'])
  expect(shown(ran('S3', 'after-round', 'passed', 'b'))).toEqual(['2 of 3 sentences hold'])
  for (const id of ['S1', 'S2']) events.push(ran(id, 'after-round', 'passed', 'c'))
  expect(shown(ran('S3', 'after-round', 'failed', 'c'))).toEqual([
    'S3, check 1: failed (exit code 1), 300 ms',
    '2 of 3 sentences hold',
  ])
})

test('of a session that is stopped before the checks of its last round end, a sentence is not checked', () => {
  const worked = { ...sampleEvents['round-ended'], treeBefore: 'a', treeAfter: 'b' }
  const { contract } = foldAll([
    { ...created(), prove },
    { type: 'contract-drafted', version: 1, by: 'author', sentences, uncovered: [] },
    ...['S1', 'S2', 'S3'].map(id => ran(id, 'before', 'failed', 'a')),
    { type: 'contract-frozen', version: 1, by: 'person', heldOut: [], problem: null },
    ...[worked, ran('S1', 'after-round', 'passed', 'b'), ran('S2', 'after-round', 'failed', 'b')],
    { ...sampleEvents['check-ended'], sentence: 'S3', when: 'after-round', status: 'broken-off', tree: 'b' },
  ])
  expect(wordsForContract(contract)).toBe('1 of 3 sentences holds, 1 not checked')
  const { sentences: told = [] } = reportContract(contract, true) ?? {}
  expect(told.map(({ state, checks }) => [wordsForSentence(state), checks[0]?.now])).toEqual([
    ['its checks pass; no wrong version was tried', 'passed'],
    ['does not hold', 'failed'],
    ['not checked', null],
  ])
  const page = contractSection({ contract: reportContract(contract, true) } as ReportData).text
  expect(page.match(/"counts \w+">[^<]+/g)).toEqual([
    '"counts warning">its checks pass; no wrong version was tried',
    '"counts bad">does not hold',
    '"counts warning">not checked',
  ])
})

test('of a contract that no check can test, no count of sentences is told', () => {
  const taste: Sentence = {
    id: 'S1',
    quote: 'Make it nice.',
    kind: 'not-checkable',
    reason: 'It is taste.',
    checks: [],
  }
  const state = foldAll([
    { ...created(), prove },
    { type: 'contract-drafted', version: 1, by: 'author', sentences: [taste], uncovered: [] },
    { type: 'contract-frozen', version: 1, by: 'person', heldOut: [], problem: null },
  ])
  expect(wordsForContract(state.contract)).toBe('no check can test a sentence')
  expect(wordsForDone('gates', { ...state, gates: [] })).not.toContain('0 of 0')
})
