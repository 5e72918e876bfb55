import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeError, TemplateError } from '../../src/base/errors.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import type { Output } from '../../src/core/rules/outputs.ts'
import type { SessionState } from '../../src/core/state/state.ts'
import type { OwnStep } from '../../src/core/template.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { type Cue, runSession, untilBrokenOff } from '../support/breaking-in.ts'
import { ofType, type Play, type PlayOptions, playSession, UNCLAIMED } from '../support/played-session.ts'
import { incident, promise } from '../support/promise.ts'
import { worked } from '../support/session-events.ts'
import { openToy, playToy, type ToyOptions, type ToyState, type ToyStep, toyAfter, withToy } from './toy.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-steps-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const look: OwnStep = { kind: 'look', what: 'size' }
const command: OwnStep = { kind: 'command', name: 'lint', run: 'npm run lint', timeoutMs: 60_000, network: false }
const write: OwnStep = {
  kind: 'write',
  files: [
    { path: 'docs/a/plan.md', text: 'A plan.\n' },
    { path: 'notes.txt', text: 'Nötes.\n' },
  ],
}
const claim: OwnStep = { kind: 'claim' }
const ALL: readonly ToyStep[] = [look, 'Do it.', command, write, claim]
const looks: ToyOptions['looks'] = { size: async () => ({ files: 3 }) }

const play = (toy: ToyOptions, options: Partial<PlayOptions> = {}) => playToy(toy, { folder, ...options })

const STEPS = new Set<string>(['step-started', 'looked', 'command-ran', 'wrote', 'done-nominated', 'done-accepted'])
const stepsIn = (events: readonly Recorded[]) => events.filter(({ type }) => STEPS.has(type)).map(({ type }) => type)

test('each step is journaled before and after, and the claim of the template is proved without its memory files', async () => {
  const gates = ['tests', 'types'].map(name => ({
    name,
    run: name,
    timeoutMs: 1000,
    required: true,
    network: false,
    protect: [],
    everyRound: false,
  }))
  const toy = { steps: ALL, looks }
  const { outcome, events, inputs } = await play(toy, { begun: { template: 'toy', gates } })
  expect(outcome).toEqual({ kind: 'done', verified: true })
  expect(inputs).toEqual(['Do it.'])
  expect(stepsIn(events)).toEqual([
    'step-started',
    'looked',
    'step-started',
    'command-ran',
    'step-started',
    'wrote',
    'step-started',
    'done-nominated',
    'done-accepted',
  ])
  expect(ofType(events, 'step-started').map(({ step, kind, name }) => [step, kind, name])).toEqual([
    [1, 'look', 'size'],
    [2, 'command', 'lint'],
    [3, 'write', 'docs/a/plan.md'],
    [4, 'claim', 'done'],
  ])
  expect(ofType(events, 'looked')).toMatchObject([{ step: 1, what: 'size', result: { files: 3 } }])
  expect(ofType(events, 'command-ran')).toMatchObject([{ step: 2, name: 'lint', status: 'passed', tree: 'same' }])
  expect(ofType(events, 'done-nominated')).toMatchObject([{ step: 4, by: ['template'], tree: 'same' }])
  expect(
    ofType(events, 'gate-ended')
      .filter(({ when }) => when === 'claim')
      .map(({ gate }) => gate),
  ).toEqual(['tests', 'types'])
  expect(await readFile(join(folder, 'docs/a/plan.md'), 'utf8')).toBe('A plan.\n')
  expect(toyAfter(events, toy)).toMatchObject({
    step: null,
    steps: 4,
    work: { taken: 4, commands: { lint: 'passed' } },
  })
})

const DECISION = {
  id: 'way',
  title: 'Which way?',
  body: '',
  choices: [
    { id: 'left', label: 'Left' },
    { id: 'right', label: 'Right' },
  ],
  default: 'right',
}

const ASKS = { kind: 'decide', decision: DECISION } as const

test('killed after any event, and gone on with, it comes to the same end and the same files', async () => {
  const toy = { steps: [ASKS, ...ALL], looks }
  const whole = await play(toy)
  expect(ofType(whole.events, 'decision-asked')).toHaveLength(1)
  const files = async () =>
    await Promise.all(['docs/a/plan.md', 'notes.txt'].map(path => readFile(join(folder, path), 'utf8')))
  const [outcome, written] = [whole.outcome, await files()]
  const lastWork = toyAfter(whole.events, toy).work
  for (let kept = 1; kept < whole.events.length; kept++) {
    await rm(folder, { recursive: true })
    await mkdir(folder)
    const journal: Recorded[] = []
    const killed = play(toy, {
      append: event => {
        if (journal.length === kept) throw new Error('killed')
        journal.push(event)
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const last = journal.at(-1)
    const resumed = await play(toy, { journal })
    // What was answered is not asked again.
    const isDecided = ofType(journal, 'decision-made').length > 0
    expect(ofType(resumed.events, 'decision-asked')).toHaveLength(isDecided ? 0 : 1)
    expect(resumed.outcome, `killed after ${last?.type} (${kept})`).toEqual(outcome)
    expect(await files()).toEqual(written)
    const state = toyAfter([...journal, ...resumed.events], toy)
    expect(state.work).toEqual(lastWork)
    expect(state.steps).toBe(4)
  }
})

test('a claim that a gate does not pass is refused, and the template goes on', async () => {
  const gates = [
    { name: 'tests', run: 't', timeoutMs: 1, required: true, network: false, protect: [], everyRound: false },
  ]
  const { outcome, events } = await play(
    { steps: [claim, 'Mend it.', claim] },
    {
      begun: { template: 'toy', gates },
      // Before round 1, for the first claim (twice, for it may be flaky), for the second.
      gate: (_, runs) => (runs <= 2 ? { status: 'failed', exitCode: 1 } : {}),
    },
  )
  expect(ofType(events, 'done-refused')).toMatchObject([{ reason: 'gate-failed' }])
  expect(ofType(events, 'round-started')).toHaveLength(1)
  expect(outcome).toEqual({ kind: 'done', verified: true })
})

test('two claims without a round between them are proved each by itself', async () => {
  const gates = [
    { name: 'tests', run: 't', timeoutMs: 1, required: true, network: false, protect: [], everyRound: false },
  ]
  const { outcome, events } = await play(
    { steps: [claim, command, claim] },
    { begun: { template: 'toy', gates }, gate: (_, runs) => (runs === 2 ? { status: 'failed', exitCode: 1 } : {}) },
  )
  expect(ofType(events, 'gate-ended').map(({ when, status }) => [when, status])).toEqual([
    ['before', 'passed'],
    ['claim', 'failed'],
    ['claim', 'flaky'],
  ])
  expect(outcome).toMatchObject({ kind: 'done' })
})

test('a claim of the template needs a review that agrees where one is wanted, also before any round', async () => {
  const says = JSON.stringify({ verdict: 'agreed', summary: 'Fine.', findings: [] })
  const { outcome, events } = await playSession(
    [
      ({ run }) => {
        const item = { kind: 'agent-message', id: 'm', text: says, phase: 'final-answer' } as const
        run.onEvent({ type: 'item-completed', round: run.round, item })
        return { class: 'worked', message: null }
      },
    ],
    {
      folder,
      template: openToy({ steps: [claim] }),
      templates: withToy({ steps: [claim] }),
      begun: { template: 'toy', review: { model: null, effort: null } },
    },
  )
  expect(ofType(events, 'review-ended')).toMatchObject([{ round: 0, answer: { verdict: 'agreed' } }])
  expect(outcome).toEqual({ kind: 'done', verified: false })
})

test('a claim of the template is of the files as they are once nothing runs any more that could change them', async () => {
  let tree = 'a'
  const { outcome, events } = await play(
    { steps: [claim] },
    {
      tree: () => tree,
      settle: async () => {
        tree = 'b'
      },
    },
  )
  expect(ofType(events, 'done-nominated')).toMatchObject([{ round: 0, tree: 'b' }])
  expect(outcome).toMatchObject({ kind: 'done' })
})

test('no session ends as done whose claim was refused, whatever its template says', async () => {
  const gates = [
    { name: 'tests', run: 't', timeoutMs: 1, required: true, network: false, protect: [], everyRound: false },
  ]
  const toy: ToyOptions = { steps: [claim], lies: true }
  const failing = play(toy, {
    begun: { template: 'toy', gates },
    gate: () => ({ status: 'failed', exitCode: 1 }),
  })
  await expect(failing).rejects.toThrow('ends the session as done, and no claim of that has been accepted')
})

test('what was accepted stands until files may be others than those that were proved', async () => {
  const nothing: OwnStep = { kind: 'write', files: [{ path: '../out.txt', text: '' }] }
  const { outcome } = await play({ steps: [claim, command, nothing], lies: true })
  expect(outcome).toMatchObject({ kind: 'done' })
  const changing = play(
    { steps: [claim, command], lies: true },
    { command: () => ({ changed: ['a'], changedCount: 1 }) },
  )
  await expect(changing).rejects.toThrow('ends the session as done, and no claim of that has been accepted')
})

test('what the memory files say is nothing to a claim of the template', async () => {
  const open = { ...UNCLAIMED, tasks: [{ id: 'T1', name: 'one', done: false }] }
  const { outcome } = await play({ steps: ['Begin.', claim] }, { memory: () => open })
  expect(outcome).toMatchObject({ kind: 'done' })
})

describe('a template that', () => {
  const failing = async (toy: ToyOptions): Promise<{ error: unknown; events: Recorded[] }> => {
    const events: Recorded[] = []
    const error: unknown = await play(toy, { append: event => void events.push(event) }).then(
      () => null,
      thrown => thrown,
    )
    return { error, events }
  }
  const shown = (error: unknown) => describeError(error)

  test.each([
    ['next', { steps: [], breaks: 'next' }],
    ['ahead', { steps: ['Go.'], breaks: 'ahead' }],
    ['fold', { steps: [look], looks, breaks: 'fold' }],
    ['look size', { steps: [look], looks: { size: () => Promise.reject(new Error('the toy is broken')) } }],
  ] as const)(
    'throws in %s ends the program with one sentence that names it, and the journal whole',
    async (where, toy) => {
      const { error, events } = await failing(toy)
      expect(error).toBeInstanceOf(TemplateError)
      expect(shown(error)).toEqual({
        text: `codemachine: the template "toy" failed in \`${where}\`: the toy is broken. Everything before that is recorded.\n`,
        exitCode: 1,
      })
      expect(events.at(-1)?.type).not.toBe('session-ended')
      // Another version of it continues from there.
      const mended = { steps: toy.steps, looks }
      const { outcome } = await play(mended, { journal: events })
      expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'Nothing was claimed.' })
    },
  )

  test.each([
    ['checkPlan', [{ kind: 'check', check: 'plan' }]],
    ['tool look_up', ['Look it up.']],
  ] as const)('throws in %s, which takes time, is named as well', async (where, steps) => {
    const broken = () => Promise.reject(new Error('the toy is broken'))
    const offer = { name: 'look_up', description: 'Looks something up.', inputSchema: { type: 'object' } }
    const tool = { offer, read: () => ({}), answer: broken }
    const asks: Play = async ({ run, interrupted }) => {
      await run.onToolCall?.({ tool: 'look_up', arguments: {} }, interrupted)
      return worked
    }
    const template = { ...openToy({ steps }), tools: [tool], checkPlan: broken }
    const played = playSession([asks], { folder, template, templates: withToy({ steps }), begun: { template: 'toy' } })
    await expect(played).rejects.toThrow(
      new TemplateError(`the template "toy" failed in \`${where}\`: the toy is broken`),
    )
  })

  test.each([
    [{ steps: [look] }, 'failed in `look size`: it has no such look'],
    [{ steps: [{ kind: 'look', what: 'constructor' }] }, 'failed in `look constructor`: it has no such look'],
    [
      { steps: [look], looks: { size: async () => 'x'.repeat(1_100_000) } },
      'failed in `look size`: it found more than 1048576 characters',
    ],
    [
      { steps: [look], looks: { size: (): Promise<unknown> => Promise.resolve(() => {}) } },
      'failed in `look size`: what it found is no data',
    ],
    [{ steps: [look], looks: { size: async () => 1n } }, 'failed in `look size`'],
    [{ steps: [look], looks: { size: async () => deep(200) } }, 'nested more than 100 deep'],
    [{ steps: [], lies: true }, 'ends the session as done, and no claim of that has been accepted'],
    [{ steps: [claim, write], lies: true }, 'ends the session as done, and no claim of that has been accepted'],
    [{ steps: [claim, ASKS, look], looks, lies: true }, 'ends the session as done, and no claim of that'],
    [
      { steps: Array.from({ length: 20_100 }, (_, n) => (n % 20 === 0 ? ASKS : look)), looks },
      'asks for more than 20000 steps without a round',
    ],
    [{ steps: [{ kind: 'check', check: 'tasks' }] }, 'asks for more than 20000 steps without a round'],
  ] as const)('does what none may do is a bug of its: %#', async (toy, words) => {
    const { error } = await failing(toy)
    expect(shown(error)).toMatchObject({ text: expect.stringContaining(words), exitCode: 1 })
    expect(shown(error).text.trimEnd().split('\n')).toHaveLength(1)
  })
})

test('as many steps as a template wants are taken if there are rounds between them', async () => {
  const many = Array.from({ length: 600 }, () => look)
  const { events } = await play({ steps: [...many, 'Go on.', ...many], looks })
  expect(ofType(events, 'looked')).toHaveLength(1200)
})

function deep(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

describe('a person who breaks in', () => {
  test('a command is broken off, which the template does not see, and it runs again when the session goes on', async () => {
    let runs = 0
    const toy = { steps: [command, claim] }
    const { outcome, events } = await runSession(
      [],
      [
        { on: 'step-started', say: ['interrupt'] },
        { on: 'held', say: ['unpause'] },
      ],
      {
        template: openToy(toy),
        templates: withToy(toy),
        begun: { template: 'toy' },
        command: async (_, signal) => (++runs > 1 ? {} : { ...(await untilBrokenOff(signal)), output: 'half of it' }),
      },
    )
    expect(ofType(events, 'command-ran').map(({ step, status }) => [step, status])).toEqual([
      [1, 'broken-off'],
      [1, 'passed'],
    ])
    expect(ofType(events, 'command-ran').map(({ kept }) => kept)).toEqual([undefined, undefined])
    expect(ofType(events, 'held')).toHaveLength(1)
    expect(toyAfter(events, toy).work as ToyState).toMatchObject({ commands: { lint: 'passed' } })
    expect(outcome).toMatchObject({ kind: 'done' })
  })

  test('a look that never ends is left when the session is to end', async () => {
    const toy: ToyOptions = { steps: [look], looks: { size: () => new Promise<unknown>(() => {}) } }
    const { outcome, events } = await play(toy, {
      onEvent: (event, { asked }) => {
        if (event.type === 'step-started') queueMicrotask(() => asked.endNow('stop'))
      },
    })
    expect(outcome).toEqual({ kind: 'interrupted', by: 'stop' })
    expect(ofType(events, 'looked')).toEqual([])
    expect(toyAfter(events, toy)).toMatchObject({ step: null, steps: 0 })
  })

  test('a look is broken off, nothing is shown of it while the session holds, and it is done anew', async () => {
    let looked = 0
    const size = async () => (looked++ === 0 ? await new Promise<unknown>(() => {}) : 7)
    const steps: unknown[] = []
    const toy = { steps: [look], looks: { size } }
    const cues: Cue[] = [
      { on: 'step-started', say: ['interrupt'] },
      { on: 'held', say: ['unpause'] },
    ]
    const { events } = await runSession([], cues, {
      template: openToy(toy),
      templates: withToy(toy),
      begun: { template: 'toy' },
      onEvent: ({ type }, { runner }) => {
        if (type === 'held') steps.push(runner.state.step)
      },
    })
    expect([steps, ofType(events, 'looked').map(({ step, result }) => [step, result])]).toEqual([[null], [[1, 7]]])
  })

  incident('lost night', 'A look at the files that took longer than ten minutes ended the run as a bug', {
    since: '2026-11-22',
    fixed: '2026-11-30',
    foundBy: 'simulated nights',
  })
  test('a look that hangs ends after ten minutes, and needs a person', async () => {
    const toy: ToyOptions = { steps: [look], looks: { size: () => new Promise<unknown>(() => {}) } }
    await expect(play(toy)).rejects.toMatchObject({
      exitCode: 4,
      message: expect.stringContaining('did not finish in 10 minutes'),
    })
  })
})

test('what a look has found beyond 64 KiB, and what a command printed, is kept whole in files beside the journal', async () => {
  const rows = Array.from({ length: 9000 }, (_, n) => `row ${n}`)
  const toy: ToyOptions = { steps: [look, command], looks: { size: async () => rows } }
  const printed = 'a line\n'.repeat(1500)
  const { events } = await play(toy, { command: () => ({ output: printed }) })
  const [looked] = ofType(events, 'looked')
  const [ran] = ofType(events, 'command-ran')
  expect(looked).not.toHaveProperty('result')
  expect(looked?.output).toMatchObject({ n: 1, name: 'size', file: '1-size.json' })
  expect(ran?.output.length).toBeLessThanOrEqual(4000)
  expect(ran?.kept).toMatchObject({ n: 2, name: 'lint', file: '2-lint.txt' })
  expect(JSON.parse(await readFile(join(folder, 'outputs/1-size.json'), 'utf8'))).toEqual(rows)
  expect(await readFile(join(folder, 'outputs/2-lint.txt'), 'utf8')).toBe(printed)
  expect(toyAfter(events, toy).outputs.map(({ n }) => n)).toEqual([1, 2])
})

test('bytes are counted, and not characters, and a name of any length is shortened', async () => {
  const found = 'ü'.repeat(40_000)
  const name = 'lint '.repeat(20_000)
  const { events } = await play({ steps: [look, { ...command, name }], looks: { size: async () => found } })
  expect(ofType(events, 'looked')).toMatchObject([{ output: { bytes: 80_002 } }])
  for (const event of events) expect(JSON.stringify(event).length).toBeLessThan(2000)
})

test('a look is told when nobody waits for it any more', async () => {
  const waited: AbortSignal[] = []
  const size = async (signal: AbortSignal) => waited.push(signal)
  await play({ steps: [look], looks: { size } })
  expect(waited.map(({ aborted }) => aborted)).toEqual([true])
})

test('a command has no more time than is left of the session, and what it did is journaled', async () => {
  const times: number[] = []
  let tree = 'a'
  const { events } = await play(
    { steps: [command, 'Go on.', write, 'Go on.'] },
    {
      begun: { template: 'toy', limits: { rounds: null, timeMs: 45_000, tokens: null } },
      policy: { graceMs: 1000 },
      tree: playing => (playing?.events.some(({ type }) => type === 'wrote') ? 'c' : tree),
      command: (_, __, timeoutMs) => {
        times.push(timeoutMs)
        tree = 'b'
        return { status: 'failed', exitCode: null, problem: 'It cannot be run.', changed: ['a'], changedCount: 700 }
      },
      guard: { check: async () => ({ restored: ['.git/config'], setAside: null, problems: [] }) },
    },
  )
  expect(times).toEqual([45_000])
  expect(ofType(events, 'command-ran')).toMatchObject([
    { problem: 'It cannot be run.', changed: ['a'], changedCount: 700, tree: 'a', treeAfter: 'b' },
  ])
  const types = events.map(({ type }) => type)
  // A round begins with the files as a step has left them.
  expect(ofType(events, 'round-ended').map(({ treeBefore }) => treeBefore)).toEqual(['b', 'c'])
  expect(types[types.indexOf('command-ran') + 1]).toBe('repository-restored')
})

test('a secret that a look has found is nowhere', async () => {
  const secret = 'hunter2hunter2'
  for (const found of [[secret], [secret, 'x'.repeat(70_000)]]) {
    const toy: ToyOptions = { steps: [look], looks: { size: async () => found } }
    const { events } = await play(toy, { redactor: redactorOf([{ name: 'PASSWORD', value: secret }]) })
    const [{ output } = {}] = ofType(events, 'looked')
    const kept = output === undefined ? '' : await readFile(join(folder, 'outputs', output.file), 'utf8')
    expect(JSON.stringify(events) + kept).not.toContain(secret)
    expect(JSON.stringify(events) + kept).toContain('[secret PASSWORD]')
  }
})

test('what a template has to say is journaled, short and without its secrets, and nothing else comes of it', async () => {
  const note = (text: string, name = 'docs'): OwnStep => ({ kind: 'note', name, text })
  const secret = 'hunter2hunter2'
  const { outcome, events } = await play(
    {
      steps: [note(`Passed over for ${secret}.`), note('x'.repeat(2000), 'n'.repeat(300)), claim, note('Done.')],
      lies: true,
    },
    { redactor: redactorOf([{ name: 'PASSWORD', value: secret }]) },
  )
  expect(ofType(events, 'noted')).toMatchObject([
    { step: 1, name: 'docs', text: 'Passed over for [secret PASSWORD].' },
    { step: 2, name: expect.stringMatching(/^n{200}\n/), text: `${'x'.repeat(999)}…` },
    { step: 4, text: 'Done.' },
  ])
  for (const { text } of ofType(events, 'noted')) expect(text.length).toBeLessThanOrEqual(1000)
  // What was accepted before it stands.
  expect(outcome).toMatchObject({ kind: 'done' })
})

describe('an output that is written into a file', () => {
  const said = `What was said.\n${'x'.repeat(1000)}\n`
  const says: Play = ({ run }) => {
    const item = { kind: 'agent-message', id: 'm', text: said, phase: null } as const
    run.onEvent({ type: 'item-completed', round: run.round, item })
    return worked
  }
  // At once, for time costs nothing here, and a look that takes time would take too long.
  const theFile = async (): Promise<unknown> => {
    if (!existsSync(join(folder, 'log.md'))) return null
    const bytes = readFileSync(join(folder, 'log.md'))
    return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  }
  const kept = ({ outputs: [output] }: SessionState): Output => {
    if (output === undefined) throw new Error('Nothing is kept.')
    return output
  }
  const say: ToyStep = { kind: 'round', input: 'Say it.', keep: 'said' }
  const see: ToyStep = { kind: 'look', what: 'file' }
  const add: ToyStep = session => {
    const behind = (session.work as ToyState).found.file as { bytes: number; sha256: string } | null
    return { kind: 'write', files: [{ path: 'log.md', output: kept(session), append: { behind } }] }
  }
  const log = () => readFile(join(folder, 'log.md'), 'utf8')
  const plays = (steps: readonly ToyStep[], options: Partial<PlayOptions> = {}) => {
    const toy = { steps, looks: { file: theFile } }
    return playSession([says], {
      folder,
      template: openToy(toy),
      templates: withToy(toy),
      begun: { template: 'toy' },
      ...options,
    })
  }

  test('stands there whole', async () => {
    const { outcome, events } = await plays([
      say,
      session => ({ kind: 'write', files: [{ path: 'docs/said.md', output: kept(session) }] }),
      claim,
    ])
    expect(outcome).toMatchObject({ kind: 'done' })
    expect(await readFile(join(folder, 'docs/said.md'), 'utf8')).toBe(said)
    expect(ofType(events, 'wrote')).toMatchObject([{ files: [{ path: 'docs/said.md', bytes: said.length }] }])
  })

  test('is not there, and the template is told why, where it is not kept any more', async () => {
    const { outcome } = await plays([say, add], {
      onEvent: ({ type }) => {
        if (type === 'output-kept') rmSync(join(folder, 'outputs'), { recursive: true })
      },
    })
    const reason = 'what was to be written to log.md is not kept any more (1-said.md).'
    expect(outcome).toMatchObject({ kind: 'needs-person', reason })
    await expect(log()).rejects.toThrow('ENOENT')
  })

  promise(
    'D24',
    'What a template adds to a file stands there once, however often it is cut off, and not where the file was changed meanwhile',
  )
  test('stands at the end of the file once, also where the session is killed after any event', async () => {
    const steps = [say, see, add, claim]
    await writeFile(join(folder, 'log.md'), 'Before.\n')
    const whole = await plays(steps)
    expect(await log()).toBe(`Before.\n${said}`)
    for (let count = 1; count < whole.events.length; count++) {
      await writeFile(join(folder, 'log.md'), 'Before.\n')
      const journal: Recorded[] = []
      const append = (event: Recorded) => {
        if (journal.length === count) throw new Error('killed')
        journal.push(event)
      }
      await expect(plays(steps, { append })).rejects.toThrow('killed')
      const resumed = await plays(steps, { journal })
      expect(resumed.outcome, `killed after ${journal.at(-1)?.type} (${count})`).toMatchObject({ kind: 'done' })
      expect(await log()).toBe(`Before.\n${said}`)
      expect(ofType([...journal, ...resumed.events], 'wrote')).toMatchObject([{ problem: null }])
    }
  })

  test('is added to a file that was changed meanwhile once the template has looked at it again', async () => {
    let looks = 0
    const { events } = await plays([say, see, add, see, add, claim], {
      onEvent: ({ type }) => {
        if (type === 'looked' && ++looks === 1) writeFileSync(join(folder, 'log.md'), 'Theirs.\n')
      },
    })
    expect(ofType(events, 'wrote').map(({ files, problem }) => [files.length, problem])).toEqual([
      [0, 'log.md is there by now.'],
      [1, null],
    ])
    expect(await log()).toBe(`Theirs.\n${said}`)
  })
})

test('nothing is written where a link stands in the way, and the template is told why', async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), 'codemachine-elsewhere-'))
  try {
    await symlink(elsewhere, join(folder, 'docs'))
    await writeFile(join(folder, 'notes.txt'), 'mine\n')
    const { outcome, events } = await play({ steps: [write] })
    expect(ofType(events, 'wrote')).toMatchObject([{ files: [], problem: 'docs is a link.' }])
    expect(await readFile(join(folder, 'notes.txt'), 'utf8')).toBe('mine\n')
    expect(outcome).toMatchObject({ kind: 'needs-person', reason: 'docs is a link.' })
  } finally {
    await rm(elsewhere, { recursive: true })
  }
})

test('nothing is written among the records, where they lie in the work directory', async () => {
  const files = [{ path: 'records/journal.ndjson', text: '' }]
  const { outcome } = await play({ steps: [{ kind: 'write', files }] })
  expect(outcome).toMatchObject({
    reason: '"records/journal.ndjson" lies in the records of codemachine, where nothing is written.',
  })
})

test('a change of plan is left out in words where the template has none, and the session does not go round in circles', async () => {
  const toy = { steps: [look, 'Do it.', claim], looks }
  const { outcome, events, inputs } = await play(toy, {
    onEvent: ({ type }, { runner, asked }) => {
      if (type === 'looked') {
        runner.tell({ type: 'replan-asked', text: 'docs first' })
        asked.hold()
      }
      if (type === 'held') asked.unpause()
    },
  })
  expect(outcome).toMatchObject({ kind: 'done' })
  expect(inputs).toEqual(['Do it.'])
  expect(ofType(events, 'replanned')).toMatchObject([{ round: 0, files: [] }])
  expect(ofType(events, 'held')).toHaveLength(1)
  expect(ofType(events, 'warning').map(({ message }) => message)).toEqual([
    'A session of the template toy cannot change its plan, so codemachine ignores the request. To tell its agents something: codemachine steer',
  ])
})
