import { expect, test } from 'vitest'
import { at, FILE, HEAD, lay, PROMPT, resume, run } from '../../support/flow-scene.ts'
import { codemachineHere } from '../../support/in-process.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

const LIST = JSON.stringify({
  type: 'object',
  properties: { files: { type: 'array', items: { type: 'string' } } },
  required: ['files'],
  additionalProperties: false,
})

/** A list, a step for each of its items, and one that uses all of their outputs. */
const LOOP = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "list"
  schema = "list.json"
  [[workflow.steps]]
  agent = "writer"
  id = "review"
  for_each = "{{steps.list.answer.files}}"
  when = "{{item}} != skip.ts"
  input.template = "{{index}}: {{item}}"
  output = { kind = "file", path = "ALL.json" }
  [[workflow.steps]]
  agent = "writer"
  id = "sum"
  input.template = "All: {{steps.review.output}}"
`

const files = { [FILE]: LOOP, '.codex-flow/list.json': LIST, ...PROMPT }
const answer = (...names: string[]) => [says(JSON.stringify({ files: names }))]

promise('F16')
test('a step with for_each runs once an item of an answer; its output is their list, and a replay plays the same items', async () => {
  await using scene = await openScene([
    answer('a.ts', 'skip.ts', '{{b}}.ts'),
    [says('A.')],
    [says('B.')],
    [says('End.')],
  ])
  await lay(scene, files)
  const { exitCode, events } = await run(scene)
  expect(ofType(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 1/3: list: done',
    'Step 2/3: review (1 of 3: a.ts): done',
    'Step 2/3: review (2 of 3: skip.ts): skipped, because {{item}} != skip.ts is false',
    'Step 2/3: review (3 of 3: {{b}}.ts): done',
    'Step 2/3: review: done, 3 items, ALL.json',
    'Step 3/3: sum: done',
  ])
  expect(exitCode).toBe(0)
  expect([scene.input(2), scene.input(3)]).toEqual([
    expect.stringMatching(/^1: a\.ts(?!.*A\.)/s),
    expect.stringMatching(/^3: \{\{b\}\}\.ts(?!.*A\.)/s),
  ])
  expect(scene.input(4)).toMatch(/^All: \[\s+"A\.",\s+"B\."\s+\]/)
  expect(JSON.parse(await at(scene, 'ALL.json'))).toEqual(['A.', 'B.'])
  const recorded = await at(scene, '.codex-flow/runtime/debug/2-writer-agent-2-3.json')
  expect(JSON.parse(recorded.split('\n')[0] ?? '')).toMatchObject({ step: '2-review--3', item: '{{b}}.ts' })
  const replayed = await codemachineHere(scene.place, ['flow', 'run', FILE, '--pace', '0', '--strict', '--write'])
  expect(replayed).toMatchObject({ exitCode: 0, stderr: '' })
  for (const line of [
    'Step 2/3: review (1 of 3: a.ts)',
    'Step 2/3: review (3 of 3: {{b}}.ts)',
    'Step 2/3: review: 3 items',
  ])
    expect(replayed.stdout).toContain(line)
  expect(JSON.parse(await at(scene, 'ALL.json'))).toEqual(['A.', 'B.'])
})

promise('F11')
test('a loop over the lines of an output goes on at the item that failed', async () => {
  await using scene = await openScene([[says('A.')], [says('B.')], [says('B.')], [says('C.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  id = "names"
  run = "seq 3"
  [[workflow.steps]]
  agent = "writer"
  id = "each"
  for_each = "{{steps.names.output}}"
  verify = ["echo x >> tried; test $(wc -l < tried) != 2"]
  input.template = "{{item}}"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  expect(await run(scene)).toMatchObject({ exitCode: 4 })
  const { outcome, events } = await resume(scene)
  expect(outcome).toEqual({ kind: 'done', verified: false })
  expect(ofType(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 2/2: each (2 of 3: 2): done',
    'Step 2/2: each (3 of 3: 3): done',
    'Step 2/2: each: done, 3 items',
  ])
})

test('a list of more than 100 items fails its step, which says how many there are', async () => {
  await using scene = await openScene([])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  id = "names"
  run = "seq 103"
  [[workflow.steps]]
  agent = "writer"
  for_each = "{{steps.names.output}}"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  const { exitCode, events } = await run(scene)
  expect(exitCode).toBe(4)
  expect(ofType(events, 'noted').at(-1)?.text).toContain('It has 103 items; at most 100 are allowed.')
})

test('a loop that had no items runs once the step of its list, skipped before, has run', async () => {
  await using scene = await openScene([[says('A.')], [says('B.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  id = "check"
  run = "test -e ready || { touch ready; exec sleep 60; }"
  timeout = "3s"
  [[workflow.steps]]
  id = "find"
  run = "seq 2"
  when = "{{steps.check.exit}} == 0"
  [[workflow.steps]]
  agent = "writer"
  id = "fix"
  for_each = "{{steps.find.output}}"
  input.template = "{{item}}"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  const first = await run(scene, { continueOnError: true })
  expect(ofType(first.events, 'noted').at(-1)?.text).toBe('Step 3/3: fix: done, 0 items')
  const { events } = await resume(scene)
  expect(ofType(events, 'noted').at(-1)?.text).toBe('Step 3/3: fix: done, 2 items')
})

test('with --continue-on-error the other items of a loop run after a failed one, and the loop fails', async () => {
  await using scene = await openScene([[says('A.')], [says('B.')], [says('A.')], [says('Sum.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "each"
  for_each = ["a", "b"]
  verify = ["echo x >> tried; test $(wc -l < tried) != 1"]
  input.template = "{{item}}"
  [[workflow.steps]]
  agent = "writer"
  id = "sum"
  input.template = "{{steps.each.output}}"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  const { exitCode, events } = await run(scene, { continueOnError: true })
  expect(exitCode).toBe(4)
  expect(ofType(events, 'noted').map(({ text }) => text)).toEqual([
    expect.stringMatching(/^Step 1\/2: each \(1 of 2: a\) failed: `echo x/),
    'Step 1/2: each (2 of 2: b): done',
    'Step 1/2: each failed: 1 of 2 items failed.',
    'Step 2/2: sum: left out, because it needs step "each"',
  ])
  const replayed = await codemachineHere(scene.place, ['flow', 'run', FILE, '--pace', '0'])
  expect(replayed).toMatchObject({ exitCode: 0, stderr: '' })
  expect(replayed.stdout).toContain('Step 1/2: each (2 of 2: b)')
  expect(replayed.stdout).toContain('Step 1/2: each: failed, as recorded: 1 of 2 items failed.')
  const { outcome, events: later } = await resume(scene)
  expect(ofType(later, 'noted').map(({ text }) => text)).toContain('Step 1/2: each: done, 2 items')
  expect(outcome).toMatchObject({ kind: 'done' })
})

promise('F24')
test('a replay of other items than those of the file now says so, and is refused with --strict', async () => {
  await using scene = await openScene([[says('A.')], [says('B.')]])
  const file = (list: string) => `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "each"
  for_each = ${list}
  input.template = "{{item}}"
`
  await lay(scene, { [FILE]: file('["a", "b"]'), ...PROMPT })
  expect((await run(scene)).exitCode).toBe(0)
  const replay = async (...more: string[]) =>
    await codemachineHere(scene.place, ['flow', 'run', FILE, '--pace', '0', ...more])
  expect(await replay('--strict')).toMatchObject({ exitCode: 0, stderr: '' })
  await lay(scene, { [FILE]: file('["a", "b", "c"]') })
  const { exitCode, stdout } = await replay()
  expect(exitCode).toBe(0)
  expect(stdout).toContain('Step 1/1: each: the prompt or the input has changed since')
  const refused = await replay('--strict')
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('1-writer-agent.json was recorded')])
})
