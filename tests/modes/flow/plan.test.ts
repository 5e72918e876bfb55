import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AgentWork,
  commandLineOf,
  distinctSlugs,
  type FlowStep,
  factsOf,
  holds,
  memoryFileOf,
  neededSteps,
  OPERATORS,
  recordingFilesOf,
  runsAsExec,
  slugOf,
  stemOf,
} from '../../../src/modes/flow/file/plan.ts'

describe('a slug', () => {
  test.each([
    ['commit-message', 'commit-message'],
    ['Commit message!', 'commit-message'],
    ['  --A  B_c--  ', 'a-b-c'],
    ['写提交信息（中文）', '写提交信息-中文'],
    ['Größe', 'größe'],
    ['e\u0301', 'é'],
    ['हिन्दी', 'हिन्दी'],
    ['../../etc/passwd', 'etc-passwd'],
    ['a\u0000b\u202ec', 'a-b-c'],
    ['😀', ''],
    ['', ''],
    ['x'.repeat(80), 'x'.repeat(60)],
    [`${'x'.repeat(59)} y`, 'x'.repeat(59)],
  ])('of %j is %j', (text, slug) => {
    expect(slugOf(text)).toBe(slug)
  })

  test('is one again, has at most 60 characters, and a file can be named by it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), text => {
        const slug = slugOf(text)
        expect(slugOf(slug)).toBe(slug)
        expect(Array.from(slug).length).toBeLessThanOrEqual(60)
        expect(Buffer.byteLength(`1000-${slug}-agent-result.md`)).toBeLessThanOrEqual(255)
        expect(slug).toMatch(/^$|^[\p{L}\p{M}\p{N}]+(?:-[\p{L}\p{M}\p{N}]+)*$/u)
      }),
    )
    expect(Buffer.byteLength(`1000-${slugOf('𠀀'.repeat(60))}-agent-result.md`)).toBeLessThanOrEqual(255)
  })

  test('that was there before gets a number, and stays one', () => {
    expect(distinctSlugs(['a', 'b', 'a', 'a'])).toEqual(['a', 'b', 'a-2', 'a-3'])
    expect(distinctSlugs(['a-2', 'a', 'a'])).toEqual(['a-2', 'a', 'a-3'])
    const long = `${'x'.repeat(57)}-yz`
    expect(distinctSlugs([long, long])).toEqual([long, `${'x'.repeat(57)}-2`])
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ maxLength: 3 }).map(text => slugOf(text) || 'x'),
          { maxLength: 50 },
        ),
        slugs => {
          const distinct = distinctSlugs(slugs)
          expect(new Set(distinct).size).toBe(slugs.length)
          expect(distinct.map(slugOf)).toEqual(distinct)
        },
      ),
    )
  })
})

const AGENT: AgentWork = {
  kind: 'agent',
  agent: 'Commit Writer',
  engine: 'codex',
  model: null,
  args: [],
  prompt: { path: 'prompts/a b.md', found: '.codex-flow/prompts/a b.md', text: 'Write.' },
  input: [],
  schema: null,
  rounds: 10,
}

const STEP: FlowStep = {
  index: 3,
  id: 'commit',
  stem: 'commit-message-2',
  description: 'Commit message',
  work: AGENT,
  verify: [],
  retries: 2,
  approve: false,
  timeoutMs: null,
  when: null,
  readOnly: false,
  output: { kind: 'stdout' },
}

const NAMELESS: FlowStep = { ...STEP, description: null, stem: 'commit-writer-agent' }
const COMMAND: FlowStep = { ...STEP, description: null, stem: 'command', work: { kind: 'command', run: 'npm test' } }

test('the files of a step are named after its description, else after its agent', () => {
  expect(stemOf({ description: 'Commit message', agent: 'x' })).toBe('commit-message')
  expect(stemOf({ description: '😀', agent: 'Commit Writer' })).toBe('commit-writer-agent')
  expect(stemOf({ description: null, agent: null })).toBe('command')
  expect([STEP, NAMELESS, COMMAND].map(memoryFileOf)).toEqual([
    '3-commit-message-2-agent-result.md',
    '3-commit-writer-agent-result.md',
    '3-command-agent-result.md',
  ])
  expect([STEP, NAMELESS, COMMAND].map(recordingFilesOf)).toEqual([
    ['3-commit-message-2.json', '3-Commit Writer-agent.json'],
    ['3-commit-writer-agent.json', '3-Commit Writer-agent.json'],
    ['3-command.json'],
  ])
})

test('the command line of a step is what a person would type, with its paths as written', () => {
  const lineOf = (work: Partial<AgentWork>, verify: string[] = []) =>
    commandLineOf({ work: { ...AGENT, ...work }, verify })
  expect(lineOf({})).toBe('cat "prompts/a b.md" | codex exec')
  expect(lineOf({ model: 'gpt-5' })).toBe('cat "prompts/a b.md" | codex exec --model gpt-5')
  expect(lineOf({ model: 'gpt-5', args: ['--color=never', '-c', 'x="$y"'] })).toBe(
    'cat "prompts/a b.md" | codex exec --model gpt-5 --color=never -c "x=\\"\\$y\\""',
  )
  expect(lineOf({ engine: 'mock', model: 'gpt-5' })).toBe('cat "prompts/a b.md" | codex exec --model gpt-5')
  expect(lineOf({ engine: 'codemachine' })).toBe('cat "prompts/a b.md" | codemachine -')
  expect(lineOf({ engine: 'codemachine', model: 'gpt-5' }, ['npm test', 'true'])).toBe(
    'cat "prompts/a b.md" | codemachine - --model gpt-5 --verify "npm test" --verify true',
  )
  expect(lineOf({ prompt: { ...AGENT.prompt, path: 'a"$(x)`y`\\.md' } })).toBe(
    'cat "a\\"\\$(x)\\`y\\`\\\\.md" | codex exec',
  )
  expect(commandLineOf(COMMAND)).toBe('npm test')
})

test('a round runs as codex exec where the engine codex has arguments', () => {
  expect(runsAsExec(AGENT)).toBe(false)
  expect(runsAsExec({ engine: 'codex', args: ['--color=never'] })).toBe(true)
  expect(runsAsExec({ engine: 'codemachine', args: ['--color=never'] })).toBe(false)
})

test('a step needs those that its input and its condition name, each once', () => {
  const exit = { step: 'test', part: 'exit', field: [] } as const
  const output = { step: 'plan', part: 'output', field: [] } as const
  const when = { text: '', left: exit, operator: '!=', right: '0' } as const
  expect(neededSteps({ ...STEP, work: { ...AGENT, input: ['x', output, { variable: 'y' }, output] }, when })).toEqual([
    'plan',
    'test',
  ])
  expect(neededSteps({ ...COMMAND, when })).toEqual(['test'])
  expect(neededSteps(COMMAND)).toEqual([])
})

test('what is known of a step without its texts has its kind, its tries and its file', () => {
  expect(factsOf(STEP)).toMatchObject({ title: 'Commit message', engine: 'codex', agent: 'Commit Writer', rounds: 1 })
  expect(factsOf({ ...NAMELESS, work: { ...AGENT, engine: 'codemachine' } })).toMatchObject({
    title: 'commit',
    rounds: 10,
  })
  expect(factsOf({ ...COMMAND, output: { kind: 'file', path: 'a.md', append: true } })).toMatchObject({
    engine: 'command',
    agent: null,
    model: null,
    path: 'a.md',
  })
})

test.each([
  ['0', '==', '0.0', true],
  ['0', '!=', '00', false],
  [' 10 ', '>', '9', true],
  ['10', '<', '9', false],
  ['1e3', '>=', '1000', true],
  ['-1', '<=', '-1.0', true],
  ['.5', '<', '1', true],
  ['a', '==', 'a', true],
  ['a', '==', 'A', false],
  ['a', '!=', 'b', true],
  ['a', '<', 'b', false],
  ['b', '>', 'a', false],
  ['', '==', '', true],
  ['', '==', '0', false],
  ['', '<', '1', false],
  ['0x10', '==', '16', false],
  ['Infinity', '>', '1', false],
] as const)('%j %s %j is %s', (left, operator, right, held) => {
  expect(holds({ operator }, left, right)).toBe(held)
})

test('of two numbers exactly one of less, equal and greater holds', () => {
  expect(OPERATORS).toHaveLength(7)
  fc.assert(
    fc.property(fc.integer(), fc.integer(), (a, b) => {
      const held = (['<', '==', '>'] as const).filter(operator => holds({ operator }, String(a), String(b)))
      expect(held).toHaveLength(1)
      expect(holds({ operator: '<=' }, String(a), String(b))).toBe(!held.includes('>'))
      expect(holds({ operator: '>=' }, String(a), String(b))).toBe(!held.includes('<'))
      expect(holds({ operator: '!=' }, String(a), String(b))).toBe(!held.includes('=='))
    }),
  )
})
