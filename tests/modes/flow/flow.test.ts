import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Recorded } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import type { FlowPlan } from '../../../src/modes/flow/file/plan.ts'
import { parseCondition } from '../../../src/modes/flow/file/references.ts'
import { flowView } from '../../../src/modes/flow/view.ts'
import { planOf, playFlow, type SaidStep, workAfter } from '../../support/flow-session.ts'
import { CLAIMED, endsAs, ofType, type PlayOptions, saying, UNCLAIMED } from '../../support/played-session.ts'
import { promise } from '../../support/promise.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-flow-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const file = (path: string, append = false) => ({ kind: 'file', path, append }) as const
const outputOf = (step: string) => ({ step, part: 'output', field: [] }) as const
const exitOf = (step: string) => ({ step, part: 'exit', field: [] }) as const
const at = (name: string) => readFile(join(folder, name), 'utf8')
const marks = (events: readonly Recorded[]) => workAfter(events).steps.map(({ mark }) => mark)
const notes = (events: readonly Recorded[]) => ofType(events, 'noted').map(({ name, text }) => [name, text])
const DONE = { kind: 'done', verified: false }

const THREE = planOf(
  [
    { id: 'draft', work: { input: ['Write about ', { variable: 'topic' }, '.'] }, output: file('DRAFT.md') },
    { id: 'count', run: 'wc -w DRAFT.md', output: file('COUNT.txt') },
    {
      id: 'review',
      work: { input: ['Review: ', outputOf('draft'), '\nWords: ', outputOf('count')] },
      output: file('LOG.md', true),
    },
  ],
  { topic: 'tre{{es}}' },
)
const PLAYS = [saying('Trees are {{tall}}.'), saying('It is good.\n')]
const command: PlayOptions['command'] = () => ({ output: '3 DRAFT.md' })

test('the steps feed each other, and what they come to stands in their files', async () => {
  await writeFile(join(folder, 'LOG.md'), 'Before.\n')
  const { outcome, events, inputs } = await playFlow(THREE, PLAYS, { folder, command })
  expect(outcome).toEqual(DONE)
  expect(inputs[0]).toBe('Write about tre{{es}}.')
  expect(inputs[1]).toMatch(
    /^Review: Trees are \{\{tall\}\}\.\nWords: 3 DRAFT\.md\n\nMaterial to work with: "Step 1\/3: draft"/,
  )
  expect(await at('DRAFT.md')).toBe('Trees are {{tall}}.\n')
  expect(await at('COUNT.txt')).toBe('3 DRAFT.md\n')
  expect(await at('LOG.md')).toBe('Before.\nIt is good.\n')
  expect(marks(events)).toEqual(['done', 'done', 'done'])
  expect(notes(events)).toEqual([
    ['step-done', 'Step 1/3: draft: done, DRAFT.md'],
    ['step-done', 'Step 2/3: count: done, COUNT.txt'],
    ['step-done', 'Step 3/3: review: done, LOG.md'],
  ])
  expect(ofType(events, 'done-nominated')).toMatchObject([{ by: ['template'] }])
})

promise(
  'F11',
  'Of a workflow no finished step is run again, wherever it is killed, and what is added to a file is added once',
)
test('killed after any event, and gone on with, it comes to the same files, and no finished step is run again', async () => {
  const begin = async () => {
    await rm(folder, { recursive: true, force: true })
    folder = await mkdtemp(join(tmpdir(), 'codemachine-flow-'))
    await writeFile(join(folder, 'LOG.md'), 'Before.\n')
  }
  await begin()
  const whole = await playFlow(THREE, PLAYS, { folder, command })
  const lastWork = workAfter(whole.events)
  for (let kept = 1; kept < whole.events.length; kept++) {
    await begin()
    const journal: Recorded[] = []
    const killed = playFlow(THREE, PLAYS, {
      folder,
      command,
      append: event => {
        if (journal.length === kept) throw new Error('killed')
        journal.push(event)
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const done = ofType(journal, 'round-ended').length
    const ran = ofType(journal, 'command-ran').length
    const resumed = await playFlow(THREE, PLAYS.slice(done), { folder, command, journal })
    const after = `killed after ${journal.at(-1)?.type} (${kept})`
    expect(resumed.outcome, after).toEqual(DONE)
    expect(await at('LOG.md'), after).toBe('Before.\nIt is good.\n')
    expect(ofType(resumed.events, 'round-started'), after).toHaveLength(2 - done)
    expect(ofType(resumed.events, 'command-ran'), after).toHaveLength(1 - ran)
    const work = workAfter([...journal, ...resumed.events])
    expect(
      work.steps.map(({ mark }) => mark),
      after,
    ).toEqual(lastWork.steps.map(({ mark }) => mark))
    expect(work.steps[2]?.output?.head).toBe('It is good.\n')
  }
})

const failing = endsAs({ class: 'context-full', message: 'The context is full.' })

test('a step that fails ends the run with what codex said; gone on with, it is tried once more, and no other', async () => {
  const plan = planOf([{ id: 'a' }, { id: 'b' }, { id: 'c' }])
  const first = await playFlow(plan, [saying('A.'), failing], { folder })
  expect(first.outcome).toEqual({
    kind: 'needs-person',
    reason: 'Step 2/3: b failed: The context is full.',
    hint: null,
    goalOnly: true,
  })
  expect(marks(first.events)).toEqual(['done', 'failed', 'to-do'])
  const second = await playFlow(plan, [saying('B.'), saying('C.')], { folder, journal: first.events })
  expect(second.outcome).toEqual(DONE)
  expect(second.inputs[0]).toContain('The context is full.')
  expect(marks([...first.events, ...second.events])).toEqual(['done', 'done', 'done'])
})

promise(
  'F12',
  'A step that fails is tried again as often as it says, told what failed, and then ends the run with 4 and what codex said; `--continue-on-error` runs what does not need it',
)
test('the next try is told what failed, as often as the step may be tried again', async () => {
  const plan = planOf([{ id: 'a', work: { input: ['Write it.'] }, verify: ['npm test'], retries: 2 }])
  let runs = 0
  const { outcome, inputs, events } = await playFlow(plan, [saying('A.')], {
    folder,
    command: () => (++runs < 3 ? { status: 'failed', exitCode: 7, output: `wrong ${runs}` } : {}),
  })
  expect(outcome).toEqual(DONE)
  expect(inputs).toEqual([
    'Write it.',
    'Write it.\n\nThe try before this one failed:\n`npm test` ended with exit code 7.\nwrong 1',
    'Write it.\n\nThe try before this one failed:\n`npm test` ended with exit code 7.\nwrong 2',
  ])
  expect(workAfter(events).steps[0]).toMatchObject({ mark: 'done', triedAgain: 2 })
  const never = await playFlow(plan, [saying('A.')], {
    folder,
    command: () => ({ status: 'failed', exitCode: 7, output: 'wrong' }),
  })
  expect(never.outcome).toMatchObject({
    kind: 'needs-person',
    reason: 'Step 1/1: a failed (3 times): `npm test` ended with exit code 7: wrong',
  })
})

test.each<[string, SaidStep, Partial<PlayOptions>, string]>([
  [
    'a command that ends with 3',
    { id: 'a', run: 'make' },
    { command: () => ({ status: 'failed', exitCode: 3, output: 'no rule' }) },
    'Step 1/1: a failed: `make` ended with exit code 3: no rule',
  ],
  [
    'a command that takes too long',
    { id: 'a', run: 'make', timeoutMs: 1_000 },
    { command: () => ({ status: 'timed-out', exitCode: null }) },
    'Step 1/1: a failed: `make` ran into its timeout.',
  ],
  [
    'a file that cannot be written',
    { id: 'a', run: 'make', output: file('a/../../x') },
    {},
    'Step 1/1: a failed: Its output could not be written: ',
  ],
])('the run ends with %s', async (_, step, options, reason) => {
  const { outcome } = await playFlow(planOf([step]), [], { folder, ...options })
  expect(outcome).toMatchObject({ kind: 'needs-person', reason: expect.stringContaining(reason) })
})

const when = (
  text: string,
  left: NonNullable<FlowPlan['steps'][number]['when']>['left'],
  operator: '==' | '!=',
  right: string,
) => ({
  text,
  left,
  operator,
  right,
})

test('a condition looks at the exit code of a command, which has not failed by it; what was passed over is empty', async () => {
  const plan = planOf([
    { id: 'test', run: 'npm test' },
    {
      id: 'mend',
      when: when('{{steps.test.exit}} != 0', exitOf('test'), '!=', '0'),
      work: { input: ['Mend: ', outputOf('test')] },
    },
    { id: 'praise', when: when('{{steps.test.exit}} == 0', exitOf('test'), '==', '0') },
    { id: 'sum', work: { input: ['[', outputOf('praise'), '] exit ', exitOf('test')] } },
  ])
  const { outcome, inputs, events } = await playFlow(plan, [saying('Mended.'), saying('All.')], {
    folder,
    command: () => ({ status: 'failed', exitCode: 3, output: 'two tests failed' }),
  })
  expect(outcome).toEqual(DONE)
  expect(inputs[0]).toBe('Mend: two tests failed')
  expect(inputs[1]).toMatch(/^\[\] exit 3\n/)
  expect(marks(events)).toEqual(['done', 'done', 'skipped', 'done'])
  expect(notes(events)).toContainEqual([
    'step-skipped',
    'Step 3/4: praise: skipped, because {{steps.test.exit}} == 0 is false',
  ])
  expect(flowView.board?.(workAfter(events), emptyState('20261123_1'))).toMatchObject([
    { mark: 'done' },
    { mark: 'done' },
    { mark: 'done', text: 'praise (skipped)' },
    { mark: 'done' },
  ])
})

const VERDICT = {
  type: 'object',
  properties: { verdict: { type: 'string' } },
  required: ['verdict'],
  additionalProperties: false,
}

test('an answer is asked for until it fits, and its fields decide and are used', async () => {
  const verdict = { step: 'judge', part: 'answer', field: ['verdict'] } as const
  const plan = planOf([
    { id: 'judge', work: { schema: VERDICT }, output: file('V.json') },
    { id: 'mend', when: when('bad', verdict, '==', 'bad'), work: { input: ['It is ', verdict, '.'] } },
  ])
  const plays = [saying('I think it is bad.'), saying('{"verdict":"bad"}'), saying('Mended.')]
  const { outcome, inputs, events } = await playFlow(plan, plays, { folder })
  expect(outcome).toEqual(DONE)
  expect(ofType(events, 'answer-refused')).toHaveLength(1)
  expect(inputs[2]).toMatch(/^It is bad\.\n/)
  expect(JSON.parse(await at('V.json'))).toEqual({ verdict: 'bad' })
  const never = await playFlow(plan, [saying('No.')], { folder })
  expect(never.outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringMatching(/^Step 1\/2: judge failed: Its answer did not fit\./),
  })
  expect(never.inputs).toHaveLength(3)
})

test('an answer may be refused in each try', async () => {
  const plan = planOf([{ id: 'judge', work: { schema: VERDICT }, retries: 1 }])
  const plays = [saying('No.'), saying('No.'), saying('No.'), saying('No.'), saying('{"verdict":"bad"}')]
  const { outcome, events } = await playFlow(plan, plays, { folder })
  expect(outcome).toEqual(DONE)
  expect(new Set(ofType(events, 'answer-refused').map(({ name }) => name))).toEqual(new Set(['judge', 'judge~2']))
})

test('a person looks at the output first: has it done again, and then goes on with it', async () => {
  const plan = planOf([{ id: 'a', approve: true, output: file('A.md') }, { id: 'b' }])
  const said: ['again' | 'accept' | 'stop', string | null][] = [
    ['again', 'Shorter.'],
    ['accept', null],
  ]
  const { outcome, inputs, events } = await playFlow(plan, [saying('Long.'), saying('Short.'), saying('B.')], {
    folder,
    onEvent: (event, { runner }) => {
      const next = event.type === 'decision-asked' ? said.shift() : undefined
      if (next) runner.decide(...next)
    },
  })
  expect(outcome).toEqual(DONE)
  expect(ofType(events, 'decision-asked').map(({ body }) => body)).toEqual(['Long.', 'Short.'])
  expect(inputs[1]).toContain('Shorter.')
  expect(await at('A.md')).toBe('Short.\n')
  const stopped = await playFlow(plan, [saying('Long.')], {
    folder,
    onEvent: (event, { runner }) => event.type === 'decision-asked' && runner.decide('stop', null),
  })
  expect(stopped.outcome).toEqual({ kind: 'interrupted', by: 'stop' })
  const resumed = await playFlow(plan, [saying('B.')], {
    folder,
    journal: stopped.events,
    onEvent: (event, { runner }) => event.type === 'decision-asked' && runner.decide('accept', null),
  })
  expect(resumed.outcome).toEqual(DONE)
})

test('with --continue-on-error the others run, but for those that need what failed, and it still needs a person', async () => {
  const plan = planOf([
    { id: 'a' },
    { id: 'b', work: { input: [outputOf('a')] } },
    { id: 'c', work: { input: [outputOf('b')] } },
    { id: 'd' },
  ])
  const first = await playFlow(plan, [failing, saying('D.')], { folder, flow: { continueOnError: true } })
  expect(first.outcome).toMatchObject({ kind: 'needs-person', reason: 'Step 1/4: a failed: The context is full.' })
  expect(marks(first.events)).toEqual(['failed', 'left-out', 'left-out', 'done'])
  const second = await playFlow(plan, [saying('A.'), saying('B.'), saying('C.')], { folder, journal: first.events })
  expect(second.outcome).toEqual(DONE)
  expect(second.inputs).toHaveLength(3)
})

test('with continue_on_error of a step its failure is not one of the workflow; without its result others are left out', async () => {
  const plan = planOf([
    { id: 'a', continueOnError: true },
    { id: 'b', work: { input: [outputOf('a')] } },
    { id: 'c', when: when('{{steps.a.exit}} != 0', exitOf('a'), '!=', '0') },
    { id: 'd' },
  ])
  const first = await playFlow(plan, [failing, saying('C.'), failing], { folder })
  expect(first.outcome).toMatchObject({ kind: 'needs-person', reason: 'Step 4/4: d failed: The context is full.' })
  expect(marks(first.events)).toEqual(['failed', 'left-out', 'done', 'failed'])
  const other = await playFlow(plan, [failing, saying('C.'), saying('D.')], { folder })
  expect(other.outcome).toEqual(DONE)
})

test.for([
  ["{{a}} contains 'bc' and {{n}} > 2", true],
  ["{{a}} contains 'x' and {{n}} > 2 or {{n}} == 3", true],
  ["{{n}} == 3 or {{a}} contains 'x' and {{n}} > 5", true],
  ["{{a}} contains 'x' or {{n}} > 5", false],
  ['{{a}} == abc and {{n}} == 4', false],
] as const)('the condition %s decides whether a step runs: %s', async ([text, isTrue]) => {
  const { condition } = parseCondition(text)
  const plan = planOf([{ id: 'a', when: condition }], { a: 'abc', n: '3' })
  const { events } = await playFlow(plan, isTrue ? [saying('A.')] : [], { folder })
  expect(marks(events)).toEqual([isTrue ? 'done' : 'skipped'])
})

test('a step that was passed over for what a failed one came to is looked at again when the session goes on', async () => {
  const isDone = { text: 'x', left: exitOf('a'), operator: '==', right: '0' } as const
  const plan = planOf([{ id: 'a' }, { id: 'b', when: isDone }, { id: 'c', work: { input: [outputOf('b')] } }])
  const first = await playFlow(plan, [failing, saying('C.')], { folder, flow: { continueOnError: true } })
  expect(marks(first.events)).toEqual(['failed', 'skipped', 'done'])
  const second = await playFlow(plan, [saying('A.'), saying('B.')], { folder, journal: first.events })
  expect(second.outcome).toEqual(DONE)
  expect(marks([...first.events, ...second.events])).toEqual(['done', 'done', 'done'])
})

test('what a person wants to be other is told to every later try, also where the first of them fails', async () => {
  const plan = planOf([{ id: 'a', approve: true, retries: 1 }])
  const said: ['again' | 'accept', string | null][] = [
    ['again', 'Shorter.'],
    ['accept', null],
  ]
  const { outcome, inputs } = await playFlow(plan, [saying('Long.'), failing, saying('Short.')], {
    folder,
    onEvent: (event, { runner }) => {
      const next = event.type === 'decision-asked' ? said.shift() : undefined
      if (next) runner.decide(...next)
    },
  })
  expect(outcome).toEqual(DONE)
  expect(inputs[1]).toContain('Shorter.')
  expect(inputs[2]).toContain('Shorter.')
  expect(inputs[2]).toContain('The context is full.')
})

test('begun with a later step, it uses the outputs of the last run', async () => {
  const plan = planOf([
    { id: 'a' },
    { id: 'b', work: { input: ['Of a: ', outputOf('a'), ' ', { step: 'a', part: 'answer', field: ['v'] }] } },
  ])
  const { outputs } = await import('../../../src/session/records/outputs.ts').then(async ({ openOutputs }) => ({
    outputs: await Promise.all([
      openOutputs(folder).keep({ n: 1, name: 'a', kind: 'md', text: 'Earlier.' }),
      openOutputs(folder).keep({ n: 2, name: 'a.answer', kind: 'json', text: '{"v":7}' }),
    ]),
  }))
  const { outcome, inputs } = await playFlow(plan, [saying('B.')], {
    folder,
    flow: { from: 'b', carried: [{ id: 'a', mark: 'done', exit: 0, fields: {} }] },
    begun: { outputs },
  })
  expect(outcome).toEqual(DONE)
  expect(inputs[0]).toMatch(/^Of a: Earlier\. 7\n/)
})

test('gates of the session that do not pass leave it to a person', async () => {
  const gates = [
    { name: 'tests', run: 't', timeoutMs: 1, required: true, network: false, protect: [], everyRound: false },
  ]
  const { outcome, events } = await playFlow(planOf([{ id: 'a' }]), [saying('A.')], {
    folder,
    begun: { gates },
    gate: () => ({ status: 'failed', exitCode: 1, output: 'red' }),
  })
  expect(outcome).toMatchObject({
    kind: 'needs-person',
    reason: expect.stringContaining('The step has ended, but the workflow is not done: '),
  })
  expect(ofType(events, 'done-refused')).toMatchObject([{ reason: 'gate-failed' }])
})

promise('F15')
test('a step that is worked on until it is done, killed after any event, comes to the same end and the same file', async () => {
  const plan = planOf([
    { id: 'fix', verify: ['npm test'], work: { engine: 'codemachine', input: ['Mend it.'] }, output: file('FIX.md') },
    { id: 'sum', work: { input: ['So: ', outputOf('fix')] } },
  ])
  const plays = [saying('Begun.'), saying('Mended.'), saying('All.')]
  // What its second round leaves claims that it is done.
  const options = (before: number): Partial<PlayOptions> => ({
    memory: rounds => (rounds + before >= 2 ? CLAIMED : UNCLAIMED),
  })
  const whole = await playFlow(plan, plays, { folder, ...options(0) })
  expect(whole.outcome).toEqual(DONE)
  expect(ofType(whole.events, 'scope-left')).toMatchObject([{ name: 'fix', outcome: 'done' }])
  expect(whole.inputs[2]).toMatch(/^So: Mended\.\n/)
  for (let kept = 1; kept < whole.events.length; kept++) {
    const journal: Recorded[] = []
    const killed = playFlow(plan, plays, {
      folder,
      ...options(0),
      append: event => {
        if (journal.length === kept) throw new Error('killed')
        journal.push(event)
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const ended = ofType(journal, 'round-ended').length
    // A claim that was not journaled is made once more.
    const done = ended >= 2 && ofType(journal, 'done-nominated').length === 0 ? 1 : ended
    const resumed = await playFlow(plan, plays.slice(done), { folder, ...options(done), journal })
    const after = `killed after ${journal.at(-1)?.type} (${kept})`
    expect(resumed.outcome, after).toEqual(DONE)
    expect(ofType(resumed.events, 'round-started').length, after).toBe(3 - done)
    expect(ofType([...journal, ...resumed.events], 'scope-left'), after).toHaveLength(1)
    expect(await at('FIX.md'), after).toBe('Mended.\n')
  }
})

test('a scope that gets nowhere is a try that failed, and the next one is told', async () => {
  const plan = planOf([{ id: 'fix', retries: 1, work: { engine: 'codemachine', rounds: 2, input: ['Mend it.'] } }])
  const { outcome, inputs, events } = await playFlow(plan, [saying('Hm.')], { folder })
  expect(outcome).toMatchObject({ reason: 'Step 1/1: fix failed (2 times): The step is not done after 2 rounds.' })
  expect(inputs).toHaveLength(4)
  expect(inputs[2]).toContain('The try before this one failed:\nThe step is not done after 2 rounds.')
  expect(ofType(events, 'scope-left').map(({ outcome: how }) => how)).toEqual(['given-up', 'given-up'])
})

test('stopped in a scope after an earlier step failed, it begins with that one, and leaving the scope fails no step', async () => {
  const plan = planOf([{ id: 'a' }, { id: 'fix', work: { engine: 'codemachine', input: ['Mend it.'] } }])
  const first = await playFlow(plan, [failing, saying('Hm.')], {
    folder,
    flow: { continueOnError: true },
    limits: { rounds: 2 },
  })
  expect(first.outcome).toMatchObject({ kind: 'limit' })
  expect(marks(first.events)).toEqual(['failed', 'to-do'])
  const journal = first.events
  const resumed = { limits: { rounds: 99, timeMs: null, tokens: null } }
  const plays = [saying('A.'), saying('Mended.')]
  const second = await playFlow(plan, plays, { folder, journal, resumed, memory: () => CLAIMED })
  expect(marks([...journal, ...second.events])).toEqual(['done', 'done'])
  expect(second.outcome).toEqual(DONE)
})
