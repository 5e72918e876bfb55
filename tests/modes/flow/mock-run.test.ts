import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { plainView } from '../../../src/doors/screen/plain-view.ts'
import { processWorld } from '../../../src/index.ts'
import {
  type AgentWork,
  type FlowOptions,
  type FlowPlan,
  type FlowStep,
  flowOptionsOf,
} from '../../../src/modes/flow/file/plan.ts'
import { DEBUG_FOLDER, firstLine, inputHash } from '../../../src/modes/flow/file/recording.ts'
import { runMock } from '../../../src/modes/flow/start/mock-run.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import type { EndReport } from '../../../src/project/reports.ts'
import type { RunObserver } from '../../../src/project/sessions.ts'
import { openRecords } from '../../../src/session/records/records.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { endAfterEach } from '../../engines/codex/end-after-each.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

const atEnd = endAfterEach()

const COMMIT: AgentWork = {
  kind: 'agent',
  agent: 'commit',
  engine: 'codex',
  model: 'gpt-5',
  args: [],
  prompt: { path: 'prompts/commit.md', found: '.codex-flow/prompts/commit.md', text: 'Write a message.' },
  input: ['Diff: ', { variable: 'diff' }],
  schema: null,
  rounds: 10,
}

function stepOf(index: number, id: string, more: Partial<FlowStep> = {}): FlowStep {
  return {
    index,
    id,
    stem: id,
    description: id,
    work: COMMIT,
    verify: [],
    retries: 0,
    approve: false,
    timeoutMs: null,
    when: null,
    readOnly: false,
    output: { kind: 'stdout' },
    ...more,
  }
}

const planOf = (...steps: FlowStep[]): FlowPlan => ({
  v: 1,
  file: '.codex-flow/workflows/commit.workflow.toml',
  name: 'commit_flow',
  description: 'A commit message from the diff',
  steps,
  values: {},
  sources: [],
})

/** What codex said in a step. */
const said = (text: string, ...more: object[]) => [
  { type: 'thread.started', thread_id: 't' },
  { type: 'turn.started' },
  ...more,
  { type: 'item.completed', item: { id: 'item_1', type: 'agent_message', text } },
  { type: 'turn.completed', usage: { input_tokens: 30, cached_input_tokens: 0, output_tokens: 12 } },
]
const ran = (command: string, output: string) => ({
  type: 'item.completed',
  item: {
    id: 'item_0',
    type: 'command_execution',
    command,
    aggregated_output: output,
    exit_code: 0,
    status: 'completed',
  },
})

/** A directory without git, in an environment without any program. */
async function emptyPlace(): Promise<TestPlace> {
  const place = atEnd.use(await makePlace('', { git: false }))
  await mkdir(join(place.directory, DEBUG_FOLDER), { recursive: true })
  return { ...place, env: { ...place.env, PATH: '', CODEX_BIN: '' } }
}

async function record({ directory }: TestPlace, name: string, lines: readonly (object | string)[]) {
  const text = lines.map(line => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  await writeFile(join(directory, DEBUG_FOLDER, name), `${text}\n`)
}

interface Ran {
  exit: number
  outcome: unknown
  events: Recorded[]
  lines: string
  report: EndReport | null
}

async function run(
  place: TestPlace,
  plan: FlowPlan,
  how: Partial<FlowOptions> & { strict?: boolean; signal?: AbortSignal; onEvent?: (event: Recorded) => void } = {},
): Promise<Ran & { id: string }> {
  const { strict = false, signal, onEvent, ...more } = how
  const world = processWorld({
    env: place.env,
    home: place.home,
    cwd: place.directory,
    templates: OWN_TEMPLATES,
    configHome: join(place.home, '.config'),
    ...(signal && { signal }),
  })
  const options = flowOptionsOf(plan, {
    mode: 'mock',
    from: null,
    carried: [],
    continueOnError: false,
    writes: false,
    pace: 0,
    verbose: false,
    ...more,
  })
  const events: Recorded[] = []
  let lines = ''
  let report: EndReport | null = null
  const plain = plainView(text => (lines += text), { colour: false })
  const observer: RunObserver = {
    view: {
      event(event, state) {
        events.push(event)
        onEvent?.(event)
        plain.event(event, state)
      },
      live: event => plain.live(event),
    },
    canAsk: false,
    ended(_, made) {
      report = made
    },
  }
  const ended = await runMock(world, { plan, options, strict, run: { directory: place.directory } }, observer)
  const last = events.at(-1)
  return { ...ended, events, lines, report, exit: last?.type === 'session-ended' ? last.exitCode : -1 }
}

const sessionsOf = async ({ home }: TestPlace) => {
  const state = join(home, '.codemachine', 'state')
  const [key = ''] = await readdir(state).catch(() => [])
  return await readdir(join(state, key, 'sessions')).catch(() => [])
}

promise(
  'F20',
  'A workflow is replayed where there is no codex, no git and no program at all, and the outcome is *replayed*',
)
test('a recorded workflow is replayed where there is no codex, no git and no program at all', async () => {
  const place = await emptyPlace()
  await record(place, '1-look.json', said('It is a small change.', ran('git diff', '+a\n')))
  await record(place, '2-commit-agent.json', said('feat: a small change'))
  const plan = planOf(
    stepOf(1, 'look'),
    stepOf(2, 'commit-message', { output: { kind: 'file', path: 'OUT.md', append: false } }),
  )
  const { outcome, exit, lines, report } = await run(place, plan)
  expect([outcome, exit]).toEqual([{ kind: 'replayed' }, 0])
  expect(lines).toContain('git diff')
  expect(lines).toContain('feat: a small change')
  const memory = join(place.directory, '.codex-flow/runtime/memory')
  expect(await readdir(memory)).toEqual(['1-look-agent-result.md', '2-commit-message-agent-result.md'])
  expect(await readFile(join(memory, '2-commit-message-agent-result.md'), 'utf8')).toBe('feat: a small change\n')
  expect(await readdir(place.directory)).toEqual(expect.not.arrayContaining(['OUT.md']))
  expect(report).toMatchObject({ problem: null, html: expect.stringContaining('report.html') })
})

promise(
  'F21',
  'Without a recording with an event nothing begins (exit code 2), and the files that were looked for and `--no-mock` are named',
)
test('without a recording nothing begins, and the files that were looked for are named', async () => {
  const place = await emptyPlace()
  const refused = run(place, planOf(stepOf(1, 'commit-message'), stepOf(2, 'other')))
  await expect(refused).rejects.toMatchObject({
    exitCode: 2,
    message: `Step 1 (commit-message) cannot be replayed: there is no recording: ${DEBUG_FOLDER}/1-commit-message.json, or ${DEBUG_FOLDER}/1-commit-agent.json. Nor can one more step.`,
    hint: expect.stringContaining('--no-mock'),
  })
  await record(place, '1-commit-message.json', [firstLine({ step: 'x' }), '{"type":"thread.st'])
  await record(place, '2-other.json', said('Hello.'))
  await expect(run(place, planOf(stepOf(1, 'commit-message'), stepOf(2, 'other')))).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/1-commit-message\.json holds no event of codex\.$/),
  })
  expect(await sessionsOf(place)).toEqual([])
})

promise('F24', 'A prompt or an input that is not what was recorded is told in one line, and refused with `--strict`')
test('an input that is not what was recorded is told in one line, and refused with --strict', async () => {
  const place = await emptyPlace()
  const hash = inputHash('Write a message.', 'Diff: +a')
  await record(place, '1-a.json', [firstLine({ step: 'a', input_sha256: hash }), ...said('feat: a')])
  const plan = (text: string): FlowPlan => ({ ...planOf(stepOf(1, 'a')), values: { diff: { text, from: 'given' } } })
  const told = 'the prompt or the input has changed'
  expect((await run(place, plan('+a'), { strict: true })).lines).not.toContain(told)
  expect((await run(place, plan('+b'))).lines.split(told)).toHaveLength(2)
  const sessions = await sessionsOf(place)
  expect(sessions).toHaveLength(2)
  await expect(run(place, plan('+b'), { strict: true })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(`${DEBUG_FOLDER}/1-a.json was recorded, and --strict does not allow that`),
  })
  expect(await sessionsOf(place)).toEqual(sessions)
})

test('with --write the output files are written', async () => {
  const place = await emptyPlace()
  await record(place, '1-a.json', said('feat: a'))
  await writeFile(join(place.directory, 'LOG.md'), 'Before.\n')
  await record(place, '2-b.json', said('feat: b'))
  const plan = planOf(
    stepOf(1, 'a', { output: { kind: 'file', path: 'OUT.md', append: false } }),
    stepOf(2, 'b', { output: { kind: 'file', path: 'LOG.md', append: true } }),
  )
  expect((await run(place, plan, { writes: true })).outcome).toEqual({ kind: 'replayed' })
  expect(await readFile(join(place.directory, 'OUT.md'), 'utf8')).toBe('feat: a\n')
  expect(await readFile(join(place.directory, 'LOG.md'), 'utf8')).toBe('Before.\nfeat: b\n')
})

test('while somebody runs here a mock run is refused', async () => {
  const place = await emptyPlace()
  await record(place, '1-a.json', said('feat: a'))
  const world = processWorld({ env: place.env, home: place.home, cwd: place.directory })
  const records = await openRecords({ ...world, directory: place.directory })
  await using _ = await takeRunLock(records.lock, { platform: world.platform, pid: world.pid, now: new Date() })
  await expect(run(place, planOf(stepOf(1, 'a')))).rejects.toMatchObject({ exitCode: 6 })
})

promise('F20')
test('a recorded failure, a torn end and lines of a newer codex are shown, and the outcome is replayed all the same', async () => {
  const place = await emptyPlace()
  const failed = { type: 'turn.failed', error: { message: 'You have hit your usage limit.' } }
  await record(place, '1-a.json', [...said('x').slice(0, 2), failed])
  await record(place, '2-b.json', [...said('feat: b').slice(0, 3), { type: 'of.the.future' }, '{"type":"turn.comp'])
  const { outcome, lines } = await run(place, planOf(stepOf(1, 'a'), stepOf(2, 'b')))
  expect(lines).toContain('failed, as recorded: You have hit your usage limit.')
  expect(lines).toContain(`the recording ${DEBUG_FOLDER}/2-b.json were passed over`)
  expect(lines).toContain('feat: b')
  expect(outcome).toEqual({ kind: 'replayed' })
})

test('where the folder of the memory files is a link, one line says so and nothing is written through it', async () => {
  const place = await emptyPlace()
  await record(place, '1-a.json', said('feat: a'))
  await mkdir(join(place.root, 'elsewhere'))
  await symlink(join(place.root, 'elsewhere'), join(place.directory, '.codex-flow/runtime/memory'))
  const { outcome, lines } = await run(place, planOf(stepOf(1, 'a')))
  expect(lines).toContain('.codex-flow/runtime/memory/1-a-agent-result.md could not be written')
  expect(await readdir(join(place.root, 'elsewhere'))).toEqual([])
  expect(outcome).toEqual({ kind: 'replayed' })
})

test('what steers a terminal in a recording is not handed on to it', async () => {
  const place = await emptyPlace()
  const evil = '\u001b]0;owned\u0007\u001b[31mred\u009b2J'
  await record(place, '1-a.json', [...said(evil, ran(evil, evil)), { type: 'codemachine.result', v: 1, failed: evil }])
  const { lines } = await run(place, planOf(stepOf(1, 'a', { verify: ['true'] })))
  expect(lines).toContain('failed, as recorded')
  for (const steers of ['\u001b', '\u0007', '\u009b']) expect(lines).not.toContain(steers)
})

test('the secrets of the environment and of codex are not shown, whatever a recording holds', async () => {
  const place = await emptyPlace()
  await writeFile(join(place.codexHome, 'auth.json'), JSON.stringify({ OPENAI_API_KEY: 'sk-of-the-login-0123456789' }))
  await record(place, '1-a.json', said('It is sk-of-the-login-0123456789, or of-the-shop-42.'))
  const env = { ...place.env, SHOP_TOKEN: 'of-the-shop-42' }
  const { lines } = await run({ ...place, env }, planOf(stepOf(1, 'a')))
  expect(lines).toMatch(/It is \[secret [^\]]+\], or \[secret SHOP_TOKEN\]\./)
  const memory = join(place.directory, '.codex-flow/runtime/memory/1-a-agent-result.md')
  expect(await readFile(memory, 'utf8')).not.toMatch(/sk-of|of-the-shop/)
})

test('a replay that a person ends is over at once, and the next one can begin', async () => {
  const place = await emptyPlace()
  await record(place, '1-a.json', said('feat: a'))
  const ending = new AbortController()
  const onEvent = (event: Recorded) => {
    if (event.type === 'round-started') ending.abort('SIGINT')
  }
  const { outcome, exit } = await run(place, planOf(stepOf(1, 'a')), { pace: 3600, signal: ending.signal, onEvent })
  expect([outcome, exit]).toEqual([{ kind: 'interrupted', by: 'SIGINT' }, 130])
  expect((await run(place, planOf(stepOf(1, 'a')))).outcome).toEqual({ kind: 'replayed' })
  const ended = run(place, planOf(stepOf(1, 'a')), { signal: AbortSignal.abort('SIGTERM') })
  await expect(ended).rejects.toMatchObject({ name: 'Interrupted', exitCode: 143 })
})

test('what a person sees of a mock run', async () => {
  const place = await emptyPlace()
  const hash = inputHash('Write a message.', 'Diff: +b')
  await record(place, '1-test.json', ['{"type":"codemachine.result","v":1,"exit":1,"output":"1 failed"}'])
  await record(place, '2-fix.json', [
    firstLine({ step: 'fix', input_sha256: hash, values: { diff: '+a' } }),
    ...said('Mended.', ran("/bin/bash -lc 'npm test'", '2 passed\n')),
    '{"type":"codemachine.result","v":1,"exit":0,"tries":2,"verify":[{"run":"npm test","exit":0}],"approved":true}',
  ])
  await record(place, '4-commit.json', [
    ...said('x').slice(0, 2),
    { type: 'turn.failed', error: { message: 'No quota.' } },
  ])
  const exit = (operator: '==' | '!=') => ({
    when: {
      text: `{{steps.test.exit}} ${operator} 0`,
      left: { step: 'test', part: 'exit' as const, field: [] },
      operator,
      right: '0',
    },
  })
  const plan = planOf(
    stepOf(1, 'test', { work: { kind: 'command', run: 'npm test' } }),
    stepOf(2, 'fix', { ...exit('!='), verify: ['npm test'], retries: 1, approve: true }),
    stepOf(3, 'praise', exit('==')),
    stepOf(4, 'commit'),
    stepOf(5, 'push'),
  )
  const { lines, outcome } = await run(place, plan)
  expect(outcome).toEqual({ kind: 'replayed' })
  expect(shownIn(lines)).toMatchInlineSnapshot(`
    "hh:mm:ss  session SESSION  commit_flow: A commit message from the diff  (flow, workspace-write, without a limit, no gates)
    hh:mm:ss  Step 1/5: test: would run: npm test (recorded: exit code 1)
    hh:mm:ss  Step 2/5: fix
              cat "prompts/commit.md" | codex exec --model gpt-5
              the prompt or the input has changed since .codex-flow/runtime/debug/2-fix.json was recorded
    hh:mm:ss  $ npm test  → exit 0
    hh:mm:ss  Mended.
    hh:mm:ss  kept: outputs/1-fix.md, 7 bytes
    hh:mm:ss  round ended: worked, 0 s, 1 of 5 steps shown
    hh:mm:ss  would run: npm test (recorded: exit code 0)
    hh:mm:ss  would run: again if it fails, at most once (recorded: 1 more)
    hh:mm:ss  would ask: a person to look at the output (recorded: accepted)
    hh:mm:ss  Step 3/5: praise: skipped: when {{steps.test.exit}} == 0 (1 == 0) is false
    hh:mm:ss  Step 4/5: commit
              cat "prompts/commit.md" | codex exec --model gpt-5
    hh:mm:ss  round ended: network, 0 s, 4 of 5 steps shown
    hh:mm:ss  failed, as recorded: No quota.
    hh:mm:ss  Step 5/5: push: not recorded: the recorded run ended when commit failed
    hh:mm:ss  session SESSION ended: replayed: a replay never counts as done  (2 rounds, 0 s, 0 tokens)
    "
  `)
  await record(place, '1-x.json', said('Mended.'))
  const { lines: verbose } = await run(place, planOf({ ...stepOf(1, 'x'), readOnly: true }), { verbose: true })
  expect(shownIn(verbose)).toMatchInlineSnapshot(`
    "hh:mm:ss  session SESSION  commit_flow: A commit message from the diff  (flow, workspace-write, without a limit, no gates)
    hh:mm:ss  Step 1/1: x
              cat "prompts/commit.md" | codex exec --model gpt-5
              engine codex, model gpt-5, sandbox read-only
              prompt: .codex-flow/prompts/commit.md
              input: known only in a real run
              recording: .codex-flow/runtime/debug/1-x.json
    hh:mm:ss  Mended.
    hh:mm:ss  kept: outputs/1-x.md, 7 bytes
    hh:mm:ss  round ended: worked, 0 s, 1 of 1 step shown
    hh:mm:ss  session SESSION ended: replayed: a replay never counts as done  (1 round, 0 s, 0 tokens)
    "
  `)
})

/** Without what differs from run to run. */
function shownIn(lines: string): string {
  return lines
    .replace(/^\d\d:\d\d:\d\d/gm, 'hh:mm:ss')
    .replace(/\d{8}_\d+/g, 'SESSION')
    .replace(/\d+(\.\d+)? ?m?s\b/g, '0 s')
}
