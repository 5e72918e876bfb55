import { expect, test } from 'vitest'
import { at, FILE, HEAD, lay, PROMPT, run } from '../../support/flow-scene.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { folder, round, says } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'

const fix = `${folder}/steps/fix`
const claim = `sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${fix}/MAIN.md`
const tasks = `echo '{"tasks":[{"id":"T1","name":"mend it","done":true}]}' > ${fix}/tasks.json`

const file = (rounds: string) => `${HEAD}
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "plan"
  [[workflow.steps]]
  agent = "writer"
  id = "fix"
  engine = "codemachine"
  verify = ["test -f fixed"]
  ${rounds}
  [workflow.steps.input]
  template = "Carry out: {{steps.plan.output}}"
  [workflow.steps.output]
  kind = "file"
  path = "FIXED.md"
  [[workflow.steps]]
  agent = "writer"
  id = "after"
`

promise(
  'F15',
  'A step of a workflow that is worked on until it is done ends with its own claim, proved by what verifies it, and fails after its rounds',
)
test('a step of the engine codemachine is worked on until its claim is proved by what verifies it, and then the next has its turn', async () => {
  await using scene = await openScene([
    [says('Mend the door.')],
    round(`${tasks}; ${claim}`),
    round('touch fixed'),
    [...round(claim).slice(0, -1), says('The door is mended.')],
    [says('Painted.')],
  ])
  await lay(scene, { [FILE]: file(''), ...PROMPT })
  const { exitCode, events } = await run(scene)
  expect(ofType(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(exitCode).toBe(0)
  expect(ofType(events, 'done-refused').map(({ reason, scope }) => [reason, scope])).toEqual([
    ['gate-failed', 'fix'],
    ['tree-changed', 'fix'],
  ])
  expect(ofType(events, 'scope-left')).toMatchObject([{ name: 'fix', outcome: 'done' }])
  expect(ofType(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 1/3: plan: done',
    'Step 2/3: fix: done, FIXED.md',
    'Step 3/3: after: done',
  ])
  expect(await at(scene, 'FIXED.md')).toBe('The door is mended.\n')
  expect(scene.memory('steps/fix/MAIN.md')).toContain('Carry out: Mend the door.')
  const told = scene.model.requests.find(({ conversation }) => conversation === 1)?.developerTexts.join('\n')
  expect(told).toContain('You write {{plainly}}.')
  expect(told).toMatch(/steps\/fix\/MAIN\.md/)
  expect(scene.input(3)).toContain('The check `test -f fixed` fails')
  expect(scene.input(5)).toContain('The door is mended.')
})

promise('F15')
test('a step that is not done after its rounds has failed, and the run ends with 4', async () => {
  await using scene = await openScene([
    [says('Mend.')],
    round('touch a'),
    round(`${tasks}; ${claim}`),
    [says('Never.')],
  ])
  await lay(scene, { [FILE]: file('rounds = 2'), ...PROMPT })
  const { exitCode, events } = await run(scene)
  expect(exitCode).toBe(4)
  expect(ofType(events, 'session-ended')[0]?.outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringMatching(
      /^Step 2\/3: fix failed: The step is not done after 2 rounds\. Its last claim was refused: .*test -f fixed/,
    ),
  })
  expect(ofType(events, 'round-started')).toHaveLength(3)
})
