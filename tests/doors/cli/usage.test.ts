import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { BIN, codemachine, type StartOptions } from '../../support/codemachine.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

const TIME = 'a time with its unit from 1 second to 365 days, such as "8h", "90m" or "1h30m"'

/** What is said and the exit code; fails if anything was written in the work directory. In this process, if not of another build. */
async function refusal(
  place: TestPlace,
  args: readonly string[],
  options: StartOptions = {},
): Promise<[number | null, string]> {
  const before = await readdir(place.directory)
  const { exitCode, stdout, stderr } = await (options.bin ? codemachine : codemachineHere)(place, args, options)
  expect(stdout).toBe('')
  expect(await readdir(place.directory)).toEqual(before)
  return [exitCode, stderr]
}

promise('O137', 'A text that begins with a dash, or is in UTF-16, is refused with how to give it')
describe('what was typed wrong is said in a sentence, with exit code 2, before anything is written', () => {
  const empty = 'codemachine: The prompt is empty; say what to do. (CM0107)\n'
  test.each<[string, string[], string | RegExp, StartOptions?]>([
    ['an empty goal', [''], empty],
    ['a goal of blanks', [' \n\t '], empty],
    ['an empty goal from stdin', ['-'], empty, { input: '\n' }],
    [
      'a goal that begins with a dash',
      ['- mend it'],
      /^codemachine: codemachine has no option - mend it\. \(CM0102\)\n {2}.*codemachine -- "- …".* codemachine -\n$/,
    ],
    [
      'a prompt that begins with a dash',
      ['queue', 'add', '- mend it'],
      /^codemachine: queue add has no option.*\n {2}.*codemachine queue add -- "- …"/,
    ],
    ['an option of a command that takes no text', ['list', '-x'], 'codemachine: list has no option -x. (CM0102)\n'],
    ...['\uFEFFmend it', 'mend it'].map<[string, string[], string, StartOptions]>(text => [
      `a goal in UTF-16 ${text === 'mend it' ? 'without' : 'with'} its mark`,
      ['-'],
      'codemachine: Standard input is not UTF-8 text; convert it to UTF-8. (CM0107)\n',
      { input: Buffer.from(text, 'utf16le') },
    ]),
    ['no goal at all', [], /^codemachine: There is no goal, and the queue is empty\. \(CM0104\)\n {2}.*codemachine -/],
    [
      'no rounds',
      ['--rounds', '0', 'x'],
      'codemachine: --rounds is "0"; use a whole number from 1 to 100000. (CM0202)\n',
    ],
    [
      'rounds in letters',
      ['--rounds', 'x', 'x'],
      'codemachine: --rounds is "x"; use a whole number from 1 to 100000. (CM0202)\n',
    ],
    ...['banana', '8', '-3h', '1h banana', '1e9h', ''].map<[string, string[], string]>(text => [
      `a time that is ${JSON.stringify(text)}`,
      ['--max-time', text, 'x'],
      `codemachine: --max-time is "${text}"; use ${TIME}. (CM0202)\n`,
    ]),
    ['a wait without its unit', ['--max-wait', '24', 'x'], `codemachine: --max-wait is "24"; use ${TIME}. (CM0202)\n`],
    [
      'tokens that are no number',
      ['--max-tokens', 'lots', 'x'],
      'codemachine: --max-tokens is "lots"; use a whole number of tokens up to 1000000M, such as 5000000, "5M" or "500k". (CM0202)\n',
    ],
    [
      'more of a window than there is',
      ['--max-usage', '101%', 'x'],
      'codemachine: --max-usage is "101%"; use a percentage from 1 to 100, such as 90 or "90%". (CM0202)\n',
    ],
    [
      'a limit without its value',
      ['--max-time'],
      /^codemachine: --max-time needs a value: --max-time <duration> \(CM0102\)\n$/,
    ],
    [
      'CODEMACHINE_MAX_TIME without its unit',
      ['x'],
      `codemachine: CODEMACHINE_MAX_TIME is "8"; use ${TIME}. (CM0202)\n`,
      { env: { CODEMACHINE_MAX_TIME: '8' } },
    ],
    [
      'a sandbox that there is not',
      ['--sandbox', 'foo', 'x'],
      /^.*--sandbox.*foo.*read-only.*workspace-write.*danger-full-access.*\n$/,
    ],
    ['an option that there is not', ['--frob', 'x'], /^(codemachine|error): .*--frob/],
    [
      'a command that is nearly one',
      ['quue'],
      'codemachine: There is no command "quue"; did you mean "codemachine queue"? (CM0101)\n  If "quue" is a goal, describe it in more than one word.\n',
    ],
    [
      'words of which the first is nearly a command',
      ['quue', 'add', 'x'],
      'codemachine: There is no command "quue"; did you mean "codemachine queue"? (CM0101)\n  If it is a goal, put it in quotes.\n',
    ],
    [
      'a directory that there is not',
      ['-C', 'nowhere', 'x'],
      /^codemachine: .*\/work\/nowhere cannot be used as the work directory: .*\n$/,
    ],
    [
      'a directory below a file',
      ['-C', 'README.md/x', 'x'],
      /^codemachine: .*README\.md\/x cannot be used as the work directory: .*\n$/,
    ],
    [
      'a codex that there is not',
      ['--codex-bin', './no-codex', 'x'],
      /^codemachine: --codex-bin names .*no-codex, but there is no such file; correct --codex-bin or leave it out\. \(CM0304\)\n$/,
    ],
    [
      'CODEMACHINE_ROUNDS in letters',
      ['x'],
      'codemachine: CODEMACHINE_ROUNDS is "many"; use a whole number from 1 to 100000. (CM0202)\n',
      { env: { CODEMACHINE_ROUNDS: 'many' } },
    ],
    [
      'a CODEX_HOME that there is not',
      ['x'],
      /^codemachine: CODEX_HOME is \/nowhere, which is not a directory; create it, or unset CODEX_HOME\. \(CM0305\)\n$/,
      { env: { CODEX_HOME: '/nowhere' } },
    ],
  ])('%s', async (_what, args, said, options = {}) => {
    await using place = await makePlace('')
    expect(await refusal(place, args, options)).toEqual([
      2,
      typeof said === 'string' ? said : expect.stringMatching(said),
    ])
  })
})

promise('O6', 'A mistake of usage is one sentence with its place (exit code 2)')
test('a codemachine.toml with a mistake is named with its line and key', async () => {
  await using place = await makePlace('')
  await writeFile(join(place.directory, 'codemachine.toml'), '# ours\nrounds = "many"\n')
  expect(await refusal(place, ['x'])).toEqual([
    2,
    'codemachine: codemachine.toml:2: rounds is "many"; use a whole number from 1 to 100000. (CM0202)\n',
  ])
})

test('with no codex anywhere, the way to install one is said', async () => {
  await using place = await makePlace('')
  const installed = join(place.root, 'codemachine')
  for (const part of ['dist', 'prompts', 'config', 'settings.js', 'package.json'])
    await cp(join(dirname(BIN), '..', part), join(installed, part), { recursive: true })
  const options = { bin: join(installed, 'dist', 'bin.js'), env: { PATH: '/usr/bin:/bin' } }
  const [exitCode, said] = await refusal(place, ['x'], options)
  expect([exitCode, said]).toEqual([
    2,
    expect.stringMatching(/^codemachine: No codex was found: .*\n {2}Install codex with `npm install/),
  ])
})

test('a codex that is too old is refused with the version that is needed', async () => {
  await using place = await makePlace('')
  const old = join(place.root, 'codex')
  await writeFile(old, '#!/bin/sh\necho codex-cli 0.50.0\n')
  await chmod(old, 0o755)
  const [exitCode, said] = await refusal(place, ['--codex-bin', old, 'x'])
  expect(exitCode).toBe(2)
  expect(said).toMatch(
    /^codemachine: --codex-bin names .* is codex 0\.50\.0, but codemachine needs \d+\.\d+\.\d+ or newer\. \(CM0303\)\n {2}Update it with .*\n$/,
  )
})

test('a work directory that cannot be written to is named, and no session begins', async () => {
  await using place = await makePlace('')
  // A file where a folder has to be: what root cannot write to either.
  await writeFile(join(place.directory, '.codemachine'), '')
  const [exitCode, said] = await refusal(place, ['x'])
  expect([exitCode, said]).toEqual([2, expect.stringMatching(/^codemachine: .*\.codemachine.*\n$/)])
  expect((await codemachineHere(place, ['list', '--json'])).stdout).toBe('[]\n')
})

test('records that cannot be kept are said so', async () => {
  await using place = await makePlace('')
  await writeFile(join(place.home, '.codemachine'), '')
  const [exitCode, said] = await refusal(place, ['x'])
  expect([exitCode, said]).toEqual([
    2,
    expect.stringMatching(
      /^codemachine: codemachine cannot store its records in .*: a file is in the way\. \(CM0609\)\n {2}Set CODEMACHINE_HOME to .*\n$/,
    ),
  ])
})

test('a goal from standard input, several lines long, is taken as it is', async () => {
  await using scene = await openScene([round(claimDone)])
  const input = 'build X\n\n- with "quotes"\n- and 🚀\n'
  const { exitCode, events } = await scene.command(['--json', '-'], { input }).ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-created')).toMatchObject([{ goal: input.trim() }])
})

test('-C works in another directory', async () => {
  await using scene = await openScene([round('touch there', claimDone), round(claimDone)])
  const other = join(scene.place.root, 'other')
  await mkdir(other)
  expect(await scene.run('-C', '../other', 'build X')).toMatchObject({ exitCode: 0 })
  expect(existsSync(join(other, 'there'))).toBe(true)
  expect((await scene.run('list', '-C', other)).stdout).toContain('build X')
})

test('help and version are printed with exit code 0', async () => {
  await using place = await makePlace('')
  expect(await codemachineHere(place, ['--help'])).toMatchObject({
    exitCode: 0,
    stderr: '',
    stdout: expect.stringContaining('codemachine help options'),
  })
  expect(await codemachineHere(place, ['--version'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
  })
  expect(await codemachineHere(place, ['queue', '--help'])).toMatchObject({ exitCode: 0, stderr: '' })
})
