import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lookAtFlow } from '../../../src/modes/flow/start/look.ts'
import { promise } from '../../support/promise.ts'

let root: string
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'look-')))
  await mkdir(join(root, '.git'))
})
afterEach(() => rm(root, { recursive: true }))

async function look(content: string, workflow: string | null = null) {
  await writeFile(join(root, 'x.toml'), content)
  const signal = new AbortController().signal
  return await lookAtFlow('x.toml', {
    directory: root,
    workflow,
    given: new Map(),
    secretIn: () => null,
    engines: ['claude'],
    signal,
  })
}

const placesOf = ({ mistakes }: Awaited<ReturnType<typeof look>>) =>
  mistakes.map(({ line, column, place }) => `${line}:${column} ${place}`)

promise('F1')
test('what is wrong in a file and with the files that it names is told together, in the order of the file', async () => {
  const looked = await look(`[agents.a]
prompt = "none.md"
[[workflow.steps]]
agent = "a"
retries = 9
output = { kind = "file", path = "../x.md" }
[[workflow.steps]]
agent = "b"
`)
  expect(placesOf(looked)).toEqual([
    '2:10 agents.a.prompt',
    '5:11 workflow.steps[0].retries',
    '6:34 workflow.steps[0].output.path',
    '8:9 workflow.steps[1].agent',
  ])
  expect(looked).toMatchObject({ plans: [], missing: [], mock: null })
})

test('each workflow of a file is looked at, and what they have in common is told once', async () => {
  const content = `[agents.a]
prompt = "none.md"
[[workflows.one.steps]]
use = "a"
[[workflows.two.steps]]
use = "a"
input.template = "{{steps.x.output}}"
`
  expect(placesOf(await look(content))).toEqual(['2:10 agents.a.prompt', '7:19 workflows.two.steps[0].input.template'])
  // What the other workflow has is a mistake of the file.
  expect(placesOf(await look(content, 'one'))).toHaveLength(2)
})

test('a file without mistakes is shown as it would run, with what has no value yet', async () => {
  await writeFile(join(root, 'a.md'), 'Write.')
  const content = `[defaults]
mock = false
[agents.a]
prompt = "a.md"
[[workflow.steps]]
agent = "a"
input.template = "{{ticket}} {{diff}}"
`
  const looked = await look(content)
  expect(looked).toMatchObject({ mock: false, mistakes: [], plans: [{ name: 'x', steps: [{ id: 'a-agent' }] }] })
  expect(looked.missing).toMatchObject([{ line: 7, column: 19, place: 'workflow.steps[0].input.template' }])
  await expect(look(content, 'y')).rejects.toThrow('x.toml has no workflow "y"; did you mean "x"?')
})

/** Lays files beside the workflow file, with a prompt. */
async function lay(files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(join(root, 'shared'), { recursive: true })
  for (const [path, text] of Object.entries({ 'shared/p.md': 'Write.', ...files }))
    await writeFile(join(root, path), text)
}

const WITH_INCLUDE = 'include = ["shared/one.toml"]\n[[workflow.steps]]\nagent = "a"\n'

promise('F1')
test('an included file brings its agents, values and steps, before those of the file, with what lies beside it', async () => {
  await lay({
    'shared/one.toml': `include = ["two.toml"]
[defaults]
engine = "claude"
[agents.a]
prompt = "p.md"
[[workflow.steps]]
id = "first"
agent = "a"
input.template = "{{word}}"
`,
    'shared/two.toml': 'name = "two"\n[vars]\nword = 1.10\n',
  })
  const { plans, mistakes, missing } = await look(WITH_INCLUDE)
  expect([mistakes, missing]).toEqual([[], []])
  expect(plans).toMatchObject([
    {
      name: 'x',
      steps: [
        { id: 'first', work: { engine: 'claude', prompt: { found: 'shared/p.md' } } },
        { id: 'a-agent', work: { engine: 'codex', prompt: { found: 'shared/p.md' } } },
      ],
      values: { word: { text: '1.10' } },
    },
  ])
  expect(plans[0]?.sources.map(({ path }) => path)).toEqual([
    'x.toml',
    'shared/two.toml',
    'shared/one.toml',
    'shared/p.md',
  ])
})

promise('F1')
test('mistakes of included files are told with their own places: names that stand twice, circles, depth, what is missing', async () => {
  const told = async (content: string) =>
    (await look(content)).mistakes.map(
      ({ file, line, column, place, problem }) => `${file}:${line}:${column} ${place}: ${problem}`,
    )
  await lay({
    'shared/one.toml': `[agents.a]
prompt = "none.md"
[vars]
word = "x"
[[workflow.steps]]
id = "s"
agnt = "a"
run = "true"
`,
  })
  const twice = `${WITH_INCLUDE}id = "s"\n[agents.a]\nprompt = "shared/p.md"\n[vars]\nword = "y"\n`
  expect(await told(twice)).toEqual([
    'shared/one.toml:7:1 workflow.steps[0].agnt: is an unknown key; did you mean "agent"?',
    'x.toml:4:6 workflow.steps[0].id: step 1 (shared/one.toml, line 5) has the id "s" already; give each step its own',
    'x.toml:5:1 agents.a: shared/one.toml:1:1 has this name already; change one of them',
    'x.toml:8:1 vars.word: shared/one.toml:4:1 has this name already; change one of them',
  ])
  await lay({
    'shared/one.toml':
      'include = ["../x.toml", "no.toml", "/etc/x.toml"]\n[agents.a]\nprompt = "p.md"\n[engines.codex]\n',
  })
  expect(await told(WITH_INCLUDE)).toEqual([
    'shared/one.toml:1:12 include[0]: "../x.toml" leads back to itself; leave it out',
    'shared/one.toml:1:25 include[1]: there is no workflow file "no.toml" in shared; the nearest is "one.toml"',
    expect.stringMatching(/^shared\/one\.toml:1:36 include\[2\]: "\/etc\/x\.toml" is an absolute path/),
    'shared/one.toml:4:2 engines: does not work in an included file; leave it out',
  ])
  const chain = [2, 3, 4, 5, 6].map(
    n => [`shared/${n}.toml`, n === 6 ? '# Nothing.' : `include = ["${n + 1}.toml"]\n`] as const,
  )
  await lay({ ...Object.fromEntries(chain), 'shared/one.toml': 'include = ["2.toml"]\n[agents.a]\nprompt = "p.md"\n' })
  expect(await told(WITH_INCLUDE)).toEqual([
    'shared/5.toml:1:12 include[0]: files include each other at most 5 deep; include it further up',
  ])
  await lay({ 'shared/one.toml': '[workflows.a]\n' })
  expect(await told('include = ["shared/one.toml"]\n[[workflows.b.steps]]\nrun = "true"\n')).toEqual([
    'shared/one.toml:1:1 workflows.a.steps: is missing; begin each step with a line [[workflows.NAME.steps]]',
    'shared/one.toml:1:2 workflows: does not work in an included file; leave it out',
    'x.toml:1:1 include: works only with [workflow]',
  ])
})

test('a file that is there and cannot be reached is not said to be missing', async () => {
  await symlink('loop.toml', join(root, 'loop.toml'))
  const signal = new AbortController().signal
  const options = {
    directory: root,
    workflow: null,
    given: new Map(),
    secretIn: () => null,
    engines: ['claude'],
    signal,
  }
  const [loop, none] = [await lookAtFlow('loop.toml', options), await lookAtFlow('none.toml', options)]
  expect(loop.mistakes.map(({ problem }) => problem)).toEqual([
    'loop.toml cannot be reached (ELOOP); name a workflow file that can be read',
  ])
  expect(none.mistakes.map(({ problem }) => problem)).toEqual(['There is no file none.toml'])
})
