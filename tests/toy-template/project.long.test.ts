import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { OwnStep } from '../../src/core/template.ts'
import { message, reply, roundsScript } from '../../src/demo/model/reply.ts'
import { openProject, processWorld, type Recorded } from '../../src/index.ts'
import { ofType } from '../support/played-session.ts'
import { processesOf } from '../support/processes.ts'
import { promise } from '../support/promise.ts'
import { openRealScene } from '../support/real-scene.ts'
import { round } from '../support/rounds.ts'
import { startScriptedModel } from '../support/scripted-model.ts'
import { type ToyOptions, withToy } from './toy.ts'

/** Opens the scene's project with a world that has the toy. */
const open = async (env: Record<string, string>, home: string, cwd: string, toy: ToyOptions, verify: string[]) =>
  await openProject(processWorld({ env, home, cwd, templates: withToy(toy) }), { keepAwake: false, verify })

const runs = (name: string, run: string, timeoutMs = 60_000): Extract<OwnStep, { kind: 'command' }> => ({
  kind: 'command',
  name,
  run,
  timeoutMs,
  network: false,
})

promise('D25')
test('in a work directory, with the real codex: what is written is there for a command in the sandbox, and done is proved', async () => {
  await using scene = await openRealScene([round('cat plan.md > copy.md')])
  const { env, home, directory } = scene.place
  const toy: ToyOptions = {
    steps: [
      { kind: 'write', files: [{ path: 'plan.md', text: 'say hello\n' }] },
      { kind: 'look', what: 'plan' },
      'Do what the plan says.',
      runs('compare', 'cmp plan.md copy.md && echo same && touch made-by-a-command'),
      { ...runs('read', 'cat plan.md; touch made-by-reading'), readOnly: true },
      runs('fail', 'echo wrong >&2; exit 3'),
      runs('hang', 'sleep 300 & sleep 300', 1_500),
      { kind: 'claim' },
    ],
    looks: { plan: () => readFile(join(directory, 'plan.md'), 'utf8') },
  }
  await using project = await open(env, home, directory, toy, ['test -f copy.md'])
  const events: Recorded[] = []
  const { outcome, id } = await project.run('Say hello.', {
    template: 'toy',
    onEvent: event => void events.push(event),
  })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(ofType(events, 'looked')).toMatchObject([{ result: 'say hello\n' }])
  const [compared, reading, failed, hung] = ofType(events, 'command-ran')
  expect(compared).toMatchObject({ status: 'passed', exitCode: 0, output: 'same', changed: ['made-by-a-command'] })
  expect(compared?.treeAfter).not.toBe(compared?.tree)
  expect(reading).toMatchObject({ status: 'failed', exitCode: 1, changed: [] })
  expect(reading?.output).toMatch(/^say hello\ntouch: .*made-by-reading/)
  expect(failed).toMatchObject({ status: 'failed', exitCode: 3, output: 'wrong' })
  expect(hung).toMatchObject({ status: 'timed-out', exitCode: null })
  expect(await processesOf(scene.place)).toEqual([])
  expect(ofType(events, 'gate-ended').map(({ when, status }) => [when, status])).toEqual([
    ['before', 'failed'],
    ['claim', 'passed'],
  ])
  const kept = join(scene.records(), 'sessions', id, 'outputs', compared?.kept?.file ?? '')
  expect(await readFile(kept, 'utf8')).toBe('same')
  const done = JSON.parse(await readFile(join(scene.records(), 'sessions', id, 'done.json'), 'utf8'))
  expect(done).toMatchObject({
    format: 'codemachine-done',
    verified: true,
    tree: ofType(events, 'done-accepted')[0]?.tree,
  })
  expect(await project.report()).toMatchObject({ session: id })
})

const VERDICT = {
  type: 'object',
  properties: { verdict: { type: 'string', enum: ['good', 'bad'] } },
  required: ['verdict'],
  additionalProperties: false,
}

test('with two providers in one session: an answer of one is given to the other, and each is named with its tokens', async () => {
  const answers = [
    reply(message('I think it is fine.')),
    reply(message('Here it is:\n\n```json\n{"verdict":"good"}\n```')),
  ]
  await using local = await startScriptedModel({
    script: roundsScript(answers.map(answer => [answer])),
    models: ['small'],
    functionsOnly: true,
  })
  await using scene = await openRealScene([round('touch made')])
  const { env, home, directory } = scene.place
  const toy: ToyOptions = {
    steps: [
      { kind: 'write', files: [{ path: 'plan.md', text: 'say hello\n' }] },
      { kind: 'look', what: 'plan' },
      { kind: 'round', provider: 'local', input: 'Is the plan good?', answer: { name: 'verdict', schema: VERDICT } },
      // The first answer is none, and is asked for once more.
      { kind: 'round', provider: 'local', input: 'Is the plan good?', answer: { name: 'verdict', schema: VERDICT } },
      { kind: 'decide', decision: { id: 'go', title: 'Carry it out?', body: '', choices: YES_OR_NO, default: 'yes' } },
      { kind: 'round', input: 'Carry the plan out.', materials: [{ name: 'the verdict', output: 1 }], keep: 'report' },
      runs('look', 'test -e made'),
      { kind: 'claim' },
    ],
    looks: { plan: async () => ({ length: 'say hello\n'.length }) },
  }
  const providers = { CODEMACHINE_PROVIDERS_LOCAL_BASE_URL: local.url, CODEMACHINE_PROVIDERS_LOCAL_MODEL: 'small' }
  await using project = await open({ ...env, ...providers }, home, directory, toy, ['test -e made'])
  const events: Recorded[] = []
  const { outcome } = await project.run('Say hello.', { template: 'toy', onEvent: event => void events.push(event) })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(ofType(events, 'round-started').map(({ engine, provider = null }) => [engine, provider])).toEqual([
    ['codex', 'local'],
    ['codex', 'local'],
    ['codex', null],
  ])
  expect(ofType(events, 'answer-refused')).toMatchObject([{ round: 1, name: 'verdict' }])
  expect(ofType(events, 'answer-given')).toMatchObject([{ round: 2, name: 'verdict', value: { verdict: 'good' } }])
  expect(ofType(events, 'decision-made')).toMatchObject([{ id: 'go', choice: 'yes', by: 'default' }])
  const input = ofType(events, 'round-started').at(-1)?.input ?? ''
  expect(input).toMatch(/\n\nCarry the plan out\..*the verdict.*"verdict": "good"/s)
  expect(ofType(events, 'output-kept').map(({ output }) => output.name)).toEqual(['report'])
  expect(new Set(local.requests.map(({ model }) => model))).toEqual(new Set(['small']))
  expect(scene.model.requests.every(({ model }) => model !== 'small')).toBe(true)
})

const YES_OR_NO = [
  { id: 'yes', label: 'Yes' },
  { id: 'no', label: 'No', text: 'may' as const },
]
