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
