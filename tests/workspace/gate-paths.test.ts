import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Fingerprints, openFingerprints } from '../../src/workspace/fingerprint/fingerprint.ts'
import { gatePathsOf, workChanges } from '../../src/workspace/gate-paths.ts'

let base: string
let work: string
let fingerprints: Fingerprints
let start: string

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(work, path)), { recursive: true })
  writeFileSync(join(work, path), text)
}

beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'gate-paths-')))
  work = join(base, 'work')
  mkdirSync(work)
  write('ci/test.sh', '. ./shared/env.sh\nsource "$(dirname "$0")/lib.sh"\nsh calc.sh')
  write('ci/lib.sh', '. ./deeper.sh')
  write('ci/deeper.sh', '. ./ci/test.sh')
  write('shared/env.sh', 'A=1')
  write('Makefile', 'include rules.inc\n-include ../out.mk local.env\ntest:\n')
  write('real/check.sh', 'true')
  write('calc.sh', 'echo 3')
  symlinkSync('real', join(work, 'checks'))
  symlinkSync('real/check.sh', join(work, 'check'))
  symlinkSync('loop-b', join(work, 'loop-a'))
  symlinkSync('loop-a', join(work, 'loop-b'))
  fingerprints = await openFingerprints({
    gitDir: join(base, 'git'),
    directory: work,
    repository: null,
    env: { PATH: process.env.PATH, HOME: base },
  })
  start = await fingerprints.take()
})
afterAll(() => rmSync(base, { recursive: true }))

const counts = async (run: string, protect: readonly string[], path: string, isNew = false) =>
  (await gatePathsOf(fingerprints.git, start, { run, protect }))(path, isNew).isRunThrough

test.each([
  ['bash ci/test.sh', [], 'ci/test.sh', true],
  ['bash ci/test.sh', [], 'shared/env.sh', true],
  ['bash ci/test.sh', [], 'ci/lib.sh', true],
  ['bash ci/test.sh', [], 'ci/deeper.sh', true],
  ['bash ci/test.sh', [], 'calc.sh', false],
  ['make test', [], 'Makefile', true],
  ['make test', [], 'rules.inc', true],
  ['make test', [], 'local.env', true],
  ['make test', [], 'test', true],
  ['make test', [], 'test/x', true],
  ['make test', [], 'calc.sh', false],
  ['true', ['checks/**'], 'real/check.sh', true],
  ['true', ['check'], 'real/check.sh', true],
  ['sh check', [], 'real/check.sh', true],
  ['true', ['loop-a'], 'loop-b', true],
  ['true', ['checks/**'], 'calc.sh', false],
  ['true', ['a.txt'], 'a.txt', true],
] as const)('of `%s` that protects %j, %s is what it runs through: %s', async (run, protect, path, is) => {
  expect(await counts(run, protect, path)).toBe(is)
})

test.each([
  ['bash CI/Test.sh', 'Ci/Deeper.sh'],
  ['make test', 'Rules.INC'],
  ['sh CHECK', 'real/check.sh'],
])('on macOS and Windows, case does not keep `%s` from running through %s', async (run, path) => {
  for (const [platform, is] of [
    ['darwin', true],
    ['win32', true],
    ['linux', false],
  ] as const) {
    const kindOf = await gatePathsOf(fingerprints.git, start, { run, protect: [] }, platform)
    expect([platform, kindOf(path, false).isRunThrough]).toEqual([platform, is])
  }
})

test('a program of the line that the work has added is work', async () => {
  expect(await counts('bash greet.sh', [], 'greet.sh', true)).toBe(false)
  expect(await counts('sh src/test.sh', [], 'src/test.sh', true)).toBe(false)
  expect(await counts('sh src/test.sh', [], 'src/test.sh')).toBe(true)
  expect(await counts('bash greet.sh', ['greet.sh'], 'greet.sh', true)).toBe(true)
})

async function changesSince(start: string, run: string) {
  return await workChanges(fingerprints.git, { start, tree: await fingerprints.take(), gate: { run, protect: [] } })
}

test('files of the start that are gone are a problem, not an end', async () => {
  expect(await changesSince('1'.repeat(40), 'true')).toEqual({ problem: expect.stringContaining('cannot be read') })
})

test('whether the work has changed what a gate runs through is told by the files that differ', async () => {
  const changed = async (run: string) => {
    const changes = await changesSince(start, run)
    if ('problem' in changes) throw new Error(changes.problem)
    return changes.some(({ isRunThrough }) => isRunThrough)
  }
  expect(await changed('bash ci/test.sh')).toBe(false)
  write('calc.sh', 'echo 4')
  expect(await changed('bash ci/test.sh')).toBe(false)
  write('ci/lib.sh', 'true')
  expect(await changed('bash ci/test.sh')).toBe(true)
  expect(await changed('true')).toBe(false)
})

test.each([
  ['tests/b.test.ts', ['tests/**'], false],
  ['src/new.ts', ['tests/**'], false],
  ['package.json', [], false],
  ['tests/helper.sh', ['tests/**'], true],
  ['conftest.py', [], true],
  ['.npmrc', [], true],
  ['local.env', [], true],
] as const)('that %s was added with %j protected changes the gate itself: %s', async (path, protect, is) => {
  const kindOf = await gatePathsOf(fingerprints.git, start, { run: 'make test', protect })
  expect(kindOf(path, true).isNoAddition).toBe(is)
  expect(kindOf(path, false).isNoAddition).toBe(true)
})
