import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { at, FILE, type FlowRan, HEAD, lay, PROMPT, resume, run } from '../../support/flow-scene.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

const THREE = `${HEAD}
[workflow]
description = "A text, counted and looked at"
  [[workflow.steps]]
  agent = "writer"
  description = "Draft"
  [workflow.steps.input]
  template = "Write about {{topic}} for {{who}}."
  [workflow.steps.output]
  kind = "file"
  path = "out/DRAFT.md"
  [[workflow.steps]]
  id = "count"
  run = "wc -w < out/DRAFT.md"
  [workflow.steps.output]
  kind = "file"
  path = "COUNT.txt"
  [[workflow.steps]]
  agent = "writer"
  description = "Look"
  [workflow.steps.input]
  template = "It has {{steps.count.output}} words: {{steps.draft.output}}"
  [workflow.steps.output]
  kind = "file"
  path = "LOG.md"
  append = true
[vars]
topic = { run = "printf trees; echo not this >&2" }
`

promise(
  'F10',
  'The steps of a workflow are done one after the other, feed each other and write their files; when the last has ended the gates decide',
)
test('with the real codex, three steps feed each other into files, and the session is done', async () => {
  await using scene = await openRealScene([
    [...round('echo made > made.txt').slice(0, -1), says('Trees are tall.')],
    [says('It is good.')],
  ])
  await lay(scene, { [FILE]: THREE, ...PROMPT, 'LOG.md': 'Before.\n' })
  const { exitCode, events } = await run(scene, { given: new Map([['who', '{{topic}}']]) })
  expect(ofType(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done', verified: false } }])
  expect(exitCode).toBe(0)
  expect(await at(scene, 'out/DRAFT.md')).toBe('Trees are tall.\n')
  expect((await at(scene, 'COUNT.txt')).trim()).toBe('3')
  expect(await at(scene, 'LOG.md')).toBe('Before.\nIt is good.\n')
  expect(scene.input(1)).toBe('Write about trees for {{topic}}.')
  expect(scene.input(2)).toMatch(/^It has 3 words: Trees are tall\./)
  const [first] = scene.model.requests
  expect(first?.developerTexts.join('\n')).toContain('You write {{plainly}}.')
  expect(ofType(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 1/3: Draft: done, out/DRAFT.md',
    'Step 2/3: count: done, COUNT.txt',
    'Step 3/3: Look: done, LOG.md',
  ])
  expect(existsSync(join(scene.place.directory, 'made.txt'))).toBe(true)
  expect(ofType(events, 'looked')).toHaveLength(1)
  const report = scene.memory('report.md')
  expect(report).toContain('| step | what | engine | how it ended | time and tokens | output |')
  expect(report).toMatch(/^\| 1 \| Draft \| codex \| done \| .* tokens \| out\/DRAFT\.md, outputs\/1-draft\.md \|$/m)
  expect(report).toMatch(/^\| 2 \| count \| command \| done \|/m)
})

const TWO = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "first"
  [workflow.steps.output]
  kind = "file"
  path = "FIRST.md"
  [[workflow.steps]]
  agent = "writer"
  id = "second"
  [workflow.steps.input]
  template = "Go on from: {{steps.first.output}}"
`

promise('F12')
promise(
  'F13',
  'A workflow that goes on does so with file, prompts and values of its beginning, and says what differs now; `--from` uses the outputs of the last run',
)
test('a step that fails ends the run with 4 and what codex said; resume tries it once more with what was read at first, and says what differs now', async () => {
  await using scene = await openRealScene([
    [says('First.')],
    [{ kind: 'status', status: 400, body: { error: { message: 'This is no prompt.', code: 'invalid_prompt' } } }],
    [says('Second.')],
  ])
  await lay(scene, { [FILE]: TWO, ...PROMPT })
  const first = await run(scene)
  expect(first.exitCode).toBe(4)
  expect(ofType(first.events, 'session-ended')[0]?.outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringMatching(/^Step 2\/2: second failed: .*This is no prompt\./s),
  })
  await lay(scene, { [FILE]: TWO.replace('Go on from', 'Forget'), '.codex-flow/prompts/writer.md': 'Another.' })
  const second = await resume(scene)
  expect(second.outcome).toEqual({ kind: 'done', verified: false })
  expect(ofType(second.events, 'round-started')).toHaveLength(1)
  const last = scene.model.requests.at(-1)
  expect(last?.userTexts.at(-1)).toMatch(/^Go on from: First\.\n\nThe try before this one failed:/)
  expect(last?.developerTexts.join('\n')).toContain('You write {{plainly}}.')
  expect(ofType(second.events, 'warning').map(({ message }) => message)).toContainEqual(
    `Changed since this workflow began: ${FILE}, .codex-flow/prompts/writer.md. This session continues with the old content; a new run reads the new one.`,
  )
})

promise('F13')
test('with --from a new run uses the outputs of the last one; without what it needs it is refused', async () => {
  await using scene = await openScene([[says('First.')], [says('Second.')], [says('Second, anew.')]])
  await lay(scene, { [FILE]: TWO, ...PROMPT })
  await expect(run(scene, { from: 'second' })).rejects.toMatchObject({
    exitCode: 2,
    message:
      'There is no earlier run of write, and the steps from "second" need the result of step "first". Run the workflow from its beginning.',
  })
  await expect(run(scene, { from: 'secnd' })).rejects.toThrow('write has no step "secnd"; did you mean "second"?')
  expect((await run(scene)).exitCode).toBe(0)
  const again = await run(scene, { from: 'second' })
  expect(again.exitCode).toBe(0)
  expect(ofType(again.events, 'round-started')).toHaveLength(1)
  expect(scene.input(3)).toMatch(/^Go on from: First\./)
  // What was carried once is there for the next one, too.
  expect((await run(scene, { from: 'second' })).exitCode).toBe(0)
})

test('with --from conditions of a changed workflow look at what no condition asked of an answer in the last run', async () => {
  const answer = '{"count":2}'
  await using scene = await openScene([[says(answer)], [says('B.')], [says(answer)], [says('B.')], [says('Again.')]])
  const file = (schema: string, when: string) => `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "first"
  ${schema}
  [[workflow.steps]]
  agent = "writer"
  id = "second"
  ${when}
`
  const [schema, when] = ['schema = "answer.json"', 'when = "{{steps.first.answer.count}} == 2"']
  await lay(scene, { [FILE]: file('', ''), 'answer.json': '{ "type": "object" }', ...PROMPT })
  expect((await run(scene)).exitCode).toBe(0)
  await lay(scene, { [FILE]: file(schema, when) })
  await expect(run(scene, { from: 'second' })).rejects.toThrow('step "first" has no answer, but the steps from')
  await lay(scene, { [FILE]: file(schema, '') })
  expect((await run(scene)).exitCode).toBe(0)
  await lay(scene, { [FILE]: file(schema, when) })
  const again = await run(scene, { from: 'second' })
  expect(ofType(again.events, 'noted').map(({ name }) => name)).toEqual(['step-done'])
  expect(again.exitCode).toBe(0)
})

test('a step with arguments runs as codex exec with these', async () => {
  await using scene = await openRealScene([[says('Thought hard.')]])
  const file = `name = "write"
[engines.codex]
args = ["-c", "model_reasoning_effort=high"]
[agents.writer]
prompt = "prompts/writer.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "think"
  [workflow.steps.input]
  template = "Think."
  [workflow.steps.output]
  kind = "file"
  path = "T.md"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  const { exitCode, events } = await run(scene)
  expect(ofType(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(exitCode).toBe(0)
  expect(ofType(events, 'round-started')).toMatchObject([{ engine: 'exec' }])
  expect(scene.model.requests[0]).toMatchObject({ effort: 'high' })
  expect(await at(scene, 'T.md')).toBe('Thought hard.\n')
})

promise('F10')
test('a failing command, what verifies a step, and the gates of the session: what does not pass ends it with 4', async () => {
  await using scene = await openScene([[says('One.')], [says('Two.')], [says('Three.')]])
  const file = (more: string) => `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "write"
${more}
`
  const reason = ({ events }: FlowRan) => ofType(events, 'session-ended')[0]?.outcome
  await lay(scene, {
    [FILE]: file('  verify = ["test -e tried || { touch tried; echo not yet; exit 5; }"]\n  retries = 1'),
    ...PROMPT,
  })
  const tried = await run(scene)
  expect(tried.exitCode).toBe(0)
  expect(scene.input(2)).toContain('ended with exit code 5.\nnot yet')
  await lay(scene, { [FILE]: file('  [[workflow.steps]]\n  id = "make"\n  run = "echo no rule; exit 3"') })
  const failed = await run(scene)
  expect(failed.exitCode).toBe(4)
  expect(reason(failed)).toMatchObject({
    reason: 'Step 2/2: make failed: `echo no rule; exit 3` ended with exit code 3: no rule',
  })
  await lay(scene, { [FILE]: file('') })
  const gated = await run(scene, {}, { verify: ['test -e never'] })
  expect(gated.exitCode).toBe(4)
  expect(reason(gated)).toMatchObject({ reason: expect.stringContaining('but the workflow is not done: ') })
})

test('a program that the file names and the person does not is refused, with its place', async () => {
  await using scene = await openRealScene([])
  const file = `${TWO}[vars]\nran = { run = "touch ran" }\n[engines.codex]\nbin = "./codex"\n`
  await lay(scene, { [FILE]: file.replace('Go on from:', '{{ran}} Go on from:'), ...PROMPT })
  await expect(run(scene)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(
      /^\.codex-flow\/workflows\/write\.workflow\.toml:\d+:\d+: engines\.codex\.bin: you have not allowed the program "\.\/codex";/,
    ),
  })
  expect(existsSync(join(scene.place.directory, 'ran'))).toBe(false)
})

test('a value whose command prints without end is broken off after 1 MiB', async () => {
  await using scene = await openScene([])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  input.template = "{{diff}}"
[vars]
diff = { run = "yes" }
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  await expect(run(scene)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('the value of diff could not be found: `yes` printed more than 1 MiB'),
  })
})

test('a value whose command fails ends the run before it begins, with the line that says why and what to do', async () => {
  await using scene = await openScene([])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  input.template = "{{diff}}"
[vars]
diff = { run = "echo warning: no repository; echo how it is used; exit 129" }
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  await expect(run(scene)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(
      /:\d+:8: vars\.diff: the value of diff could not be found: `echo .* exit 129` ended with exit code 129: warning: no repository; fix the command, or give --var diff=…\.$/,
    ),
  })
})
