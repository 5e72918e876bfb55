import { describe, expect, test } from 'vitest'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import {
  countContract,
  nextClaimCheck,
  readContract,
  type Sentence,
  sentencesOf,
  wordsForFailedSentences,
} from '../../../src/core/rules/contract.ts'
import { fold } from '../../../src/core/state/fold.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { incident, promise } from '../../support/promise.ts'
import { created } from '../../support/session-events.ts'

const TERMS = { author: null, control: null, holdOut: 0, controls: 1, required: false, only: false }
const CHECK = { run: 'true', seconds: 5, needs: null, files: [] }

const must = (quote: string) => ({ quote, kind: 'must', reason: null, checks: [CHECK] })
const drafted = (by: 'author' | 'person', version: number, ...quotes: string[]): SessionEvent => ({
  type: 'contract-drafted',
  version,
  by,
  sentences: quotes.map((quote, at): Sentence => ({ ...must(quote), kind: 'must', id: `S${at + 1}` })),
  uncovered: ['Keep b.'],
})
const frozen = (version: number): SessionEvent => ({
  type: 'contract-frozen',
  version,
  by: 'person',
  heldOut: [],
  problem: null,
})

function after(...events: readonly SessionEvent[]): SessionState {
  const all: SessionEvent[] = [{ ...created(), goal: 'Make a. Keep b.', prove: TERMS }, ...events]
  return all.reduce(
    (state, event, at) =>
      fold(state, { v: 1, at: new Date(at * 1000).toISOString(), ...event } as Recorded, OWN_TEMPLATES),
    emptyState('s'),
  )
}

const ended = (status: 'failed' | 'not-started', when: 'before' | 'claim', round: number): SessionEvent => ({
  type: 'check-ended',
  ...{ round, sentence: 'S1', check: 1, when, status, exitCode: null, durationMs: 1, output: '' },
  ...{ problem: 'The copy is too large.', cannotRun: status === 'not-started', tree: 'aaa' },
})

incident('false done', 'A check of the contract that could not run for a claim no longer counted', {
  since: '2026-11-29',
  fixed: '2026-12-01',
  foundBy: 'a review of the code',
})
test('a check that failed before the work and cannot be run for a claim refuses it', () => {
  const { contract } = after(
    ...[drafted('author', 1, 'Make a.'), ended('failed', 'before', 0), frozen(1)],
    ended('not-started', 'claim', 2),
  )
  expect(sentencesOf(contract).map(({ state }) => state)).toEqual(['fails'])
  expect(nextClaimCheck(contract, 'aaa', 2)).toEqual({ kind: 'refuse', failed: ['S1'] })
  expect(wordsForFailedSentences(contract ?? fail(), ['S1'])).toContain('could not be run. The copy is too large.')
  const { contract: unusable } = after(
    ...[drafted('author', 1, 'Make a.'), ended('not-started', 'before', 0), frozen(1)],
    ended('not-started', 'claim', 2),
  )
  expect(sentencesOf(unusable).map(({ state }) => state)).toEqual(['unusable'])
})

function fail(): never {
  throw new Error('There is no contract.')
}

promise('D88', 'A sentence that you take out of the contract is named as *refused*, and counts no more')
test('a sentence that the person takes out stands behind the others, and counts no more', () => {
  const { contract } = after(drafted('author', 1, 'Make a.', 'Keep b.'), drafted('person', 2, 'Make'), frozen(2))
  expect(sentencesOf(contract).map(({ id, quote, state }) => [id, quote, state])).toEqual([
    ['S1', 'Make', 'open'],
    ['R1', 'Keep b.', 'refused'],
  ])
  expect(countContract(contract)).toEqual({ checkable: 1, holding: 0, open: 1, proved: 0 })
  expect(contract?.frozen?.uncovered).toEqual([])
  const again = after(
    ...[drafted('author', 1, 'Make a.', 'Keep b.'), drafted('person', 2, 'Make a.'), frozen(2)],
    ...[drafted('person', 3, 'Make a.', 'Keep b.'), frozen(3)],
  )
  expect(again.contract?.refused).toEqual([])
})

promise('D89')
test('a contract knows who wrote it, who works, and who writes wrong versions', () => {
  const turn = { round: 0, effort: null } as const
  const { contract } = after(
    { type: 'contract-turn-started', ...turn, role: 'author' as const, provider: 'local', model: 'qwen3' },
    { type: 'round-started', ...turn, round: 1, model: 'gpt-5.5', agent: 'a', engine: 'codex', codex: '1', input: 'x' },
  )
  expect(contract?.who).toEqual({
    author: { engine: null, provider: 'local', model: 'qwen3' },
    control: null,
    worker: { engine: 'codex', provider: null, model: 'gpt-5.5' },
  })
})

promise('D87')
test('a contract knows what the person changed once it is written again, or the change is taken back', () => {
  const begun = [drafted('author', 1, 'Make a.'), frozen(1), { type: 'replan-asked', text: 'Make d.' } as const]
  expect(after(...begun).contract?.behind).toEqual({ text: 'Make d.', isKept: false })
  expect(after(...begun, drafted('person', 2, 'Make d.'), frozen(2)).contract?.behind).toBeNull()
  const back = after(...begun, { type: 'replanned', round: 1, files: [], putBack: true }).contract
  expect([back?.behind, back?.replans]).toEqual([null, []])
})

describe('an author may be given any goal', () => {
  test.each([
    ['of one word', 'Fix', 'Fix'],
    ['in Thai', 'ทำให้ปุ่มเป็นสีแดง อย่าลบไฟล์', 'ทำให้ปุ่มเป็นสีแดง'],
    ['in Arabic', 'اجعل الزر أحمر. لا تحذف الملفات.', 'اجعل الزر أحمر.'],
    ['of emoji', '👩‍👩‍👧 → 🚀🚀', '👩‍👩‍👧 → 🚀🚀'],
    ['with accents in another form', 'Cafe\u0301 öffnen', 'Caf\u00e9 öffnen'],
    [
      'with a block of code',
      'Print this:\n```js\nconst a = `x`\n  b()\n```\nNothing else.',
      '```js\nconst a = `x`\nb()\n```',
    ],
    ['of 300 KB', `${'word '.repeat(60_000)}Make the end red.`, 'Make the end red.'],
  ])('%s', (_, goal, quote) => {
    const read = readContract({ sentences: [must(quote)] }, goal)
    expect(read).toMatchObject({ ok: true, value: { sentences: [{ id: 'S1', quote }] } })
  })

  test('with 200 items: it is told to group them, and a stretch of the list is a quote', () => {
    const items = Array.from({ length: 200 }, (_, at) => `- item ${at + 1}`)
    expect(readContract({ sentences: items.map(must) }, items.join('\n'))).toEqual({
      ok: false,
      problem: 'There are 200 sentences; group them into at most 40.',
    })
    const groups = Array.from({ length: 10 }, (_, at) => items.slice(at * 20, at * 20 + 20).join('\n'))
    expect(readContract({ sentences: groups.map(must) }, items.join('\n'))).toMatchObject({ value: { uncovered: [] } })
  })

  test('of which nothing can be checked: it is no sentence that is proved', () => {
    const taste = { quote: 'Make it nice.', kind: 'not-checkable', reason: 'It is taste.', checks: [] }
    expect(readContract({ sentences: [taste] }, 'Make it nice.')).toMatchObject({ ok: true })
    const text = { ...taste, kind: 'not-checkable', id: 'S1' } as const
    const event = { type: 'contract-drafted', version: 1, by: 'author', sentences: [text], uncovered: [] } as const
    expect(countContract(after(event, frozen(1)).contract)).toEqual({ checkable: 0, holding: 0, open: 0, proved: 0 })
  })
})
