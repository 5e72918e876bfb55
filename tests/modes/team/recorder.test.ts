import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isEvent } from '../../../src/core/events/checks.ts'
import type { Recorded, SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState, type SessionState } from '../../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { TEAM } from '../../../src/modes/team/start/begin.ts'
import { dayOf } from '../../../src/modes/team/start/places.ts'
import { TeamRecorder } from '../../../src/modes/team/start/recorder.ts'
import type { TeamOptions } from '../../../src/modes/team/work.ts'
import { openJournal } from '../../../src/session/records/journal.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { created, FIRST_AT, fold, resumed, SESSION, worked } from '../../support/session-events.ts'

/** A session of a team whose events are made up, journaled and told as a run tells them. */
class Told implements AsyncDisposable {
  readonly problems: string[] = []
  readonly place: TestPlace
  #state: SessionState = emptyState(SESSION)
  #recorder: TeamRecorder
  #count = 0

  constructor(place: TestPlace) {
    this.place = place
    mkdirSync(join(place.root, 'records'), { recursive: true })
    for (const folder of ['runs', 'logs']) mkdirSync(join(place.directory, folder), { recursive: true })
    this.#recorder = this.#open()
  }

  get journal(): string {
    return join(this.place.root, 'records/journal.ndjson')
  }

  #open(): TeamRecorder {
    const folder = join(this.place.root, 'records')
    const records = {
      directory: join(this.place.directory, 'projects/api'),
      journal: () => this.journal,
      sessionFolder: () => folder,
      templates: OWN_TEMPLATES,
    }
    return new TeamRecorder({ records, onProblem: sentence => void this.problems.push(sentence) })
  }

  async tell(events: readonly SessionEvent[]): Promise<void> {
    await using journal = openJournal(this.journal)
    const view = this.#recorder
    for (const event of events) {
      const at = new Date(FIRST_AT + this.#count++ * 1000).toISOString()
      const recorded = { v: 1, at, session: SESSION, ...event } as Recorded
      expect([event.type, isEvent(recorded)]).toEqual([event.type, true])
      journal.append(recorded)
      this.#state = fold(this.#state, recorded)
      view.event(recorded, this.#state)
    }
  }

  /** As a process that goes on after another was killed, or has ended. */
  async restart(): Promise<void> {
    await this.#recorder[Symbol.asyncDispose]()
    this.#recorder = this.#open()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#recorder[Symbol.asyncDispose]()
  }

  async run(): Promise<Record<string, unknown>> {
    return JSON.parse(await readFile(join(this.place.directory, RUN), 'utf8'))
  }

  async log(): Promise<{ at: string; prefix: string; text: string }[]> {
    const names = (await readdir(join(this.place.directory, 'logs'))).sort()
    const texts = await Promise.all(names.map(name => readFile(join(this.place.directory, 'logs', name), 'utf8')))
    return texts
      .join('')
      .trimEnd()
      .split('\n')
      .map(line => {
        const [, at = '', prefix = '', text = ''] = LINE.exec(line) ?? []
        expect(line).toMatch(LINE)
        return { at, prefix, text }
      })
  }
}

const LINE = /^\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d)\] \[([A-Z ]+)\] (.*)$/
const RUN = 'runs/api-2026-11-24.json'
const KEY = 'STRIPE_API_KEY'
const PLAN = {
  goal: 'An API',
  steps: [
    { id: 1, description: 'Write it' },
    { id: 2, description: 'Pay with it' },
  ],
}
const REVIEW = { overall_assessment: 'Fine.\nReally.', issues: [], suggestions: ['A README'] }

function begun(place: TestPlace, more: Partial<TeamOptions> = {}): SessionEvent {
  const options: TeamOptions = {
    mode: 'all',
    step: null,
    stepwise: false,
    repair: 1,
    accept: 'auto',
    workspace: { directory: place.directory, run: RUN, logs: 'logs' },
    ...more,
  }
  return {
    ...created(),
    goal: 'an api\nfor me',
    template: TEAM,
    directory: join(place.directory, 'projects/api'),
    options,
  }
}

function round(
  number: number,
  part: string,
  events: readonly SessionEvent[],
  answer?: [string, unknown],
): SessionEvent[] {
  const output = { n: number, name: part, file: `${number}.json`, bytes: 2, sha256: '00', head: '' }
  return [
    {
      type: 'round-started',
      round: number,
      agent: part,
      engine: 'codex',
      codex: '0.169.0',
      model: null,
      input: `Do it:\n${part}`,
      part,
    },
    ...events,
    ...(answer === undefined
      ? []
      : [{ type: 'answer-given' as const, round: number, name: answer[0], value: answer[1], output }]),
    {
      type: 'round-ended',
      round: number,
      outcome: worked,
      counts: true,
      durationMs: 1000,
      tokens: null,
      treeBefore: 'a',
      treeAfter: 'b',
      changed: [],
      changedCount: 0,
      memory: '',
    },
  ]
}

function ran(number: number, command: string, output: string, exitCode = 0): SessionEvent {
  const status = exitCode === 0 ? ('completed' as const) : ('failed' as const)
  const item = {
    kind: 'command' as const,
    id: command,
    command,
    directory: '/',
    status,
    exitCode,
    durationMs: 5,
    output,
  }
  return { type: 'item-completed', round: number, item }
}

function shellRan(
  number: number,
  command: string,
  stdout: string,
  stderr = '',
  exitCode: number | null = 0,
): SessionEvent {
  return {
    type: 'shell-ran',
    round: number,
    command,
    secrets: [KEY],
    status: exitCode === 0 ? 'passed' : 'failed',
    exitCode,
    stdout,
    stderr,
    durationMs: 5,
    problem: null,
  }
}

function said(number: number, text: string): SessionEvent {
  return { type: 'item-completed', round: number, item: { kind: 'agent-message', id: 'm', text, phase: null } }
}

function ended(kind: 'done' | 'limit'): SessionEvent {
  const outcome = kind === 'done' ? { kind, verified: true } : { kind, limit: 'rounds' as const }
  return { type: 'session-ended', outcome, exitCode: kind === 'done' ? 0 : 3, rounds: 1, tokens: 0, durationMs: 90_000 }
}

test('the file of a run has the commands of each step in their order, with both streams where they are apart', async () => {
  await using place = await makePlace('', { git: false })
  {
    await using told = new Told(place)
    await told.tell([
      begun(place),
      ...round(1, 'plan', [], ['plan', PLAN]),
      ...round(
        2,
        'work',
        [ran(2, "/bin/bash -lc 'npm init'", 'both\nstreams'), ran(2, 'false', '', 1)],
        ['step-1', { done: true, thoughts: 'It is there.' }],
      ),
      ...round(3, 'work', [{ type: 'secret-asked', round: 3, key: KEY, question: 'To pay?', reason: null }]),
      { type: 'step-started', step: 1, kind: 'confirm-secret', name: KEY },
      { type: 'secret-confirmed', step: 1, key: KEY, ok: false, problem: `There is no secret ${KEY}.` },
      { type: 'step-started', step: 2, kind: 'confirm-secret', name: KEY },
      { type: 'secret-confirmed', step: 2, key: KEY, ok: true, problem: null },
      ...round(
        4,
        'work',
        [shellRan(4, 'curl $STRIPE_API_KEY', 'out', 'err', null)],
        ['step-2', { done: true, thoughts: 'Paid.' }],
      ),
      ...round(5, 'review', [], ['assessment', REVIEW]),
      ended('done'),
    ])
  }
  await using told = new Told(place)
  expect(told.problems).toEqual([])
  const run = await told.run()
  expect(Object.keys(run).slice(0, 4)).toEqual(['goal', 'steps_executed', 'results', 'review'])
  expect(run).toEqual({
    goal: 'an api\nfor me',
    steps_executed: 2,
    results: [
      {
        step_id: 1,
        description: 'Write it',
        worker_history: [
          { command: 'npm init', stdout: 'both\nstreams', stderr: '', returncode: 0 },
          { command: 'false', stdout: '', stderr: '', returncode: 1 },
        ],
        status: 'done',
        thoughts: 'It is there.',
        missing: null,
      },
      {
        step_id: 2,
        description: 'Pay with it',
        worker_history: [
          {
            command: `CONFIRM_SECRET ${KEY}`,
            stdout: '',
            stderr: `SECRET CONFIRMATION FAILED: There is no secret ${KEY}.`,
            returncode: 1,
          },
          { command: `CONFIRM_SECRET ${KEY}`, stdout: '', stderr: '', returncode: 0 },
          { command: 'curl $STRIPE_API_KEY', stdout: 'out', stderr: 'err', returncode: null },
        ],
        status: 'done',
        thoughts: 'Paid.',
        missing: null,
      },
    ],
    review: REVIEW,
    project_dir: join(place.directory, 'projects/api'),
    session: SESSION,
    outcome: 'done',
    exit_code: 0,
  })
  expect(await readdir(join(place.directory, 'runs'))).toEqual(['api-2026-11-24.json'])
  expect(await readdir(join(place.root, 'records'))).toEqual(['journal.ndjson'])
})

promise(
  'T11',
  'The file of a run has all commands of each step in their order, each once, however often it was killed; a log line is whole, and at most 64 KiB',
)
test('a session that goes on after a kill has all commands in the file of its run, each once', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  await told.tell([
    begun(place),
    ...round(1, 'plan', [], ['plan', PLAN]),
    ...round(2, 'work', [ran(2, 'one', '1')], ['step-1', { done: true, thoughts: '' }]),
    ...round(3, 'work', [ran(3, 'two', '2')]).slice(0, 2),
  ])
  // What a killed process has left there counts for nothing.
  mkdirSync(join(place.root, 'records/history'), { recursive: true })
  await told.restart()
  mkdirSync(join(place.root, 'records/history'), { recursive: true })
  writeFileSync(join(place.root, 'records/history/step-1.ndjson'), '{"torn')
  await told.tell([resumed(), ...round(4, 'work', [ran(4, 'three', '3')]), ended('limit')])
  await told[Symbol.asyncDispose]()
  expect(told.problems).toEqual([])
  const { results, outcome } = (await told.run()) as {
    results: { worker_history: { command: string }[] }[]
    outcome: string
  }
  expect(results.map(each => each.worker_history.map(({ command }) => command))).toEqual([['one'], ['two', 'three']])
  expect(outcome).toBe('limit')
})

test('at the end of each step the file says how far the run is', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  await told.tell([begun(place), ...round(1, 'plan', [], ['plan', PLAN])])
  await told.tell(round(2, 'work', [ran(2, 'one', '1')], ['step-1', { done: true, thoughts: '' }]))
  await told.tell(round(3, 'work', []).slice(0, 1))
  await told.restart()
  expect(await told.run()).toMatchObject({ steps_executed: 1, outcome: null, review: null })
})

test('the log has one line for all that goes to a model, comes back, and is made of it', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  const wanted = { command: 'ls', done: false, thoughts: '' }
  await told.tell([
    begun(place, { stepwise: true }),
    ...round(1, 'plan', [said(1, 'no plan')]),
    { type: 'answer-refused', round: 1, name: 'plan', problem: 'It is no JSON.' },
    ...round(2, 'plan', [said(2, JSON.stringify(PLAN, null, 1))], ['plan', PLAN]),
    ...round(3, 'work', [
      said(3, JSON.stringify(wanted)),
      shellRan(3, 'ls', 'a\nb\u001b[31m'),
      {
        type: 'item-completed',
        round: 3,
        item: { kind: 'user-message', id: 'u', text: 'COMMAND: ls\nRETURN CODE: 0\r\nSTDOUT:\u001b[31m' },
      },
      { type: 'secret-asked', round: 3, key: KEY, question: 'To pay?', reason: 'Expired.' },
    ]),
    { type: 'step-started', step: 1, kind: 'confirm-secret', name: KEY },
    { type: 'secret-confirmed', step: 1, key: KEY, ok: false, problem: 'Its check fails.' },
    { type: 'step-started', step: 2, kind: 'confirm-secret', name: KEY },
    { type: 'secret-confirmed', step: 2, key: KEY, ok: true, problem: null },
    ...round(4, 'review', [said(4, JSON.stringify(REVIEW))], ['review', REVIEW]),
    ended('limit'),
  ])
  await told[Symbol.asyncDispose]()
  expect(told.problems).toEqual([])
  const log = await told.log()
  expect(new Date(log[0]?.at ?? '').getTime()).toBe(FIRST_AT)
  expect(log.map(({ prefix, text }) => `${prefix}: ${text}`)).toEqual([
    `ORCH START: {"goal":"an api\\nfor me","project_dir":"${place.directory}/projects/api","mode":"all","session":"${SESSION}"}`,
    'PLANNER REQUEST: Do it:\\nplan',
    'PLANNER RAW RESPONSE: no plan',
    'PLANNER PARSED: {"problem":"It is no JSON."}',
    'PLANNER REQUEST: Do it:\\nplan',
    `PLANNER RAW RESPONSE: ${JSON.stringify(PLAN, null, 1).replaceAll('\n', '\\n')}`,
    `PLANNER PARSED: ${JSON.stringify(PLAN)}`,
    'ORCH EXECUTE STEP: {"id":1,"description":"Write it","try":1}',
    'WORKER REQUEST: Do it:\\nwork',
    `WORKER RAW RESPONSE: ${JSON.stringify(wanted)}`,
    `WORKER PARSED: {"command":"ls","secrets":["${KEY}"],"returncode":0}`,
    'WORKER REQUEST: COMMAND: ls\\nRETURN CODE: 0\\nSTDOUT:\\u001b[31m',
    `WORKER PARSED: {"ask_human":{"question":"To pay?","key_name":"${KEY}","storage":"env","reason":"Expired."}}`,
    `SECRET CONFIRMATION FAILED: ${KEY}: Its check fails.`,
    `SECRET CONFIRMED: ${KEY}`,
    'ORCH REVIEW: {"steps":[{"id":1,"status":"to-do"},{"id":2,"status":"to-do"}]}',
    'REVIEWER REQUEST: Do it:\\nreview',
    `REVIEWER RAW RESPONSE: ${JSON.stringify(REVIEW)}`,
    `REVIEWER PARSED: ${JSON.stringify(REVIEW)}`,
    `ORCH COMPLETE: {"outcome":"limit","exit_code":3,"steps":2,"done":0,"failed":0,"seconds":90,"run":"${RUN}"}`,
  ])
})

promise('T11')
test('a line of the log has at most 64 KiB, and is cut between two characters', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  await told.tell([begun(place), ...round(1, 'plan', [said(1, '漢'.repeat(40_000)), said(1, 'x'.repeat(65_000))])])
  await told[Symbol.asyncDispose]()
  const [cut = '', whole = ''] = (await told.log())
    .filter(({ prefix }) => prefix.endsWith('RAW RESPONSE'))
    .map(({ text }) => text)
  expect(whole).toBe('x'.repeat(65_000))
  expect(cut).toMatch(/^漢+ … \(\d+ bytes left out\)$/)
  const names = await readdir(join(place.directory, 'logs'))
  const text = await readFile(join(place.directory, 'logs', names[0] ?? ''), 'utf8')
  for (const line of text.split('\n')) expect(Buffer.byteLength(line)).toBeLessThan(64 * 1024)
})

promise('T11')
test('two teams that write into the log at once have their lines whole', async () => {
  await using place = await makePlace('', { git: false })
  await using other = await makePlace('', { git: false })
  await using one = new Told(place)
  await using two = new Told(other)
  const workspace = { directory: place.directory, run: 'runs/b.json', logs: 'logs' }
  const many = (text: string) => Array.from({ length: 200 }, () => said(1, text.repeat(20_000)))
  await Promise.all([
    one.tell([begun(place), ...round(1, 'plan', many('a'))]),
    two.tell([begun(place, { workspace }), ...round(1, 'plan', many('b'))]),
  ])
  await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()])
  const texts = (await one.log()).filter(({ prefix }) => prefix.endsWith('RAW RESPONSE')).map(({ text }) => text)
  expect(texts).toHaveLength(400)
  expect(new Set(texts)).toEqual(new Set(['a'.repeat(20_000), 'b'.repeat(20_000)]))
})

promise('T11')
test('a line that a full disk has cut off stands alone, and the next team begins a line of its own', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  const name = `agent-${dayOf(new Date(FIRST_AT))}.log`
  const torn = '[2026-11-20T08:00:00.000+00:00] [WORKER RAW'
  writeFileSync(join(place.directory, 'logs', name), torn)
  await told.tell([begun(place)])
  await told[Symbol.asyncDispose]()
  const [cut, first, ...more] = (await readFile(join(place.directory, 'logs', name), 'utf8')).split('\n')
  expect(cut).toBe(torn)
  expect(first).toMatch(/^\[[^\]]+\] \[ORCH START\] \{/)
  expect(more).toEqual([''])
})

promise(
  'T12',
  'What cannot be written into the workspace is said in a sentence, nothing is written through a link, and no other run is overwritten',
)
test('a place that cannot be written is said once in a sentence, and nothing is written through a link', async () => {
  await using place = await makePlace('', { git: false })
  const elsewhere = join(place.root, 'elsewhere')
  await mkdir(elsewhere)
  await using told = new Told(place)
  for (const folder of ['runs', 'logs']) {
    await rm(join(place.directory, folder), { recursive: true })
    await symlink(elsewhere, join(place.directory, folder))
  }
  await told.tell([begun(place), ...round(1, 'plan', [said(1, 'x')], ['plan', PLAN]), ended('limit')])
  await told[Symbol.asyncDispose]()
  expect(await readdir(elsewhere)).toEqual([])
  expect(told.problems.sort()).toEqual([
    `${join(place.directory, 'logs')} could not be written: logs is a link.`,
    `${join(place.directory, RUN)} could not be written: runs is a link.`,
  ])
})

promise('T12')
test('what cannot be written at all is said in a sentence for each place, and the file of another run stays as it is', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  await rm(join(place.directory, 'logs'), { recursive: true })
  await told.tell([begun(place)])
  await told.restart()
  // Nothing can be written there, whoever asks.
  await told.tell([{ ...begun(place, { workspace: { directory: '/proc/self', run: 'fd/x.json', logs: 'fd' } }) }])
  await told[Symbol.asyncDispose]()
  expect(told.problems).toHaveLength(3)
  for (const problem of told.problems) expect(problem).toMatch(/^\/.* could not be written: /)
  expect(await told.run()).toMatchObject({ steps_executed: 0 })
})

test('a step of 500 commands is all there, also in the file of a run that goes on', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  const output = 'line\n'.repeat(3_000)
  await told.tell([begun(place), ...round(1, 'plan', [], ['plan', PLAN])])
  for (let at = 0; at < 500; at++)
    await told.tell(at === 0 ? [...round(2, 'work', []).slice(0, 1), ran(2, 'c0', output)] : [ran(2, `c${at}`, output)])
  await told[Symbol.asyncDispose]()
  await told.restart()
  await told.tell([resumed(), ended('limit')])
  await told[Symbol.asyncDispose]()
  const { results } = (await told.run()) as { results: { worker_history: { command: string; stdout: string }[] }[] }
  expect(results[0]?.worker_history).toHaveLength(500)
  expect(results[0]?.worker_history.every(({ stdout }) => stdout === output)).toBe(true)
})

test('sessions of other templates leave nothing', async () => {
  await using place = await makePlace('', { git: false })
  await using told = new Told(place)
  await told.tell([created(), ended('done')])
  await told[Symbol.asyncDispose]()
  expect(await readdir(join(place.directory, 'runs'))).toEqual([])
  expect(await readdir(join(place.directory, 'logs'))).toEqual([])
})
