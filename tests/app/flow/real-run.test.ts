import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { type FlowRun, runFlow } from '../../../src/app/flow/run.ts'
import type { RunOptions } from '../../../src/app/library.ts'
import type { RunObserver } from '../../../src/app/work-through.ts'
import type { Recorded } from '../../../src/core/events/events.ts'
import { processWorld } from '../../../src/index.ts'
import { ofType } from '../../support/played-session.ts'
import { round, says } from '../../support/rounds.ts'
import { openScene, type Scene } from '../../support/scene.ts'

/** Lays files into the work directory. */
async function lay({ place }: Scene, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(place.directory, path)), { recursive: true })
    await writeFile(join(place.directory, path), text)
  }
}

const at = ({ place }: Scene, path: string) => readFile(join(place.directory, path), 'utf8')

const FILE = '.codex-flow/workflows/write.workflow.toml'
const HEAD = `name = "write"
[agents.writer]
prompt = "prompts/writer.md"
`
const PROMPT = { '.codex-flow/prompts/writer.md': 'You write {{plainly}}.\n' }

interface Ran {
  exitCode: number
  events: Recorded[]
}

function worldOf({ place }: Scene) {
  return processWorld({
    env: place.env,
    home: place.home,
    cwd: place.directory,
    configHome: join(place.home, '.config'),
  })
}

/** Runs the workflow for real. */
async function run(scene: Scene, said: Partial<FlowRun> = {}, options: RunOptions = {}): Promise<Ran> {
  const events: Recorded[] = []
  const observer: RunObserver = { view: { event: event => void events.push(event), live: () => {} }, canAsk: false }
  const wanted: FlowRun = {
    file: FILE,
    workflow: null,
    given: new Map(),
    from: null,
    continueOnError: false,
    verbose: false,
    pace: 0,
    options: { keepAwake: false, ...options },
    ...said,
  }
  return { exitCode: await runFlow(worldOf(scene), wanted, observer), events }
}

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

test('with the real codex, three steps feed each other into files, and the session is done', async () => {
  await using scene = await openScene([
    [...round('echo made > made.txt').slice(0, -1), says('Trees are tall.')],
    [says('It is good.')],
  ])
  await lay(scene, { [FILE]: THREE, ...PROMPT, 'LOG.md': 'Before.\n' })
  const { exitCode, events } = await run(scene, { given: new Map([['who', '{{topic}}']]) })
  expect(ofType(events, 'session-ended')).toMatchObject([{ outcome: { kind: 'done', verified: false } }])
  expect(exitCode).toBe(0)
  expect(await at(scene, 'out/DRAFT.md')).toBe('Trees are tall.')
  expect((await at(scene, 'COUNT.txt')).trim()).toBe('3')
  expect(await at(scene, 'LOG.md')).toBe('Before.\nIt is good.')
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
})
