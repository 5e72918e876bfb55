import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { withEventTables } from '../../../scripts/events-page.ts'
import { sessionEvent } from '../../../src/core/events/checks.ts'
import { claimEvent } from '../../../src/core/events/claim.ts'
import { contractEvent } from '../../../src/core/events/contract.ts'
import { fileEvent } from '../../../src/core/events/files.ts'
import { lifecycleEvent } from '../../../src/core/events/lifecycle.ts'
import { planEvent } from '../../../src/core/events/plan.ts'
import { roundEvent } from '../../../src/core/events/round.ts'
import { type KnownSchema, shapesOf } from '../../../src/core/events/schema.ts'
import { item, outcomeHint, sessionOutcome } from '../../../src/core/events/shapes.ts'
import { shellEvent, stepEvent } from '../../../src/core/events/step.ts'
import { OWN_TEMPLATES } from '../../../src/modes/registry.ts'
import { moreSamples, sampleEvents, sampleLiveEvents } from '../../doors/screen/samples.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const page = read('docs/reference/events.md')
const headings = [...page.matchAll(/^### ([a-z-]+)$/gm)].map(match => match[1])

/** The events of each group, and the part of the page that it has. */
const GROUPS = [
  { part: 'Of the session', events: wordsOf(lifecycleEvent) },
  { part: 'Of a round', events: wordsOf(roundEvent) },
  { part: 'Of a step', events: wordsOf(stepEvent) },
  { part: 'Of commands that codemachine runs for agents, and of secrets', events: wordsOf(shellEvent) },
  { part: 'Of the files', events: wordsOf(fileEvent) },
  { part: 'Of a build', events: wordsOf(planEvent) },
  { part: 'Of the done claim', events: wordsOf(claimEvent) },
  { part: 'Of the contract', events: wordsOf(contractEvent) },
  { part: 'Live only', events: Object.keys(sampleLiveEvents) },
]

/** The words by which a variant tells its objects apart. */
function wordsOf(schema: v.GenericSchema): string[] {
  const { key } = schema as v.VariantSchema<string, [], undefined>
  return shapesOf(schema).map(({ entries }) => (entries[key] as v.LiteralSchema<string, undefined>).literal)
}

/** Every schema in a schema, and itself. */
function schemasIn(schema: v.GenericSchema): v.GenericSchema[] {
  const known = schema as KnownSchema
  const { written } = v.getMetadata(known as v.StringSchema<undefined>) as { written?: v.GenericSchema }
  const within = [
    ...(written === undefined ? [] : [written]),
    ...('wrapped' in known ? [known.wrapped] : []),
    ...('item' in known ? [known.item] : []),
    ...('entries' in known ? Object.values(known.entries) : []),
    ...(known.type === 'variant' ? shapesOf(known) : []),
  ]
  return [schema, ...within.flatMap(each => schemasIn(each as v.GenericSchema))]
}

/** A part of the page, from its heading to the next one of any kind. */
function sectionOf(heading: string): string {
  return (page.split(heading)[1] ?? '').split(/^##/m)[0] ?? ''
}

/** What the rows of the tables under a heading are about: the names in their first column. */
function rowsOf(heading: string): string[] {
  return [...sectionOf(heading).matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w.-]+)`/g)].map(([, name = '']) => name),
  )
}

describe('docs/reference/events.md', () => {
  test('has a heading for every event, live ones included, and for nothing else', () => {
    const events = GROUPS.flatMap(group => group.events)
    expect(events.length).toBeGreaterThan(20)
    expect([...headings].sort()).toEqual([...events].sort())
  })

  test.each(GROUPS)('$part: has the headings of its events, in their order', ({ part, events }) => {
    const section = page.split(`\n## ${part}\n`)[1]?.split(/^## /m)[0] ?? ''
    const inPart = [...section.matchAll(/^### ([a-z-]+)$/gm)].map(match => match[1])
    expect(inPart).toEqual(events)
  })

  test('its tables are those that scripts/events-page.ts writes from the schemas', () => {
    expect(withEventTables(page)).toBe(page)
    expect(withEventTables(page.replaceAll(/^\| `.*\n/gm, ''))).toContain(
      '| `goal` | the whole prompt |\n| `template` |',
    )
  })

  test('has every kind of item in its table', () => {
    const kinds = wordsOf(item)
    expect(kinds.length).toBeGreaterThan(10)
    expect(rowsOf('\n## Items\n').sort()).toEqual(kinds.sort())
  })

  test('has every outcome in its table', () => {
    const kinds = wordsOf(sessionOutcome)
    expect(kinds.length).toBeGreaterThan(4)
    expect(rowsOf('\n## Outcomes\n').sort()).toEqual(kinds.sort())
  })

  test.each([
    ['docs/reference/events.md', '| `limit` | `limit`:'],
    ['docs/reference/commands.md', '| 3 |'],
  ])('each limit that can end a session is named by the outcomes of %s', (path, row) => {
    const shape = shapesOf(sessionOutcome).find(({ entries }) => 'limit' in entries)?.entries.limit
    const limits = (shape as v.PicklistSchema<string[], undefined>).options
    const line = read(path)
      .split('\n')
      .find(each => each.startsWith(row))
    expect(limits.length).toBeGreaterThan(3)
    expect(limits.filter(limit => !line?.includes(limit))).toEqual([])
  })

  test.each(Object.keys(sampleEvents))('%s: has a row for every field that it may have, and for nothing else', type => {
    const samples = [...Object.values(sampleEvents), ...Object.values(moreSamples)].filter(each => each.type === type)
    const fields = new Set(samples.flatMap(({ type: _, ...rest }) => Object.keys(rest)))
    const named = new Set(rowsOf(`\n### ${type}\n`).map(name => name.split('.')[0]))
    expect([...named].sort()).toEqual([...fields].sort())
  })

  test.each(Object.values(sampleLiveEvents))('$type: names every field', ({ type, ...fields }) => {
    const section = sectionOf(`\n### ${type}\n`)
    expect(Object.keys(fields).filter(field => !section.includes(`\`${field}\``))).toEqual([])
  })

  test('names every value of an enumeration', () => {
    const lists = schemasIn(sessionEvent).filter(schema => schema.type === 'picklist') as v.PicklistSchema<
      string[],
      undefined
    >[]
    expect(lists.length).toBeGreaterThan(20)
    const values = new Set(lists.flatMap(({ options }) => options))
    expect([...values].filter(value => !page.includes(`\`${value}\``) && !page.includes(`'${value}'`))).toEqual([])
  })

  test('names what the rounds of each template are for', () => {
    const parts = [...OWN_TEMPLATES.values()].flatMap(kind => Object.keys(kind.parts))
    expect(parts.length).toBeGreaterThan(1)
    expect(parts.filter(part => !sectionOf('\n### round-started\n').includes(`\`${part}\``))).toEqual([])
  })

  test('has a row for every hint', () => {
    const hints = wordsOf(outcomeHint)
    expect(hints.length).toBeGreaterThan(10)
    expect(rowsOf('\n### Hints\n').sort()).toEqual(hints.sort())
  })

  test('has a row for every code of a reply', () => {
    const [, list = ''] = read('src/core/shapes/reply.ts').split(/REPLY_CODES = \[|\] as const/)
    const codes = [...list.matchAll(/^ {2}'([a-z-]+)'/gm)].map(([, code]) => code)
    expect(codes.length).toBeGreaterThan(10)
    expect(rowsOf('\n## Replies\n').sort()).toEqual(codes.sort())
  })

  test('the order names every event that is kept', () => {
    const order = sectionOf('\n## The order\n')
    expect(Object.keys(sampleEvents).filter(type => !new RegExp(`(?<![a-z-])${type}(?![a-z-])`).test(order))).toEqual(
      [],
    )
  })
})
