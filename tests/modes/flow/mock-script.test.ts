import { describe, expect, test } from 'vitest'
import { dryRunOf, type ScriptOptions, scriptOf } from '../../../src/modes/flow/file/mock-script.ts'
import type { AgentWork, FlowPlan, FlowStep } from '../../../src/modes/flow/file/plan.ts'
import type { FoundRecording } from '../../../src/modes/flow/file/recording.ts'
import { inputHash, type RecordingHeader } from '../../../src/modes/flow/file/recording.ts'
import { promise } from '../../support/promise.ts'

const AGENT: AgentWork = {
  kind: 'agent',
  agent: 'commit',
  engine: 'codex',
  model: 'gpt-5',
  args: [],
  prompt: { path: 'p.md', found: '.codex-flow/p.md', text: 'Be short.' },
  input: ['Diff: ', { variable: 'diff' }],
  schema: null,
  rounds: 10,
}

let index = 0
function step(id: string, more: Partial<FlowStep> = {}): FlowStep {
  index += 1
  return {
    index,
    id,
    stem: id,
    description: id,
    work: AGENT,
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

const command = (run: string) => ({ work: { kind: 'command' as const, run } })
const when = (id: string, part: 'exit' | 'answer', operator: '==' | '!=', right: string, field: string[] = []) => ({
  when: { text: `{{steps.${id}.${part}}} ${operator} ${right}`, left: { step: id, part, field }, operator, right },
})

const recorded = (header: RecordingHeader = {}, more: object = {}): FoundRecording => ({
  kind: 'recording',
  recording: {
    path: 'debug/x.json',
    bytes: 1,
    sha256: '',
    header,
    hasEvents: true,
    hasTurn: true,
    lastMessage: 'feat: a',
    failure: null,
    ...more,
  },
})
const noEvents = (header: RecordingHeader) => recorded(header, { hasEvents: false, lastMessage: null })

function make(
  steps: readonly FlowStep[],
  found: Record<string, FoundRecording>,
  options: Partial<ScriptOptions> & { values?: FlowPlan['values'] } = {},
) {
  return scriptOf(
    { steps, values: options.values ?? {} },
    {
      from: null,
      writes: false,
      verbose: false,
      found: new Map(Object.entries(found)),
      placeOf: ({ id }) => `/kept/${id}`,
      redact: text => text.replaceAll('hunter2', '[secret]'),
      ...options,
    },
  )
}

function made(...given: Parameters<typeof make>) {
  const result = make(...given)
  if ('unplayable' in result) throw new Error(JSON.stringify(result.unplayable))
  return result
}

const missing: FoundRecording = { kind: 'missing', looked: ['debug/1-a.json', 'debug/1-commit-agent.json'] }

test('a step is played with what would run beside it, and what that came to when it was recorded', () => {
  const { script, played, changed } = made(
    [step('a', { verify: ['npm test', 'npm run lint'], retries: 2, approve: true })],
    { a: recorded({ tries: 2, approved: true, verify: [{ run: 'npm test', exit: 0 }] }) },
  )
  expect(script.steps).toEqual([
    {
      id: 'a',
      told: [],
      before: [],
      recording: { path: '/kept/a', name: 'debug/x.json' },
      write: null,
      after: [
        'would run: npm test (recorded: exit code 0)',
        'would run: npm run lint (not recorded)',
        'would run: again if it fails, at most 2 times (recorded: 1 more)',
        'would ask: a person to look at the output (recorded: accepted)',
      ],
    },
  ])
  expect(played.map(each => each.step.id)).toEqual(['a'])
  expect(changed).toEqual([])
})

promise('F25')
test('a command is not run: its line is shown with the recorded result, and it wants no recording', () => {
  const { script, played } = made([step('t', command('npm test')), step('u', command('make'))], {
    t: noEvents({ exit: 1, output: 'x' }),
    u: missing,
  })
  expect(script.steps.map(({ recording, after }) => [recording, after])).toEqual([
    [null, ['would run: npm test (recorded: exit code 1)']],
    [null, ['would run: make (not recorded)']],
  ])
  expect(played).toEqual([])
})

promise('F25', 'In a replay conditions are decided by recorded results, and no command is run')
describe('a condition is decided by recorded results', () => {
  const steps = [step('t', command('npm test')), step('fix', when('t', 'exit', '!=', '0'))]

  test('where it holds the step is played', () => {
    const { script } = made(steps, { t: noEvents({ exit: 1 }), fix: recorded() })
    expect(script.steps[1]).toMatchObject({ before: [], recording: { path: '/kept/fix' } })
  })

  test('where it does not the step is passed over, and wants no recording', () => {
    const { script } = made(steps, { t: noEvents({ exit: 0 }), fix: missing })
    expect(script.steps[1]).toEqual({
      id: 'fix',
      told: [],
      before: ['skipped: when {{steps.t.exit}} != 0 (0 != 0) is false'],
      after: [],
      recording: null,
      write: null,
    })
  })

  test('an unrecorded result counts as true, and says so', () => {
    const { script } = made(steps, { t: missing, fix: recorded() })
    expect(script.steps[1]?.told).toEqual(['when {{steps.t.exit}} != 0: not recorded, so it counts as true'])
  })

  test('unless the step itself was recorded as passed over', () => {
    const { script } = made(steps, { t: missing, fix: noEvents({ skipped: 'the tests passed' }) })
    expect(script.steps[1]?.before).toEqual(['skipped, as recorded: the tests passed'])
  })

  test('with each comparison of `and` and `or`; a known one decides beside an unknown one', () => {
    const said = (id: string, operator: '==' | '!=', right: string) => when(id, 'exit', operator, right).when
    const joined = (by: 'and' | 'or') => ({
      when: { ...said('t', '!=', '0'), more: [{ ...said('u', '==', '0'), by }] },
    })
    const played = (by: 'and' | 'or', t: FoundRecording, u: FoundRecording) => {
      const all = [step('t', command('a')), step('u', command('b')), step('fix', joined(by))]
      return made(all, { t, u, fix: recorded() }).script.steps[2]?.recording !== null
    }
    const [passed, failed] = [noEvents({ exit: 0 }), noEvents({ exit: 1 })]
    expect([played('and', failed, failed), played('and', failed, passed)]).toEqual([false, true])
    expect([played('or', passed, passed), played('or', passed, failed)]).toEqual([true, false])
    expect([played('and', missing, failed), played('or', missing, failed)]).toEqual([false, true])
  })

  test('by a field of an answer; a step that was passed over is empty text', () => {
    const schema = { type: 'object', properties: { kind: { type: 'string' } } }
    const answer = recorded({}, { lastMessage: '{"kind":"fix"}' })
    const all = [
      step('a', { work: { ...AGENT, schema } }),
      step('b', when('a', 'answer', '==', 'feature', ['kind'])),
      step('c', when('b', 'exit', '==', '')),
    ]
    const { script } = made(all, { a: answer, b: missing, c: recorded() })
    expect(script.steps.map(({ recording }) => recording?.path ?? null)).toEqual(['/kept/a', null, '/kept/c'])
    expect(script.steps[1]?.before[0]).toContain('(fix == feature) is false')
  })
})

describe('what cannot be played is told of all steps, before anything', () => {
  test.each<[FoundRecording, string]>([
    [missing, 'there is no recording: debug/1-a.json, or debug/1-commit-agent.json'],
    [{ kind: 'broken', path: 'debug/x.json', problem: 'is a link' }, 'debug/x.json is a link'],
    [noEvents({}), 'debug/x.json holds no event of codex'],
    [noEvents({ skipped: 'why' }), 'debug/x.json holds no event of codex, because the recorded run skipped the step'],
  ])('%j', (found, problem) => {
    const result = make([step('a'), step('b')], { a: found, b: missing })
    expect(result).toMatchObject({ unplayable: [{ step: { id: 'a' }, problem }, { step: { id: 'b' } }] })
  })
})

test('a run that failed is shown to where it ended', () => {
  const { script } = made([step('a'), step('b')], { a: recorded({ failed: 'npm test failed' }), b: missing })
  expect(script.steps[0]?.after).toEqual(['failed, as recorded: npm test failed'])
  expect(script.steps[1]).toMatchObject({
    before: ['not recorded: the recorded run ended when a failed'],
    recording: null,
  })
  const turn = made([step('a')], { a: recorded({}, { failure: 'No quota.' }) })
  expect(turn.script.steps[0]?.after).toEqual(['failed, as recorded: No quota.'])
})

promise('F24')
describe('the prompt and the input are compared with what was recorded', () => {
  const recordedWith = (input: string, values?: Record<string, string>) =>
    recorded({ input_sha256: inputHash('Be short.', input), ...(values && { values }) })
  const given = (text: string) => ({ values: { diff: { text, from: 'given' as const } } })

  test('the same ones are not spoken of; others are, in one line', () => {
    expect(made([step('a')], { a: recordedWith('Diff: +a') }, given('+a')).changed).toEqual([])
    const { script, changed } = made([step('a')], { a: recordedWith('Diff: +a') }, given('+b'))
    expect(changed).toEqual(['debug/x.json'])
    expect(script.steps[0]?.told).toEqual(['the prompt or the input has changed since debug/x.json was recorded'])
    const work = { ...AGENT, prompt: { ...AGENT.prompt, text: 'Be long.' } }
    expect(made([step('a', { work })], { a: recordedWith('Diff: +a') }, given('+a')).changed).toHaveLength(1)
  })

  test('of a value that a command gives its recorded text is used; without one nothing is compared', () => {
    expect(made([step('a')], { a: recordedWith('Diff: +a', { diff: '+a' }) }).changed).toEqual([])
    expect(made([step('a')], { a: recordedWith('Diff: +a', { diff: '+b' }) }).changed).toHaveLength(1)
    expect(made([step('a')], { a: recordedWith('Diff: +a') }).changed).toEqual([])
  })

  test('of an earlier step its recorded output is used, also where the run begins behind it', () => {
    const after = step('b', { work: { ...AGENT, input: [{ step: 'a', part: 'output', field: [] }] } })
    const found = { a: recorded(), b: recordedWith('feat: a') }
    expect(made([step('a'), after], found).changed).toEqual([])
    const { script, changed } = made([step('a'), after], found, { from: 'b' })
    expect([script.steps.map(({ id }) => id), changed]).toEqual([['b'], []])
    const other = { ...found, a: recorded({ output: 'other' }) }
    expect(made([step('a'), after], other).changed).toHaveLength(1)
  })

  test('without secrets, as they were recorded', () => {
    expect(made([step('a')], { a: recordedWith('Diff: [secret]') }, given('hunter2')).changed).toEqual([])
  })
})

test('output files are written only where that is wanted, and never of a step that failed', () => {
  const output = { kind: 'file', path: 'OUT.md', append: true } as const
  const write = (found: FoundRecording, writes: boolean) =>
    made([step('a', { output })], { a: found }, { writes }).script.steps[0]?.write
  expect(write(recorded(), false)).toBeNull()
  expect(write(recorded(), true)).toEqual([{ path: 'OUT.md', append: true, text: 'feat: a' }])
  expect(write(recorded({ output: 'other' }), true)).toMatchObject([{ text: 'other' }])
  expect(write(recorded({ failed: 'so' }), true)).toBeNull()
})

test('in detail: the prompt, the length of the input and the recording', () => {
  const details = (values: FlowPlan['values']) =>
    made([step('a')], { a: recorded() }, { verbose: true, values }).script.steps[0]?.told
  expect(details({ diff: { text: '+a', from: 'text' } })).toEqual([
    'prompt: .codex-flow/p.md',
    'input: 8 characters',
    'recording: debug/x.json',
  ])
  expect(details({})?.[1]).toBe('input: known only in a real run')
})

test('a line has at most 1,000 characters and no line end, whatever was recorded', () => {
  const { script } = made([step('a')], { a: recorded({ failed: `a\nb\r\n${'c'.repeat(5_000)}` }) })
  const [line = ''] = script.steps[0]?.after ?? []
  expect(line).toHaveLength(1_000)
  expect(line).toMatch(/^failed, as recorded: a b ccc/)
})

test('a dry run names the command lines and the inputs, and wants no recording', () => {
  index = 0
  const input = ['Diff: ', { variable: 'diff' }, { step: 'a', part: 'answer', field: ['kind'] } as const]
  const steps = [
    step('a', { verify: ['npm test'], output: { kind: 'file', path: 'A.md', append: false } }),
    step('t', command('make')),
    step('b', { work: { ...AGENT, input }, ...when('t', 'exit', '!=', '0') }),
  ]
  const plan = { steps, values: { diff: { text: '{{x}}', from: 'given' as const } } }
  expect(dryRunOf(plan, null)).toEqual([
    {
      index: 1,
      id: 'a',
      title: 'a',
      commandLine: 'cat "p.md" | codex exec --model gpt-5',
      input: 'Diff: {{x}}',
      verify: ['npm test'],
      needs: null,
      when: null,
      forEach: null,
      outputs: ['A.md'],
    },
    {
      index: 2,
      id: 't',
      title: 't',
      commandLine: 'make',
      input: null,
      verify: [],
      needs: null,
      when: null,
      forEach: null,
      outputs: [],
    },
    expect.objectContaining({ input: 'Diff: {{x}}{{steps.a.answer.kind}}', when: '{{steps.t.exit}} != 0' }),
  ])
  expect(dryRunOf({ steps, values: {} }, 'b').map(each => each.input)).toEqual([
    'Diff: {{diff}}{{steps.a.answer.kind}}',
  ])
})
