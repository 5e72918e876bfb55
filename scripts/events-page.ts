import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { sessionEvent } from '../src/core/events/checks.ts'
import { type KnownSchema, shapesOf } from '../src/core/events/schema.ts'

const PAGE = fileURLToPath(new URL('../docs/reference/events.md', import.meta.url))

/** A page about events with the tables of their fields as the schemas say: one under the heading of each event that has any. */
export function withEventTables(page: string): string {
  return shapesOf(sessionEvent).reduce((text, { entries }) => withTable(text, entries), page)
}

const HEAD = '| field | meaning |\n| --- | --- |\n'

function withTable(page: string, { type, ...entries }: v.ObjectEntries): string {
  const heading = `\n### ${(type as v.LiteralSchema<string, undefined>).literal}\n`
  const start = page.indexOf(heading)
  if (start === -1)
    throw new Error(`docs/reference/events.md has no heading${heading.trimEnd()}; write one, and what the event is.`)
  const next = page.slice(start + heading.length).search(/^##/m)
  const end = next === -1 ? page.length : start + heading.length + next
  const words = page.slice(start, end).split(HEAD)[0]?.trimEnd()
  const rows = rowsOf(entries)
  const table = rows.length === 0 ? '' : `${HEAD}${rows.join('')}\n`
  return `${page.slice(0, start)}${words}\n\n${table}${page.slice(end)}`
}

interface Row {
  names: string[]
  meaning: string
}

/** The rows of a table: fields that follow each other and mean the same share one. */
function rowsOf(entries: v.ObjectEntries): string[] {
  const rows: Row[] = []
  for (const { names, meaning } of fieldsOf(entries, '')) {
    const last = rows.at(-1)
    if (last !== undefined && last.meaning === meaning && meaning !== '') last.names.push(...names)
    else rows.push({ names, meaning })
  }
  return rows.map(({ names, meaning }) => {
    const cell = meaning.replaceAll('|', '\\|')
    return `| ${names.map(name => `\`${name}\``).join(', ')} |${cell === '' ? '' : ` ${cell}`} |\n`
  })
}

/** The fields of an object, and of an object in it that says of each of its own what it is. */
function fieldsOf(entries: v.ObjectEntries, before: string): Row[] {
  return Object.entries(entries).flatMap(([name, schema]) => {
    const meaning = descriptionOf(schema)
    const inner = meaning === null ? innerOf(schema) : null
    return inner === null ? [{ names: [before + name], meaning: meaning ?? '' }] : fieldsOf(inner, `${before}${name}.`)
  })
}

function innerOf(schema: v.GenericSchema): v.ObjectEntries | null {
  const known = schema as KnownSchema
  if (known.type === 'loose_object') return known.entries
  const within = withinOf(schema)
  return within === null ? null : innerOf(within)
}

function descriptionOf(schema: v.GenericSchema): string | null {
  const within = withinOf(schema)
  return v.getDescription(schema as Described) ?? (within === null ? null : descriptionOf(within))
}

type Described = v.SchemaWithPipe<[v.GenericSchema, v.DescriptionAction<unknown, string>]>

/** What may be left out, or is checked as something looser: the schema itself; null for any other. */
function withinOf(schema: v.GenericSchema): v.GenericSchema | null {
  const known = schema as KnownSchema
  if (known.type === 'exact_optional') return known.wrapped
  const { written = null } = v.getMetadata(schema as Described) as { written?: v.GenericSchema }
  return written
}

if (import.meta.main) writeFileSync(PAGE, withEventTables(readFileSync(PAGE, 'utf8')))
