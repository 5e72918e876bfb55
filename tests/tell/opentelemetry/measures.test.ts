import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { emptyState } from '../../../src/core/state/state.ts'
import { ATTRIBUTES, type Measure, Measures } from '../../../src/tell/opentelemetry/measures.ts'
import { moreSamples, recorded, sampleEvents } from '../../doors/screen/samples.ts'
import { promise } from '../../support/promise.ts'
import { fold } from '../../support/session-events.ts'

/** All that is exported of these events. */
function measured(events: readonly SessionEvent[]): Measure[] {
  const sent: Measure[] = []
  const measures = new Measures(measure => sent.push(measure))
  let state = emptyState('20261120_1')
  for (const event of recorded(events)) {
    state = fold(state, event)
    measures.event(event, state)
  }
  measures.end(Date.parse('2026-11-21T00:00:00.000Z'))
  return sent
}

/** Names that people or agents choose. */
const CHOSEN: ReadonlySet<string> = new Set([
  'gate',
  'name',
  'instance',
  'goal',
  'text',
  'agent',
  'command',
  'run',
  'id',
])

/** The same value with a mark in each text that people, agents or files can have written. */
function marked(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map(each => marked(each, key))
  if (value !== null && typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, marked(inner, name)]))
  return typeof value === 'string' && (CHOSEN.has(key) || /[\s/]/.test(value)) ? `marked ${value}` : value
}

promise('L23', 'OpenTelemetry gets ids, kinds, counts and outcomes; no text of people, agents, commands or files')
test('no text of people, agents, commands or files becomes an attribute of any event', () => {
  const events = [...Object.values(sampleEvents), ...Object.values(moreSamples)].flat() as SessionEvent[]
  const sent = measured(events.map(event => marked(event) as SessionEvent))
  const attributes = sent.flatMap(each => (each.does === 'begin' ? [] : Object.entries(each.attributes)))
  const names = new Set<string>(attributes.map(([name]) => name))
  expect([...names].filter(name => !(ATTRIBUTES as readonly string[]).includes(name))).toEqual([])
  expect(names.size, 'the samples reach nearly all of them').toBeGreaterThan(ATTRIBUTES.length - 5)
  expect(attributes.filter(([, value]) => String(value).includes('marked'))).toEqual([])
})

test('each span that begins ends, within the span around it', () => {
  const sent = measured(Object.values(sampleEvents))
  const open: string[] = []
  for (const each of sent) {
    if (each.does === 'begin') {
      if (each.parent !== null) expect(open).toContain(each.parent)
      open.push(each.span)
    } else if (each.does === 'end') open.splice(open.lastIndexOf(each.span), 1)
  }
  expect(open).toEqual([])
})

test('only the thread of the exporter loads the packages of OpenTelemetry, and a start loads nothing that measures', () => {
  const { outputs }: Metafile = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../dist/metafile.json'), 'utf8'),
  )
  const imports = Object.entries(outputs).flatMap(([file, { imports }]) => imports.map(each => ({ file, ...each })))
  const loading = imports.filter(({ path }) => path.startsWith('@opentelemetry/'))
  expect([...new Set(loading.map(({ file }) => file))]).toEqual(['dist/exporter.js'])
  expect(imports.filter(({ path }) => path.endsWith('exporter.js'))).toEqual([])
  const thread = /^dist\/export-thread-\w+\.js$/
  expect(new Set(imports.filter(({ path }) => thread.test(path)).map(({ kind }) => kind))).toEqual(
    new Set(['dynamic-import']),
  )
  const measuring = Object.keys(outputs).filter(file => outputs[file]?.inputs['src/tell/opentelemetry/measures.ts'])
  expect(measuring.filter(file => !thread.test(file))).toEqual(['dist/exporter.js'])
})
