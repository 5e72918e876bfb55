import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { message, reasoning, reply, shell, updatePlan } from '../../../src/demo/model/reply.ts'
import { plainView } from '../../../src/doors/screen/plain-view.ts'
import { processWorld } from '../../../src/index.ts'
import { flowOptionsOf } from '../../../src/modes/flow/file/plan.ts'
import { runMock } from '../../../src/modes/flow/start/mock-run.ts'
import { preparedPlan } from '../../../src/modes/flow/start/prepare.ts'
import { runFlow } from '../../../src/modes/flow/start/run.ts'
import type { RunObserver } from '../../../src/project/sessions.ts'
import { ofType } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { folder, round, says } from '../../support/rounds.ts'
import { webSearch } from '../../support/scripted-model.ts'

const FILE = '.codex-flow/workflows/write.workflow.toml'
const FLOW = `name = "write"
[agents.writer]
prompt = "prompts/writer.md"
[engines.codex]
args = []
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "Draft"
  [workflow.steps.input]
  template = "Write about {{topic}} for {{who}}."
  [[workflow.steps]]
  id = "count"
  run = "printf 'three words long'; exit 3"
  [[workflow.steps]]
  agent = "writer"
  description = "Mend"
  when = "{{steps.count.exit}} != 0"
  verify = ["true"]
  [workflow.steps.input]
  template = "{{steps.count.output}}: {{steps.draft.output}}"
  [[workflow.steps]]
  agent = "writer"
  description = "Praise"
  when = "{{steps.count.exit}} == 0"
[vars]
topic = { run = "printf trees" }
`

/** Lays down a workflow, and its prompt. */
async function lay({ place }: RealScene, flow: string): Promise<void> {
  for (const [path, text] of Object.entries({ [FILE]: flow, '.codex-flow/prompts/writer.md': 'You write.\n' })) {
    await mkdir(dirname(join(place.directory, path)), { recursive: true })
    await writeFile(join(place.directory, path), text)
  }
}

interface Seen {
  events: Recorded[]
  lines: string
}

function observer(): Seen & { observer: RunObserver } {
  const seen: Seen = { events: [], lines: '' }
  const plain = plainView(
    text => {
      seen.lines += text
    },
    { colour: false },
  )
  const view: RunObserver['view'] = {
    event(event, state) {
      seen.events.push(event)
      plain.event(event, state)
    },
    live: event => plain.live(event),
  }
  return Object.assign(seen, { observer: { view, canAsk: false } })
}

function worldOf({ place }: RealScene, env: Record<string, string> = {}) {
  return processWorld({
    env: { ...place.env, ...env },
    home: place.home,
    cwd: place.directory,
    configHome: join(place.home, '.config'),
  })
}

const GIVEN = new Map([['who', 'a child']])

async function real(scene: RealScene): Promise<Seen> {
  const seen = observer()
  const wanted = {
    file: FILE,
    workflow: null,
    given: GIVEN,
    from: null,
    continueOnError: false,
    verbose: false,
    pace: 0,
  }
  const exitCode = await runFlow(worldOf(scene), { ...wanted, options: { keepAwake: false } }, seen.observer)
  expect(exitCode).toBe(0)
  return seen
}

/** Where no program can be found. */
async function mock(scene: RealScene): Promise<Seen> {
  const seen = observer()
  const world = worldOf(scene, { PATH: '', CODEX_BIN: '' })
  const { directory } = scene.place
  const { plan } = await preparedPlan({
    file: FILE,
    directory,
    workflow: null,
    given: GIVEN,
    runValue: null,
    secretIn: () => null,
    engines: [],
    signal: new AbortController().signal,
  })
  const how = {
    mode: 'mock',
    from: null,
    carried: [],
    continueOnError: false,
    writes: false,
    pace: 0,
    verbose: false,
  } as const
  await runMock(world, { plan, options: flowOptionsOf(plan, how), strict: true, run: { directory } }, seen.observer)
  return seen
}

/** What is said of what an agent does in a round, without times. */
function roundLines({ lines }: Seen, title: string): string[] {
  const all = lines.replace(/^\d\d:\d\d:\d\d {2}/gm, '').split('\n')
  const begin = all.indexOf(title)
  const end = all.findIndex((line, at) => at > begin && /^round (\d+ )?ended/.test(line))
  return all.slice(begin + 1, end).filter(line => !/^(kept: outputs| {10}cat ")/.test(line))
}

promise('F22', 'A replay shows the lines of the real run that it recorded')
test('a workflow that ran with the real codex is replayed with the same lines where there is no codex any more', async () => {
  await using scene = await openRealScene([
    [
      reply(
        reasoning('I look around.'),
        message('First I look.', { phase: 'commentary' }),
        updatePlan([{ step: 'look', status: 'in_progress' }]),
        shell('echo hi; echo oops >&2; exit 3'),
      ),
      reply(shell('echo made > made.txt'), webSearch('trees')),
      reply(updatePlan([{ step: 'look', status: 'completed' }])),
      reply(message('Trees are tall.', { phase: 'final_answer' })),
    ],
    [says('It is good.')],
  ])
  await lay(scene, FLOW)
  const live = await real(scene)
  const runtime = (...path: string[]) => join(scene.place.directory, '.codex-flow/runtime', ...path)
  expect((await readdir(runtime('debug'))).toSorted()).toEqual([
    '1-draft.json',
    '2-command.json',
    '3-mend.json',
    '4-praise.json',
  ])
  const recorded = (await readFile(runtime('debug', '1-draft.json'), 'utf8')).trimEnd().split('\n')
  expect(recorded.map(line => JSON.parse(line).type)).toEqual(
    expect.arrayContaining([
      'codemachine.recording',
      'thread.started',
      'turn.started',
      'item.started',
      'turn.completed',
    ]),
  )
  expect(recorded.join('\n')).toContain('"command_execution"')
  expect(await readFile(runtime('memory', '1-draft-agent-result.md'), 'utf8')).toBe('Trees are tall.\n')
  const asked = scene.model.requests.length
  const replayed = await mock(scene)
  expect(ofType(replayed.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'replayed' }, exitCode: 0 }])
  expect(scene.model.requests).toHaveLength(asked)
  for (const title of ['Step 1/4: Draft', 'Step 3/4: Mend']) {
    const lines = roundLines(live, title)
    expect(lines).not.toEqual([])
    expect(roundLines(replayed, title)).toEqual(lines)
  }
  const notes = ofType(replayed.events, 'noted').map(({ text }) => text)
  expect(notes).toEqual([
    "Step 2/4: count: would run: printf 'three words long'; exit 3 (recorded: exit code 3)",
    'would run: true (recorded: exit code 0)',
    'Step 4/4: Praise: skipped: when {{steps.count.exit}} == 0 (3 == 0) is false',
  ])
})

const fix = `${folder}/steps/fix`
const claim = `sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${fix}/MAIN.md`
const tasks = `echo '{"tasks":[{"id":"T1","name":"mend it","done":true}]}' > ${fix}/tasks.json`
const OF_ALL_ENGINES = `name = "write"
[engines.codex]
args = ["-c", "model_reasoning_effort=high"]
[agents.writer]
prompt = "prompts/writer.md"
[workflow]
  [[workflow.steps]]
  agent = "writer"
  description = "Think"
  [workflow.steps.input]
  template = "{{who}}, {{topic}}"
  [[workflow.steps]]
  agent = "writer"
  id = "fix"
  engine = "codemachine"
  verify = ["test -f fixed"]
  [workflow.steps.input]
  template = "Carry out: {{steps.think.output}}"
  [[workflow.steps]]
  agent = "writer"
  description = "Again"
  engine = "mock"
[vars]
topic = "trees"
`

test('a step of codex exec, one of many rounds and one that was replayed already are replayed with all that was in them', async () => {
  await using scene = await openRealScene([
    round('echo thought'),
    round(`${tasks}; ${claim}`),
    round('touch fixed'),
    [...round(claim).slice(0, -1), says('The door is mended.')],
  ])
  await lay(scene, OF_ALL_ENGINES)
  const debug = join(scene.place.directory, '.codex-flow/runtime/debug')
  await mkdir(debug, { recursive: true })
  const again = [
    '{"type":"turn.started"}',
    '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"As it was."}}',
    '{"type":"turn.completed"}',
  ]
  await writeFile(join(debug, '3-again.json'), again.join('\n'))
  const live = await real(scene)
  expect(ofType(live.events, 'session-ended')).toMatchObject([{ outcome: { kind: 'replayed' } }])
  const replayed = await mock(scene)
  // What an agent was told is no item of `codex exec`, and its ids are others.
  const itemsOf = ({ events }: Seen) =>
    ofType(events, 'item-completed').flatMap(({ item }) => (item.kind === 'user-message' ? [] : [{ ...item, id: '' }]))
  expect(itemsOf(live).length).toBeGreaterThan(8)
  expect(itemsOf(replayed)).toEqual(itemsOf(live))
  expect(ofType(replayed.events, 'round-started')).toHaveLength(3)
  expect(ofType(replayed.events, 'noted').map(({ text }) => text)).toContainEqual(
    expect.stringContaining('would run: test -f fixed (recorded: exit code 0)'),
  )
  expect(await readFile(join(debug, '3-again.json'), 'utf8')).toBe(again.join('\n'))
  expect(await readFile(join(debug, '../memory/2-writer-agent-result.md'), 'utf8')).toBe('The door is mended.\n')
})
