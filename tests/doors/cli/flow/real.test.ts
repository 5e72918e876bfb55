import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect } from 'vitest'
import { codemachine } from '../../../support/codemachine.ts'
import { startInEmulator } from '../../../support/emulator.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene } from '../../../support/real-scene.ts'
import { says } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

const bin = fileURLToPath(new URL('../../../../dist/codex-flow.js', import.meta.url))
const FLOW = `name = "notes"
[defaults]
mock = false
[agents.writer]
prompt = "writer.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "Draft"
  [workflow.steps.input]
  template = "Write about {{topic}}."
  [workflow.steps.output]
  kind = "file"
  path = "DRAFT.md"
  [[workflow.steps]]
  id = "count"
  run = "wc -w < DRAFT.md"
`

// `onTestFinished` would end what another test uses: side by side, it takes the one that began last for its own.
const atEnd = new AsyncDisposableStack()
afterAll(() => atEnd.disposeAsync())

/** A project with that workflow, and a codex whose model says these things. */
async function project(...said: string[]) {
  const scene = atEnd.use(await openRealScene(said.map(text => [says(text)])))
  const { directory } = scene.place
  await mkdir(join(directory, 'sub'))
  await writeFile(join(directory, 'notes.workflow.toml'), FLOW)
  await writeFile(join(directory, 'writer.md'), 'You write plainly.\n')
  const codexFlow = (args: readonly string[], options = {}) => codemachine(scene.place, args, { bin, ...options })
  return { scene, directory, codexFlow }
}

promise('F35')
promise('E5', 'A workflow runs, and what was recorded is replayed')
test('a workflow whose file says so runs for real: typed in a folder, with a value from standard input', async () => {
  const { scene, directory, codexFlow } = await project('Trees are tall.')
  const args = ['run', '../notes.workflow.toml', '--var', 'topic=@-', '--no-keep-awake']
  const options = { cwd: join(directory, 'sub'), input: 'trees' }
  const { exitCode, stdout, stderr } = await codexFlow(args, options)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(scene.input(1)).toBe('Write about trees.')
  expect(await readFile(join(directory, 'DRAFT.md'), 'utf8')).toBe('Trees are tall.\n')
  expect(stdout).toContain('Step 1/2: Draft')
  expect(stdout).toContain('Step 2/2: count')
  expect(stdout).not.toMatch(/no model is asked/i)
  expect(existsSync(join(directory, '.codex-flow/runtime/debug/1-draft.json'))).toBe(true)
})

promise('E5')
test('what was recorded by a real run is replayed with --mock, and writes nothing', async () => {
  const { scene, directory, codexFlow } = await project('Trees are tall.')
  const typed = ['run', 'notes.workflow.toml', '--var', 'topic=trees', '--no-keep-awake']
  const real = await codexFlow(typed)
  expect(real.exitCode).toBe(0)
  await writeFile(join(directory, 'DRAFT.md'), 'mine')
  const replayed = await codexFlow([...typed, '--mock', '--pace', '0', '--strict'])
  expect({ ...replayed, stdout: '' }).toMatchObject({ exitCode: 0, stderr: '' })
  expect(replayed.stdout).toContain('Step 1/2: Draft')
  expect(replayed.stdout).toContain('  Trees are tall.')
  expect(replayed.stdout).toContain('would run: wc -w < DRAFT.md (recorded: exit code 0)')
  expect(await readFile(join(directory, 'DRAFT.md'), 'utf8')).toBe('mine')
  expect(scene.model.requests).toHaveLength(1)
})

promise('F16', 'A step with `for_each` runs once for each item, and a replay plays the same items')
test('a step runs once for each text of a list; show and a dry run list them, and a replay plays them', async () => {
  const { scene, directory, codexFlow } = await project('Trees are tall.', 'The sea is deep.', 'Both.')
  const file = `${FLOW.slice(0, FLOW.indexOf('[workflow]'))}
[[workflow.steps]]
agent = "writer"
id = "each"
for_each = ["trees", "the sea"]
input.template = "{{index}}. Write about {{item}}."
[[workflow.steps]]
agent = "writer"
id = "sum"
input.template = "Sum up: {{steps.each.output}}"
output = { kind = "file", path = "SUM.md" }
`
  await writeFile(join(directory, 'notes.workflow.toml'), file)
  const list = ['run', 'notes.workflow.toml']
  expect((await codexFlow(['show', 'notes.workflow.toml'])).stdout).toContain('  for each  trees, the sea\n')
  expect((await codexFlow([...list, '--dry-run'])).stdout).toContain('  for each of trees, the sea\n')
  const ran = await codexFlow([...list, '--no-keep-awake'])
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  expect([1, 2].map(n => scene.input(n))).toEqual(['1. Write about trees.', '2. Write about the sea.'])
  expect(scene.input(3)).toMatch(/^Sum up: \[\s+"Trees are tall\.",\s+"The sea is deep\."\s+\]/)
  const replayed = await codexFlow([...list, '--mock', '--pace', '0', '--strict'])
  expect(replayed).toMatchObject({ exitCode: 0, stderr: '' })
  for (const line of ['Step 1/2: each (2 of 2: the sea)', 'The sea is deep.', 'Step 1/2: each: 2 items'])
    expect(replayed.stdout).toContain(line)
  expect(scene.model.requests).toHaveLength(3)
})

promise('F10')
test('a step writes its answer, and fields of it, into several files; a replay with --write writes the same', async () => {
  const { directory, codexFlow } = await project('{"title":"Trees","notes":["tall","green"]}')
  const schema = {
    type: 'object',
    properties: { title: { type: 'string' }, notes: { type: 'array', items: { type: 'string' } } },
    required: ['title', 'notes'],
    additionalProperties: false,
  }
  await writeFile(join(directory, 'answer.json'), JSON.stringify(schema))
  const file = `${FLOW.slice(0, FLOW.indexOf('  [workflow.steps.input]'))}  schema = "answer.json"
  output = [
    { kind = "file", path = "ALL.json" },
    { kind = "file", path = "TITLES.md", field = "title", append = true },
    { kind = "file", path = "FIRST.md", field = "notes.0", append = true },
  ]
`
  await writeFile(join(directory, 'notes.workflow.toml'), file)
  await writeFile(join(directory, 'TITLES.md'), 'Birds\n')
  const shown = await codexFlow(['show', 'notes.workflow.toml'])
  expect(shown.stdout).toContain(
    '  output    ALL.json\n  output    TITLES.md, the field title (added to it)\n  output    FIRST.md, the field notes.0',
  )
  const dry = await codexFlow(['run', 'notes.workflow.toml', '--dry-run'])
  expect(dry.stdout).toContain('  output into ALL.json\n  output into TITLES.md\n')
  const real = await codexFlow(['run', 'notes.workflow.toml', '--no-keep-awake'])
  expect(real).toMatchObject({ exitCode: 0, stderr: '' })
  expect(real.stdout).toContain('Step 1/1: Draft: done, ALL.json, TITLES.md, FIRST.md')
  const read = (name: string) => readFile(join(directory, name), 'utf8')
  expect(JSON.parse(await read('ALL.json'))).toEqual({ title: 'Trees', notes: ['tall', 'green'] })
  expect([await read('TITLES.md'), await read('FIRST.md')]).toEqual(['Birds\nTrees\n', 'tall\n'])
  const replayed = await codexFlow(['run', 'notes.workflow.toml', '--mock', '--pace', '0', '--strict', '--write'])
  expect(replayed).toMatchObject({ exitCode: 0, stderr: '' })
  expect([await read('TITLES.md'), await read('FIRST.md')]).toEqual(['Birds\nTrees\nTrees\n', 'tall\ntall\n'])
})

promise('F13')
test('an included file is frozen with the workflow, and need not be one by itself', async () => {
  const { scene, directory, codexFlow } = await project('Trees are tall.')
  const folder = join(directory, '.codex-flow/workflows')
  await mkdir(folder, { recursive: true })
  const [begin, steps = ''] = FLOW.split('[workflow]\n')
  const common = begin?.slice(begin.indexOf('[agents'))
  await writeFile(join(folder, 'common.workflow.toml'), `${common}[vars]\ntopic = "trees"\n`)
  await writeFile(join(folder, 'writer.md'), 'You write plainly.\n')
  const file = join(folder, 'notes.workflow.toml')
  await writeFile(file, `include = ["common.workflow.toml"]\n[defaults]\nmock = false\n[workflow]\n${steps}`)
  const listed = await codexFlow(['validate'])
  expect(listed).toMatchObject({
    exitCode: 0,
    stdout: '.codex-flow/workflows/notes.workflow.toml: no mistakes (2 steps)\n',
  })
  const fails = file.replace('notes', 'fails')
  await writeFile(fails, `${await readFile(file, 'utf8')}  [[workflow.steps]]\n  id = "end"\n  run = "test -e go"\n`)
  expect(await codexFlow(['run', fails, '--no-keep-awake'])).toMatchObject({ exitCode: 4 })
  await writeFile(join(folder, 'common.workflow.toml'), 'gone')
  await writeFile(join(directory, 'go'), '')
  const { exitCode, events } = await codemachine(scene.place, ['resume', '--json', '--no-keep-awake'])
  expect({ exitCode, inputs: scene.model.requests.length }).toEqual({ exitCode: 0, inputs: 1 })
  expect(eventsOf(events, 'warning').map(({ message }) => message)).toContainEqual(
    expect.stringContaining('Changed since this workflow began: .codex-flow/workflows/common.workflow.toml.'),
  )
  expect(scene.input(1)).toBe('Write about trees.')
})

promise('F35', 'A run takes the flags of every other run, and finds the project around where it is typed')
test('the flags of a run are there: events as JSON, a limit, a gate that does not pass', async () => {
  const { codexFlow } = await project('Trees are tall.')
  const typed = ['run', 'notes.workflow.toml', '--var', 'topic=trees', '--no-keep-awake', '--json']
  const { exitCode, events, stdout } = await codexFlow([
    ...typed,
    '--verify',
    'false',
    '--max-time',
    '2h',
    '--sandbox',
    'workspace-write',
  ])
  expect(stdout.split('\n').filter(line => line !== '')).toHaveLength(events.length)
  const [created] = eventsOf(events, 'session-created')
  expect(created).toMatchObject({ template: 'flow', limits: { timeMs: 7_200_000 }, gates: [{ run: 'false' }] })
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'needs-person' } }])
  expect(exitCode).toBe(4)
})

test('a queued workflow, by its name, becomes a session of the queue and runs for real; one that cannot run is refused', async () => {
  const { scene, directory } = await project('Trees are tall.')
  await mkdir(join(directory, '.codex-flow/workflows'), { recursive: true })
  await writeFile(join(directory, '.codex-flow/writer.md'), 'You write plainly.\n')
  const file = join(directory, '.codex-flow/workflows/notes.workflow.toml')
  await writeFile(file, FLOW)
  const queue = (...args: string[]) => codemachine(scene.place, ['queue', 'add', '--template', 'flow', ...args])
  const without = await queue('notes')
  expect([without.exitCode, without.stderr]).toEqual([2, expect.stringContaining('topic')])
  await writeFile(file, `${FLOW}[vars]\ntopic = "trees"\n`)
  const nameless = await queue()
  expect([nameless.exitCode, nameless.stderr]).toEqual([2, expect.stringContaining('name a workflow')])
  const unknown = await queue('nothing')
  expect([unknown.exitCode, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('No workflow and no file here is named nothing'),
  ])
  expect((await queue('notes')).stdout).toBe('Queued as 000001 (flow): notes\n')
  const { exitCode, stdout } = await codemachine(scene.place, ['queue', 'run', '--json', '--no-keep-awake'])
  expect(exitCode).toBe(0)
  const events = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(eventsOf(events, 'session-created')).toMatchObject([{ template: 'flow', queued: '000001', goal: 'notes' }])
  expect(scene.input(1)).toBe('Write about trees.')
  expect(await readFile(join(directory, 'DRAFT.md'), 'utf8')).toBe('Trees are tall.\n')
  expect((await codemachine(scene.place, ['queue', 'list', '--json'])).stdout).toBe('[]\n')
})

test('on the screen /flow offers the workflows that can run, and the chosen one begins', async () => {
  const { scene, directory } = await project('Trees are tall.')
  const folder = join(directory, '.codex-flow/workflows')
  await mkdir(folder, { recursive: true })
  await writeFile(join(directory, '.codex-flow/writer.md'), 'You write plainly.\n')
  await writeFile(join(folder, 'notes.workflow.toml'), `${FLOW}[vars]\ntopic = "trees"\n`)
  await writeFile(join(folder, 'open.workflow.toml'), FLOW.replace('"notes"', '"without-value"'))
  await using terminal = startInEmulator(scene.place, [], { columns: 100, rows: 40 })
  await terminal.until('Type a goal')
  terminal.type('/flow')
  await terminal.until('› /flow')
  terminal.press('enter')
  await terminal.until('Run which workflow?')
  expect(terminal.screen().join('\n')).toContain('1. notes  2 steps')
  expect(terminal.screen().join('\n')).not.toContain('without-value')
  terminal.press('enter')
  await terminal.untilInAll('_1 ended ─')
  expect(await readFile(join(directory, 'DRAFT.md'), 'utf8')).toBe('Trees are tall.\n')
})
