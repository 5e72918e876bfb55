import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { openSecrets } from '../../../src/secrets/store.ts'
import { openJournal } from '../../../src/session/records/journal.ts'
import { openRecords, type Records } from '../../../src/session/records/records.ts'
import { cliContext } from '../../support/cli-context.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'

const KEY = 'SERVICE_API_KEY'
const VALUE = 'sk-live-0123456789abcdef'

let place: TestPlace
let records: Records
beforeAll(async () => {
  place = await makePlace('')
  records = await recordsOf(place.directory)
})
afterAll(() => place[Symbol.asyncDispose]())

const recordsOf = (directory: string) => openRecords({ ...cliContext(place), directory })
const typed = (args: readonly string[], options: Parameters<typeof codemachineHere>[2] = {}) =>
  codemachineHere(place, ['secret', ...args], options)
const stored = async (key: string, from = records) => (await openSecrets(from.secrets).get(key))?.value ?? null

describe('a value that comes through standard input', () => {
  test.each([
    ['as it is', VALUE, VALUE],
    ['without the line end at its end', `${VALUE}\n`, VALUE],
    ['without that of Windows', `${VALUE}\r\n`, VALUE],
    ['with all line ends but the last', '-----BEGIN\nKEY\n-----END\n\n', '-----BEGIN\nKEY\n-----END\n'],
    ['of the most bytes', `${'x'.repeat(64 * 1024)}\n`, 'x'.repeat(64 * 1024)],
    ['of other letters', 'Schlüssel-钥匙-4711', 'Schlüssel-钥匙-4711'],
  ])('is stored %s, for the person alone', async (_how, input, value) => {
    const { exitCode, stdout, stderr } = await typed(['set', KEY], { input })
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: `${KEY} is stored for ${records.directory}.\n`,
      stderr: '',
    })
    expect(await stored(KEY)).toBe(value)
    if (process.platform !== 'win32') {
      expect((await stat(join(records.secrets, `${KEY}.json`))).mode & 0o777).toBe(0o600)
    }
  })

  test.each<[string, string, string]>([
    ['empty', '', 'The value is empty; a secret has at least one byte. Nothing is stored.'],
    ['a line end alone', '\n', 'The value is empty; a secret has at least one byte. Nothing is stored.'],
    ['too long', 'x'.repeat(64 * 1024 + 1), 'The value has more than 64 KiB. Nothing is stored.'],
    ['huge', 'x'.repeat(2 * 1024 * 1024), 'The value has more than 64 KiB. Nothing is stored.'],
    ['binary', 'a\0b', 'The value contains a zero byte, and a variable cannot. Nothing is stored.'],
  ])('is refused if it is %s, and what was stored stays', async (_what, input, sentence) => {
    await typed(['set', 'OTHER_KEY'], { input: VALUE })
    const { exitCode, stdout, stderr } = await typed(['set', 'OTHER_KEY'], { input })
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(`codemachine: ${sentence} (CM0903)\n`)
    expect(stderr.length).toBeLessThan(500)
    expect(await stored('OTHER_KEY')).toBe(VALUE)
  })

  test('is taken with a warning if it is short', async () => {
    const { exitCode, stderr } = await typed(['set', 'SHORT_KEY'], { input: 'abc' })
    expect(exitCode).toBe(0)
    expect(stderr).toMatch(/^codemachine: .*withholds/)
    expect(stderr).not.toContain('abc')
  })
})

promise('T30')
promise('T43')
describe('what was typed wrong is refused in a sentence that repeats no value, and nothing is stored', () => {
  test.each<[string, string[], string]>([
    [
      'a value behind the name',
      ['set', KEY, VALUE],
      'secret set accepts one name, and only these options: --cd and --json and --check',
    ],
    ['a value in the name', ['set', `${KEY}=${VALUE}`], 'secret set accepts one name'],
    ['a value as a flag', ['set', KEY, '--value', VALUE], 'secret set accepts one name'],
    ['a value as a flag with its sign', ['set', KEY, `--value=${VALUE}`], 'secret set accepts one name'],
    ['a value in the place of the name', ['set', VALUE], 'This is not a valid name of a secret; use capital letters'],
    ['a value in the place of the command', [VALUE], 'Use secret set, list, rm, check or export'],
    ['a name and a value in that place', [KEY, VALUE], 'Use secret set, list, rm, check or export'],
    ['a value to be removed', ['rm', KEY, VALUE], 'secret rm accepts one name, and only these options: --cd'],
    ['a name in small letters', ['set', 'service_key'], 'This is not a valid name of a secret; use capital letters'],
    ['a name that is too long', ['set', 'A'.repeat(65)], 'This is not a valid name of a secret; use capital letters'],
    [
      'a name that changes what programs do',
      ['set', 'PATH'],
      'PATH cannot be the name of a secret, because it changes how',
    ],
    [
      'a name of the loader',
      ['set', 'LD_PRELOAD'],
      'LD_PRELOAD cannot be the name of a secret, because it changes how',
    ],
    ['no name', ['set'], 'codemachine secret set needs <KEY>'],
    ['an empty check', ['set', KEY, '--check', ' '], 'The check is empty; give a command, or leave it out.'],
    ['a directory that there is not', ['set', KEY, '-C', 'nowhere'], `${'nowhere'} is not a directory`],
    ['an export to nowhere', ['export', KEY], 'Name the file that gets the secret, such as --to .env.'],
    ['one that is not there', ['rm', 'MISSING_KEY'], 'There is no secret MISSING_KEY for '],
    ['the same to be exported', ['export', 'MISSING_KEY', '--to', '.env'], 'There is no secret MISSING_KEY for '],
  ])('%s', async (_what, args, sentence) => {
    const before = await readdir(records.secrets).catch(() => [])
    const { exitCode, stdout, stderr } = await typed(args, { input: 'another-value' })
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toContain(sentence)
    expect(stderr).not.toContain(VALUE)
    expect(await readdir(records.secrets).catch(() => [])).toEqual(before)
  })
})

test('the names of what is stored are listed, never a value, and what is removed is gone', async () => {
  await using other = await makePlace('')
  const there = (args: readonly string[], input = '') => codemachineHere(other, ['secret', ...args], { input })
  expect((await there(['list'])).stdout).toContain('There are no secrets for ')
  await there(['set', 'A_KEY', '--check', 'test -n "$A_KEY"'], VALUE)
  await there(['set', 'B_KEY'], VALUE)
  const { stdout } = await there(['list'])
  expect(stdout).toMatch(/^A_KEY +set \d{4}-\d\d-\d\d \d\d:\d\d +check: test -n "\$A_KEY"\nB_KEY +set .* no check\n$/)
  const json = await there(['list', '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject([
    { key: 'A_KEY', check: 'test -n "$A_KEY"' },
    { key: 'B_KEY', check: null },
  ])
  expect(stdout + json.stdout).not.toContain(VALUE)
  expect((await there(['rm', 'A_KEY'])).stdout).toContain('A_KEY is removed from ')
  expect(JSON.parse((await there(['list', '--json'])).stdout)).toMatchObject([{ key: 'B_KEY' }])
})

test('a check that was named stays with another value, and another check takes its place', async () => {
  await typed(['set', 'CHECKED', '--check', 'true'], { input: VALUE })
  await typed(['set', 'CHECKED'], { input: `${VALUE}2` })
  expect(await openSecrets(records.secrets).get('CHECKED')).toEqual({
    key: 'CHECKED',
    value: `${VALUE}2`,
    check: 'true',
  })
  await typed(['set', 'CHECKED', '--check', 'false'], { input: VALUE })
  expect((await openSecrets(records.secrets).get('CHECKED'))?.check).toBe('false')
})

test('a file in which a check leaves its secret is named and hidden, and nothing else stays of the check', async () => {
  const files = async () => (await readdir(place.directory)).sort()
  const before = await files()
  await typed(['set', 'LEFT_KEY', '--check', `echo "$LEFT_KEY" > left.log`], { input: VALUE })
  expect(await typed(['check', 'LEFT_KEY'])).toMatchObject({
    exitCode: 0,
    stderr: 'codemachine: Its check wrote the secret into left.log; agents can no longer read that.\n',
  })
  expect(openSecrets(records.secrets).hidden()).toContain('left.log')
  expect(await files()).toEqual([...before, 'left.log'].sort())
  expect(existsSync(records.traces)).toBe(false)
})

test('a check says whether the value is good, and is run with the secret as variable of it alone', async () => {
  await typed(['set', 'GOOD_KEY', '--check', `test "$GOOD_KEY" = ${VALUE}`], { input: VALUE })
  expect(await typed(['check', 'GOOD_KEY'])).toMatchObject({
    exitCode: 0,
    stdout: 'GOOD_KEY is there, and its check passes.\n',
  })
  await typed(['set', 'GOOD_KEY'], { input: 'another-value-4711' })
  const bad = await typed(['check', 'GOOD_KEY'])
  expect(bad).toMatchObject({
    exitCode: 4,
    stdout: '',
    stderr: expect.stringContaining('GOOD_KEY does not work. Its check exited with 1.'),
  })
  expect((await typed(['check', 'MISSING_KEY'])).exitCode).toBe(4)
  await typed(['set', 'PLAIN_KEY'], { input: VALUE })
  expect((await typed(['check', 'PLAIN_KEY'])).stdout).toBe('PLAIN_KEY is there; it has no check.\n')
})

test('a secret is exported into a file that git ignores, and nowhere else', async () => {
  await using other = await makePlace('')
  const there = (args: readonly string[], input = '') => codemachineHere(other, ['secret', ...args], { input })
  await there(['set', KEY], VALUE)
  const refused = await there(['export', KEY, '--to', '.env'])
  expect(refused).toMatchObject({ exitCode: 2, stdout: '', stderr: expect.stringContaining('.gitignore') })
  await writeFile(join(other.directory, '.gitignore'), '.env\n')
  expect(await there(['export', KEY, '--to', '.env'])).toMatchObject({ exitCode: 0 })
  const path = join(other.directory, '.env')
  expect(await readFile(path, 'utf8')).toContain(`${KEY}=`)
  if (process.platform !== 'win32') expect((await stat(path)).mode & 0o777).toBe(0o600)
})

const waits: SessionEvent[] = [
  sampleEvents['session-created'],
  {
    ...sampleEvents['session-ended'],
    outcome: {
      kind: 'needs-person',
      reason: 'A secret is missing.',
      hint: { do: 'secret', keys: [KEY], directory: '/x' },
    },
    exitCode: 4,
  } as SessionEvent,
]

/** A workspace with projects in which a session has run, and ended for want of a secret where it says so. */
async function workspaceWith(projects: Record<string, boolean>): Promise<Record<string, Records>> {
  const found: Record<string, Records> = {}
  for (const [name, isWaiting] of Object.entries(projects)) {
    const directory = join(place.directory, 'space', 'projects', name)
    await mkdir(directory, { recursive: true })
    const own = await recordsOf(directory)
    await mkdir(own.sessionFolder('20261120_1'), { recursive: true })
    await using journal = await openJournal(own.journal('20261120_1'))
    for (const event of recorded(isWaiting ? waits : waits.slice(0, 1))) journal.append(event)
    found[name] = own
  }
  return found
}

promise(
  'T46',
  'In a workspace `secret set` means the project whose session waits for that secret, and says how to go on',
)
test('in a workspace the project is meant whose session waits for that secret, and is told how to go on', async () => {
  const { shop } = await workspaceWith({ api: false, shop: true })
  const space = join(place.directory, 'space')
  const { exitCode, stdout, stderr } = await typed(['set', KEY, '-C', space], { input: VALUE })
  expect({ exitCode, stdout, stderr }).toEqual({
    exitCode: 0,
    stderr: '',
    stdout: `${KEY} is stored for ${shop?.directory}.\nTo continue: codemachine resume -C ${shop?.directory}\n`,
  })
  expect(await stored(KEY, shop)).toBe(VALUE)
  await workspaceWith({ web: true })
  const two = await typed(['set', KEY, '-C', space], { input: VALUE })
  expect({ exitCode: two.exitCode, stdout: two.stdout }).toEqual({ exitCode: 2, stdout: '' })
  expect(two.stderr).toMatch(
    /contains several projects; name one of them with -C\. \(CM1008\)\n {2}One of: -C \S+\/shop, -C \S+\/web\n$/,
  )
  const none = await typed(['set', 'OTHER_KEY', '-C', space], { input: VALUE })
  expect(none.stderr).toMatch(/One of: -C \S+\/api, -C \S+\/shop, -C \S+\/web\n$/)
})
