import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type JsonSchema,
  parseAnswer,
  type RefusedAnswers,
  refusedAnswerNote,
  withRefusal,
} from '../../../src/core/rules/answer.ts'
import { schemaProblem } from '../../../src/core/rules/answer-schema.ts'
import { cpuMs, timesSlower } from '../../support/cpu-time.ts'
import { promise } from '../../support/promise.ts'

/** What is asked for here: a list of tasks, of which each may have parts that look like the whole. */
const SCHEMA = {
  type: 'object',
  properties: {
    verdict: { type: 'string', enum: ['agreed', 'findings'] },
    count: { type: ['integer', 'null'] },
    tasks: { type: 'array', maxItems: 3, items: { $ref: '#/$defs/task' } },
    place: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'object', required: ['line'] },
      ],
    },
  },
  required: ['verdict', 'tasks'],
  additionalProperties: false,
  $defs: {
    task: {
      type: 'object',
      properties: { id: { type: 'string', pattern: '^T[0-9]+$' }, parts: { type: 'array' }, done: { const: false } },
      required: ['id'],
      additionalProperties: false,
    },
  },
} as const satisfies JsonSchema

const GOOD = { verdict: 'agreed', count: 1, tasks: [{ id: 'T1', parts: [] }] }
const good = JSON.stringify(GOOD, null, 2)

/** The value, or what is wrong with the message. */
function read(message: string | null, schema: JsonSchema = SCHEMA): unknown {
  const parsed = parseAnswer(message, schema)
  if (!parsed.ok) return parsed.problem
  return schemaProblem(parsed.value, schema) ?? parsed.value
}

const nested = (levels: number) => `{"verdict":${'['.repeat(levels)}${']'.repeat(levels)}}`

describe('an answer', () => {
  test.each([
    ['all of the message', good],
    ['all of it, in one line', JSON.stringify(GOOD)],
    ['all of it, with space and a byte order mark around', `\n\n \uFEFF${good}\t\n`],
    ['in a fenced block', `\`\`\`json\n${good}\n\`\`\``],
    ['in a fenced block without a language', `\`\`\`\n${good}\n\`\`\``],
    ['in a fenced block of tildes among words', `Here it is {sic}:\n\n~~~~json\n${good}\n~~~~\nThat is all {really}.`],
    ['in a fenced block that is not closed', `I think: {\n\`\`\`json\n${good}`],
    ['among words', `My verdict: ${good} – as asked.`],
    ['after an object of other things', `I ran \`{"cmd": "test"}\` and {} first.\n${good}`],
    ['before a brace too many', `${good}}`],
    ['with control characters in it', good.replace('agreed', '\u0000agr\u001bee\u0007d')],
  ])('is found: %s', (_where, message) => {
    expect(read(message)).toEqual(GOOD)
  })

  promise('D18')
  test.each([
    ['nothing', null, 'is empty'],
    ['only space', ' \n ', 'is empty'],
    ['words', 'All good, I agree.', 'does not contain the requested'],
    ['half of it', good.slice(0, -30), 'ends too early'],
    ['half of it in a fence', `\`\`\`json\n${good.slice(0, 40)}\n\`\`\``, 'ends too early'],
    ['a comma too many', good.replace('"T1"', '"T1",'), 'not valid JSON'],
    ['a remark in it', good.replace('"count"', '// how many\n"count"'), 'not valid JSON'],
    ['single quotes', good.replaceAll('"', "'"), 'does not contain the requested'],
    ['a line end within a text', good.replace('agreed', 'agr\need'), 'not valid JSON'],
    [
      'broken, with a part that looks like the whole',
      '{"verdict":"agreed","tasks":[{"verdict":"agreed","tasks":[]}],}',
      'not valid JSON',
    ],
    [
      'cut off, with a part that looks like the whole',
      '{"verdict":"agreed","tasks":[{"verdict":"agreed","tasks":[]}',
      'ends too early',
    ],
    ['two answers', `${good}\n${good}`, '2 JSON objects'],
    ['a field that it has twice', good.replace('{', '{"verdict":"agreed",'), 'occurs twice'],
    ['two answers in fences', `\`\`\`json\n${good}\n\`\`\`\n\`\`\`json\n${good}\n\`\`\``, '2 JSON objects'],
    ['one that is broken beside one that is not', `{"verdict": }\n${good}`, '2 JSON objects'],
    ['two objects, neither of them an answer', '{"a":1} {"b":2}', '2 JSON objects'],
    ['a list', '[]', 'The answer is a list of 0; it must be an object.'],
    ['a list of answers', `[${good}]`, 'The answer is a list of 1; it must be an object.'],
    ['a text', JSON.stringify(good), 'it must be an object.'],
    ['null', 'null', 'The answer is null; it must be an object.'],
    ['an empty object', '{}', 'The answer has no field "verdict", which is required.'],
    ['another object', '{"a":1}', 'The answer has a field "a", which the schema does not allow; leave it out.'],
    ['without a field', '{"verdict":"agreed"}', 'The answer has no field "tasks", which is required.'],
    ['with a field of another object', '{"verdict":"agreed","tasks":[],"__proto__":1}', 'a field "__proto__"'],
    ['that lets a field come from elsewhere', '{"verdict":"agreed","__proto__":{"tasks":[]}}', 'no field "tasks"'],
    ['another word', '{"verdict":"maybe","tasks":[]}', '`verdict` is "maybe"; it must be one of "agreed", "findings".'],
    ['another kind', '{"verdict":"agreed","tasks":"T1"}', '`tasks` is "T1"; it must be a list.'],
    [
      'another kind of two',
      '{"verdict":"agreed","tasks":[],"count":1.5}',
      '`count` is 1.5; it must be a whole number or null.',
    ],
    [
      'wrong in a list',
      '{"verdict":"agreed","tasks":[{"id":"T1"},{"id":7}]}',
      '`tasks[1].id` is 7; it must be a text.',
    ],
    [
      'not as a pattern wants it',
      '{"verdict":"agreed","tasks":[{"id":"7"}]}',
      '`tasks[0].id` is "7"; it must match ^T[0-9]+$.',
    ],
    [
      'not the one word',
      '{"verdict":"agreed","tasks":[{"id":"T1","done":true}]}',
      '`tasks[0].done` is true; it must be false.',
    ],
    [
      'too long a list',
      `{"verdict":"agreed","tasks":[${Array(4).fill('{"id":"T1"}')}]}`,
      '`tasks` is a list of 4: Array has too many items (4 > 3).',
    ],
    [
      'none of two shapes',
      '{"verdict":"agreed","tasks":[],"place":7}',
      '`place` is 7, which fits none of the allowed forms.',
    ],
    ['a number that is none', '{"verdict":"agreed","tasks":[],"count":1e999}', 'too large'],
    [
      'as long as a book',
      `{"verdict":"agreed","tasks":[],"text":"${'x'.repeat(5_000_000)}"}`,
      '5000041 characters, and may have at most 262144 bytes (256 KiB)',
    ],
    ['one byte too long', `"${'ü'.repeat(131_072)}"`, 'has 262146 bytes'],
    ['deep', nested(101), 'more than 100 deep'],
    ['10,000 levels deep', nested(10_000), 'more than 100 deep'],
    [
      '10,000 objects deep among words',
      `Here: ${'{"verdict":'.repeat(10_000)}1${'}'.repeat(10_000)}`,
      'more than 100 deep',
    ],
    ['of many values', `{"verdict":[${Array(20_001).fill(1)}]}`, 'more than 20000 values'],
  ])('is none, and it is said why: %s', (_what, message, why) => {
    expect(read(message)).toEqual(expect.stringContaining(why))
  })

  test('of which more is wrong is told of several places, and how many others there are', () => {
    const many = { verdict: 'no', tasks: Array.from({ length: 3 }, () => ({ id: 7, x: 1 })) }
    const problem = String(read(JSON.stringify(many)))
    expect(problem.split('\n')).toHaveLength(6)
    expect(problem).toContain('and 2 more like these')
  })

  test('whose shape names no field is any object, and one that is broken is one, too', () => {
    expect(read('Here: {"a": 1}', {})).toEqual({ a: 1 })
    expect(read('Here: {"a": }', {})).toContain('not valid JSON')
    expect(read('{"a": } {"b": 1}', {})).toContain('2 JSON objects')
  })

  test.each<[string, JsonSchema, unknown, string]>([
    [
      'one that fits none of several shapes',
      SCHEMA,
      { ...GOOD, place: 7 },
      '- `place` is 7, which fits none of the allowed forms.',
    ],
    [
      'a field of any name that is wrong',
      { additionalProperties: { type: 'string' } },
      { a: 7 },
      '- `a` is 7; it must be a text.',
    ],
    [
      'what two parts of the schema ask for',
      { allOf: [{ required: ['a'] }, { required: ['a'] }] },
      {},
      '- The answer has no field "a", which is required.',
    ],
    [
      'a name with slashes',
      { properties: { 'a/b~': { type: 'string' } } },
      { 'a/b~': 7 },
      '- `a/b~` is 7; it must be a text.',
    ],
    [
      'a long text',
      { properties: { a: { type: 'null' } } },
      { a: 'x'.repeat(1000) },
      `- \`a\` is "${'x'.repeat(79)}…; it must be null.`,
    ],
  ])('is told in one line that is no longer than it need be: %s', (_, schema, value, line) => {
    expect(schemaProblem(value, schema)).toBe(line)
  })

  test('with a thousand words to choose from is told of the first ones', () => {
    const words = Array.from({ length: 1000 }, (_, at) => `word ${at}`)
    expect(schemaProblem('x', { enum: words })?.length).toBeLessThan(350)
  })

  test('with a field that is named as a reference in a schema is told so, too', () => {
    const schema = { properties: { $ref: { type: 'string' } } }
    expect(schemaProblem({ $ref: 7 }, schema)).toBe('- `$ref` is 7; it must be a text.')
  })

  test.each([
    ['braces', '{'.repeat(262_144)],
    ['beginnings of objects', '{"a":'.repeat(52_428)],
    ['beginnings of answers', '{"verdict":'.repeat(20_000)],
    ['objects that are broken', `${'{"a":'.repeat(40_000)}x${'}'.repeat(40_000)}`],
    ['quotes', '{"\\"'.repeat(60_000)],
    ['escapes', `{"verdict":"${'\\"'.repeat(120_000)}`],
    ['lists', '['.repeat(262_144)],
    ['empty objects', '{}'.repeat(131_072)],
    ['keys', `{${Array.from({ length: 19_000 }, (_, at) => `"k${at}":1`)}}`],
  ])('is looked for quickly in %s', (_what, message) => {
    const startedAt = cpuMs()
    expect(typeof read(message)).toBe('string')
    expect(cpuMs() - startedAt).toBeLessThan(1_500 * timesSlower())
  })

  test('is what was written, whatever stands around it', () => {
    const words = fc.string().map(text => text.replace(/[{}]/g, ''))
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), words, words, (value, before, after) => {
        const answer = { verdict: value }
        const any = { type: 'object', properties: { verdict: {} } }
        const parsed = parseAnswer(`${before} ${JSON.stringify(answer)} ${after}`, any)
        const whole = parseAnswer(JSON.stringify(answer), any)
        expect(parsed).toEqual(whole)
        expect(whole).toMatchObject({ ok: true })
      }),
    )
  })

  test('of any text is a value within the bounds, or a sentence', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '"',
      ':',
      ',',
      '[',
      ']',
      '\\',
      '"verdict":',
      '{"verdict":',
      '```',
      '\n',
      '1',
      'é',
      '\u0000',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 200 }), parts => {
        const parsed = parseAnswer(parts.join(''), SCHEMA)
        if (!parsed.ok) expect(parsed.problem).toMatch(/^[A-Z].*\.$/s)
        else expect(JSON.parse(JSON.stringify(parsed.value))).toEqual(parsed.value)
      }),
    )
  })

  test('holds nothing that steers a terminal, and a key no more than a text', () => {
    const message = '{"verdict":"a\\u001b[31m\\u202eb\\ud800\\n\\tc","k\\u0007ey":1}'
    expect(parseAnswer(message, {})).toEqual({ ok: true, value: { verdict: 'a[31mb\ufffd\n\tc', key: 1 } })
  })

  test('that was refused is asked for again with the reason and the shape, where that is not too long', () => {
    expect(refusedAnswerNote('It is empty.', { schema: SCHEMA })).toContain(JSON.stringify(SCHEMA))
    const note = refusedAnswerNote('It is empty.', { schema: { ...SCHEMA, description: 'x'.repeat(20_000) } })
    expect(note).toContain('It is empty.')
    expect(note.length).toBeLessThan(500)
  })
})

test('a session knows the last 100 names of answers that were refused', () => {
  let refused: RefusedAnswers = {}
  for (let n = 1; n <= 130; n++) refused = withRefusal(withRefusal(refused, `a${n}`, 'No.'), `a${n}`, 'No again.')
  expect(Object.keys(refused)).toEqual(Array.from({ length: 100 }, (_, at) => `a${at + 31}`))
  expect(refused.a130).toEqual({ refusals: 2, problem: 'No again.' })
})
