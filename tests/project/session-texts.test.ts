import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import type { TemplateKind } from '../../src/core/template.ts'
import { processWorld } from '../../src/index.ts'
import { OpenProject } from '../../src/project/open-project.ts'
import { codemachineHere } from '../support/in-process.ts'
import { ofType } from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { round } from '../support/rounds.ts'
import { openScene } from '../support/scene.ts'

const nothing = () => {}
const THREAD = { agent: 'reader', developerInstructions: '', model: null, effort: null }

/** A template that reads a text that its session keeps, has one round on it, and needs a person. */
const reading: TemplateKind<readonly string[]> = {
  name: 'reading',
  description: 'reads what is kept',
  command: 'none',
  defaultRounds: () => 3,
  parts: {},
  hasPlan: false,
  memory: 'session',
  first: ({ outputs = [] }) => outputs.map(({ name }) => name),
  fold: own => own,
  async open({ kept }) {
    const plan = await kept.read('plan.txt')
    return {
      threads: [{ part: null, thread: THREAD }],
      next: session =>
        session.roundsUsed === 0
          ? { kind: 'round', round: { thread: THREAD, input: `${plan}: ${String(session.work)}` } }
          : { kind: 'end', outcome: { kind: 'needs-person', reason: 'Say more.', hint: null } },
      ahead: () => null,
    }
  },
}

async function openReading(more: Readonly<Record<string, string>> = {}) {
  const scene = await openScene([round('echo hello'), round('echo hello')])
  const { env, home, directory: cwd } = scene.place
  const { engines } = scene
  const project = await OpenProject.open(processWorld({ engines, env: { ...env, ...more }, home, cwd }), {
    keepAwake: false,
    templates: [reading],
  })
  const begun = {
    text: 'Read it.',
    template: reading.name,
    kept: [{ name: 'plan.txt', text: 'As it was' }],
    outputs: [
      { name: 'first', kind: 'md', text: 'One' },
      { name: 'second', kind: 'json', text: '{}' },
    ],
  } as const
  return {
    scene,
    project,
    begun,
    async [Symbol.asyncDispose]() {
      await project[Symbol.asyncDispose]()
      await scene[Symbol.asyncDispose]()
    },
  }
}

promise('J40')
test('a session begins with texts and outputs that its first event names, and reads the same when it goes on', async () => {
  await using opened = await openReading()
  const { project, begun, scene } = opened
  const { records } = project
  const lines: [string, number, string][] = []
  const events: Recorded[] = []
  const worked = await project.runQueue(
    { first: begun },
    {
      view: { event: event => void events.push(event), live: nothing },
      canAsk: false,
      record: (session, n, line) => void lines.push([session, n, line]),
    },
  )
  expect(worked).toMatchObject({ exitCode: 4 })
  const [created] = ofType(events, 'session-created')
  const id = created?.session ?? ''
  expect(created).toMatchObject({
    kept: [{ name: 'plan.txt', bytes: 9 }],
    outputs: [
      { n: 1, name: 'first', file: '1-first.md', head: 'One' },
      { n: 2, name: 'second', file: '2-second.json' },
    ],
  })
  const inRecords = (...path: string[]) => join(records.sessionFolder(id), ...path)
  expect(await readFile(inRecords('outputs', '1-first.md'), 'utf8')).toBe('One')
  expect(scene.input(1)).toContain('As it was: first,second')
  // What the engine sent in the round, as its record has it.
  const recorded = (await readFile(inRecords('rounds', '001.ndjson'), 'utf8')).trimEnd().split('\n')
  expect(lines).toEqual(recorded.map(line => [id, 1, line]))
  const { stdout } = await codemachineHere(scene.place, ['logs', id])
  expect(stdout).toContain('Read it.')

  const again = await project.resume(id)
  expect(again.outcome).toMatchObject({ kind: 'needs-person', reason: 'Say more.' })
  await writeFile(inRecords('kept', 'plan.txt'), 'As it was not')
  const error = await project.resume(id).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    name: 'UserError',
    message: expect.stringContaining(`${inRecords('kept', 'plan.txt')} was changed since the session began`),
  })
})

promise('O44')
test('nothing is begun with a text that holds a secret, which the records never have', async () => {
  await using opened = await openReading({ DEPLOY_TOKEN: 'sesame-open-12345' })
  const { project, begun } = opened
  const kept = [{ name: 'plan.txt', text: JSON.stringify({ run: 'curl -u sesame-open-12345' }) }]
  const worked = project.runQueue(
    { first: { ...begun, kept } },
    { view: { event: nothing, live: nothing }, canAsk: false },
  )
  await expect(worked).rejects.toThrow('plan.txt contains [secret DEPLOY_TOKEN], which codemachine never stores')
  expect(await project.records.sessions()).toEqual([])
})

test('nothing is begun with a text that is too long', async () => {
  await using opened = await openReading()
  const { project, begun } = opened
  const kept = [{ name: 'plan.txt', text: 'x'.repeat(16 * 1024 * 1024 + 1) }]
  const worked = project.runQueue(
    { first: { ...begun, kept } },
    { view: { event: nothing, live: nothing }, canAsk: false },
  )
  await expect(worked).rejects.toThrow('plan.txt has 17 MiB, but at most 16 MiB are allowed')
  expect(await project.records.sessions()).toEqual([])
})
