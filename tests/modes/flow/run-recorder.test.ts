import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { fold } from '../../../src/core/state/fold.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { type BuiltMock, scriptOf } from '../../../src/modes/flow/file/mock-script.ts'
import { type FlowPlan, PLAN_NAME } from '../../../src/modes/flow/file/plan.ts'
import { type FoundRecording, findRecording } from '../../../src/modes/flow/file/recording.ts'
import { RunRecorder } from '../../../src/modes/flow/start/run-recorder.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { redactorOf } from '../../../src/secrets/redactor.ts'
import { planOf, playFlow } from '../../support/flow-session.ts'
import type { Play } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'
import { SESSION, worked } from '../../support/session-events.ts'
import { problemOfMounting } from '../../support/skipped.ts'

let root: string
let records: string
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'codemachine-recorder-')))
  records = join(root, '..', `${root.split('/').at(-1)}-records`)
})
afterEach(async () => {
  await rm(root, { recursive: true })
  await rm(records, { recursive: true, force: true })
})

const REDACTOR = redactorOf([{ name: 'KEY', value: 'hunter2-hunter2' }])
const runtime = (...path: string[]) => join(root, '.codex-flow/runtime', ...path)
const lines = async (...path: string[]) => (await readFile(runtime(...path), 'utf8')).trimEnd().split('\n')
const recordingOf = async (name: string) => (await lines('debug', name)).map(line => JSON.parse(line))

/** What an engine sends of a round in which the agent says that. */
const sent = (text: string) => [
  '{"type":"thread.started","thread_id":"t"}',
  '{"type":"turn.started"}',
  JSON.stringify({ type: 'item.completed', item: { id: 'm', type: 'agent_message', text } }),
  '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}',
]

/** Runs a workflow whose agents say these texts; resolves with what could not be written. */
async function record(
  plan: FlowPlan,
  texts: readonly string[],
  {
    doing = async () => {},
    ...options
  }: Partial<Parameters<typeof playFlow>[2]> & { doing?: (round: number) => Promise<void> } = {},
): Promise<{ problems: string[]; events: Recorded[]; outcome: unknown }> {
  const problems: string[] = []
  let state = emptyState(SESSION)
  const recorder = new RunRecorder({
    records: { directory: root, sessionFolder: () => records },
    redactor: REDACTOR,
    onProblem: sentence => void problems.push(sentence),
  })
  const text = JSON.stringify(plan)
  await mkdir(join(records, 'kept'), { recursive: true })
  await writeFile(join(records, 'kept', PLAN_NAME), text)
  const sha256 = createHash('sha256').update(text).digest('hex')
  const plays = texts.map(
    (said): Play =>
      async ({ run }) => {
        await doing(run.round)
        for (const line of sent(said)) recorder.record(run.round, line)
        run.onEvent({
          type: 'item-completed',
          round: run.round,
          item: { kind: 'agent-message', id: 'm', text: said, phase: null },
        })
        return worked
      },
  )
  const ran = await playFlow(plan, plays, {
    folder: records,
    begun: { kept: [{ name: PLAN_NAME, bytes: text.length, sha256 }] },
    append: event => {
      state = fold(state, event, OWN_TEMPLATES)
      recorder.event(event, state)
    },
    ...options,
  })
  await recorder[Symbol.asyncDispose]()
  return { problems, events: ran.events, outcome: ran.outcome }
}

async function replayOf(plan: FlowPlan): Promise<BuiltMock> {
  const found = new Map<string, FoundRecording>()
  for (const step of plan.steps) found.set(step.id, await findRecording(root, plan, step, new AbortController().signal))
  const made = scriptOf(plan, {
    from: null,
    writes: false,
    verbose: false,
    found,
    placeOf: ({ id }) => id,
    redact: text => REDACTOR.text(text),
  })
  if ('unplayable' in made) throw new Error(JSON.stringify(made.unplayable))
  return made
}

const output = (step: string) => ({ step, part: 'output' as const, field: [] })
const exit = (step: string) => ({ step, part: 'exit' as const, field: [] })

promise(
  'F27',
  'A real run leaves the recording, the log and the last message of each step as they come, and those of the last ten runs before it stay',
)
test('each step of a real run leaves its recording, its log and its last message, and is replayed from them', async () => {
  const plan = planOf([
    { id: 'look', work: { input: ['With ', { variable: 'diff' }, ' and hunter2-hunter2'] } },
    { id: 'test', run: 'npm test' },
    { id: 'fix', work: { input: [output('look'), ' ', exit('test')] } },
  ])
  const values = { diff: { text: '+a', from: 'run' as const } }
  const { problems, outcome } = await record({ ...plan, values }, ['It is small.', 'Mended.'], {
    command: () => ({ status: 'passed', exitCode: 0, output: '3 passed' }),
  })
  expect(problems).toEqual([])
  expect(outcome).toMatchObject({ kind: 'done' })
  const [first, ...others] = await recordingOf('1-look.json')
  expect(first).toEqual({
    type: 'codemachine.recording',
    v: 1,
    step: 'look',
    workflow: { file: plan.file, name: plan.name },
    input_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    session: SESSION,
    values: { diff: '+a' },
  })
  expect(others.map(({ type }) => type)).toEqual([
    'thread.started',
    'turn.started',
    'item.completed',
    'turn.completed',
    'codemachine.result',
  ])
  expect((await recordingOf('2-test.json')).at(-1)).toMatchObject({
    exit: 0,
    output: expect.stringContaining('3 passed'),
  })
  expect(await readFile(runtime('memory', '3-writer-agent-result.md'), 'utf8')).toBe('Mended.\n')
  expect((await lines('logs', '3-fix.log')).join('\n')).toContain('Mended.')
  expect(await readFile(runtime('.gitignore'), 'utf8')).toBe('*\n')
  const { changed, script } = await replayOf({ ...plan, values: {} })
  expect(changed).toEqual([])
  expect(script.steps.map(({ after }) => after)).toEqual([[], ['would run: npm test (recorded: exit code 0)'], []])
  const other = planOf([{ id: 'look', work: { input: ['Other'] } }])
  expect((await replayOf(other)).changed).toHaveLength(1)
})

test('what came of a step stands in its last line: tries, what verified it, why it failed or was passed over', async () => {
  const plan = planOf([
    { id: 'a', verify: ['npm test'], retries: 1 },
    { id: 'b', when: { text: 'x == y', left: 'x', operator: '==', right: 'y' } },
    { id: 'c', verify: ['never'] },
    { id: 'd' },
  ])
  let runs = 0
  const { outcome } = await record(plan, ['One.', 'Two.', 'Three.'], {
    command: name => {
      runs += 1
      const passes = name === 'npm test' && runs > 1
      return { status: passes ? 'passed' : 'failed', exitCode: passes ? 0 : 7 }
    },
  })
  expect(outcome).toMatchObject({ kind: 'needs-person' })
  const last = async (name: string) => (await recordingOf(name)).at(-1)
  expect(await last('1-a.json')).toEqual({
    type: 'codemachine.result',
    v: 1,
    exit: 0,
    tries: 2,
    verify: [{ run: 'npm test', exit: 0 }],
  })
  expect(await last('2-b.json')).toMatchObject({ skipped: 'x == y is false' })
  expect(await last('3-c.json')).toMatchObject({ failed: expect.stringMatching(/^`never` ended with exit code 7/) })
  const { script } = await replayOf(plan)
  expect(script.steps.map(({ before }) => before[0] ?? null)).toEqual([
    null,
    'skipped: when x == y (x == y) is false',
    null,
    'not recorded: the recorded run ended when c failed',
  ])
})

promise('F27')
test('recordings of the run before are kept, those of the last ten sessions; what others wrote is kept, too', async () => {
  const plan = planOf([{ id: 'a' }, { id: 'b', work: { engine: 'mock' } }])
  await mkdir(runtime('debug', 'earlier'), { recursive: true })
  await writeFile(runtime('debug', '1-a.json'), '{"type":"codemachine.recording","v":1,"session":"20261101_9"}\n')
  await writeFile(runtime('debug', '2-b.json'), sent('Recorded.').join('\n'))
  await writeFile(runtime('debug', '1-other.json'), 'of another workflow')
  for (let n = 1; n <= 12; n++) {
    await mkdir(runtime('debug', 'earlier', `20261101_${n + 10}`))
    await writeFile(runtime('debug', 'earlier', `20261101_${n + 10}`, '1-a.json'), '')
  }
  await mkdir(runtime('debug', 'earlier', 'mine'))
  const { problems } = await record(plan, ['New.', 'Shown.'])
  expect(problems).toEqual([])
  const earlier = await readdir(runtime('debug', 'earlier'))
  expect(earlier.toSorted()).toEqual([...Array.from({ length: 10 }, (_, n) => `20261101_${n + 13}`), 'mine'])
  expect(await lines('debug', '2-b.json')).toEqual(sent('Recorded.'))
  expect(existsSync(runtime('debug', '1-other.json'))).toBe(true)
  expect((await recordingOf('1-a.json'))[0].session).toBe(SESSION)
  // By no session that is known.
  await writeFile(runtime('debug', '1-a.json'), 'rubbish')
  await rm(runtime('debug', 'earlier'), { recursive: true })
  await record(plan, ['New.', 'Shown.'])
  expect(await lines('debug', 'earlier', `before-${SESSION}`, '1-a.json')).toEqual(['rubbish'])
})

promise(
  'F28',
  'What a run writes for people goes through no link that an agent has laid, and ends no run where it cannot be written',
)
test('a link, a folder or a file of somebody else in the place of one is not written to: a sentence says so, and the run goes on', async () => {
  const plan = planOf([{ id: 'a' }, { id: 'b' }])
  await mkdir(join(records, 'elsewhere'), { recursive: true })
  await mkdir(runtime('logs'), { recursive: true })
  await writeFile(join(records, 'elsewhere', 'mine'), 'mine')
  await symlink(join(records, 'elsewhere', 'mine'), runtime('logs', '1-a.log'))
  await mkdir(runtime('logs', '2-b.log'))
  await symlink(join(records, 'elsewhere'), runtime('debug'))
  const { problems, outcome } = await record(plan, ['One.', 'Two.'])
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(await readdir(join(records, 'elsewhere'))).toEqual(['mine'])
  expect(await readFile(join(records, 'elsewhere', 'mine'), 'utf8')).toBe('mine')
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^\.codex-flow\/runtime\/logs\/1-a\.log could not be written: ELOOP\.$/),
      expect.stringMatching(/^\.codex-flow\/runtime\/logs\/2-b\.log could not be written: EISDIR\.$/),
      expect.stringMatching(/debug\/1-a\.json could not be written: \.codex-flow\/runtime\/debug is a link/),
    ]),
  )
})

promise('F28')
test('what an agent puts in the place of a file meanwhile gets nothing', async () => {
  const plan = planOf([{ id: 'a' }])
  await mkdir(records, { recursive: true })
  await writeFile(join(records, 'target'), 'target')
  const { problems } = await record(plan, ['One.'], {
    doing: async () => {
      await expect.poll(() => existsSync(runtime('logs', '1-a.log')), { timeout: 20_000 }).toBe(true)
      await expect.poll(() => existsSync(runtime('debug', '1-a.json')), { timeout: 20_000 }).toBe(true)
      await rm(runtime('debug', '1-a.json'))
      await symlink(join(records, 'target'), runtime('debug', '1-a.json'))
    },
  })
  expect(problems).toEqual([])
  expect(await readFile(join(records, 'target'), 'utf8')).toBe('target')
})

test('a run that goes on adds to its recording', async () => {
  const plan = planOf([{ id: 'a' }])
  await mkdir(runtime('debug'), { recursive: true })
  await writeFile(
    runtime('debug', '1-a.json'),
    `{"type":"codemachine.recording","v":1,"step":"a","session":"${SESSION}"}\n{"type":"turn.started"}\n{"type":"item.comp`,
  )
  await record(plan, ['Done now.'])
  const [first, , torn, ...others] = await lines('debug', '1-a.json')
  expect([first, torn]).toEqual([expect.stringContaining(SESSION), '{"type":"item.comp'])
  expect(others.slice(0, 4)).toEqual(sent('Done now.'))
  expect((await replayOf(plan)).played[0]?.recording.lastMessage).toBe('Done now.')
})

const mountProblem = problemOfMounting()
const skipped = mountProblem === null ? '' : ` (skipped: ${mountProblem})`

promise('F28')
test.skipIf(mountProblem !== null)(`on a full disk one sentence says so, and the run goes on${skipped}`, async () => {
  await mkdir(runtime(), { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', runtime()])
  try {
    const { problems, outcome } = await record(planOf([{ id: 'a' }, { id: 'b' }]), ['x'.repeat(200_000), 'Two.'])
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(problems).toContain('.codex-flow/runtime/debug/1-a.json could not be written: no room is left on the disk.')
    expect(new Set(problems).size).toBe(problems.length)
  } finally {
    execFileSync('umount', ['--lazy', runtime()])
  }
})
