import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  type BundleFacts,
  readStatement,
  sessionIn,
  statementsOf,
  TYPES,
} from '../../../src/core/rules/attestations.ts'
import { type Certificate, parseCertificate } from '../../../src/core/rules/certificate.ts'
import { sha256Of } from '../../../src/platform/files.ts'

const TREE = 'a'.repeat(40)

const GATE = {
  ...{ name: 'tests', run: 'npm test', required: true, network: false, timeoutMs: 1000 },
  ...{ status: 'passed', exitCode: 0, durationMs: 1, before: 'failed' },
}

function certificateWith(more: object): Certificate {
  const whole = {
    ...{ format: 'codemachine-done', v: 1, session: '20261121_1', goal: 'Add it', directory: '/home/ann/shop' },
    ...{ startedAt: '2026-11-21T20:00:00.000Z', endedAt: '2026-11-21T22:00:00.000Z', verified: true },
    ...{ tree: TREE, savepoint: null, git: null, sandbox: 'workspace-write', network: false, gates: [GATE] },
    ...{ review: null, protectedChanged: [], rounds: 3, tokens: 5, timeMs: 7 },
    versions: { codemachine: '0', codex: null, node: '24', platform: 'linux' },
    ...more,
  }
  return parseCertificate(JSON.stringify(whole), 'done.json')
}

function statements(more: object = {}, facts: Partial<BundleFacts> = {}) {
  const refused = { count: 1, last: [{ round: 2, reason: 'gate-failed' }] }
  const certificate = certificateWith(more)
  const made = statementsOf(certificate, {
    commit: null,
    lookedAt: [],
    checks: [],
    refused,
    sha256: sha256Of,
    ...facts,
  })
  return Object.fromEntries(made.map(({ predicateType, ...rest }) => [predicateType, rest]))
}

function example(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../data/attestations/${name}.json`, import.meta.url), 'utf8'))
}

test('the published examples of test results and of verification results are read', () => {
  for (const name of ['test-result', 'svr']) expect(readStatement(example(name))).toEqual(example(name))
})

test('a predicate that does not fit its type is named with the place', () => {
  const result = example('test-result') as { predicate: object }
  expect(readStatement({ ...result, predicate: { ...result.predicate, result: 'OK' } })).toBe(
    'has a predicate that does not fit its type: result has a wrong value',
  )
  expect(readStatement({ ...result, subject: [] })).toContain('is no in-toto statement: subject')
  expect(readStatement({ ...result, predicateType: TYPES.session.replace('v1', 'v2') })).toContain('is of a newer')
})

test('each statement that codemachine makes is one that it reads', () => {
  for (const [predicateType, statement] of Object.entries(statements()))
    expect(readStatement({ ...statement, predicateType })).toMatchObject({ subject: [{ digest: { gitTree: TREE } }] })
})

test('a commit that holds all of it is a subject, too', () => {
  const commit = 'b'.repeat(40)
  expect(statements({}, { commit })[TYPES.testResult]?.subject[1]).toMatchObject({ digest: { gitCommit: commit } })
})

test('a flaky gate warns, an optional gate that fails warns, and what did not run is not named', () => {
  const gates = [
    { ...GATE, name: 'flaky', status: 'flaky' },
    { ...GATE, name: 'was flaky', wasFlaky: true },
    { ...GATE, name: 'lint', required: false, status: 'failed' },
    { ...GATE, name: 'slow', required: false, status: null },
    GATE,
  ]
  const { result, passedTests, warnedTests, failedTests, configuration } =
    (statements({ gates })[TYPES.testResult]?.predicate as Record<string, unknown[]>) ?? {}
  expect([result, passedTests, warnedTests, failedTests]).toEqual([
    'WARNED',
    ['tests'],
    ['flaky', 'was flaky'],
    ['lint'],
  ])
  expect(configuration).toContainEqual({
    name: 'tests',
    digest: { sha256: sha256Of('npm test') },
    annotations: { run: 'npm test', timeoutMs: 1000 },
  })
})

test('without a gate or a check there is no test result', () => {
  const made = statements({ gates: [], verified: false })
  expect(Object.keys(made)).toEqual([TYPES.verification, TYPES.session])
  expect(made[TYPES.verification]?.predicate).toMatchObject({ properties: [] })
})

test('a verification names what holds, and nothing else', () => {
  const counterProof = { result: 'stands', problem: null, made: [], madeCount: 0, isSmallest: true, doubts: [] }
  const properties = (more: object) => statements(more)[TYPES.verification]?.predicate?.properties
  expect(properties({})).toEqual(['CODEMACHINE_GATES_PASSED'])
  expect(
    properties({
      protected: true,
      review: { reviews: 1, agreed: true, open: [] },
      proof: 'proved',
      gates: [{ ...GATE, counterProof }],
    }),
  ).toEqual(
    ['GATES_PASSED', 'PROTECTED_UNCHANGED', 'REVIEWED', 'CONTRACT_PROVED', 'COUNTER_PROVED'].map(
      name => `CODEMACHINE_${name}`,
    ),
  )
  expect(properties({ protected: true, protectedChanged: ['a.test.ts'] })).toEqual(['CODEMACHINE_GATES_PASSED'])
  expect(properties({ gates: [GATE, { ...GATE, name: 'b', status: null }] })).toEqual([])
})

test('the predicate of ours has refused claims and the certificate, and not where it lay', () => {
  const statement = { ...statements()[TYPES.session], predicateType: TYPES.session }
  const read = readStatement(statement)
  const session = typeof read === 'string' ? null : sessionIn(read)
  expect(session).toMatchObject({ attestations: 3, refused: { count: 1 }, certificate: { rounds: 3, goal: 'Add it' } })
  expect(JSON.stringify(statement)).not.toContain('/home/ann')
})
