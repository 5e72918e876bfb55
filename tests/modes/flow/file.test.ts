import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { refusedArgument } from '../../../src/engines/exec/given-arguments.ts'
import { type FlowFile, readFlowFile, workflowNamed } from '../../../src/modes/flow/file/file.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

function read(content: string, name = 'commit.workflow.toml'): FlowFile {
  const result = readFlowFile(content, name, { refusedArgument: () => null })
  if ('mistakes' in result) throw new Error(JSON.stringify(result.mistakes, null, 2))
  return result.file
}

const NEWER = `
name = "commit_flow"
[defaults]
engine = "codex"
mock = true
[engines.codex]
bin = "codex"
args = ["--color=never"]
[engines.codemachine]
args = []
[agents.commit]
engine = "codex"
model = "gpt-5"
prompt = "prompts/templates/codemachine/agents/01-architecture-agent.md"
[workflow]
description = "A commit message from the diff"
  [[workflow.steps]]
  agent = "commit"
  description = "commit-message"
  [workflow.steps.input]
  template = "Write a commit message for this diff:\\n\\n{{diff}}"
  [workflow.steps.output]
  kind = "file"
  path = "COMMIT_MESSAGE.md"
[vars]
diff = { run = "git diff --cached" }
`

const OLDER = `
[defaults]
engine = "codex"
mock = true
[agents.commit]
engine = "codex"
model = "gpt-5"
prompt = "prompts/templates/codemachine/agents/01-architecture-agent.md"
[workflows.commit_flow]
description = "A commit message from the diff"
  [[workflows.commit_flow.steps]]
  use = "commit"
  [workflows.commit_flow.steps.input]
  template = "Write a commit message in the usual form for this diff:\\n\\n{{diff}}"
  [workflows.commit_flow.steps.output]
  kind = "file"
  path = "COMMIT_MESSAGE.md"
`

promise('F2', 'A workflow file is read in its newer and in its older form, with names and texts in any script')
test('the newer form is read with every value at its place', () => {
  const prompt = {
    value: 'prompts/templates/codemachine/agents/01-architecture-agent.md',
    place: 'agents.commit.prompt',
    line: 14,
    column: 10,
  }
  const step = { place: 'workflow.steps[0]', line: 17, column: 3 }
  const template = 'workflow.steps[0].input.template'
  expect(read(NEWER)).toEqual({
    file: 'commit.workflow.toml',
    form: 'newer',
    mock: true,
    parallel: null,
    engines: {
      codex: { bin: { value: 'codex', place: 'engines.codex.bin', line: 7, column: 7 }, args: ['--color=never'] },
      codemachine: { bin: null, args: [] },
    },
    workflows: [
      {
        place: 'workflow',
        line: 15,
        column: 1,
        name: 'commit_flow',
        description: 'A commit message from the diff',
        steps: [
          {
            ...step,
            index: 1,
            id: 'commit-message',
            stem: 'commit-message',
            description: 'commit-message',
            work: {
              kind: 'agent',
              agent: 'commit',
              engine: 'codex',
              model: 'gpt-5',
              args: ['--color=never'],
              prompt,
              input: {
                value: ['Write a commit message for this diff:\n\n', { variable: 'diff' }],
                place: template,
                line: 21,
                column: 14,
              },
              schema: null,
              rounds: 10,
            },
            verify: [],
            retries: 0,
            approve: false,
            timeoutMs: null,
            when: null,
            readOnly: false,
            output: {
              kind: 'file',
              path: { value: 'COMMIT_MESSAGE.md', place: 'workflow.steps[0].output.path', line: 24, column: 10 },
              append: false,
            },
            variables: [{ value: 'diff', place: template, line: 21, column: 56 }],
          },
        ],
      },
    ],
    vars: new Map([
      ['diff', { value: { kind: 'run', run: 'git diff --cached' }, place: 'vars.diff', line: 26, column: 8 }],
    ]),
  })
})

promise('F2')
test('the older form is read, and has as many workflows as it names', () => {
  const more =
    '[[workflows.second.steps]]\nuse = "commit"\n[[workflows.second.steps]]\nuse = "commit"\nengine = "mock"\n'
  const file = read(OLDER + more)
  expect(file.form).toBe('older')
  expect(file.workflows.map(({ name, place, description, steps }) => [name, place, description, steps.length])).toEqual(
    [
      ['commit_flow', 'workflows.commit_flow', 'A commit message from the diff', 1],
      ['second', 'workflows.second', null, 2],
    ],
  )
  const [first, second] = workflowNamed(file, 'second').steps
  expect([first?.stem, second?.stem]).toEqual(['commit-agent', 'commit-agent-2'])
  expect([first?.work, second?.work]).toMatchObject([{ engine: 'codex' }, { engine: 'mock' }])
  expect(file.vars.size).toBe(0)
  expect(workflowNamed(file, null).name).toBe('commit_flow')
})

test('a workflow that is not there is told with the nearest name', () => {
  const file = read(`${OLDER}[[workflows.second.steps]]\nuse = "commit"\n`)
  expect(() => workflowNamed(file, 'secnd')).toThrow(
    'commit.workflow.toml has no workflow "secnd"; did you mean "second"?',
  )
  expect(() => workflowNamed(file, 'x')).toThrow(
    'commit.workflow.toml has no workflow "x"; the file has "commit_flow", "second".',
  )
})

test('a workflow without a name has that of its file', () => {
  const steps = '[[workflow.steps]]\nrun = "true"\n'
  expect(read(steps, 'a/b/nightly.workflow.toml').workflows[0]?.name).toBe('nightly')
  expect(read(steps, 'flow.toml').workflows[0]?.name).toBe('flow')
})

promise('F2')
test('what is in Chinese stays as it is, and names the step', () => {
  const content = `
[agents.commit]
prompt = "prompts/提交.md"
[workflow]
description = "根据差异写提交信息"
[[workflow.steps]]
agent = "commit"
description = "写提交信息（中文）"
input.template = "请为这个差异写提交信息：\\n\\n{{差异}}"
[[workflow.steps]]
agent = "commit"
input.template = "{{steps.写提交信息-中文.output}}"
[vars]
"差异" = "x"
`
  const file = read(content)
  expect(file.workflows[0]).toMatchObject({
    description: '根据差异写提交信息',
    steps: [
      { id: '写提交信息-中文', stem: '写提交信息-中文', work: { prompt: { value: 'prompts/提交.md' } } },
      { work: { input: { value: [{ step: '写提交信息-中文', part: 'output', field: [] }] } } },
    ],
  })
  expect([...file.vars.keys()]).toEqual(['差异'])
})

test('a step has what it says itself, then what its agent says, then what the defaults say', () => {
  const content = `
[defaults]
engine = "codemachine"
[engines.codex]
args = ["--color=never"]
[agents.plain]
prompt = "plain.md"
[agents.own]
engine = "codex"
model = "gpt-5"
prompt = "own.md"
[workflow]
[[workflow.steps]]
agent = "plain"
rounds = 3
[[workflow.steps]]
agent = "own"
[[workflow.steps]]
agent = "own"
engine = "mock"
model = "gpt-5-mini"
prompt = "step.md"
`
  expect(read(content).workflows[0]?.steps.map(({ work }) => work)).toMatchObject([
    { engine: 'codemachine', model: null, args: [], prompt: { value: 'plain.md', line: 7 }, rounds: 3 },
    { engine: 'codex', model: 'gpt-5', args: ['--color=never'], prompt: { value: 'own.md', line: 11 }, rounds: 10 },
    { engine: 'mock', model: 'gpt-5-mini', args: [], prompt: { value: 'step.md', line: 22 } },
  ])
})

test('every key that a step may have is read', () => {
  const content = `
[agents.review]
prompt = "review.md"
[[workflow.steps]]
id = "test"
run = "npm test"
verify = ["npm run lint", "docker ps --format '{{.Names}}'"]
timeout = "1h30m"
[[workflow.steps]]
agent = "review"
description = "Look at what failed"
schema = "answer.schema.json"
retries = 5
approve = true
sandbox = "read-only"
when = "{{steps.test.exit}} != 0"
input.template = "{{ steps.test.output }} and {{ word }}"
[[workflow.steps]]
agent = "review"
when = "'no mistakes' == {{steps.look-at-what-failed.answer.found.0.kind}}"
output = { kind = "file", path = "a/b.md", append = true }
[[workflow.steps]]
run = "true"
when = "{{word}} == ''"
output.kind = "stdout"
[vars]
word = 7
version = 1.10
flag = true
text = { file = "x.diff" }
`
  const file = read(content)
  expect(file.workflows[0]?.steps).toMatchObject([
    {
      id: 'test',
      stem: 'command',
      work: { kind: 'command', run: 'npm test' },
      verify: ['npm run lint', "docker ps --format '{{.Names}}'"],
      timeoutMs: 5_400_000,
    },
    {
      id: 'look-at-what-failed',
      work: {
        schema: { value: 'answer.schema.json', place: 'workflow.steps[1].schema', line: 12, column: 10 },
        input: { value: [{ step: 'test', part: 'output', field: [] }, ' and ', { variable: 'word' }] },
      },
      retries: 5,
      approve: true,
      readOnly: true,
      when: {
        text: '{{steps.test.exit}} != 0',
        left: { step: 'test', part: 'exit', field: [] },
        operator: '!=',
        right: '0',
      },
      variables: [{ value: 'word', line: 17, column: 47 }],
    },
    {
      when: {
        left: 'no mistakes',
        operator: '==',
        right: { step: 'look-at-what-failed', part: 'answer', field: ['found', '0', 'kind'] },
      },
      output: { kind: 'file', path: { value: 'a/b.md' }, append: true },
    },
    {
      when: { left: { variable: 'word' }, right: '' },
      variables: [{ value: 'word', line: 24 }],
      output: { kind: 'stdout' },
    },
  ])
  expect([...file.vars.values()].map(({ value }) => value)).toEqual([
    { kind: 'text', text: '7' },
    { kind: 'text', text: '1.10' },
    { kind: 'text', text: 'true' },
    { kind: 'file', path: 'x.diff' },
  ])
})

test('an id that the file gives stays, and one that is made gives way to it', () => {
  const content = `
[[workflow.steps]]
description = "Test"
run = "npm test"
[[workflow.steps]]
id = "test"
run = "npm test"
[[workflow.steps]]
description = "test"
run = "npm test"
`
  const steps = read(content).workflows[0]?.steps ?? []
  expect(steps.map(({ id }) => id)).toEqual(['test-2', 'test', 'test-3'])
  expect(steps.map(({ stem }) => stem)).toEqual(['test', 'command', 'test-2'])
})

test('inline tables, dotted keys and lists of tables are the same as headers', () => {
  const content = `
agents = { commit = { prompt = "a.md" } }
workflow.steps = [
  { agent = "commit", input = { template = "x" } },
  { run = "true" },
]
`
  const { workflows } = read(content)
  expect(workflows[0]?.steps).toMatchObject([
    { place: 'workflow.steps[0]', line: 4, column: 3, work: { input: { value: ['x'] } } },
    { place: 'workflow.steps[1]', line: 5, work: { kind: 'command' } },
  ])
})

test('names that JavaScript has a meaning for are names as any other', () => {
  const content = `
[agents.__proto__]
prompt = "a.md"
[agents.constructor]
prompt = "b.md"
[[workflow.steps]]
agent = "__proto__"
input.template = "{{toString}} {{__proto__}}"
[vars]
__proto__ = "x"
toString = "y"
`
  const file = read(content)
  expect([...file.vars.keys()]).toEqual(['__proto__', 'toString'])
  expect(file.workflows[0]?.steps[0]?.work).toMatchObject({ agent: '__proto__', prompt: { value: 'a.md' } })
})

promise('F4', 'What the page on workflows shows is a workflow file without a mistake')
test('what the page on workflows shows is read', () => {
  const pages = ['guides/workflows.md', 'reference/workflow-file.md']
  const page = pages.map(path => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8')).join('\n')
  const shown = Array.from(page.matchAll(/```toml\n([^`]*)```/g), ([, content = '']) => content)
  const files = shown.filter(content => /^\[+workflows?\b/m.test(content))
  expect(files.length).toBeGreaterThan(0)
  for (const content of files) {
    expect(readFlowFile(content, 'flow.md', { refusedArgument })).toHaveProperty('file')
  }
})

promise('F3', '500 steps are read in half a second, and a file of any content in a moment')
test('500 steps are read in half a second, on a machine of their own', () => {
  const steps = Array.from(
    { length: 500 },
    (_, index) => `[[workflow.steps]]
agent = "commit"
description = "commit message ${index}"
when = "{{diff}} != ''"
[workflow.steps.input]
template = "Write a commit message for this diff:\\n\\n{{diff}} ${index === 0 ? '' : `{{steps.commit-message-${index - 1}.output}}`}"
[workflow.steps.output]
kind = "file"
path = "message-${index}.md"
`,
  )
  const content = `[agents.commit]\nprompt = "a.md"\n${steps.join('')}[vars]\ndiff = "x"\n`
  const before = cpuMs()
  expect(read(content).workflows[0]?.steps).toHaveLength(500)
  // It takes 0.2 s; what else the process does meanwhile is counted, too.
  expect(cpuMs() - before).toBeLessThan(1000 * timesSlower())
})

promise('F3')
test('a step has at most as many commands that verify it as a session has gates, and more are refused with their place', () => {
  const file = (commands: number) =>
    `[[workflow.steps]]\nrun = "true"\nverify = [${Array.from({ length: commands }, (_, at) => `"check ${at}"`).join(', ')}]\n`
  const readWith = (commands: number) => readFlowFile(file(commands), 'flow.md', { refusedArgument: () => null })
  expect(readWith(50)).toHaveProperty('file')
  expect(readWith(51)).toMatchObject({
    mistakes: [{ place: 'workflow.steps[0].verify[50]', line: 3, problem: expect.stringContaining('beyond the 50') }],
  })
})

test.each([
  ['braces', `[agents.a]\nprompt = "a"\n[[workflow.steps]]\nagent = "a"\ninput.template = "${'{{'.repeat(50_000)}"\n`],
  [
    'empty references',
    `[agents.a]\nprompt = "a"\n[[workflow.steps]]\nagent = "a"\ninput.template = "${'{{}}'.repeat(30_000)}"\n`,
  ],
  [
    'references',
    `[agents.a]\nprompt = "a"\n[[workflow.steps]]\nagent = "a"\ninput.template = "${'{{a}}'.repeat(24_000)}"\n`,
  ],
  ['blanks in a condition', `[[workflow.steps]]\nrun = "true"\nwhen = "${' '.repeat(100_000)}"\n`],
  [
    'agents',
    `${Array.from({ length: 20_000 }, (_, i) => `[agents.agent-with-a-long-name-${i}]\nprompt="x"\n`).join('')}${'[[workflow.steps]]\nagent = "agent-with-a-long-name-x"\n'.repeat(300)}`,
  ],
  ['long keys', `[vars]\n${Array.from({ length: 2000 }, (_, i) => `"${'k'.repeat(400)} ${i}" = 1`).join('\n')}`],
  ['lists', `workflow = ${'['.repeat(1000)}${']'.repeat(1000)}`],
  ['characters of a name before one that none may have', `name = "${'x'.repeat(120_000)}\\u0000"\n`],
  ['characters of a command', `[[workflow.steps]]\nrun = "${' x'.repeat(60_000)}\\u0000"\n`],
  ['characters of a time', `[[workflow.steps]]\nrun = "true"\ntimeout = "${'1h'.repeat(60_000)}!"\n`],
])('a file of very many %s is read in a moment', (_, content) => {
  const before = cpuMs()
  readFlowFile(content, 'x.toml', { refusedArgument: () => null })
  // The longest takes 2 s, and twice that in a process that has run many tests; looked for one by one it would be minutes.
  expect(cpuMs() - before).toBeLessThan(10_000 * timesSlower())
})
