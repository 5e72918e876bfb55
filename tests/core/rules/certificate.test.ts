import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import type { Gate, GateResult } from '../../../src/core/events/outcome.ts'
import { certificateOf, certificateText, parseCertificate } from '../../../src/core/rules/certificate.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'

const TREE = 'a'.repeat(40)
const COMMIT = 'b'.repeat(40)
const GATE: Gate = {
  name: 'tests',
  run: 'npm test',
  timeoutMs: 600_000,
  required: true,
  network: false,
  protect: ['tests/**'],
  everyRound: false,
}
const RESULT: GateResult = {
  gate: 'tests',
  status: 'flaky',
  exitCode: 1,
  durationMs: 4200,
  output: 'secret',
  problem: null,
  tree: TREE,
  changed: ['dist/a.js'],
  changedCount: 1,
}
const FINDING = { severity: 'minor', file: 'a.ts', line: 3, problem: 'A name.', mend: 'Another.' } as const
const FACTS = {
  head: { commit: COMMIT, branch: 'main' },
  headHoldsAll: false,
  savepoint: COMMIT,
  notLookedAt: { paths: ['node_modules/'], count: 1 },
  digestOf: () => '',
  versions: { codemachine: '0.2.0', codex: '0.169.0', node: '24', platform: 'linux' },
}

function stateAfter(events: readonly SessionEvent[]) {
  return recorded(events).reduce(fold, emptyState('20261120_1'))
}

const DONE: readonly SessionEvent[] = [
  { ...sampleEvents['session-created'], gates: [GATE, { ...GATE, name: 'lint', required: false }] },
  { type: 'gate-ended', round: 0, when: 'before', ...RESULT, status: 'failed' },
  { type: 'done-nominated', round: 1, by: ['MAIN.md'], tree: TREE },
  { type: 'gate-ended', round: 1, when: 'claim', ...RESULT },
  {
    ...sampleEvents['review-ended'],
    answer: { verdict: 'agreed', summary: 'Good.', findings: [FINDING] },
    tree: TREE,
  },
  { type: 'done-accepted', round: 1, tree: TREE, verified: true },
  { ...sampleEvents['session-ended'], outcome: { kind: 'done', verified: true }, exitCode: 0, durationMs: 60_000 },
]

promise('D16', '`done.json` says what was proved and with what; the copy that an agent can write is not believed')
test('a certificate says what was proved and with what, and can be read again', () => {
  const certificate = certificateOf(stateAfter(DONE), FACTS)
  expect(certificate).toMatchObject({
    format: 'codemachine-done',
    v: 1,
    verified: true,
    tree: TREE,
    savepoint: COMMIT,
    notLookedAt: { paths: ['node_modules/'], count: 1 },
    git: { commit: COMMIT, branch: 'main', holdsAll: false },
    gates: [
      { name: 'tests', run: 'npm test', status: 'flaky', exitCode: 1, durationMs: 4200, before: 'failed' },
      { name: 'lint', required: false, status: null, before: null },
    ],
    review: { reviews: 1, agreed: true, open: [FINDING] },
    timeMs: 60_000,
  })
  expect(parseCertificate(certificateText(certificate), 'done.json')).toEqual(certificate)
  expect(certificate).toMatchObject({ protected: true, gates: [{ changed: ['dist/a.js'] }, { changed: [] }] })
  const { protected: _, ...older } = certificate
  expect(parseCertificate(JSON.stringify(older), 'done.json')).not.toHaveProperty('protected')
  expect(certificateText(certificate)).not.toContain('secret')
})

promise('D46', '`done.json` says that a review agreed only if it agreed to the tree that was accepted')
test('a review that agreed to other files than those that were accepted is not certified as one that agreed', () => {
  const ofOthers = DONE.map(event => (event.type === 'review-ended' ? { ...event, tree: 'c'.repeat(40) } : event))
  expect(certificateOf(stateAfter(ofOthers), FACTS).review).toEqual({ reviews: 1, agreed: false, open: [FINDING] })
})

test('protected files are certified only where a gate protects some, with those that a round changed', () => {
  const unprotected = DONE.map(event =>
    event.type === 'session-created' ? { ...event, gates: [{ ...GATE, protect: [] }] } : event,
  )
  expect(certificateOf(stateAfter(unprotected), FACTS)).toMatchObject({ protected: false, protectedChanged: [] })
  const [first = sampleEvents['session-created'], ...others] = DONE
  const changed = certificateOf(stateAfter([first, sampleEvents['protected-changed'], ...others]), FACTS)
  expect(changed).toMatchObject({
    protected: true,
    protectedChanged: stateAfter([first, sampleEvents['protected-changed']]).protectedChanged,
  })
  expect(changed.protectedChanged).not.toEqual([])
})

test('the hosts of an engine that only wrote the contract, or only worked for an agent, are certified', () => {
  const [first = sampleEvents['session-created'], ...others] = DONE
  const of = { engine: 'mine', reaches: ['api.example.com'] }
  for (const type of ['contract-turn-started', 'agent-started'] as const) {
    const { engines } = certificateOf(stateAfter([first, { ...sampleEvents[type], ...of }, ...others]), FACTS)
    expect(engines?.reached, type).toEqual({ mine: ['api.example.com'] })
  }
  expect(certificateOf(stateAfter(DONE), FACTS)).not.toHaveProperty('engines')
})

test('a session that is not done has none', () => {
  const limit: SessionEvent = {
    ...sampleEvents['session-ended'],
    outcome: { kind: 'limit', limit: 'rounds' },
    exitCode: 3,
  }
  expect(() => certificateOf(stateAfter([...DONE.slice(0, -1), limit]), FACTS)).toThrow('is not done')
  expect(() => certificateOf(stateAfter(DONE.slice(0, -1)), FACTS)).toThrow('is not done')
})

test.each([
  ['{ "format"', 'x/done.json is not valid JSON, so it was damaged or changed by hand.'],
  ['[]', 'x/done.json is not a certificate of codemachine.'],
  [
    '{ "format": "codemachine-done", "v": 3 }',
    'x/done.json is a certificate of another version of codemachine; use that version to verify it.',
  ],
])('a done.json that is none is refused in a sentence: %s', (text, sentence) => {
  expect(() => parseCertificate(text, 'x/done.json')).toThrow(sentence)
})

test('a done.json with a wrong field is refused with its place', () => {
  const certificate = certificateOf(stateAfter(DONE), FACTS)
  const wrong = { ...certificate, gates: certificate.gates.map(each => ({ ...each, timeoutMs: '1' })) }
  expect(() => parseCertificate(JSON.stringify(wrong), 'done.json')).toThrow(
    'done.json: gates[0].timeoutMs has a wrong value; it was damaged or changed by hand.',
  )
  // A tree is handed to git.
  const option = { ...certificate, tree: '--output=/etc/passwd' }
  expect(() => parseCertificate(JSON.stringify(option), 'done.json')).toThrow('done.json: tree has a wrong value')
})

test('a gate that was flaky earlier is certified as such, though it passed in the end', () => {
  const [begun, before, nominated, flaky, ...end] = DONE
  if (!begun || !before || !nominated || !flaky) throw new Error('The events of a session that is done are missing.')
  const refused: SessionEvent = { type: 'done-refused', round: 1, reason: 'person-said-more', detail: 'More was said.' }
  const passed: SessionEvent = { type: 'gate-ended', round: 2, when: 'claim', ...RESULT, status: 'passed', exitCode: 0 }
  const events = [begun, before, nominated, flaky, refused, nominated, passed, ...end]
  expect(certificateOf(stateAfter(events), FACTS).gates).toMatchObject([
    { name: 'tests', status: 'passed', wasFlaky: true },
    { name: 'lint', wasFlaky: false },
  ])
  expect(certificateOf(stateAfter([begun, nominated, passed, ...end]), FACTS).gates[0]?.wasFlaky).toBe(false)
})
