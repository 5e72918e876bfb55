import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAnswer } from '../../../src/core/rules/answer.ts'
import { schemaProblem } from '../../../src/core/rules/answer-schema.ts'
import { hashOfPlan, PLAN_ANSWER, readPlan } from '../../../src/modes/change/plan.ts'
import { planProblem, problemOfRun } from '../../../src/modes/change/plan-rules.ts'
import { TASKS_ANSWER } from '../../../src/modes/change/tasks.ts'
import { promise } from '../../support/promise.ts'
import { PLAN, plans } from './plans.ts'

/** What becomes of the last message of a planning round, as the runner reads it. */
function answered(message: string): string | null {
  const parsed = parseAnswer(message, PLAN_ANSWER.schema)
  if (!parsed.ok) return parsed.problem
  return schemaProblem(parsed.value, PLAN_ANSWER.schema) ?? planProblem(parsed.value)
}

describe('the answer of a planning round', () => {
  test.each([
    ['alone', JSON.stringify(PLAN)],
    ['in a fence', `Here it is:\n\n\`\`\`json\n${JSON.stringify(PLAN, null, 2)}\n\`\`\``],
    ['among words', `I looked at it. ${JSON.stringify(PLAN)} That is all.`],
  ])('is a plan %s', (_, message) => {
    expect(answered(message)).toBeNull()
  })

  test.each([
    ['prose', 'First I would look at the server, then add a limit.', /does not contain the requested JSON/],
    ['nothing', '', /is empty/],
    ['two objects', `${JSON.stringify(PLAN)}\n\nor\n\n${JSON.stringify(PLAN)}`, /The message has 2 JSON objects/],
    ['5 MB', JSON.stringify({ ...PLAN, description: 'x'.repeat(5_000_000) }), /may have at most 262144 bytes/],
    ['one that breaks off', JSON.stringify(PLAN).slice(0, -5), /ends too early|not valid JSON/],
    ['another object', '{"plan":"do it"}', /has no field "description"/],
    ['a list', '[]', /must be an object/],
    [
      'one field too many',
      JSON.stringify({ ...PLAN, status: 'accepted' }),
      /has a field "status", which the schema does not allow/,
    ],
    [
      'texts for objects',
      JSON.stringify({ ...PLAN, files: ['src/a.ts'] }),
      /`files\[0\]` is "src\/a\.ts"; it must be an object/,
    ],
    [
      'more than fits',
      JSON.stringify({ ...PLAN, description: '长'.repeat(21_000) }),
      /has \d+ bytes as JSON; 61440 \(60 KiB\) are the most\. Say it in fewer words/,
    ],
  ])('is none, and the model is told why: %s', (_, message, problem) => {
    expect(answered(message)).toMatch(problem)
  })

  test.each<[string, object, RegExp]>([
    ['no description', { description: ' \n' }, /^- `description` is empty; say what to do/],
    [
      'a path that leads out',
      { files: [{ path: 'src/../../x', change: '' }] },
      /^- `files\[0\]\.path` is "src\/\.\.\/\.\.\/x", which leads out/,
    ],
    ['an absolute path', { files: [{ path: '/etc/hosts', change: '' }] }, /an absolute path; write one from the root/],
    ['a path of another system', { files: [{ path: 'C:\\x', change: '' }] }, /an absolute path/],
    ['a path of a home', { files: [{ path: '~/x', change: '' }] }, /an absolute path/],
    [
      'the repository itself',
      { files: [{ path: '.git/hooks/pre-commit', change: '' }] },
      /lies in \.git or \.codemachine/,
    ],
    ['the records', { files: [{ path: 'a/.CodeMachine/x', change: '' }] }, /lies in \.git or \.codemachine/],
    ['no path', { files: [{ path: ' ', change: '' }] }, /names no file/],
    ['a folder of nothing', { files: [{ path: './', change: '' }] }, /names no file/],
    ['a path of two lines', { files: [{ path: 'a\nb', change: '' }] }, /control characters/],
    ['a path that is shown another way', { files: [{ path: 'a\u202eb', change: '' }] }, /control characters/],
    ['a path without end', { files: [{ path: 'x'.repeat(501), change: '' }] }, /500 are the most/],
    [
      'a command of two lines',
      { verification: [{ run: 'npm test\nnpm run x', why: '' }] },
      /^- `verification\[0\]\.run` has line breaks/,
    ],
    ['sudo', { verification: [{ run: 'sudo npm test', why: '' }] }, /uses `sudo`/],
    [
      'a command that proves nothing',
      {
        verification: [
          { run: 'npm test', why: '' },
          { run: 'true', why: '' },
        ],
      },
      /^- `verification\[1\]\.run` proves nothing: it succeeds/,
    ],
    [
      'prose for a command',
      { verification: [{ run: 'Check that it works', why: '' }] },
      /is a sentence, not a command/,
    ],
    [
      '201 files',
      { files: Array.from({ length: 201 }, (_, at) => ({ path: `a${at}`, change: '' })) },
      /`files` has 201 entries; 200 are the most/,
    ],
    [
      '21 commands',
      { verification: Array.from({ length: 21 }, () => ({ run: 'npm test', why: '' })) },
      /20 are the most/,
    ],
  ])('is no plan that can be carried out: %s', (_, part, problem) => {
    expect(planProblem({ ...PLAN, ...part })).toMatch(problem)
  })

  test('names ten mistakes, and counts the rest', () => {
    const files = Array.from({ length: 14 }, (_, at) => ({ path: `/a${at}`, change: '' }))
    const lines = planProblem({ ...PLAN, files })?.split('\n')
    expect(lines).toHaveLength(11)
    expect(lines?.at(-1)).toBe('and 4 more like these')
  })

  test('is read without control characters, line ends of other systems, blanks around it and empty entries', () => {
    expect(
      readPlan({
        description: '\r\n Do\r\nit\u202e\u0007 \n\n',
        files: [{ path: ' src/a.ts ', change: '\nnew\r' }],
        risks: ['', ' \n', 'one '],
        verification: [{ run: ' npm test ', why: '' }],
        questions: ['\u0000'],
      }),
    ).toEqual({
      ok: true,
      value: {
        description: 'Do\nit',
        files: [{ path: 'src/a.ts', change: 'new' }],
        risks: ['one'],
        verification: [{ run: 'npm test', why: '' }],
        questions: [],
      },
    })
  })

  promise(
    'C23',
    'An answer that is no plan, or no list of tasks that can be carried out, is told with each place and its mend, whatever a value it is',
  )
  test('is refused with a sentence, and never throws, whatever a value it is', () => {
    const field = fc.oneof(
      fc.jsonValue(),
      fc.array(fc.record({ path: fc.jsonValue(), change: fc.string(), run: fc.string(), why: fc.jsonValue() })),
    )
    const value = fc.oneof(
      fc.jsonValue(),
      fc.record(
        { description: field, files: field, risks: field, verification: field, questions: field },
        { requiredKeys: [] },
      ),
    )
    fc.assert(
      fc.property(value, any => {
        const problem = planProblem(any)
        expect(problem).toBe(planProblem(any))
        if (problem !== null) expect(problem).toMatch(/^- /)
      }),
    )
    for (const none of [undefined, null, 1, 'x']) expect(planProblem(none)).toMatch(/^- The answer is no plan/)
  })
})

describe('the hash of a plan', () => {
  test('is that of its texts, whatever the order of its fields, and of nothing else', () => {
    fc.assert(
      fc.property(plans, plan => {
        const turned = Object.fromEntries(Object.entries(structuredClone(plan)).reverse())
        expect(hashOfPlan(turned as unknown as typeof plan)).toBe(hashOfPlan(plan))
        expect(hashOfPlan(plan)).toMatch(/^[0-9a-f]{64}$/)
        expect(hashOfPlan({ ...plan, questions: [...plan.questions, 'x'] })).not.toBe(hashOfPlan(plan))
        expect(hashOfPlan({ ...plan, risks: plan.questions.concat('x'), questions: plan.risks })).not.toBe(
          hashOfPlan(plan),
        )
      }),
    )
    expect(hashOfPlan({ ...PLAN, files: [{ path: 'a', change: 'bc' }] })).not.toBe(
      hashOfPlan({ ...PLAN, files: [{ path: 'ab', change: 'c' }] }),
    )
    expect(hashOfPlan({ ...PLAN, verification: [{ run: 'npm test', why: 'a' }] })).not.toBe(
      hashOfPlan({ ...PLAN, verification: [{ run: 'npm test', why: 'b' }] }),
    )
  })
})

describe('the shapes that models are asked for', () => {
  /** What a strict model does not take. */
  function loose(schema: unknown, place = '#'): string[] {
    if (typeof schema !== 'object' || schema === null) return []
    if (Array.isArray(schema)) return schema.flatMap((each, at) => loose(each, `${place}/${at}`))
    const { type, properties, required, additionalProperties } = schema as Record<string, unknown>
    const isObject = type === 'object'
    const names = Object.keys(Object(properties))
    return [
      ...(isObject && additionalProperties !== false ? [`${place} allows other fields`] : []),
      ...(isObject && JSON.stringify(required) !== JSON.stringify(names)
        ? [`${place} does not require every field`]
        : []),
      ...Object.keys(schema)
        .filter(
          key =>
            !/\/properties$/.test(place) && !/^(?:type|properties|required|additionalProperties|items|enum)$/.test(key),
        )
        .map(key => `${place} has ${key}`),
      ...Object.entries(schema).flatMap(([key, inner]) => loose(inner, `${place}/${key}`)),
    ]
  }

  test.each([PLAN_ANSWER, TASKS_ANSWER])('are strict: $name', ({ schema }) => {
    expect(loose(schema)).toEqual([])
    expect(JSON.stringify(schema).length).toBeLessThan(2_000)
  })
})

describe('a line that', () => {
  promise('C20')
  test.each(['true', ':', 'exit', 'exit 0', ' true ; echo ok', 'echo "all is well" && true', 'printf done || exit 0'])(
    'succeeds whatever the work is like is refused: %s',
    run => expect(problemOfRun(run)).toMatch(/^proves nothing/),
  )

  promise('C21', 'A sentence, more than one line, control characters and `sudo` are no command of a plan or a task')
  test.each([
    ['', /is empty/],
    ['   ', /is empty/],
    ['npm test\nnpm run lint', /line breaks/],
    ['npm\u001b[31mtest', /control characters/],
    ['npm test \u202etset', /reorder/],
    ['sudo npm test', /uses `sudo`/],
    ['cd a && /usr/bin/sudo make install', /uses `sudo`/],
    ['echo "$(doas cat a)"', /uses `doas`/],
    [`node -e "${'a'.repeat(2_001)}"`, /2000 are the most/],
    ['Check that the API returns 429 after ten requests.', /is a sentence/],
    ['Run npm test and see that it passes', /is a sentence/],
    ['运行测试，确认全部通过', /is a sentence/],
  ])('is no check is refused: %j', (run, problem) => expect(problemOfRun(run)).toMatch(problem))

  test.each([
    'npm test',
    'npm test && echo ok',
    'test -e src/limit.ts',
    'echo hi | ./cli',
    'echo $(node -p 1) > out',
    'exit 1',
    'grep -q sudo README.md',
    'Rscript tests/run.R -v',
    'R CMD check',
    'node -e "process.exit(0)"',
  ])('may show something is run: %s', run => expect(problemOfRun(run)).toBeNull())
})
