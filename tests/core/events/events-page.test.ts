import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { OWN_TEMPLATES } from '../../../src/templates/registry.ts'
import { moreSamples, sampleEvents, sampleLiveEvents } from '../../tui/samples.ts'

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const page = read('docs/events.md')
const headings = [...page.matchAll(/^### ([a-z-]+)$/gm)].map(match => match[1])

const EVENTS = 'src/core/events/events.ts'

/** The unions of events, and the part of the page that each has. */
const GROUPS = [
  { part: 'Of the session', union: 'LifecycleEvent' },
  { part: 'Of a round', union: 'RoundEvent' },
  { part: 'Of the files', union: 'FileEvent' },
  { part: 'Of a build', union: 'PlanEvent' },
  { part: 'Of the done claim', union: 'ClaimEvent' },
  { part: 'Live only', union: 'LiveEvent' },
]

/** The discriminants of a union as its source writes them. */
function membersOf(path: string, union: string, key: string): string[] {
  const source =
    read(path)
      .split(`type ${union} =`)[1]
      ?.split(/^(?:export|type|interface|\/\*\*)/m)[0] ?? ''
  return [...source.matchAll(new RegExp(`(?:^ {6}|\\{ )${key}: '([a-z-]+)'`, 'gm'))].map(match => match[1] ?? '')
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

/** The values of a union of texts as its source writes them. */
function valuesOf(path: string, union: string): string[] {
  const source = read(path).split(`type ${union} =`)[1]?.split(/\n\n/)[0] ?? ''
  return [...source.matchAll(/'([a-z-]+)'/g)].map(([, value = '']) => value)
}

describe('docs/events.md', () => {
  test('has a heading for every event, live ones included, and for nothing else', () => {
    const events = GROUPS.flatMap(({ union }) => membersOf(EVENTS, union, 'type'))
    expect(events.length).toBeGreaterThan(20)
    expect([...headings].sort()).toEqual([...events].sort())
  })

  test.each(GROUPS)('$part: has the headings of its events, in their order', ({ part, union }) => {
    const section = page.split(`\n## ${part}\n`)[1]?.split(/^## /m)[0] ?? ''
    const inPart = [...section.matchAll(/^### ([a-z-]+)$/gm)].map(match => match[1])
    expect(inPart).toEqual(membersOf(EVENTS, union, 'type'))
  })

  test('has every kind of item in its table', () => {
    const kinds = membersOf('src/core/events/items.ts', 'Item', 'kind')
    expect(kinds.length).toBeGreaterThan(10)
    expect(rowsOf('\n## Items\n').sort()).toEqual(kinds.sort())
  })

  test('has every outcome in its table', () => {
    const kinds = membersOf('src/core/events/outcome.ts', 'SessionOutcome', 'kind')
    expect(kinds.length).toBeGreaterThan(4)
    expect(rowsOf('\n## Outcomes\n').sort()).toEqual(kinds.sort())
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

  test('names every class of a round, and every value of an enumeration', () => {
    for (const [path, union] of [
      ['events/outcome', 'RoundClass'],
      ['events/events', 'RefusalReason'],
      ['events/outcome', 'WindDownLimit'],
      ['events/outcome', 'StallReason'],
      ['events/outcome', 'WaitReason'],
      ['events/events', 'StallRemedy'],
      ['events/outcome', 'GateTime'],
      ['events/outcome', 'GateStatus'],
      ['rules/review', 'ReviewCause'],
      ['state/plan', 'TaskVerdict'],
      ['state/plan', 'AgentStatus'],
    ] as const) {
      const values = valuesOf(`src/core/${path}.ts`, union)
      expect(values.length).toBeGreaterThan(1)
      expect(values.filter(value => !page.includes(`\`${value}\``))).toEqual([])
    }
  })

  test('names what the rounds of each template are for', () => {
    const parts = [...OWN_TEMPLATES.values()].flatMap(kind => Object.keys(kind.parts))
    expect(parts.length).toBeGreaterThan(1)
    expect(parts.filter(part => !sectionOf('\n### round-started\n').includes(`\`${part}\``))).toEqual([])
  })

  test('has a row for every hint', () => {
    const hints = membersOf('src/core/events/outcome.ts', 'OutcomeHint', 'do')
    expect(hints.length).toBeGreaterThan(10)
    expect(rowsOf('\n### Hints\n').sort()).toEqual(hints.sort())
  })

  test('has a row for every code of a reply', () => {
    const [, list = ''] = read('src/core/contracts/reply.ts').split(/REPLY_CODES = \[|\] as const/)
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
