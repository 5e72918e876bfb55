import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Statement, TYPES } from '../../../src/core/rules/attestations.ts'
import { bundleText, parseBundle, readBundleFile, signedBytes } from '../../../src/project/certificate/bundle.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

const TREE = 'a'.repeat(40)
const SUBJECT = [{ name: 'files', digest: { gitTree: TREE } }]

function statement(predicateType: string, predicate: Record<string, unknown>): Statement {
  return { _type: TYPES.statement, subject: SUBJECT, predicateType, predicate }
}

const VERIFIED = statement(TYPES.verification, {
  verifier: { id: 'https://codemachine.invalid/verifier/v1' },
  timeCreated: '2026-11-21T22:00:00.000Z',
  properties: [],
})
const SESSION = statement(TYPES.session, {
  attestations: 2,
  certificate: { tree: TREE, endedAt: '2026-11-21T22:00:00.000Z' },
  lookedAt: [],
  checks: [],
  refused: { count: 0, last: [] },
})

async function text(...statements: Statement[]): Promise<string> {
  return await bundleText(statements, { keyid: 'SHA256:x', sign: async () => Buffer.from('signature') })
}

test('what is signed is the encoding that DSSE publishes, with lengths in bytes', () => {
  expect(signedBytes('http://example.com/HelloWorld', Buffer.from('hello world')).toString()).toBe(
    'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
  )
  expect(signedBytes('t', Buffer.from('ä')).toString()).toBe('DSSEv1 1 t 2 ä')
})

test('a bundle is read in any order, with lines of others among its own', async () => {
  const others = '{"payloadType":"application/vnd.novulz+cbor","payload":"xx","signatures":[]}\nnot json\n[1]\n'
  const { attestations, session } = parseBundle(`${await text(SESSION, VERIFIED)}${others}`, 'x.jsonl')
  expect(attestations.map(({ statement: { predicateType } }) => predicateType)).toEqual([
    TYPES.session,
    TYPES.verification,
  ])
  expect(attestations[0]?.envelope?.signatures).toEqual([Buffer.from('signature')])
  expect(session.certificate.tree).toBe(TREE)
})

promise('D96', 'A certificate that was cut, changed or is of something else is refused in one sentence')
test('a bundle that was cut, is of something else, or has too much is refused in one sentence', async () => {
  const whole = await text(VERIFIED, SESSION)
  const many = Array.from({ length: 10_000 }, () => SUBJECT[0]) as typeof SUBJECT
  const other = { ...SESSION, subject: [{ name: 'files', digest: { gitTree: 'b'.repeat(40) } }] }
  const newer = { ...SESSION, predicateType: TYPES.session.replace('v1', 'v7') }
  const cases: [string, string][] = [
    [whole.slice(0, -20), 'x.jsonl contains no session of codemachine: it was cut'],
    [await text(SESSION), 'x.jsonl was cut: it contains only 1 of its 2 attestations.'],
    ['', 'contains no session of codemachine'],
    [await text(VERIFIED, SESSION, SESSION), 'contains several sessions'],
    [await text(VERIFIED, other), 'was changed: its files are not the files of its session'],
    [
      await text({ ...VERIFIED, subject: many }, SESSION),
      'line 1, has 10000 subjects, but a statement has at most 100',
    ],
    [await text(VERIFIED, newer), 'line 2, is of a newer codemachine'],
    [whole.replace(/"sig":"[^"]*"/, '"sig":"?"'), 'line 1, is damaged: its payload'],
    ['{}\n'.repeat(1001), 'has 1001 lines'],
  ]
  for (const [bundle, said] of cases) expect(() => parseBundle(bundle, 'x.jsonl')).toThrow(said)
})

test('a file of 50 MB, and one that is not there, are refused before they are read', async () => {
  await using place = await makePlace('')
  const path = join(place.root, 'big.jsonl')
  await writeFile(path, Buffer.alloc(50_000_000, 32))
  await expect(readBundleFile(path)).rejects.toThrow('big.jsonl is longer than 8388608 bytes')
  await expect(readBundleFile(join(place.root, 'none.jsonl'))).rejects.toThrow('does not exist; name the file')
})
