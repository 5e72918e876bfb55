import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { CheckOfSentence, Control } from '../../../src/core/rules/contract.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { runCheck, tryControl } from '../../../src/project/proof/contract-checks.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { openFingerprints } from '../../../src/workspace/fingerprint/fingerprint.ts'
import { setupIn } from '../../engines/contract.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

const FILES = {
  'small.mjs':
    'export function small(text) {\n  return text.toLowerCase()\n}\nexport const size = text => text.length\n',
  'run.sh': 'echo "$1" | tr A-Z a-z\n',
  'readme.txt': 'hello\n',
}

let place: TestPlace
let on: { tree: string; signal: AbortSignal }
let means: Parameters<typeof runCheck>[2]

beforeAll(async () => {
  place = await makePlace('')
  for (const [path, text] of Object.entries(FILES)) await writeIn(path, text)
  const { directory, env, home } = place
  const records = await openRecords({ directory, env, home, platform: process.platform, templates: OWN_TEMPLATES })
  await mkdir(records.folder, { recursive: true })
  const fingerprints = await openFingerprints({ gitDir: records.git, directory, repository: null, env })
  on = { tree: await fingerprints.take(), signal: new AbortController().signal }
  const commands = await setupIn(place)
  means = { fingerprints, key: records.key, commands, redact: text => text, unreadable: [] }
})
afterAll(() => place[Symbol.asyncDispose]())

async function writeIn(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(place.directory, path)), { recursive: true })
  await writeFile(join(place.directory, path), text)
}

function check(sentence: string, run: string, files: Record<string, string> = {}, number = 1): CheckOfSentence {
  const laid = Object.entries(files).map(([path, text]) => ({ path, text }))
  return { sentence, number, check: { run, seconds: 30, needs: null, files: laid } }
}

const redFirst = (run: string, files: Record<string, string> = {}) =>
  runCheck(check('S1', run, files), { ...on, when: 'before', failedHere: null, timeoutMs: 30_000 }, means)

promise('D79')
describe('a check that fails before the work', () => {
  test.each([
    ['imports what is not there yet', `import { slug } from '../../../slug.mjs'\nslug('a')\n`],
    ['imports a name that is not there yet', `import { slug } from '../../../small.mjs'\nslug('a')\n`],
    [
      'finds another result',
      `import { size } from '../../../small.mjs'\nif (size('a') !== 2) throw new Error('size')\n`,
    ],
  ])('says something where it %s', async (_, text) => {
    expect(await redFirst('node {files}/a.mjs', { 'a.mjs': text })).toMatchObject({
      status: 'failed',
      cannotRun: false,
    })
  })

  test.each([
    ['does not parse', 'node {files}/a.mjs', { 'a.mjs': 'const = 1\n' }],
    ['is a script that does not parse', 'sh {files}/a.sh', { 'a.sh': 'if true; echo\n' }],
    ['is not among its files', 'node {files}/b.mjs', { 'a.mjs': '' }],
    ['looks for the project in the wrong folder', 'node {files}/a.mjs', { 'a.mjs': `import '../../small.mjs'\n` }],
    ['has no program that runs it', 'no-such-runner {files}/a.mjs', { 'a.mjs': '' }],
  ])('says nothing where it %s', async (_, run, files) => {
    expect(await redFirst(run, files)).toMatchObject({ status: 'failed', cannotRun: true })
  })
})

promise('D95', 'The work cannot know where the files of a check lie while it runs')
test.each([
  ['has a test that reads the files of a check', `import '../.codemachine/checks/S1-1/a.mjs'\n`, 'failed'],
  [
    'is right only while the folder of checks is there',
    `import { existsSync } from 'node:fs'\nif (!existsSync('.codemachine')) throw new Error('wrong')\n`,
    'failed',
  ],
  ['is right', '', 'passed'],
])('work that %s gains nothing from it', async (_, text, status) => {
  await writeIn('work/sly.mjs', text)
  const tree = await means.fingerprints.take()
  const of = check('S1', 'node {files}/a.mjs && node work/sly.mjs', { 'a.mjs': `import '../../../small.mjs'\n` })
  const came = await runCheck(of, { ...on, tree, when: 'second', failedHere: null, timeoutMs: 30_000 }, means)
  expect(came).toMatchObject({ status, cannotRun: false })
})

test('what a check prints names its files as the contract does', async () => {
  const { output } = await redFirst('echo {files}/a.mjs; node {files}/a.mjs', { 'a.mjs': 'throw new Error()\n' })
  expect(output).toMatch(/^\.codemachine\/checks\/S1-1\/a\.mjs$/m)
  expect(output).toMatch(/\/\.codemachine\/checks\/S1-1\/a\.mjs:1/)
})

promise('D92')
describe('a check of a claim', () => {
  const FAILED = {
    status: 'failed',
    exitCode: 3,
    output: 'no',
    durationMs: 1,
    problem: null,
    cannotRun: false,
  } as const
  /** Each run prints a dot to a file outside of the copies, and fails if there are so many. */
  const claimed = async (failing: string, failedHere: typeof FAILED | null = null) => {
    const log = join(place.directory, `runs-${failing.length}-${failedHere === null}`)
    await writeFile(log, '')
    const run = `printf . >> '${log}'; ! grep -qxE '${failing}' '${log}'`
    const on1 = { ...on, when: 'claim', failedHere, timeoutMs: 30_000 } as const
    const { status, exitCode } = await runCheck(check('S1', run), on1, means)
    return [status, exitCode, (await readFile(log, 'utf8')).length]
  }

  test.each([
    ['passes at once', '-', null, ['passed', 0, 1]],
    ['fails once by chance, and then passes three times', '.', null, ['flaky', 1, 4]],
    ['fails again among these', '.|.{3}', null, ['failed', 1, 3]],
    ['fails twice', '.{1,2}', null, ['failed', 1, 2]],
    ['failed at an earlier claim, and passes three times', '-', FAILED, ['flaky', 3, 3]],
    ['failed at an earlier claim, and passes only once', '.{2}', FAILED, ['failed', 1, 2]],
  ])('that %s', async (_, failing, failedHere, came) => {
    expect(await claimed(failing, failedHere)).toEqual(came)
  })
})

promise('D81')
describe('a wrong version', () => {
  const SMALL = check('S1', 'node {files}/a.mjs', {
    'a.mjs': `import { small } from '../../../small.mjs'\nif (small('AB') !== 'ab') process.exit(1)\n`,
  })
  const SIZE = check('S2', 'node {files}/a.mjs', {
    'a.mjs': `import { size } from '../../../small.mjs'\nif (size('abc') !== 3) process.exit(1)\n`,
  })
  const tried = (edits: Control['edits'], bystanders = [SIZE]) =>
    tryControl(
      { id: 'S1', quote: '', kind: 'must', reason: null, checks: [SMALL.check] },
      { summary: '', edits },
      { ...on, bystanders, mostMs: 30_000 },
      means,
    )
  const edit = (find: string | null, text: string, path = 'small.mjs') => ({ path, find, text })

  test('is caught where a check fails on it and another sentence still holds', async () => {
    const version = await tried([edit('text.toLowerCase()', 'text')])
    expect(version).toMatchObject({ result: 'caught', check: 1, problem: null })
    expect(version?.diff).toContain('-  return text.toLowerCase()')
  })

  test('is not caught by a check that fails on it only once, by chance', async () => {
    const log = join(place.directory, 'runs-of-version')
    await writeFile(log, '')
    const { check: byChance } = check('S1', `printf . >> '${log}'; ! grep -qxE '.' '${log}'`)
    const sentence = { id: 'S1', quote: '', kind: 'must', reason: null, checks: [byChance] } as const
    const control = { summary: '', edits: [edit('text.toLowerCase()', 'text')] }
    expect(await tryControl(sentence, control, { ...on, bystanders: [], mostMs: 30_000 }, means)).toMatchObject({
      result: 'not-caught',
    })
    expect(await readFile(log, 'utf8')).toBe('..')
  })

  test('is not caught where nothing fails on it', async () => {
    expect(await tried([edit('text.toLowerCase()', "'ab'")])).toMatchObject({ result: 'not-caught' })
  })

  test.each([
    ['a file of it does not parse', [edit('return', 'return (')], [], 'One of its files does not parse.'],
    [
      'it also breaks the checks of all other sentences',
      [edit('export function', 'throw 1\nexport function')],
      [SIZE],
      'It also breaks the checks of all other sentences.',
    ],
  ])('does not count where %s', async (_, edits, bystanders, problem) => {
    expect(await tried(edits, bystanders)).toMatchObject({ result: 'broken', check: null, problem })
  })

  test.each([
    ['nothing is different', [edit('size', 'size')]],
    ['only the ends of lines are', [edit('{\n  return', '{  \n\n  return')]],
  ])('is the same program where %s', async (_, edits) => {
    expect(await tried(edits)).toMatchObject({ result: 'same', diff: '' })
  })

  test.each([
    ['only adds a file', [edit(null, 'x', 'other.mjs')], 'It changes no file that is part of the work.'],
    [
      'replaces what is not there',
      [edit('nothing', 'x')],
      /^The text that it replaces in small\.mjs does not occur there/,
    ],
  ])('is not tried where it %s', async (_, edits, problem) => {
    expect(await tried(edits)).toMatchObject({ result: 'not-tried', problem: expect.stringMatching(problem) })
  })
})
