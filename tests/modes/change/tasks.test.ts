import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAnswer } from '../../../src/core/rules/answer.ts'
import { schemaProblem } from '../../../src/core/rules/answer-schema.ts'
import { nameOfTask, readTasks, TASKS_ANSWER, type TaskSpec, tasksFile } from '../../../src/modes/change/tasks.ts'
import { type TasksGround, tasksProblem } from '../../../src/modes/change/tasks-rules.ts'
import { parseTasksFile } from '../../../src/workspace/memory/tasks-file.ts'
import { promise } from '../../support/promise.ts'
import { hostileText } from './plans.ts'

const GROUND: TasksGround = { done: [], room: 50, projectCommands: [] }

function task(id: string, part: Partial<TaskSpec> = {}): TaskSpec {
  return {
    id,
    type: 'ACTION',
    description: `Do ${id}`,
    inputs: {},
    outputs: {},
    files: ['src/a.ts'],
    run: null,
    ...part,
  }
}

function info(id: string, part: Partial<TaskSpec> = {}): TaskSpec {
  return task(id, { type: 'INFO_GATHERING', outputs: { found: 'what was found' }, ...part })
}

function check(id: string, run: string | null = 'npm test', part: Partial<TaskSpec> = {}): TaskSpec {
  return task(id, { type: 'VERIFICATION', files: [], run, ...part })
}

function problem(tasks: readonly TaskSpec[], ground: Partial<TasksGround> = {}): string {
  return tasksProblem(tasks, { ...GROUND, ...ground }) ?? 'they can be carried out'
}

const FINE = [
  info('T1'),
  task('T2', { inputs: { hints: 'T1.found' }, outputs: { api: 'how it is called' } }),
  check('T3', 'grep -q limit src/a.ts'),
  task('T4', { inputs: { api: 'T2.api', hints: 'T1.found' }, files: ['docs/limits.md'] }),
  check('T5'),
]

describe('tasks that can be carried out', () => {
  promise(
    'C24',
    'A task takes what an earlier one gives, and each ACTION is followed by a command before the next one on the same files',
  )
  test('take what earlier ones give, and are verified by commands', () => {
    expect(tasksProblem(FINE, GROUND)).toBeNull()
  })

  test('may be verified together, if they change other files', () => {
    const tasks = [task('T1'), task('T2', { files: ['src/b.ts'] }), task('T3', { files: ['lib/'] }), check('T4')]
    expect(tasksProblem(tasks, GROUND)).toBeNull()
  })

  test('may only find something out, or be a command', () => {
    expect(tasksProblem([info('T1')], GROUND)).toBeNull()
    expect(tasksProblem([check('T1')], GROUND)).toBeNull()
  })

  test('may take what tasks gave that are done already', () => {
    const done = [info('T1'), task('T2', { outputs: { api: 'x' } }), check('T3')]
    expect(tasksProblem([task('T4', { inputs: { api: 'T2.api' } }), check('T5')], { ...GROUND, done })).toBeNull()
  })

  test('may run a command of the project whatever it is', () => {
    const tasks = [task('T1'), check('T2', 'echo  checked')]
    expect(problem(tasks)).toMatch(/proves nothing/)
    expect(tasksProblem(tasks, { ...GROUND, projectCommands: ['npm test', 'echo checked'] })).toBeNull()
  })

  test('may have names in any script', () => {
    expect(
      tasksProblem(
        [info('调查', { outputs: { 结果: '找到的' } }), task('T-2_b', { inputs: { 输入: '调查.结果' } }), check('V')],
        GROUND,
      ),
    ).toBeNull()
  })
})

promise('C23')
describe('tasks that cannot be carried out are sent back with place and mend', () => {
  test.each<[string, TaskSpec[], RegExp]>([
    ['none', [], /^- `tasks` is empty; give at least one task, and at most 50/],
    [
      '500 of them',
      Array.from({ length: 500 }, (_, at) => check(`T${at}`)),
      /^- `tasks` has 500 entries; 50 are the most\. Put steps together[^\n]*$/,
    ],
    ['two of one id', [info('T1'), info('T1')], /^- `tasks\[1\]\.id` is "T1", which another task has already/],
    ['an id that is none', [info('T 1')], /`tasks\[0\]\.id` is "T 1"; use letters, digits/],
    ['an id with a dot', [info('T1.a')], /`tasks\[0\]\.id` is "T1\.a"/],
    ['no id', [info('')], /`tasks\[0\]\.id` is ""/],
    ['an id of the language', [info('__proto__')], /`tasks\[0\]\.id` is "__proto__"/],
    ['no description', [info('T1', { description: '' })], /`tasks\[0\]\.description` is empty/],
    [
      'a description without end',
      [info('T1', { description: 'x'.repeat(4_001) })],
      /has 4001 characters; 4000 are the most, for whoever does it has a small memory/,
    ],
    [
      'an input of nobody',
      [info('T1', { inputs: { a: 'T9.found' } })],
      /`tasks\[0\]\.inputs\.a` is "T9\.found", and there is no task "T9"/,
    ],
    [
      'an input of a later task',
      [info('T1', { inputs: { a: 'T2.found' } }), info('T2')],
      /is "T2\.found", and T2 comes later; put T2 before T1/,
    ],
    ['an input of its own', [info('T1', { inputs: { a: 'T1.found' } })], /an output of the task itself/],
    [
      'an output that is not given',
      [info('T1'), info('T2', { inputs: { a: 'T1.other' } })],
      /T1 gives "found"; take one of these, or let T1 give "other"/,
    ],
    ['an output of the language', [info('T1'), info('T2', { inputs: { a: 'T1.constructor' } })], /T1 gives "found"/],
    [
      'an output of what gives nothing',
      [info('T1', { outputs: {} }), info('T2', { inputs: { a: 'T1.x' } })],
      /T1 gives nothing/,
    ],
    [
      'an output of a command',
      [check('T1'), info('T2', { inputs: { a: 'T1.output' } })],
      /T1 is a VERIFICATION, which gives nothing/,
    ],
    [
      'an input that is no reference',
      [info('T1'), info('T2', { inputs: { a: 'the result' } })],
      /is "the result"; write the task and its output as "T1\.summary"/,
    ],
    ['an input without an output', [info('T1'), info('T2', { inputs: { a: 'T1.' } })], /write the task and its output/],
    [
      'a name that is none',
      [info('T1', { outputs: { 'a b': 'x' } })],
      /`tasks\[0\]\.outputs` has "a b": "x"; of the name, use letters/,
    ],
    ['an output of which nothing is said', [info('T1', { outputs: { a: '' } })], /has "a": ""/],
    [
      'a file outside',
      [task('T1', { files: ['../a'] }), check('T2')],
      /`tasks\[0\]\.files\[0\]` is "\.\.\/a", which leads out/,
    ],
    ['a file of git', [task('T1', { files: ['.git/config'] }), check('T2')], /lies in \.git or \.codemachine/],
    ['an absolute file', [task('T1', { files: ['/etc/passwd'] }), check('T2')], /an absolute path/],
    [
      'a verification in prose',
      [task('T1'), check('T2', null)],
      /`tasks\[1\]\.run` is missing, but a VERIFICATION needs a command/,
    ],
    [
      'a verification whose command is prose',
      [task('T1'), check('T2', 'Check that the limit works')],
      /`tasks\[1\]\.run` is a sentence, not a command/,
    ],
    ['a weak command', [task('T1'), check('T2', 'true && echo ok')], /`tasks\[1\]\.run` proves nothing/],
    ['a command of two lines', [task('T1'), check('T2', 'npm test\ntrue')], /has line breaks/],
    ['sudo', [task('T1'), check('T2', 'sudo npm test')], /uses `sudo`/],
    [
      'a command of an ACTION',
      [task('T1', { run: 'npm install' }), check('T2')],
      /`tasks\[0\]\.run` is a command, and only a VERIFICATION runs one/,
    ],
    [
      'an ACTION without a verification',
      [task('T1')],
      /^- `tasks\[0\]` is the ACTION T1, and no VERIFICATION comes after it before the end; put one there/,
    ],
    [
      'a verification too early',
      [check('T1'), task('T2')],
      /`tasks\[1\]` is the ACTION T2, and no VERIFICATION comes after it before the end/,
    ],
    [
      'two ACTIONs on a file',
      [task('T1'), task('T2'), check('T3')],
      /^- `tasks\[0\]` is the ACTION T1, and no VERIFICATION comes after it before T2, an ACTION on the same files;[^\n]*$/,
    ],
    [
      'one on a folder of it',
      [task('T1', { files: ['src/a/b.ts'] }), task('T2', { files: ['src/a/'] }), check('T3')],
      /before T2, an ACTION on the same files/,
    ],
    [
      'one that names no files',
      [task('T1', { files: [] }), task('T2'), check('T3')],
      /before T2, an ACTION on the same files/,
    ],
    [
      'more than fits',
      Array.from({ length: 20 }, (_, at) => info(`T${at}`, { description: 'x'.repeat(3_500) })),
      /has 7\d+ bytes as JSON; 61440/,
    ],
  ])('%s', (_, tasks, wrong) => {
    expect(problem(tasks)).toMatch(wrong)
  })

  promise('C24')
  test('ids of tasks that are done are taken, and what they changed has to be verified', () => {
    const done = [info('T1'), task('T2')]
    expect(problem([info('T1')], { done }).split('\n')).toEqual([
      '- `tasks[0].id` is "T1", which another task has already; give every task its own.',
      '- `tasks` have no VERIFICATION of the ACTION that is done already (T2) before the end; put one there whose `run` fails if its work is not done.',
    ])
    expect(problem([task('T3'), check('T4')], { done })).toMatch(
      /done already \(T2\) before T3, an ACTION on the same files/,
    )
    expect(tasksProblem([check('T3'), task('T4'), check('T5')], { ...GROUND, done })).toBeNull()
  })

  test('a folder holds its files, and not those of a folder that begins alike', () => {
    const [folder, alike, inside] = ['src', 'src-gen/a.ts', 'src/a.ts'].map((path, at) =>
      task(`T${at}`, { files: [path] }),
    ) as [TaskSpec, TaskSpec, TaskSpec]
    expect(tasksProblem([folder, alike, check('T9')], GROUND)).toBeNull()
    expect(problem([folder, inside, check('T9')])).toMatch(/an ACTION on the same files/)
  })

  test('a task gives no more than 20 outputs', () => {
    const outputs = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`o${at}`, 'what it is']))
    expect(tasksProblem([info('T1', { outputs: outputs(20) })], GROUND)).toBeNull()
    expect(problem([info('T1', { outputs: outputs(21) })])).toMatch(/`tasks\[0\]\.outputs` has more than 20 entries/)
  })

  test('there are no more than may still be made', () => {
    expect(problem([info('T1'), info('T2'), info('T3')], { room: 2 })).toMatch(/has 3 entries; 2 are the most/)
    expect(
      problem(
        Array.from({ length: 51 }, (_, at) => info(`T${at}`)),
        { room: 100 },
      ),
    ).toMatch(/50 are the most/)
  })

  test('a command of the project is named where one is missing or weak', () => {
    expect(problem([task('T1'), check('T2', 'true')], { projectCommands: ['npm test'] })).toMatch(
      /The project has `npm test`\.$/,
    )
    expect(problem([task('T1'), check('T2', null)], { projectCommands: ['npm test'] })).toMatch(
      /The project has `npm test`\.$/,
    )
  })
})

describe('the answer of a round that cuts a plan into tasks', () => {
  const asked = {
    tasks: FINE.map(each => ({
      ...each,
      inputs: Object.entries(each.inputs).map(([name, from]) => ({ name, from })),
      outputs: Object.entries(each.outputs).map(([name, what]) => ({ name, what })),
    })),
  }

  test('has lists of pairs, as it was asked for', () => {
    const parsed = parseAnswer(JSON.stringify(asked), TASKS_ANSWER.schema)
    if (!parsed.ok) throw new Error(parsed.problem)
    expect(schemaProblem(parsed.value, TASKS_ANSWER.schema)).toBeNull()
    expect(readTasks(parsed.value)).toEqual({ ok: true, value: FINE })
  })

  test('may have objects in their place, as people write them', () => {
    expect(readTasks({ tasks: FINE })).toEqual({ ok: true, value: FINE })
    const { run: _, ...withoutRun } = info('T1')
    expect(readTasks({ tasks: [withoutRun] })).toEqual({ ok: true, value: [info('T1')] })
  })

  test('is read without blanks, control characters and what cannot be', () => {
    expect(
      readTasks({
        tasks: [
          {
            ...task(' T1 '),
            description: ' a\r\nb\u0007 ',
            inputs: [{ name: ' a ', from: ' T0.x ' }],
            files: [' ./src/a.ts '],
            run: ' ',
          },
          check('T2', ' npm test ', { outputs: { log: 'what it prints' } }),
        ],
      }),
    ).toEqual({
      ok: true,
      value: [task('T1', { description: 'a\nb', inputs: { a: 'T0.x' } }), check('T2')],
    })
  })

  test.each<[string, unknown, RegExp]>([
    ['prose', 'First, do this.', /no list of tasks/],
    ['a list', [], /^- `tasks` is missing/],
    ['nothing', null, /no list of tasks/],
    ['a task that is a text', { tasks: ['do it'] }, /^- `tasks\[0\]` has to be an object/],
    [
      'another type',
      { tasks: [{ ...task('T1'), type: 'FIXING' }] },
      /`tasks\[0\]\.type` has to be one of INFO_GATHERING, ACTION, VERIFICATION/,
    ],
    ['a number for an id', { tasks: [{ ...task('T1'), id: 1 }] }, /`tasks\[0\]\.id` has to be a text/],
    [
      'a list for a command',
      { tasks: [{ ...task('T1'), run: ['npm', 'test'] }] },
      /`tasks\[0\]\.run` has to be a text, or null/,
    ],
    [
      'numbers for inputs',
      { tasks: [{ ...task('T1'), inputs: { a: 1 } }] },
      /`tasks\[0\]\.inputs\[0\]\.from` has to be a text/,
    ],
    ['a text for outputs', { tasks: [{ ...task('T1'), outputs: 'x' }] }, /`tasks\[0\]\.outputs` has to be/],
    [
      'pairs without names',
      { tasks: [{ ...task('T1'), outputs: [{ what: 'x' }] }] },
      /`tasks\[0\]\.outputs\[0\]\.name` is missing/,
    ],
    ['no files', { tasks: [{ ...task('T1'), files: null }] }, /`tasks\[0\]\.files` has to be a list/],
  ])('is none: %s', (_, value, wrong) => {
    const read = readTasks(value)
    expect(read.ok ? 'it is one' : read.problem).toMatch(wrong)
  })

  const anyTask = fc.record({
    id: fc.oneof(fc.constantFrom('T1', 'T2', 'T3', '__proto__', 'constructor', ''), hostileText),
    type: fc.constantFrom('INFO_GATHERING', 'ACTION', 'VERIFICATION'),
    description: hostileText,
    inputs: fc.oneof(
      fc.array(
        fc.record({
          name: fc.oneof(fc.constantFrom('a', '__proto__', 'toString'), hostileText),
          from: fc.oneof(fc.constantFrom('T1.a', 'T2.b', 'T3.__proto__', '.', 'T1'), hostileText),
        }),
        { maxLength: 3 },
      ),
      fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
    ),
    outputs: fc.oneof(
      fc.array(fc.record({ name: fc.constantFrom('a', 'b', '__proto__'), what: hostileText }), { maxLength: 2 }),
      fc.dictionary(fc.string(), fc.string(), { maxKeys: 3 }),
    ),
    files: fc.array(fc.oneof(fc.constantFrom('src/a.ts', 'src', '../x', ''), fc.string()), { maxLength: 3 }),
    run: fc.option(fc.oneof(fc.constantFrom('npm test', 'true', 'test -e src/a.ts'), fc.string())),
  })

  promise('C23')
  test('is read or refused, and never throws, whatever a value it is', () => {
    const value = fc.oneof(
      fc.jsonValue(),
      fc.record({ tasks: fc.oneof(fc.jsonValue(), fc.array(fc.oneof(anyTask, fc.jsonValue()), { maxLength: 8 })) }),
    )
    fc.assert(
      fc.property(value, any => {
        const read = readTasks(any)
        if (!read.ok) expect(read.problem).toMatch(/^- /)
        else expect(tasksProblem(read.value, GROUND) ?? '- ').toMatch(/^- /)
      }),
    )
  })

  test('is the same once it was read, and what may be carried out has all that was asked for', () => {
    fc.assert(
      fc.property(fc.array(anyTask, { maxLength: 8 }), any => {
        const read = readTasks({ tasks: any })
        if (!read.ok) return
        expect(readTasks({ tasks: read.value })).toEqual(read)
        if (tasksProblem(read.value, GROUND) !== null) return
        const ids = read.value.map(({ id }) => id)
        expect(new Set(ids).size).toBe(ids.length)
        for (const { type, run } of read.value) expect(run === null).toBe(type !== 'VERIFICATION')
      }),
    )
  })
})

describe('tasks.json', () => {
  const records = [
    { spec: info('T1', { description: '# Find the limits.\nLook at the docs.' }), status: 'COMPLETED', why: null },
    { spec: task('T2', { inputs: { a: 'T1.found' } }), status: 'FAILED', why: 'It answered nothing, 3 times.' },
    { spec: check('T3'), status: 'IN_PROGRESS', why: null },
  ] as const

  test('has id, name, done, status and all that was planned, and can be read as the tasks of a session', () => {
    const text = tasksFile(records)
    expect(JSON.parse(text).tasks[1]).toEqual({
      id: 'T2',
      name: 'Do T2',
      done: false,
      type: 'ACTION',
      status: 'FAILED',
      why: 'It answered nothing, 3 times.',
      description: 'Do T2',
      inputs: { a: 'T1.found' },
      outputs: {},
      files: ['src/a.ts'],
      run: null,
    })
    expect(parseTasksFile(text)).toEqual({
      ok: true,
      value: [
        { id: 'T1', name: 'Find the limits', done: true },
        { id: 'T2', name: 'Do T2', done: false },
        { id: 'T3', name: 'Do T3', done: false },
      ],
    })
    expect(parseTasksFile(tasksFile([]))).toEqual({ ok: true, value: [] })
  })

  test('can be read whatever stands in the tasks', () => {
    fc.assert(
      fc.property(fc.array(hostileText, { maxLength: 5 }), texts => {
        const made = texts.map((description, at) => ({
          spec: info(`T${at}`, { description }),
          status: 'PENDING' as const,
          why: description,
        }))
        expect(parseTasksFile(tasksFile(made))).toMatchObject({
          ok: true,
          value: made.map(({ spec }) => ({ id: spec.id, done: false })),
        })
      }),
    )
  })

  test.each([
    ['Create hello.txt. It says hello.', 'Create hello.txt'],
    ['Create hello.txt', 'Create hello.txt'],
    ['- [x] Do it!\nMore.', '[x] Do it!'],
    ['1. First\n2. Second', 'First'],
    ['\n\n## Title\nText', 'Title'],
    ['增加限流。然后测试。', '增加限流'],
    ['Use v1.2.3 of it', 'Use v1.2.3 of it'],
    ['.', '.'],
    ['', 'T1'],
    [`${'long '.repeat(40)}`, `${'long '.repeat(15)}long…`],
  ])('names a task by its first sentence: %j', (description, name) => {
    expect(nameOfTask({ id: 'T1', description })).toBe(name)
  })
})
