import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ThreadSpec } from '../../src/core/engine.ts'
import type { Recorded } from '../../src/core/events/events.ts'
import type { Output } from '../../src/core/rules/outputs.ts'
import { emptyState } from '../../src/core/state/state.ts'
import type { InputPart, Template } from '../../src/core/template.ts'
import { redactorOf } from '../../src/secrets/redactor.ts'
import { readAnswer } from '../../src/session/answers.ts'
import {
  CLAIMED,
  ofType,
  type Play,
  type PlayOptions,
  playSession,
  type Ran,
  UNCLAIMED,
} from '../support/played-session.ts'
import { promise } from '../support/promise.ts'
import { fold, worked } from '../support/session-events.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-answers-'))
})
afterEach(() => rm(folder, { recursive: true }))

const THREAD: ThreadSpec = { agent: 'a', developerInstructions: 'Do it.', model: null, effort: null }
const SCHEMA = {
  type: 'object',
  properties: { word: { type: 'string' }, token: { type: 'string' } },
  required: ['word'],
  additionalProperties: false,
}
const unreadable = null as unknown as { nothing: string }
const END = { kind: 'needs-person', reason: 'All is said.', hint: null } as const

/** Asks for a word, then has it explained, keeps what is said of it, and is at its end. */
const TEMPLATE: Template = {
  threads: [],
  ahead: () => null,
  next(session) {
    const [word, notes] = ['word', 'notes'].map(each => session.outputs.find(({ name }) => name === each))
    if (word === undefined) {
      return {
        kind: 'round',
        round: { thread: THREAD, input: 'Say a word.', answer: { name: 'word', schema: SCHEMA } },
      }
    }
    if (notes !== undefined) return { kind: 'end', outcome: END }
    const materials = [{ name: 'the word', output: word }]
    return { kind: 'round', round: { thread: THREAD, input: 'Explain it.', materials, keep: 'notes' } }
  },
}

const says =
  (text: string, long?: string): Play =>
  ({ run }) => {
    if (long !== undefined) run.onLongMessage?.('m', long)
    run.onEvent({
      type: 'item-completed',
      round: run.round,
      item: { kind: 'agent-message', id: 'm', text, phase: null },
    })
    return worked
  }
const run = (plays: readonly Play[], options: Partial<PlayOptions> = {}) =>
  playSession(plays, { folder, template: TEMPLATE, limits: { rounds: 9 }, ...options })
const outputs = async () => (await readdir(join(folder, 'outputs'))).sort()
const output = (file: string) => readFile(join(folder, 'outputs', file), 'utf8')
const stateOf = (events: readonly Recorded[]) => events.reduce(fold, emptyState('20261120_1'))

test('an answer is kept whole, and given to a later round between marked lines; its last message is kept too', async () => {
  const { outcome, events, inputs, wholeInputs } = await run([says('Here: {"word": "tree"}'), says('A tree is tall.')])
  expect(outcome).toEqual(END)
  const [given] = ofType(events, 'answer-given')
  expect(given).toMatchObject({
    round: 1,
    name: 'word',
    value: { word: 'tree' },
    output: { n: 1, file: '1-word.json' },
  })
  expect(ofType(events, 'output-kept')).toMatchObject([
    { round: 2, output: { n: 2, name: 'notes', head: 'A tree is tall.' } },
  ])
  expect(await outputs()).toEqual(['1-word.json', '2-notes.md'])
  expect(JSON.parse(await output('1-word.json'))).toEqual({ word: 'tree' })
  expect(await output('2-notes.md')).toBe('A tree is tall.')
  expect(inputs[0]).toBe('Say a word.')
  expect(inputs[1]).toMatch(
    /^Explain it\.\n\nMaterial to work with: "the word"\. .*\n\[begin (\w+)\]\n\{\n {2}"word": "tree"\n\}\n\[end \1\]$/,
  )
  expect(ofType(events, 'round-started')[1]?.input).toBe(wholeInputs[1])
  expect(stateOf(events)).toMatchObject({ refusedAnswers: {}, outputs: [given?.output, { n: 2 }] })
})

test('the model is asked for the shape, in the rounds that have one', async () => {
  const schemas: unknown[] = []
  const noting =
    (play: Play): Play =>
    played => {
      schemas.push(played.run.outputSchema)
      return play(played)
    }
  await run([noting(says('{"word":"tree"}')), noting(says('Tall.'))])
  expect(schemas).toEqual([SCHEMA, undefined])
})

test('an answer that cannot be used is said with its reason to the next round of its kind, until one can be', async () => {
  const { events, inputs } = await run([says('A tree.'), says('{"word": 7}'), says('{"word":"tree"}'), says('Tall.')])
  const problems = ofType(events, 'answer-refused').map(({ round, name, problem }) => [round, name, problem])
  expect(problems).toEqual([
    [1, 'word', expect.stringContaining('does not contain the requested')],
    [2, 'word', '- `word` is 7; it must be a text.'],
  ])
  expect(inputs[1]).toMatch(
    /^Say a word\.\n\nA program reads your answer, and could not use the last one:.*does not contain the requested/s,
  )
  expect(inputs[2]).toContain('- `word` is 7; it must be a text.')
  expect(inputs[2]).toContain(JSON.stringify(SCHEMA))
  expect(inputs[3]).not.toContain('could not use the last one')
  const types = events.map(({ type }) => type)
  expect(types.indexOf('answer-refused')).toBeLessThan(types.indexOf('round-ended'))
})

promise('C26')
test('a template judges by rules of its own what fits the shape, once, and the journal says what came of it', async () => {
  const asked: unknown[] = []
  const template: Template = {
    ...TEMPLATE,
    answerProblem({ answer }, value, { running }) {
      asked.push([answer?.name, value, running?.round])
      return Object(value).word === 'weed' ? 'A weed is not wanted.' : null
    },
  }
  const { events, inputs } = await run(
    [says('{"word": 7}'), says('{"word":"weed"}'), says('{"word":"tree"}'), says('Tall.')],
    {
      template,
    },
  )
  expect(asked).toEqual([
    ['word', { word: 'weed' }, 2],
    ['word', { word: 'tree' }, 3],
  ])
  expect(ofType(events, 'answer-refused')[1]).toMatchObject({
    round: 2,
    name: 'word',
    problem: 'A weed is not wanted.',
  })
  expect(ofType(events, 'answer-given')).toMatchObject([{ round: 3, value: { word: 'tree' }, judged: true }])
  expect(inputs[2]).toContain('A weed is not wanted.')
  expect(await outputs()).toEqual(['1-word.json', '2-notes.md'])
  const without = await run([says('{"word":"weed"}'), says('Low.')])
  expect(ofType(without.events, 'answer-given')[0]).not.toHaveProperty('judged')
  const broken = { ...TEMPLATE, answerProblem: () => unreadable.nothing }
  await expect(run([says('{"word":"tree"}')], { template: broken })).rejects.toThrow(
    'the template "goal" failed in `answerProblem`: ',
  )
})

test('three in a row need a person; once they have looked at it, it may be refused as often again', async () => {
  const first = await run([says('No.')])
  expect(first.inputs).toHaveLength(3)
  expect(first.outcome).toEqual({
    kind: 'needs-person',
    reason: expect.stringContaining('The answer "word" could not be used, 3 times in a row. '),
    hint: { do: 'choose-model' },
    goalOnly: true,
  })
  const again = await run([says('No.'), says('{"word":"tree"}'), says('Tall.')], { journal: first.events })
  expect(again.outcome).toEqual(END)
  expect(again.inputs[0]).toContain('could not use the last one')
})

test('what a round is told stays below what codex takes in one turn, also with why its answer was refused', async () => {
  const schema = { ...SCHEMA, description: 's'.repeat(15_000) }
  const full: Template = {
    ...TEMPLATE,
    next: session =>
      session.outputs.length > 0
        ? { kind: 'end', outcome: END }
        : { kind: 'round', round: { thread: THREAD, input: 'x'.repeat(1_048_576), answer: { name: 'word', schema } } },
  }
  const { inputs } = await run([says('No.'), says('{"word":"tree"}')], { template: full })
  expect(inputs).toEqual([
    expect.stringMatching(/x\n\[… \d+ more characters\]$/),
    expect.stringMatching(
      /x\n\[… \d+ more characters\]\n\nA program reads your answer, and could not use the last one:.*"s+"\}$/s,
    ),
  ])
  for (const input of inputs) expect(input.length).toBeLessThan(1_048_576)
})

test('what a round is given to work with leaves it below that, too', async () => {
  const crammed: Template = {
    ...TEMPLATE,
    next(session, memory) {
      const step = TEMPLATE.next(session, memory)
      if (step.kind !== 'round' || step.round.materials === undefined) return step
      return { ...step, round: { ...step.round, materials: Array(12).fill(step.round.materials[0]) } }
    },
  }
  const word = 'x'.repeat(200_000)
  const { inputs } = await run([says('', JSON.stringify({ word })), says('Long.')], { template: crammed })
  expect(inputs[1]?.match(/^\[begin /gm)).toHaveLength(12)
  expect(inputs[1]?.length).toBeLessThan(1_048_576)
})

describe('an input of parts', () => {
  /** Asks for a word, then for what `parts` makes of it. */
  const asking = (parts: (word: Output) => readonly InputPart[]): Template => ({
    ...TEMPLATE,
    next(session) {
      const [word] = session.outputs
      if (word === undefined) return TEMPLATE.next(session, UNCLAIMED)
      if (session.outputs.length > 1) return { kind: 'end', outcome: END }
      return { kind: 'round', round: { thread: THREAD, input: parts(word), keep: 'notes' } }
    },
  })
  const inputWith = async (answer: string, parts: (word: Output) => readonly InputPart[]) =>
    (await run([says('', answer), says('Tall.')], { template: asking(parts) })).inputs[1]

  test('holds outputs whole where they stand, and expands nothing in them', async () => {
    const word = `{{word}} {{steps.a.output}} ${'x'.repeat(2000)}\n`
    const kept = `${JSON.stringify({ word }, null, 2)}\n`
    const input = await inputWith(JSON.stringify({ word }), output => [
      'Explain ',
      { output },
      '{{word}} of ',
      { output },
      '.',
    ])
    expect(input).toBe(`Explain ${kept}{{word}} of ${kept}.`)
  })

  test.each([
    [['word'], '"{{a}}" and\n2'],
    [['more', 'list', '1'], '{"b":[1,null]}'],
    [['more', 'number'], '7'],
    [['more', 'nothing'], 'null'],
    [['more', 'list', '2'], ''],
    [['more', 'list', 'length'], ''],
    [['word', '0'], ''],
    [['constructor'], ''],
    [['more', 'nothing', 'x'], ''],
  ])('holds the value at %j of an answer', async (member, value) => {
    const answer = { word: '"{{a}}" and\n2', more: { list: ['a', { b: [1, null] }], number: 7, nothing: null } }
    const open = { ...SCHEMA, additionalProperties: true }
    const ask: Template = asking(output => ['[', { output, member }, ']'])
    const template: Template = {
      ...ask,
      next(session, memory) {
        const step = ask.next(session, memory)
        if (step.kind !== 'round' || step.round.answer === undefined) return step
        return { ...step, round: { ...step.round, answer: { name: 'word', schema: open } } }
      },
    }
    const { inputs } = await run([says(JSON.stringify(answer)), says('Tall.')], { template })
    expect(inputs[1]).toBe(`[${value}]`)
  })

  test('holds nothing in the place of a value of what is no JSON', async () => {
    const template: Template = {
      ...TEMPLATE,
      next({ outputs: [first, second] }) {
        if (second !== undefined) return { kind: 'end', outcome: END }
        const input = first === undefined ? 'Say it.' : ['[', { output: first, member: ['a'] }, ']']
        return { kind: 'round', round: { thread: THREAD, input, keep: 'notes' } }
      },
    }
    const { inputs } = await run([says('{"a": 1} or so')], { template })
    expect(inputs[1]).toBe('[]')
  })

  test('is cut to what a turn takes before it is put together, however often it holds a long output', async () => {
    const word = 'x'.repeat(200_000)
    const times = 4_000
    const input = await inputWith(JSON.stringify({ word }), output => [
      ...Array<InputPart>(times).fill({ output, member: ['word'] }),
      'the end',
    ])
    const [, left] = /^x+\n\[… (\d+) more characters\]$/.exec(input ?? '') ?? []
    expect(input?.indexOf('\n')).toBe(times * word.length + 7 - Number(left))
    expect(input?.length).toBeLessThan(1_048_576)
  })

  test('holds what was kept long ago, and is not known to the session any more', async () => {
    let first: Output | null = null
    const template: Template = {
      ...TEMPLATE,
      next({ outputs, last }) {
        first ??= outputs[0] ?? null
        const isLast = last?.round === 150
        if (last?.round === 151 || first === null) {
          return first === null
            ? { kind: 'round', round: { thread: THREAD, input: 'First.', keep: 'first' } }
            : { kind: 'end', outcome: END }
        }
        expect(isLast && outputs.includes(first)).toBe(false)
        const materials = isLast ? { materials: [{ name: 'the first', output: first }] } : {}
        return {
          kind: 'round',
          round: { thread: THREAD, input: isLast ? [{ output: first }] : 'More.', keep: 'more', ...materials },
        }
      },
    }
    const long = `first ${'x'.repeat(1000)}`
    const { inputs } = await run([says('', long), says('more')], { template, limits: { rounds: 151 } })
    expect(inputs).toHaveLength(151)
    expect(inputs[150]).toMatch(new RegExp(`^${long}\n\nMaterial to work with: "the first".*\n${long}\n`, 's'))
  })
})

test('of materials with a bound the first are given, and the others are named', async () => {
  const template: Template = {
    ...TEMPLATE,
    next(session) {
      const { outputs } = session
      if (outputs.length > 3) return { kind: 'end', outcome: END }
      const newest = outputs.map(output => ({ name: `n${output.n}`, output })).reverse()
      return {
        kind: 'round',
        round: { thread: THREAD, input: 'Go on.', keep: 'said', materials: newest, materialsMost: 1500 },
      }
    },
  }
  const { inputs } = await run([says('', 'x'.repeat(1000))], { template })
  expect(inputs[0]).toBe('Go on.')
  expect(inputs[3]).toMatch(
    /"n3".*\nx{1000}\n.*"n2".*\nx{500}\n\[… 500 more characters\]\n.*\n\nThere was no room here for: "n1"$/s,
  )
})

test('nothing is kept of a round that says nothing', async () => {
  const { events } = await run([says('{"word":"tree"}'), () => worked, says('Tall.')])
  expect(ofType(events, 'output-kept').map(({ round }) => round)).toEqual([3])
})

test.each(['constructor', '__proto__'])('an answer may be named %s', async name => {
  const named: Template = {
    ...TEMPLATE,
    next: session =>
      session.outputs.length > 0
        ? { kind: 'end', outcome: END }
        : { kind: 'round', round: { thread: THREAD, input: 'Say a word.', answer: { name, schema: SCHEMA } } },
  }
  const { outcome, events } = await run([says('No.'), says('{"word":"tree"}')], { template: named })
  expect(outcome).toEqual(END)
  expect(ofType(events, 'answer-refused')).toMatchObject([{ round: 1, name }])
  expect(ofType(events, 'answer-given')).toMatchObject([{ round: 2, name }])
})

test('a round that did not come to its end gives no answer, and is refused none', async () => {
  const cut: Play = played => {
    says('{"word":"tree"}')(played)
    return { class: 'interrupted', message: null }
  }
  const { events } = await run([cut, says('{"word":"bush"}'), says('Low.')])
  expect(ofType(events, 'answer-refused')).toEqual([])
  expect(ofType(events, 'answer-given')).toMatchObject([{ value: { word: 'bush' } }])
})

test('a secret is in neither the event nor the file, also where it was written with escapes', async () => {
  const redactor = redactorOf([{ name: 'TOKEN', value: 'sesame-open-12345' }])
  const escaped = '\\u0073esame-open-12345'
  const message = `{"word":"sesame-open-12345","token":"${escaped}"}`
  const { events } = await run([says(message), says('It was sesame-open-12345.')], { redactor })
  expect(JSON.stringify(ofType(events, 'answer-given'))).not.toContain('sesame')
  expect(JSON.parse(await output('1-word.json'))).toEqual({ word: '[secret TOKEN]', token: '[secret TOKEN]' })
  expect(await output('2-notes.md')).toBe('It was [secret TOKEN].')
})

describe('a message that is longer than its event', () => {
  const cut = '{"word":"xxx\n[… more characters]'

  test('is read whole, and a value that is long has its place in the output alone', async () => {
    const word = 'x'.repeat(200_000)
    const { events, inputs } = await run([says(cut, JSON.stringify({ word })), says('Long.')])
    const [given] = ofType(events, 'answer-given')
    expect(given).not.toHaveProperty('value')
    expect(JSON.parse(await output('1-word.json'))).toEqual({ word })
    expect(inputs[1]?.slice(-100)).toMatch(/xxx\n\[… \d+ more characters\]\n\[end \w+\]$/)
    expect(JSON.stringify(stateOf(events)).length).toBeLessThan(20_000)
  })

  test('of 5 MB is no answer, and 10,000 levels are none', async () => {
    const deep = `{"word":${'['.repeat(10_000)}${']'.repeat(10_000)}}`
    const { events } = await run([
      says(cut, 'x'.repeat(5_000_000)),
      says(cut, deep),
      says('{"word":"tree"}'),
      says('.'),
    ])
    expect(ofType(events, 'answer-refused').map(({ problem }) => problem)).toEqual([
      expect.stringContaining('256 KiB'),
      expect.stringContaining('100 deep'),
    ])
  })
})

test('an output whose file is gone is given by its beginning, which says so', async () => {
  const first = await run([says('{"word":"tree"}'), () => ({ class: 'quota', message: 'No credit.' })])
  await writeFile(join(folder, 'outputs', '1-word.json'), '{"word": "trap"}')
  const again = await run([says('Tall.')], { journal: first.events })
  expect(again.inputs[0]).toMatch(/\n\{\n {2}"word": "tree"\n\}\n\n\[… the rest of it is not kept any more\]\n\[end /)
})

test('killed after any event and resumed, the session comes to the same end, and asks nothing again that was answered', async () => {
  const answer = (plays: Ran) => ofType(plays.events, 'answer-given').length
  const whole = await run([says('{"word": 7}'), says('{"word":"tree"}'), says('Tall.')])
  for (let kept = 1; kept < whole.events.length; kept++) {
    const journal = whole.events.slice(0, kept)
    const state = stateOf(journal)
    const plays = state.outputs.length > 0 ? [says('Tall.')] : [says('{"word":"tree"}'), says('Tall.')]
    const again = await run(plays, { journal })
    expect(again.outcome, `after ${journal.at(-1)?.type}`).toEqual(END)
    expect(answer(again)).toBe(state.outputs.length > 0 ? 0 : 1)
    const all = stateOf([...journal, ...again.events])
    expect(all.outputs.map(({ name }) => name)).toEqual(['word', 'notes'])
    expect(all.refusedAnswers).toEqual({})
  }
  expect(await outputs()).toEqual(['1-word.json', '2-notes.md'])
})

describe('the answer of a reviewer', () => {
  const agrees = JSON.stringify({ verdict: 'agreed', summary: 'Good.', findings: [] })
  const reviewed = (plays: readonly Play[]) =>
    playSession([() => worked, ...plays], {
      folder,
      memory: () => CLAIMED,
      begun: { review: { model: null, effort: null } },
    })

  test('is journaled as any other, and told to the next one why it was refused', async () => {
    const { outcome, events, inputs } = await reviewed([says('I agree.'), says(agrees)])
    expect(outcome).toEqual({ kind: 'done', verified: false })
    expect(ofType(events, 'answer-refused')).toMatchObject([{ round: 1, name: 'review' }])
    expect(ofType(events, 'answer-given')).toMatchObject([{ round: 1, name: 'review', value: JSON.parse(agrees) }])
    expect(ofType(events, 'review-ended').map(({ answer }) => answer?.verdict ?? null)).toEqual([null, 'agreed'])
    expect(ofType(events, 'warning')).toEqual([])
    expect(inputs.slice(1)).toEqual([
      'Review it.',
      expect.stringMatching(/^Review it\.\n\nA program reads your answer/),
    ])
    expect(await outputs()).toEqual(['1-review.json'])
  })

  test('that fits the shape and says nothing is refused as well, and three in a row need a person', async () => {
    const empty = JSON.stringify({ verdict: 'findings', summary: 'No.', findings: [] })
    const { outcome, events } = await reviewed([says(empty)])
    expect(outcome).toMatchObject({ kind: 'needs-person', hint: { do: 'read-reviews' } })
    expect(ofType(events, 'answer-refused').map(({ problem }) => problem)).toEqual(
      Array(3).fill('The reviewer does not agree, but names no finding.'),
    )
    expect(stateOf(events)).toMatchObject({ refusedAnswers: {}, reviews: { withoutAnswer: 3 } })
  })
})

test('a pattern that takes years for an answer refuses it after two seconds', async () => {
  const schema = { type: 'object', properties: { word: { type: 'string', pattern: '^(a+)+$' } } }
  const answered = (word: string) => readAnswer({ schema }, JSON.stringify({ word }), redactorOf([]))
  expect(await answered('aaaa')).toEqual({ ok: true, value: { word: 'aaaa' } })
  expect(await answered(`${'a'.repeat(60)}!`)).toEqual({
    ok: false,
    problem: expect.stringMatching(/^It could not be checked within 2 seconds: a pattern of its JSON Schema/),
  })
})

test('an answer may be asked for in one shape and taken in others, too', async () => {
  const schema = {
    type: 'object',
    properties: { list: { type: 'array' } },
    required: ['list'],
    additionalProperties: false,
  }
  const answered = (accepts?: Readonly<Record<string, unknown>>) =>
    readAnswer({ schema, ...(accepts === undefined ? {} : { accepts }) }, '{"list":{"a":"b"}}', redactorOf([]))
  expect(await answered()).toMatchObject({ ok: false, problem: expect.stringMatching(/`list` is an object/) })
  expect(await answered({ type: 'object', required: ['list'] })).toEqual({ ok: true, value: { list: { a: 'b' } } })
})
