import { expect, test } from 'vitest'
import { openProject } from '../../../src/index.ts'
import { at, FILE, HEAD, lay, PROMPT, run, worldOf } from '../../support/flow-scene.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

const VERDICT = JSON.stringify({
  type: 'object',
  properties: { verdict: { type: 'string', enum: ['good', 'bad'] } },
  required: ['verdict'],
  additionalProperties: false,
})

promise(
  'F14',
  'An answer of a step that does not fit is asked for again; a person who approves a step has it done again, or goes on with it',
)
test('an answer that does not fit is asked for again; its field decides whether a later step is done, and stands in its input', async () => {
  await using scene = await openScene([
    [says('I think it is bad.')],
    [says('{"verdict":"bad"}')],
    [says('Mended:\nall of it.')],
  ])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "judge"
  schema = "verdict.json"
  [[workflow.steps]]
  agent = "writer"
  id = "praise"
  when = "{{steps.judge.answer.verdict}} == good"
  [[workflow.steps]]
  agent = "writer"
  id = "mend"
  when = "{{steps.judge.answer.verdict}} == bad"
  [workflow.steps.input]
  template = "It is {{steps.judge.answer.verdict}}: mend it."
`
  await lay(scene, { [FILE]: file, '.codex-flow/verdict.json': VERDICT, ...PROMPT })
  const { exitCode, events } = await run(scene, { verbose: true })
  expect(exitCode).toBe(0)
  expect(ofType(events, 'noted').at(-1)?.text).toBe('Step 3/3: mend: done: Mended: all of it.')
  expect(ofType(events, 'answer-refused')).toHaveLength(1)
  expect(ofType(events, 'noted').map(({ name }) => name)).toEqual(['step-done', 'step-skipped', 'step-done'])
  expect(scene.input(3)).toMatch(/^It is bad: mend it\./)
})

promise('F14')
test('a person who looks at an output from another terminal has it done again, and then goes on with it', async () => {
  await using scene = await openScene([[says('Long.')], [says('Short.')], [says('After.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "text"
  approve = true
  [workflow.steps.output]
  kind = "file"
  path = "TEXT.md"
  [[workflow.steps]]
  agent = "writer"
  id = "after"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  await using project = await openProject(worldOf(scene), { keepAwake: false })
  const answers = [{ choice: 'again', text: 'Shorter, please.' }, { choice: 'accept' }]
  const replies: Promise<unknown>[] = []
  const { exitCode, events } = await run(scene, {}, {}, event => {
    const answer = event.type === 'decision-asked' ? answers.shift() : undefined
    if (answer !== undefined) replies.push(project.ask({ type: 'decide', ...answer }))
  })
  expect(await Promise.all(replies)).toHaveLength(2)
  expect(exitCode).toBe(0)
  expect(ofType(events, 'decision-asked').map(({ id, body }) => [id, body])).toEqual([
    ['approve-1', 'Long.'],
    ['approve-1', 'Short.'],
  ])
  expect(scene.input(2)).toContain('Shorter, please.')
  expect(await at(scene, 'TEXT.md')).toBe('Short.\n')
})

promise('F12')
test('with --continue-on-error the others run, and it still ends with 4', async () => {
  await using scene = await openScene([[says('Alone.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  id = "make"
  run = "exit 3"
  [[workflow.steps]]
  agent = "writer"
  id = "needs"
  [workflow.steps.input]
  template = "{{steps.make.output}}"
  [[workflow.steps]]
  agent = "writer"
  id = "alone"
`
  await lay(scene, { [FILE]: file, ...PROMPT })
  const { exitCode, events } = await run(scene, { continueOnError: true })
  expect(exitCode).toBe(4)
  expect(ofType(events, 'noted').map(({ name }) => name)).toEqual(['step-failed', 'step-left-out', 'step-done'])
  expect(ofType(events, 'session-ended')[0]?.outcome).toMatchObject({
    reason: 'Step 1/3: make failed: `exit 3` ended with exit code 3.',
  })
})

test('a step of the engine mock is replayed in a real run, too, and then nothing is done', async () => {
  await using scene = await openRealScene([[says('After it.')]])
  const file = `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "shown"
  engine = "mock"
  [[workflow.steps]]
  agent = "writer"
  id = "after"
  [workflow.steps.input]
  template = "It said: {{steps.shown.output}}"
`
  const recording = [
    { type: 'turn.started' },
    { type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text: 'From a recording.' } },
    { type: 'turn.completed', usage: { input_tokens: 3, cached_input_tokens: 0, output_tokens: 1 } },
  ]
  const lines = `${recording.map(each => JSON.stringify(each)).join('\n')}\n`
  await lay(scene, { [FILE]: file, ...PROMPT })
  await expect(run(scene)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('has no recording') })
  await lay(scene, { '.codex-flow/runtime/debug/1-writer-agent.json': lines })
  const { exitCode, events } = await run(scene)
  expect(ofType(events, 'session-ended')[0]?.outcome).toEqual({ kind: 'replayed' })
  expect(exitCode).toBe(0)
  expect(scene.input(1)).toMatch(/^It said: From a recording\./)
})
