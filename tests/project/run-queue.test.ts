import { readFile, rename, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { Recorded } from '../../src/core/events/events.ts'
import type { TemplateKind } from '../../src/core/template.ts'
import { processWorld } from '../../src/index.ts'
import { OpenProject } from '../../src/project/open-project.ts'
import { openQueue } from '../../src/session/records/queue.ts'
import { ofType } from '../support/played-session.ts'
import { openScene } from '../support/scene.ts'

/** A template that needs a person at once: for its own goal alone where that begins so. */
const ASKING: TemplateKind = {
  name: 'asking',
  description: 'needs a person',
  command: 'none',
  defaultRounds: () => 1,
  parts: {},
  hasPlan: false,
  memory: 'session',
  first: ({ goal }) => goal,
  fold: own => own,
  open: async () => ({
    threads: [],
    next: ({ goal }) => {
      const own = goal.startsWith('Own') ? { goalOnly: true as const } : {}
      return { kind: 'end', outcome: { kind: 'needs-person', reason: 'Say more.', hint: null, ...own } }
    },
    ahead: () => null,
  }),
}

async function openProject() {
  const scene = await openScene([])
  const { env, home, directory: cwd } = scene.place
  const project = await OpenProject.open(processWorld({ engines: scene.engines, env, home, cwd }), {
    keepAwake: false,
    templates: [ASKING],
  })
  return {
    project,
    async [Symbol.asyncDispose]() {
      await project[Symbol.asyncDispose]()
      await scene[Symbol.asyncDispose]()
    },
  }
}

const template = 'asking'

test('what waits is worked on until a person has to mend what the next one needs, too', async () => {
  await using opened = await openProject()
  const { project } = opened
  for (const goal of ['Own one', 'One for all', 'The rest']) await project.queue.add(goal, { template })
  // A run took the first one in hand, and was killed before it was a session.
  const queue = openQueue(project.records.queue)
  expect(await queue.claim('000001')).toBe(true)
  const left: number[] = []
  const worked = await project.runQueue(
    { first: null },
    {
      view: { event: () => {}, live: () => {} },
      canAsk: false,
      ended: ({ waiting }) => void left.push(waiting),
    },
  )
  expect(worked).toMatchObject({ exitCode: 4, goesOn: false, isBrokenOff: false, sessions: [{}, {}] })
  expect([left, (await queue.list()).prompts.map(({ prompt }) => prompt)]).toEqual([[0, 1], ['The rest']])
})

test('what a session continues from is kept once, and where it has gone by the time it is resumed, that is said', async () => {
  await using opened = await openProject()
  const { project } = opened
  const { records } = project
  const { id: first } = await project.run('One', { template })
  const { id } = await project.run('Two', { template, follows: first })
  const lines = (await readFile(records.journal(id), 'utf8')).split('\n')
  const resumed = async (kept: number) => {
    await writeFile(records.journal(id), `${lines.slice(0, kept).join('\n')}\n`)
    const events: Recorded[] = []
    await project.resume(id, { onEvent: event => void events.push(event) })
    return {
      kept: ofType(events, 'output-kept').length,
      said: ofType(events, 'warning').filter(({ message }) => message.includes(first)),
    }
  }
  const at = lines.findIndex(line => line.includes('"output-kept"'))
  expect(await resumed(at + 1)).toEqual({ kept: 0, said: [] })
  expect(await resumed(at)).toEqual({ kept: 1, said: [] })
  await rename(records.sessionFolder(first), `${records.root}/gone`)
  expect(await resumed(at)).toMatchObject({
    kept: 0,
    said: [{ message: expect.stringContaining(`The agents are not told the result of ${first}.`) }],
  })
})
