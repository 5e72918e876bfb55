import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import packageJson from '../../../../package.json' with { type: 'json' }
import { codemachine } from '../../../support/codemachine.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'

const bin = fileURLToPath(new URL('../../../../dist/codex-flow.js', import.meta.url))

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('', { git: false })
})
afterAll(() => place[Symbol.asyncDispose]())

/** What `codex-flow` says, as the built program. */
const codexFlow = (...args: string[]) => codemachine(place, args, { bin })

test('codex-flow is a program of the package', async () => {
  expect(packageJson.bin).toEqual({ codemachine: 'dist/bin.js', 'codex-flow': 'dist/codex-flow.js' })
  expect(await readFile(bin, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
})

test('codex-flow --version says the version, and nothing else', async () => {
  expect(await codexFlow('--version')).toMatchObject({ exitCode: 0, stdout: `${packageJson.version}\n`, stderr: '' })
})

test('on a Node that is too old codex-flow says so by its own name', async () => {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '20.20.2' }); await import(${JSON.stringify(bin)})`
  const ended = promisify(execFile)(process.execPath, ['--input-type=module', '-e', pretend])
  await expect(ended).rejects.toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^codex-flow needs Node 22\.12 or newer, and this is Node 20\.20\.2;/),
  })
})

promise(
  'F31',
  '`codex-flow` is a program of the package with its own help, version, completions and name in what it says, and the same as `codemachine flow`',
)
test('codex-flow --help names its commands and nothing of codemachine', async () => {
  const { exitCode, stdout, stderr } = await codexFlow('--help')
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toMatchSnapshot()
})

test('codex-flow run --help names all of its flags', async () => {
  const { exitCode, stdout } = await codexFlow('run', '--help')
  expect(exitCode).toBe(0)
  expect(stdout).toMatchSnapshot()
})

promise('F31')
test('codex-flow help explains the code of an error, and shows the help of a command', async () => {
  expect(await codexFlow('help', 'CM0601')).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^CM0601: /) })
  expect((await codexFlow('help', 'run')).stdout).toBe((await codexFlow('run', '--help')).stdout)
})

promise('F31')
test('codemachine flow has the same commands and flags', async () => {
  for (const command of [[], ['init'], ['run'], ['list'], ['validate'], ['show']]) {
    const own = (await codexFlow(...command, '--help')).stdout
    const { stdout } = await codemachineHere(place, ['flow', ...command, '--help'])
    const ofFlow = (text: string) =>
      text
        .replace(/^ {2}(-V, --version|complete).*\n( {10}.*\n)*/gm, '')
        .replaceAll('codemachine flow', 'codex-flow')
        .replace(/\s+/g, ' ')
        .replace('. Options:', ' Options:')
        .toLowerCase()
    expect(ofFlow(stdout)).toBe(ofFlow(own))
  }
})

promise('F31')
test.each(['zsh', 'bash', 'fish', 'powershell'])('codex-flow prints a script for %s that completes it', async shell => {
  const { exitCode, stdout, stderr } = await codexFlow('complete', shell)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toContain('codex-flow')
  expect(stdout).not.toContain('codemachine')
})

test.each<[string[], string[]]>([
  [['va'], ['validate']],
  [['run', '--no-m'], ['--no-mock']],
  [
    ['run', '--sandbox', ''],
    ['read-only', 'workspace-write', 'danger-full-access'],
  ],
])('what is completed of codex-flow after %j', async (words, expected) => {
  const suggestions = (text: string) =>
    text
      .split('\n')
      .filter(line => line !== '' && !/^:\d+$/.test(line))
      .map(line => line.split('\t')[0])
  expect(suggestions((await codexFlow('complete', '--', ...words)).stdout)).toEqual(expected)
  expect(suggestions((await codemachine(place, ['complete', '--', 'flow', ...words])).stdout)).toEqual(expected)
})

test.each<[string[], string]>([
  [['valdate'], 'There is no command "valdate"; did you mean "codex-flow validate"?'],
  [
    ['workflows/x.workflow.toml'],
    'There is no command "workflows/x.workflow.toml"; to run that file: codex-flow run workflows/x.workflow.toml',
  ],
  [['frobnicate'], 'There is no command "frobnicate"; codex-flow --help lists them.'],
  [
    ['run'],
    'codex-flow run needs <file>: a workflow file, such as .codex-flow/workflows/commit.workflow.toml, or a name of `list`.',
  ],
  [['run', 'x.toml', '--mock', '--no-mock'], '--mock and --no-mock cannot be combined; leave one of them out.'],
  [['run', 'x.toml', '--no-mock', '--mock'], '--mock and --no-mock cannot be combined; leave one of them out.'],
  [['run', 'x.toml', '--pace', 'fast'], '--pace is "fast"; use a number of seconds from 0 to 3600, such as 0.5.'],
  [['run', 'x.toml', '--pace', '-1'], '--pace is "-1"; use a number of seconds from 0 to 3600, such as 0.5.'],
  [['run', 'x.toml', '--rounds', 'x'], '--rounds is "x"; use a whole number from 1 to 100000.'],
  [['run', 'x.toml', '--frob=1'], 'run has no option --frob;'],
])('%j is refused in a sentence that begins with the name of the program', async (args, said) => {
  const own = await codexFlow(...args)
  expect({ ...own, stderr: own.stderr.slice(0, said.length + 12) }).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: `codex-flow: ${said}`,
  })
  const { exitCode, stderr } = await codemachineHere(place, ['flow', ...args])
  expect([exitCode, stderr.split('\n')[0]]).toEqual([
    2,
    own.stderr
      .split('\n')[0]
      ?.replaceAll(/codex-flow (?=run|validate|--help)/g, 'codemachine flow ')
      .replace(/^codex-flow:/, 'codemachine:')
      .replace(': run has', ': flow run has'),
  ])
})

test('a program that a file names is said not to be started, by a mock run and a dry run', async () => {
  await using other = await makePlace('', { git: false })
  const file = `[engines.codex]
bin = "./evil"
[agents.writer]
prompt = "p.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "a"
`
  const debug = join(other.directory, '.codex-flow/runtime/debug')
  await mkdir(debug, { recursive: true })
  await writeFile(join(other.directory, 'x.toml'), file)
  await writeFile(join(other.directory, 'p.md'), 'You write.\n')
  await writeFile(join(debug, '1-a.json'), '{"type":"turn.started"}\n{"type":"turn.completed"}\n')
  const said = 'x.toml:2:7: engines.codex.bin: "./evil" is not started here, and a real run uses it only if'
  const dry = await codemachineHere(other, ['flow', 'run', 'x.toml', '--dry-run'])
  expect([dry.exitCode, dry.stderr]).toEqual([0, expect.stringContaining(said)])
  const mock = await codemachineHere(other, ['flow', 'run', 'x.toml', '--pace', '0', '--plain'])
  expect([mock.exitCode, mock.stdout]).toEqual([0, expect.stringContaining(said)])
})

test('a value for a workflow that holds a secret of the project is refused, and not shown', async () => {
  await using project = await makePlace('')
  const stored = await codemachineHere(project, ['secret', 'set', 'SHOP_KEY'], { input: 'sk-live-0123456789' })
  for (const args of [['show', 'x.toml'], ['validate'], ['run', 'x.toml']]) {
    const { exitCode, stderr } = await codemachineHere(project, ['flow', ...args, '--var', 'key=sk-live-0123456789'])
    expect({ stored: stored.exitCode, exitCode }).toEqual({ stored: 0, exitCode: 2 })
    expect(stderr).toContain('holds the secret SHOP_KEY; agents must not get secrets')
    expect(stderr).not.toContain('sk-live')
  }
})
