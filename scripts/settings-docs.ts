import { writeFileSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { FILES_WITH_SCHEMA, type FileWithSchema, schemaAddress, schemaPath } from '../src/base/schemas.ts'
import { nightSchema } from '../src/fleet/night.ts'
import { flowFileSchema } from '../src/modes/flow/file/flow-schema.ts'
import { rightOf, settingInfos, settingsFileSchema } from '../src/project/settings/schema.ts'
import { tasksFileSchema } from '../src/workspace/memory/tasks-file.ts'
import { PROJECT_RIGHTS, readDefaults, settingsPage } from './settings-page.ts'

const { default: defaults } = await import(new URL('../settings.js', import.meta.url).href)

/** The schema that checks each file, and the rules that only its checker knows. */
const CHECKS: Readonly<Record<FileWithSchema, { schema: v.GenericSchema; beyond: string }>> = {
  'codemachine.toml': {
    schema: settingsFileSchema,
    beyond:
      'Only codemachine checks limits of times, tokens and sizes in texts, names of agents, and what your own settings forbid. `codemachine status` names the first mistake.',
  },
  'config.toml': {
    schema: settingsFileSchema,
    beyond:
      'Only codemachine checks limits of times, tokens and sizes in texts, names of agents, and names that refer to a table. `codemachine status` names the first mistake.',
  },
  workflow: {
    schema: flowFileSchema,
    beyond:
      'Only codemachine checks that a step has either an agent or run, that names refer to a table, references such as {{diff}}, and that files exist. `codemachine flow validate` names every mistake.',
  },
  'night.toml': {
    schema: nightSchema(0),
    beyond:
      'Only codemachine checks that each session has a goal and a repo, also from [defaults], its times, and the sessions that others wait for. `codemachine submit` names every mistake, and then submits nothing.',
  },
  'tasks.json': {
    schema: tasksFileSchema,
    beyond: 'Only codemachine checks that each id is unique. Other fields of a task are allowed.',
  },
}

/** Returns the text of the JSON Schema (draft-07) of a file, which is never stricter than the checker. */
export function schemaText(file: FileWithSchema): string {
  const { schema, beyond } = CHECKS[file]
  const { $schema, ...made } = toJsonSchema(schema, {
    typeMode: 'input',
    errorMode: 'ignore',
    ignoreActions: ['metadata'],
    overrideSchema: ({ valibotSchema, jsonSchema }) => withMarks(valibotSchema as Parts, jsonSchema),
    overrideAction: ({ valibotAction, jsonSchema }) => {
      const { type, requirement } = valibotAction as { type: string; requirement?: unknown }
      if (requirement instanceof RegExp) return withPattern(jsonSchema, requirement)
      // A bound of a list, behind a text that also means one.
      if (type === 'max_length' && jsonSchema.anyOf !== undefined) delete jsonSchema.maxLength
      if (jsonSchema.description === '') delete jsonSchema.description
      return null
    },
  })
  if (schema === settingsFileSchema) describeSettings(made, file === 'codemachine.toml')
  const head = { $schema, $id: schemaAddress(file), title: `${file}: ${FILES_WITH_SCHEMA[file]}`, description: beyond }
  return `${JSON.stringify({ ...head, ...made })}\n`
}

type Json = ReturnType<typeof toJsonSchema>

interface Parts {
  type: string
  entries?: Record<string, { wrapped?: v.GenericSchema }>
  wrapped?: v.GenericSchema
}

/** Adds what is beyond a transformation or in metadata: descriptions, and required members. TOML has no null. */
function withMarks({ type, entries, wrapped }: Parts, json: Json): Json {
  const [inner] = json.anyOf ?? []
  if (type === 'nullable' && typeof inner === 'object') return inner
  if (wrapped !== undefined) {
    const description = v.getDescription(wrapped)
    return description === undefined ? json : { ...json, description }
  }
  const required = Object.entries(entries ?? {}).flatMap(([name, { wrapped }]) =>
    wrapped !== undefined && 'missing' in v.getMetadata(wrapped) ? [name] : [],
  )
  return required.length === 0 ? json : { ...json, required }
}

/** Adds a pattern to those that are there. A JSON Schema has no flag `i`, so the description alone tells such a pattern. */
function withPattern({ pattern, ...json }: Json, { source, flags }: RegExp): Json {
  const before = pattern === undefined || pattern === source ? {} : { pattern }
  if (flags.includes('i')) return { ...json, ...before }
  return 'pattern' in before ? { ...json, ...before, allOf: [{ pattern: source }] } : { ...json, pattern: source }
}

/** Adds to each setting its meaning, its default, and what a project may say; removes what it may not say at all. */
function describeSettings(file: Json, isProject: boolean): void {
  const { meanings } = readDefaults()
  for (const { key, toml, schema } of settingInfos) {
    const [name = '', table] = toml.split('.').toReversed()
    const members = propertiesOf(table === undefined ? file : propertiesOf(file)[table])
    const right = rightOf(schema) ?? 'none'
    if (isProject && right === 'none') {
      delete members[name]
      if (Object.keys(members).length === 0 && table !== undefined) delete propertiesOf(file)[table]
      continue
    }
    const meaning = meanings.get(key)?.replace('; null:', '; without it:').replace('. null:', '. Without it:')
    const about = [meaning, `Use ${v.getDescription(schema)}.`]
    if (isProject && right !== 'free') about.push(`In a project's file: ${PROJECT_RIGHTS[right]}.`)
    const value: unknown = key.split('.').reduce((from: unknown, each) => Reflect.get(Object(from), each), defaults)
    members[name] = {
      ...Object(members[name]),
      description: about.join(' '),
      ...(value !== null && { default: value }),
    }
  }
  if (!isProject) return
  for (const [name, { wrapped }] of Object.entries(settingsFileSchema.entries))
    if (v.getDescription(wrapped) === undefined && rightOf(wrapped) === 'none') delete propertiesOf(file)[name]
}

function propertiesOf(json: unknown): Record<string, unknown> {
  return (json as { properties: Record<string, unknown> }).properties
}

if (import.meta.main) {
  const root = new URL('../', import.meta.url)
  for (const file of Object.keys(CHECKS) as FileWithSchema[])
    writeFileSync(new URL(schemaPath(file), root), schemaText(file))
  writeFileSync(new URL('docs/reference/settings.md', root), settingsPage())
}
