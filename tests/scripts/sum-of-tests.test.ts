import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const SCRIPT = fileURLToPath(new URL('../../scripts/sum-of-tests.ts', import.meta.url))

/** Takes the place of vitest: writes the report of the file that it is to run from the folder `again`, and fails as that says. */
const VITEST = `#!/usr/bin/env node
const { appendFileSync, existsSync, readFileSync, writeFileSync } = require('node:fs')
const { basename, join } = require('node:path')
const args = process.argv.slice(2)
appendFileSync(join(__dirname, 'asked'), args.slice(0, -1).join(' ') + '\\n')
const report = join(__dirname, 'again', basename(args.at(-2)) + '.json')
if (!existsSync(report)) process.exit(1)
const text = readFileSync(report, 'utf8')
writeFileSync(args.at(-1).replace('--outputFile=', ''), text)
process.exit(JSON.parse(text).numFailedTests > 0 ? 1 : 0)
`

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sum-'))
  await mkdir(join(folder, 'again'))
  await writeFile(join(folder, 'vitest'), VITEST, { mode: 0o755 })
})
afterEach(() => rm(folder, { recursive: true }))

interface Tests {
  passed?: number
  failed?: number
  skipped?: number
  /** How long the file took, s. */
  seconds?: number
  /** Why the file failed before any of its tests. */
  message?: string
}

/** What vitest reports of a file. */
function fileOf(name: string, { passed = 0, failed = 0, seconds = 1, message }: Tests) {
  const of = (status: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({
      status,
      fullName: `${status} ${n + 1} of ${name}`,
      failureMessages: status === 'failed' ? ['expected 1 to be 2'] : [],
    }))
  const status = failed > 0 || message !== undefined ? 'failed' : 'passed'
  const assertionResults = [...of('passed', passed), ...of('failed', failed)]
  return { name: join(folder, name), startTime: 0, endTime: seconds * 1000, status, message, assertionResults }
}

/** What vitest reports of these files. */
function reportOf(files: Record<string, Tests>): string {
  const sum = (what: 'passed' | 'failed' | 'skipped') =>
    Object.values(files).reduce((count, each) => count + (each[what] ?? 0), 0)
  return JSON.stringify({
    numPassedTests: sum('passed'),
    numFailedTests: sum('failed'),
    numPendingTests: sum('skipped'),
    numTodoTests: 0,
    testResults: Object.entries(files).map(([name, tests]) => fileOf(name, tests)),
  })
}

const write = (name: string, text: string) => writeFile(join(folder, name), text)
/** What comes of a file that is run once more. */
const again = (name: string, tests: Tests) => write(`again/${name}.json`, reportOf({ [name]: tests }))
/** Which files were run once more, and how. */
const asked = () => readFile(join(folder, 'asked'), 'utf8').catch(() => '')

/** Sums up these reports, each of them with its exit code. */
function sumUp(...reports: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, '600', ...reports], {
    cwd: folder,
    env: { ...process.env, PATH: [folder, process.env.PATH].join(delimiter) },
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, lines: stdout.trimEnd().split('\n'), stdout, stderr }
}

test('tests that all passed are summed up over both runs, after the five slowest files and the used part of the bound', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const files = names.map((name, at): [string, Tests] => [
    `${name}.test.ts`,
    { passed: 2, skipped: 1, seconds: at + 1 },
  ])
  await write('short.json', reportOf(Object.fromEntries(files)))
  await write('long.json', reportOf({ 'long.test.ts': { passed: 5, seconds: 90 } }))
  const { status, lines } = sumUp('check.txt:0', 'short.json:0', 'long.json:0')
  expect(lines).toEqual([
    'The slowest files:',
    '   90.0 s  long.test.ts',
    ...['f', 'e', 'd', 'c'].map((name, at) => `    ${6 - at}.0 s  ${name}.test.ts`),
    expect.stringMatching(/^10\.\d min of 20, 50 % of the bound; load [\d., ]+$/),
    '17 passed, 0 failed, 6 skipped',
  ])
  expect([status, await asked()]).toEqual([0, ''])
})

test('a file that failed is run once more by itself, and counts by that; only what fails both times is a failure', async () => {
  await write('short.json', reportOf({ 'late.test.ts': { passed: 3, failed: 2 }, 'good.test.ts': { passed: 1 } }))
  // Of a file that could not be loaded no test was counted.
  await write('long.json', reportOf({ 'broken.long.test.ts': { message: 'It cannot be loaded.' } }))
  await again('late.test.ts', { passed: 5 })
  await again('broken.long.test.ts', { passed: 4 })
  const good = sumUp('check.txt:0', 'short.json:1', 'long.json:1')
  expect(good.stdout).toContain(
    `FAILED ${join(folder, 'late.test.ts')}\n  failed 2 of late.test.ts (0 ms)\nexpected 1 to be 2`,
  )
  expect(good.stdout).toContain(`FAILED ${join(folder, 'broken.long.test.ts')}\nIt cannot be loaded.\n`)
  const [late, broken] = good.lines.filter(line => line.startsWith('PASSED ALONE'))
  expect([late, broken].map(line => basename(line ?? ''))).toEqual([
    'PASSED ALONE, AFTER IT HAD FAILED BESIDE OTHERS: late.test.ts',
    'PASSED ALONE, AFTER IT HAD FAILED BESIDE OTHERS: broken.long.test.ts',
  ])
  expect([good.status, good.lines.at(-1)]).toEqual([0, '10 passed, 0 failed, 0 skipped'])
  const alone = 'run --project short --maxWorkers 1 --maxConcurrency 1 --reporter=json'
  expect((await asked()).split('\n')).toEqual([
    `${alone} ${join(folder, 'late.test.ts')}`,
    `${alone.replace('short', 'long')} ${join(folder, 'broken.long.test.ts')}`,
    '',
  ])

  await again('late.test.ts', { passed: 4, failed: 1 })
  // Of this one nothing is said at all.
  await rm(join(folder, 'again/broken.long.test.ts.json'))
  const bad = sumUp('check.txt:0', 'short.json:1', 'long.json:1')
  expect(bad.stdout).toContain(`FAILED AGAIN ${join(folder, 'late.test.ts')}\n  failed 1 of late.test.ts`)
  expect(bad.lines.filter(line => line.startsWith('FAILED ALONE TOO'))).toEqual([
    'FAILED ALONE TOO: late.test.ts',
    'FAILED ALONE TOO: broken.long.test.ts',
  ])
  expect([bad.status, bad.lines.at(-1)]).toEqual([3, '4 passed, 2 failed, 0 skipped'])
})

test('where more than twenty files failed it is not the machine, and none is run once more', async () => {
  const files = Array.from({ length: 21 }, (_, n): [string, Tests] => [`${n}.test.ts`, { failed: 1 }])
  await write('short.json', reportOf(Object.fromEntries(files)))
  const { status, lines } = sumUp('check.txt:0', 'short.json:1')
  expect([status, lines.at(-1), await asked()]).toEqual([3, '0 passed, 21 failed, 0 skipped', ''])
})

test('simulated nights are summed up with the tests, and what they print is shown where one broke a promise', async () => {
  await write('short.json', reportOf({ 'good.test.ts': { passed: 7 } }))
  await write('simulate.txt', '200 nights\n200 passed, 0 failed, 0 skipped\n')
  const good = sumUp('simulate.txt:0', 'short.json:0')
  expect([good.status, good.lines.at(-1)]).toEqual([0, '207 passed, 0 failed, 0 skipped'])
  await write('simulate.txt', 'BROKEN L4\n199 passed, 1 failed, 0 skipped\n')
  const bad = sumUp('simulate.txt:1', 'short.json:0')
  expect(bad.stdout).toContain('FAILED npm run simulate\nBROKEN L4')
  expect([bad.status, bad.lines.at(-1)]).toEqual([3, '206 passed, 1 failed, 0 skipped'])
})

test.each([
  ['a check that failed, which is shown', ['check.txt:1', 'short.json:0'], 'FAILED npm run check\nfile.ts:1: unused'],
  ['an error outside of all tests', ['check.txt:0', 'short.json:1'], ''],
])('%s is a failure, though every test passed', async (_, reports, said) => {
  await write('check.txt', 'file.ts:1: unused\n')
  await write('short.json', reportOf({ 'good.test.ts': { passed: 7 } }))
  const { status, lines, stdout } = sumUp(...reports)
  expect(stdout).toContain(said)
  expect([status, lines.at(-1)]).toEqual([3, '7 passed, 1 failed, 0 skipped'])
})

test.each([
  ['is not there', null],
  ['was cut off while it was written', '{"numPassedTests": 7, "testRes'],
])('a report that %s is another exit code than a failure, and nothing is summed up', async (_, text) => {
  if (text !== null) await write('short.json', text)
  const { status, stdout, stderr } = sumUp('check.txt:0', 'short.json:1')
  expect([status, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/short\.json|JSON/)
})
