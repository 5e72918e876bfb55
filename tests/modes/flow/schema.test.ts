import { describe, expect, test } from 'vitest'
import { readSchema } from '../../../src/modes/flow/file/schema.ts'

const read = (schema: unknown) => readSchema(typeof schema === 'string' ? schema : JSON.stringify(schema))

const nested = (levels: number): unknown => (levels === 0 ? {} : { properties: { a: nested(levels - 1) } })
const doubled = Object.fromEntries(
  Array.from({ length: 30 }, (_, n) => [
    `a${n}`,
    { allOf: [{ $ref: `#/$defs/a${n + 1}` }, { $ref: `#/$defs/a${n + 1}` }] },
  ]),
)
const chained = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`a${n}`, { $ref: `#/$defs/a${n + 1}` }]))

const deep = `${'{"not":'.repeat(30_000)}{}${'}'.repeat(30_000)}`

describe('a JSON Schema', () => {
  test('may use what answers are checked by, and lead back to itself for a part of the value', async () => {
    const schema = {
      $id: 'https://example.org/tree',
      title: 'A tree',
      type: ['object', 'null'],
      properties: {
        name: { type: 'string', minLength: 1, pattern: '^\\p{L}+$', format: 'email', 'x-ours': 1 },
        not: { $ref: '#/$defs/toString' },
        children: { type: 'array', items: { $ref: '#' }, uniqueItems: true, contains: true },
      },
      patternProperties: { '^x': { const: null } },
      dependentRequired: { name: ['children'] },
      dependentSchemas: { name: { anyOf: [{ enum: [1] }, false] } },
      if: { required: ['name'] },
      else: { maxProperties: 3 },
      $defs: { toString: { type: 'integer', multipleOf: 2, default: 4 } },
    }
    expect(await read(schema)).toEqual({ schema })
  })

  test.each([
    [
      '{',
      'is not valid JSON: line 1, column 2: the file ends too early; write JSON without comments or trailing commas',
    ],
    [[1], 'is no JSON Schema: it must be an object, such as { "type": "object" }'],
    [{ type: 'array' }, 'is for "array"; an answer is an object: write "type": "object"'],
    [
      { type: 'text' },
      'is not a JSON Schema that codemachine can use: `type` is "text"; it must be one of object, array, string, number, integer, boolean, null',
    ],
    [
      { propertys: {} },
      'is not a JSON Schema that codemachine can use: `propertys` is no keyword that codemachine checks; the nearest is "properties"',
    ],
    [
      { properties: { a: { typ: 'string' } } },
      'is not a JSON Schema that codemachine can use: `properties.a.typ` is no keyword that codemachine checks; the nearest is "type"',
    ],
    [
      { $dynamicRef: '#a' },
      'is not a JSON Schema that codemachine can use: `$dynamicRef` is no keyword that codemachine checks; leave it out',
    ],
    [
      { properties: { a: 'string' } },
      'is not a JSON Schema that codemachine can use: `properties.a` is "string"; a schema is an object, or true or false',
    ],
    [{ properties: [] }, 'is not a JSON Schema that codemachine can use: `properties` is []; it must be an object'],
    [{ required: 'a' }, 'is not a JSON Schema that codemachine can use: `required` is "a"; it must be a list of names'],
    [
      { properties: { a: { items: [{}] } } },
      'is not a JSON Schema that codemachine can use: `properties.a.items` is a list; write "prefixItems" for it',
    ],
    [
      { anyOf: [] },
      'is not a JSON Schema that codemachine can use: `anyOf` is []; it must be a list of schemas, and not an empty one',
    ],
    [
      { allOf: [{ not: 3 }] },
      'is not a JSON Schema that codemachine can use: `allOf[0].not` is 3; a schema is an object, or true or false',
    ],
    [
      { minProperties: -1 },
      'is not a JSON Schema that codemachine can use: `minProperties` is -1; it must be a whole number from 0',
    ],
    [
      { properties: { a: { exclusiveMinimum: true } } },
      'is not a JSON Schema that codemachine can use: `properties.a.exclusiveMinimum` is true; it must be a number',
    ],
    [
      { properties: { a: { pattern: '(' } } },
      'is not a JSON Schema that codemachine can use: `properties.a.pattern` is no regular expression: "("',
    ],
    [
      { patternProperties: { '[': {} } },
      'is not a JSON Schema that codemachine can use: `patternProperties.[` is no regular expression: "["',
    ],
    [
      { properties: { a: { $ref: 'https://example.org/a.json' } } },
      'is not a JSON Schema that codemachine can use: `properties.a.$ref` is "https://example.org/a.json"; write one within this file, such as "#/$defs/name"',
    ],
    [
      { properties: { a: { $ref: '#/$defs/none' } } },
      'has the "$ref" "#/$defs/none", which leads to no schema in this file; correct it',
    ],
    [
      { $ref: '#/properties', properties: {} },
      'has the "$ref" "#/properties", which leads to no schema in this file; correct it',
    ],
    [{ $ref: '#' }, 'has a "$ref" that leads back to itself; break the circle'],
    [
      { $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } } },
      'has a "$ref" that leads back to itself; break the circle',
    ],
    [
      { properties: { a: { $id: 'x' } } },
      'is not a JSON Schema that codemachine can use: `properties.a.$id` may stand only at the top of the schema; leave it out',
    ],
    [{ $id: 'http://' }, 'cannot be used: TypeError: Invalid URL; correct it'],
  ])('%j is refused', async (schema, problem) => {
    expect(await read(schema)).toEqual({ problem })
  })

  test('that would take too long, or more than there is of the stack, is refused', async () => {
    const problems = []
    for (const schema of [{ $defs: { ...doubled, a30: {} } }, { $defs: { ...chained, a5000: {} } }, nested(40), deep]) {
      problems.push(await read(schema))
    }
    expect(problems).toEqual([
      { problem: 'checks one value by more than 10000 schemas; make it simpler' },
      { problem: 'has more than 500 references in a row; make it simpler' },
      { problem: 'nests schemas more than 64 deep; make it flatter' },
      { problem: 'nests schemas more than 64 deep; make it flatter' },
    ])
  })
})
