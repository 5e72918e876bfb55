import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Recorded } from '../../../../src/core/events/events.ts'
import { message, reply, type Script, shell, turnsScript } from '../../../../src/demo/model/reply.ts'
import { codemachine } from '../../../support/codemachine.ts'
import { at, FILE, HEAD, lay, PROMPT } from '../../../support/flow-scene.ts'
import { type KillPoint, killsIn, startWithKills } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { folder } from '../../../support/rounds.ts'
import { eventsOf } from '../../../support/scene.ts'
import { test } from '../../../support/side-by-side.ts'

const WORKFLOW = `${HEAD}
[engines.codex]
args = ["-c", "model_reasoning_effort=low"]
[workflow]
  [[workflow.steps]]
  agent = "writer"
  id = "draft"
  [workflow.steps.input]
  template = "Draft it."
  [[workflow.steps.output]]
  kind = "file"
  path = "LOG.md"
  append = true
  [[workflow.steps.output]]
  kind = "file"
  path = "COPY.md"
  append = true
  [[workflow.steps]]
  id = "count"
  run = "echo counted >> counted; wc -w < LOG.md"
  [[workflow.steps]]
  agent = "writer"
  id = "fix"
  engine = "codemachine"
  verify = ["test -f fixed"]
  [workflow.steps.input]
  template = "Fix it: {{steps.draft.output}}"
  [[workflow.steps]]
  agent = "writer"
  id = "end"
  [workflow.steps.input]
  template = "{{steps.count.output}} words, then {{steps.fix.output}}"
  [workflow.steps.output]
  kind = "file"
  path = "LOG.md"
  append = true
`

const fix = `${folder}/steps/fix`
const CLAIM = `echo '{"tasks":[{"id":"T1","name":"fix it","done":true}]}' > ${fix}/tasks.json; sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${fix}/MAIN.md`

/** What the model does follows from what it is asked, so that it does not matter how often that is. */
function modelOf(isFixed: () => boolean): Script {
  return turnsScript(({ userTexts, step }) => {
    const input = userTexts.at(-1) ?? ''
    if (input.startsWith('Draft it.')) return reply(message('Two words.\n'))
    if (input.includes('Continue with the goal.')) {
      if (step === 0) return reply(shell(isFixed() ? CLAIM : 'touch fixed'))
      return reply(message('Fixed.'))
    }
    return reply(message(/^3\s+words, then Fixed\./.test(input) ? 'The end.\n' : `What? ${input}`))
  })
}

/** One in each step, while it is worked on, proved, written or noted. */
const POINTS: readonly KillPoint[] = [
  { victim: 'codemachine', event: 'item-completed', item: 'agent-message', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'wrote', when: 'before', n: 1 },
  { victim: 'codemachine', event: 'wrote', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'command-ran', when: 'before', n: 1 },
  { victim: 'codemachine', event: 'scope-entered', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'round-ended', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'done-accepted', when: 'before', n: 1 },
  { victim: 'codemachine', event: 'scope-left', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'round-started', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'done-nominated', when: 'after', n: 1 },
]

const LOOP = `${HEAD}
[workflow]
  [[workflow.steps]]
  id = "names"
  run = "seq 3"
  [[workflow.steps]]
  agent = "writer"
  id = "each"
  for_each = "{{steps.names.output}}"
  verify = ["true"]
  input.template = "Item {{item}}."
  output = { kind = "file", path = "ALL.json" }
`

/** While the items are looked for, worked on, proved and collected. */
const LOOP_POINTS: readonly KillPoint[] = [
  { victim: 'codemachine', event: 'looked', when: 'before', n: 1 },
  { victim: 'codemachine', event: 'looked', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'item-completed', item: 'agent-message', when: 'after', n: 2 },
  { victim: 'codemachine', event: 'command-ran', when: 'before', n: 2 },
  { victim: 'codemachine', event: 'looked', when: 'after', n: 1 },
  { victim: 'codemachine', event: 'wrote', when: 'before', n: 1 },
]

/** Runs the workflow, is killed at each of these, and resumes; returns the events of the session, which ends with 0. */
async function killedAtEach(points: readonly KillPoint[], scene: RealScene): Promise<Recorded[]> {
  let last: { exitCode: number | null; stderr: string } = { exitCode: null, stderr: '' }
  for (let n = 0; n <= points.length; n++) {
    const args = n === 0 ? ['flow', 'run', FILE, '--no-mock'] : ['resume']
    last = await startWithKills(scene.place, [...args, '--json', '--no-keep-awake'], points).ended
    expect(killsIn(scene.place), last.stderr).toHaveLength(Math.min(n + 1, points.length))
  }
  expect(last.exitCode, last.stderr).toBe(0)
  const journal = scene.recorded('journal.ndjson').trim().split('\n')
  return journal.map(line => JSON.parse(line) as Recorded)
}

promise('F11')
test('killed in a loop and resumed, it goes on at the item that was cut off, and a replay plays all items', async () => {
  await using scene = await openRealScene(
    turnsScript(({ userTexts }) => reply(message(`Said: ${/Item \d\./.exec(userTexts.at(-1) ?? '')}`))),
  )
  await lay(scene, { [FILE]: LOOP, ...PROMPT })
  const events = await killedAtEach(LOOP_POINTS, scene)
  expect(eventsOf(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 1/2: names: done',
    'Step 2/2: each (1 of 3: 1): done',
    'Step 2/2: each (2 of 3: 2): done',
    'Step 2/2: each (3 of 3: 3): done',
    'Step 2/2: each: done, 3 items, ALL.json',
  ])
  expect(JSON.parse(await at(scene, 'ALL.json'))).toEqual([1, 2, 3].map(n => `Said: Item ${n}.`))
  const replayed = await codemachine(scene.place, ['flow', 'run', FILE, '--pace', '0', '--strict'])
  expect(replayed).toMatchObject({ exitCode: 0, stderr: '' })
  for (const n of [1, 2, 3]) expect(replayed.stdout).toContain(`Said: Item ${n}.`)
})

promise('F11')
test('killed in each step of a workflow and resumed, it comes to the same end, and no finished step is run again', async () => {
  let directory = ''
  await using scene = await openRealScene(modelOf(() => existsSync(join(directory, 'fixed'))))
  directory = scene.place.directory
  await lay(scene, { [FILE]: WORKFLOW, ...PROMPT, 'LOG.md': 'Before.\n' })
  const events = await killedAtEach(POINTS, scene)
  expect(eventsOf(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done' } }])
  expect(eventsOf(events, 'noted').map(({ text }) => text)).toEqual([
    'Step 1/4: draft: done, LOG.md, COPY.md',
    'Step 2/4: count: done',
    'Step 3/4: fix: done',
    'Step 4/4: end: done, LOG.md',
  ])
  expect(await at(scene, 'LOG.md')).toBe('Before.\nTwo words.\nThe end.\n')
  expect(await at(scene, 'COPY.md')).toBe('Two words.\n')
  // The command that was cut off is run again, and none after that.
  expect(await at(scene, 'counted')).toBe('counted\ncounted\n')
  const worked = eventsOf(events, 'round-ended').filter(({ outcome }) => outcome.class === 'worked')
  expect(worked.map(({ round }) => round)).toEqual([...new Set(worked.map(({ round }) => round))])
})
