import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect } from 'vitest'
import { type Ended, startCodemachine } from '../../../support/codemachine.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../../support/place.ts'
import { promise } from '../../../support/promise.ts'
import { describe, test } from '../../../support/side-by-side.ts'

const bin = fileURLToPath(new URL('../../../../dist/codex-flow.js', import.meta.url))
const GUIDE = fileURLToPath(new URL('../../../../docs/guides/workflows.md', import.meta.url))
const COMMIT = '.codex-flow/workflows/commit.workflow.toml'

// `onTestFinished` would remove what another test uses: side by side, it takes the one that began last for its own.
const atEnd = new AsyncDisposableStack()
afterAll(() => atEnd.disposeAsync())

/**
 * A repository without a commit, on a machine without codex and git, with the workflow of `init` in it. Commands are typed in this
 * process; `start` is the built program.
 */
async function initialized() {
  const place = atEnd.use(await makePlace('', { git: false }))
  git(place, 'init', '-q')
  const programs = join(place.root, 'bin')
  await mkdir(programs)
  const env = { PATH: programs }
  const codexFlow = (...args: string[]) => codemachineHere(place, args, { program: 'codex-flow', env })
  const start = (...args: string[]) => startCodemachine(place, args, { bin, env })
  const prints = async (...args: string[]) => stdoutOf(await codexFlow(...args))
  const made = await prints('init')
  return { place, codexFlow, prints, start, made }
}

/** What was printed; fails with what it was refused with. */
function stdoutOf({ exitCode, signal, stdout, stderr }: Ended): string {
  expect({ exitCode, signal, stderr }).toEqual({ exitCode: 0, signal: null, stderr: '' })
  return stdout
}

/** Writes a workflow of steps with these lines each. */
async function writeFlow({ directory }: TestPlace, steps: readonly string[]): Promise<void> {
  const text = steps.map(lines => `[[workflow.steps]]\nagent = "a"\n${lines}\n`).join('\n')
  await writeFile(join(directory, 'p.md'), 'Do it.\n')
  await writeFile(join(directory, 'x.workflow.toml'), `[agents.a]\nprompt = "p.md"\n\n[workflow]\n${text}`)
}

test('init names each file that it lays down, and the commands that try it', async () => {
  const { place, prints, made } = await initialized()
  const lines = made.split('\n\n')[0]?.split('\n') ?? []
  for (const line of lines) {
    const [, path = 'none'] = /^made {2}(\.codex-flow\/.+)$/.exec(line) ?? []
    expect(existsSync(join(place.directory, path)), line).toBe(true)
  }
  expect(lines).toContain('made  .codex-flow/flow.toml')
  expect(made).toContain(`\n  codex-flow run ${COMMIT}\n`)
  expect(made).toContain(`\n  codex-flow run ${COMMIT} --no-mock\n`)
  await writeFile(join(place.directory, '.codex-flow/flow.toml'), '# mine\n')
  expect(await prints('init')).toContain('kept  .codex-flow/flow.toml\n')
  expect(await readFile(join(place.directory, '.codex-flow/flow.toml'), 'utf8')).toBe('# mine\n')
  expect(await prints('init', '--force')).toContain('replaced  .codex-flow/flow.toml\n')
})

test('init lays the workflow down at the top of the repository, or where it is told', async () => {
  const { place } = await initialized()
  const sub = join(place.directory, 'a/b')
  await mkdir(sub, { recursive: true })
  const inSub = async (...args: string[]) =>
    stdoutOf(await codemachineHere(place, args, { program: 'codex-flow', cwd: sub }))
  expect(await inSub('init')).toContain('kept  ../../.codex-flow/flow.toml\n')
  expect(await inSub('init', '--dir', '.')).toContain('made  .codex-flow/flow.toml\n')
  expect((await inSub('list')).split('\n').map(line => line.split(' ')[0])).toEqual([
    '.codex-flow/flow.toml',
    COMMIT,
    '../../.codex-flow/flow.toml',
    `../../${COMMIT}`,
    '',
  ])
})

test('init with templates of the person names a workflow of theirs', async () => {
  const { place, prints } = await initialized()
  await mkdir(join(place.directory, 'mine/workflows'), { recursive: true })
  await writeFile(join(place.directory, 'mine/workflows/notes.workflow.toml'), '# mine\n')
  expect(await prints('init', '--dir', 'mine', '--templates-dir', 'mine')).toContain(
    '\n  codex-flow validate mine/.codex-flow/workflows/notes.workflow.toml\n',
  )
  const file = '.codex-flow/workflows/notes.workflow.toml'
  const whole = [
    'name = "notes"',
    '[agents.writer]',
    'prompt = "prompts/write.md"',
    '[workflow]',
    '[[workflow.steps]]',
    'agent = "writer"',
    'description = "notes"',
    '[workflow.steps.input]',
    'template = "About {{topic}}"',
  ]
  for (const folder of ['prompts', 'workflows']) await mkdir(join(place.directory, 'own', folder), { recursive: true })
  await writeFile(join(place.directory, 'own/prompts/write.md'), 'Write.\n')
  await writeFile(join(place.directory, 'own/workflows/notes.workflow.toml'), `${whole.join('\n')}\n`)
  const said = await prints('init', '--templates-dir', 'own', '--force')
  expect(said).toContain('It cannot be replayed yet: 1 step of it has no recording.')
  expect(said).toContain(`\n  codex-flow run ${file} --var 'topic=…' --no-mock\n`)
  await mkdir(join(place.directory, '.codex-flow/runtime/debug'), { recursive: true })
  await writeFile(join(place.directory, '.codex-flow/runtime/debug/1-notes.json'), '{"type":"turn.started"}\n')
  expect(await prints('init', '--templates-dir', 'own')).toContain(`\n  codex-flow run ${file} --var 'topic=…'\n`)
})

promise(
  'F30',
  'The commands of the guide work after `codex-flow init` in an empty repository, without an account, codex or git',
)
promise(
  'F32',
  'The first and the last line of a mock run say that no model is asked and how the same is run for real; nothing is said of one that is refused',
)
test('the commands of the guide work in an empty repository, without an account, codex or git', async () => {
  const guide = await readFile(GUIDE, 'utf8')
  const commands = [...guide.matchAll(/^codex-flow (.+?) +#/gm)].map(([, words = '']) => words.split(' ')).slice(0, 3)
  expect(commands.map(([command]) => command)).toEqual(['init', 'run', 'run'])
  const { place, start } = await initialized()
  await rm(join(place.directory, '.codex-flow'), { recursive: true })
  const [init = [], replay = []] = commands
  expect(await start(...init).ended).toMatchObject({ exitCode: 0, stderr: '' })
  const { exitCode, stdout, stderr } = await start(...replay).ended
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  const lines = stdout.trimEnd().split('\n')
  const forReal = `For real: codex-flow run ${COMMIT} --no-mock`
  expect(lines[0]).toBe(`Mock run: no model is asked. ${forReal}`)
  expect(lines.at(-1)).toBe(`Mock run: no model was asked. ${forReal}`)
  expect(stdout).toContain('Step 1/1: commit-message')
  expect(stdout).toContain('| codex exec --model gpt-5')
  expect(stdout).toContain('A greeting without a name')
  const printed = await start('run', '.codex-flow/flow.toml', '--dry-run').ended
  expect(printed).toMatchObject({ exitCode: 0, stderr: '' })
  expect(printed.stdout).toContain('Write a commit message in the usual form for this diff:')
  expect(existsSync(join(place.directory, 'COMMIT_MESSAGE.md'))).toBe(false)
})

describe('a mock run', () => {
  test('plays the sample recording for the older form of the file, too', async () => {
    const { codexFlow } = await initialized()
    const { exitCode, stdout, stderr } = await codexFlow('run', '.codex-flow/flow.toml', '--pace', '0', '--verbose')
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toContain('A greeting without a name')
  })

  test('prints events alone with --json, and the two lines on stderr', async () => {
    const { codexFlow } = await initialized()
    const { exitCode, stdout, stderr, events } = await codexFlow('run', COMMIT, '--pace', '0', '--json')
    expect(exitCode).toBe(0)
    expect(stdout.trimEnd().split('\n')).toHaveLength(events.length)
    expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'replayed' } })
    expect(stderr).toMatch(/^Mock run: no model is asked\. .+\nMock run: no model was asked\. .+\n$/)
  })

  test('writes its output file with --write', async () => {
    const { place, codexFlow } = await initialized()
    expect(await codexFlow('run', COMMIT, '--pace', '0', '--write')).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await readFile(join(place.directory, 'COMMIT_MESSAGE.md'), 'utf8')).toContain('A greeting without a name')
  })

  promise('F32')
  test('names in its last line how the same is run for real', async () => {
    const { prints } = await initialized()
    const typed = ['run', COMMIT, '--pace', '0', '--var', 'diff=a b', '--workflow', 'commit_flow']
    expect((await prints(...typed)).trimEnd()).toMatch(
      / For real: codex-flow run \S+ --no-mock --workflow commit_flow --var 'diff=a b'$/,
    )
  })

  promise('F32')
  test('without a recording is refused before anything is said of it, with the file and the way to run it', async ({
    expect,
  }) => {
    const { place, codexFlow } = await initialized()
    await rm(join(place.directory, '.codex-flow/runtime/debug'), { recursive: true })
    const { exitCode, stdout, stderr } = await codexFlow('run', COMMIT)
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(/^codex-flow: .*\.codex-flow\/runtime\/debug\/1-commit-message\.json.*\n {2}.*--no-mock\n$/)
    const dry = await codexFlow('run', COMMIT, '--dry-run')
    expect(dry).toMatchObject({ exitCode: 0, stderr: '' })
    expect(dry.stdout).toMatchSnapshot()
  })

  promise(
    'F33',
    'A second run in the directory is refused (exit code 6), or with `--wait` begins after the first one, within `--max-wait`; Ctrl+C ends the wait',
  )
  test('holds the directory: a second one is refused, or waits for its end with --wait', async () => {
    const { codexFlow, start } = await initialized()
    await using first = start('run', COMMIT, '--pace', '600', '--json')
    await first.event('session-created')
    const refused = await codexFlow('run', COMMIT, '--pace', '0')
    expect([refused.exitCode, refused.stdout, refused.stderr]).toEqual([
      6,
      '',
      expect.stringMatching(
        /^codex-flow: Another codemachine \(pid \d+\) is running here since .+ \(CM0601\)\n {2}.+ --wait waits for its end\.\n$/,
      ),
    ])
    const late = await codexFlow('run', COMMIT, '--pace', '0', '--wait', '--max-wait', '1s')
    expect([late.exitCode, late.stdout]).toEqual([6, ''])
    expect(late.stderr).toContain('codemachine waited 1 s for its end.')
    await using waiting = start('run', COMMIT, '--pace', '0', '--wait', '--json')
    await said(waiting, 'Waiting for its end, at most 1 d; Ctrl+C ends the wait.')
    await using left = start('run', COMMIT, '--pace', '0', '--wait')
    await said(left, 'Waiting for its end')
    left.process.kill('SIGINT')
    expect(await left.ended).toMatchObject({ exitCode: 130, stdout: '' })
    first.process.kill('SIGINT')
    expect((await first.ended).exitCode).toBe(130)
    const { exitCode, events } = await waiting.ended
    expect(exitCode).toBe(0)
    expect(events.at(-1)).toMatchObject({ type: 'session-ended', outcome: { kind: 'replayed' } })
  })
})

/** Resolves once a program has said that on stderr; rejects after 30 s. */
function said({ process: child }: ReturnType<typeof startCodemachine>, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    const bound = setTimeout(() => reject(new Error(`It has not said "${words}": ${text}`)), 30_000)
    child.stderr?.on('data', part => {
      text += part
      if (!text.includes(words)) return
      clearTimeout(bound)
      resolve()
    })
  })
}

describe('workflows are looked at', () => {
  test('list names them, with the steps and what is wrong', async ({ expect }) => {
    const { place, prints } = await initialized()
    await writeFile(join(place.directory, '.codex-flow/workflows/torn.workflow.toml'), '[workflow\n')
    expect(await prints('list')).toMatchSnapshot()
    expect(JSON.parse(await prints('list', '--json'))).toMatchObject([
      { file: '.codex-flow/flow.toml', mock: true, workflows: [{ name: 'commit_flow', steps: 1 }], mistakes: [] },
      { file: COMMIT, workflows: [{ name: 'commit_flow', steps: 1 }] },
      { file: '.codex-flow/workflows/torn.workflow.toml', workflows: [], mistakes: [{ line: 1 }] },
    ])
  })

  test('a workflow is shown, checked and run by the name that list prints, if one file alone has it', async ({
    expect,
  }) => {
    const { place, prints } = await initialized()
    const twice = await codemachineHere(place, ['show', 'commit_flow'], { program: 'codex-flow' })
    expect(twice).toMatchObject({
      exitCode: 2,
      stderr: `codex-flow: 2 files contain a workflow named "commit_flow". (CM1002)\n  Name the file: .codex-flow/flow.toml, ${COMMIT}\n`,
    })
    await rm(join(place.directory, '.codex-flow/flow.toml'))
    expect(await prints('show', 'commit_flow')).toContain(`of ${COMMIT}`)
    expect(await prints('validate', 'commit_flow')).toContain(`${COMMIT}: no mistakes`)
    expect(await prints('run', 'commit_flow', '--dry-run')).toBe(await prints('run', COMMIT, '--dry-run'))
  })

  test('init answers as JSON, too', async ({ expect }) => {
    await using place = await makePlace('')
    const { stdout } = await codemachineHere(place, ['init', '--json'], { program: 'codex-flow' })
    expect(JSON.parse(stdout)).toMatchObject({ v: 1, files: expect.arrayContaining([{ path: COMMIT, state: 'made' }]) })
  })

  test('where there are none it is said how to make one', async () => {
    await using place = await makePlace('')
    const listed = await codemachineHere(place, ['list'], { program: 'codex-flow' })
    expect(listed).toMatchObject({ exitCode: 0, stderr: '' })
    expect(listed.stdout).toMatch(/^There are no workflows in .+ yet\.\n {2}To make a first one: codex-flow init\n$/)
    const { exitCode, stderr } = await codemachineHere(place, ['flow', 'validate'])
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(
      /^codemachine: There are no .+\. \(CM1002\)\n {2}To make a first one: codemachine flow init\n$/,
    )
  })

  promise(
    'F34',
    '`validate` says every mistake of every file, and tells a missing value as a note; a run refuses it before anything is started',
  )
  test('validate says every mistake of every file with its line and column, and 2 is the exit code', async ({
    expect,
  }) => {
    const { place, codexFlow } = await initialized()
    expect(await codexFlow('validate')).toMatchObject({
      exitCode: 0,
      stdout: `.codex-flow/flow.toml: no mistakes (1 step)\n${COMMIT}: no mistakes (1 step)\n`,
    })
    await writeFlow(place, ['agnt = "b"\nretries = 9', 'input.template = "{{nothing}}"'])
    const { exitCode, stdout, stderr } = await codexFlow('validate', 'x.workflow.toml', 'none.toml', COMMIT)
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: '' })
    expect(stdout).toMatchSnapshot()
    const data = JSON.parse((await codexFlow('validate', '--json', 'x.workflow.toml')).stdout)
    expect(data).toMatchObject([{ file: 'x.workflow.toml', mistakes: [{ line: 7, column: 1 }, { line: 8 }] }])
  })

  promise('F34')
  test('a name without a value is a note of validate, and a mistake of a run', async () => {
    const { place, codexFlow } = await initialized()
    await writeFlow(place, ['input.template = "{{nothing}}"'])
    const looked = await codexFlow('validate', 'x.workflow.toml')
    expect([looked.exitCode, looked.stdout]).toEqual([
      0,
      expect.stringMatching(/no mistakes \(1 step\)\nx\.workflow\.toml:7:\d+: .+nothing.+ \(a note: .+\)\n$/),
    ])
    for (const mode of [['--dry-run'], ['--mock'], ['--no-mock']]) {
      const { exitCode, stdout, stderr } = await codexFlow('run', 'x.workflow.toml', ...mode)
      expect([exitCode, stdout, stderr], mode[0]).toEqual([
        2,
        '',
        expect.stringMatching(/x\.workflow\.toml:7:\d+: .+nothing/),
      ])
    }
    const given = await codexFlow('run', 'x.workflow.toml', '--dry-run', '--var', 'nothing=is here')
    expect([given.exitCode, given.stdout]).toEqual([0, expect.stringContaining('    is here\n')])
  })

  test('show prints the steps as they would run', async ({ expect }) => {
    const { place, codexFlow } = await initialized()
    await writeFlow(place, [
      'description = "look"\nmodel = "m"\noutput = { kind = "file", path = "o.md", append = true }',
      'engine = "codemachine"\nverify = ["npm test"]\nretries = 2\ntimeout = "30m"\napprove = true\ninput.template = "{{steps.look.output}}"',
    ])
    const { exitCode, stdout, stderr } = await codexFlow('show', 'x.workflow.toml')
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatchSnapshot()
    const data = JSON.parse((await codexFlow('show', 'x.workflow.toml', '--json')).stdout)
    expect(data).toMatchObject({ name: 'x', mock: true, steps: [{ id: 'look' }, { retries: 2 }] })
  })

  test('500 steps are validated, shown and dry-run at once', async () => {
    const { place, prints } = await initialized()
    await writeFlow(
      place,
      Array.from(
        { length: 500 },
        (_, n) => `id = "s${n}"\ninput.template = "${n === 0 ? 'go' : `{{steps.s${n - 1}.output}}`}"`,
      ),
    )
    expect(await prints('validate', 'x.workflow.toml')).toBe('x.workflow.toml: no mistakes (500 steps)\n')
    expect(await prints('show', 'x.workflow.toml')).toContain('Step 500/500: s499\n')
    expect(await prints('run', 'x.workflow.toml', '--dry-run')).toContain('    {{steps.s498.output}}\n')
  })
})

test.each<[string, string[], RegExp]>([
  [
    'a step that there is not',
    ['--from', 'comit-message'],
    /--from is "comit-message".+ did you mean "commit-message"\?/,
  ],
  [
    'a workflow that there is not',
    ['--workflow', 'comit_flow'],
    /no workflow "comit_flow"; did you mean "commit_flow"\?/,
  ],
  ['a value without a name', ['--var', 'diff'], /--var/],
  [
    '--strict of a real run',
    ['--no-mock', '--strict'],
    /: --strict works only in a mock run; leave it out, or add --mock\. \(CM0102\)$/m,
  ],
  ['a file of values that there is not', ['--vars-file', 'none.toml'], /none\.toml/],
])('%s is refused in one sentence', async (_what, flags, said) => {
  const { codexFlow } = await initialized()
  const { exitCode, stdout, stderr } = await codexFlow('run', COMMIT, ...flags)
  expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringMatching(said)])
  expect(stderr.trimEnd().split('\n').length).toBeLessThan(3)
})
