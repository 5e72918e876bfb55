import { writeFileSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { flowFileSchema } from '../src/modes/flow/file/file.ts'
import { settingsFileSchema } from '../src/project/settings/schema.ts'
import { settingsPage } from './settings-page.ts'

/** The JSON Schemas by which editors check and complete settings files and workflow files, by their names in `docs/reference`. */
export const SCHEMAS = { 'settings.schema.json': settingsFileSchema, 'workflow.schema.json': flowFileSchema }

/** The text of one. What only a look at the whole value tells is not in it. */
export function schemaText(schema: v.GenericSchema): string {
  const made = toJsonSchema(schema, {
    typeMode: 'input',
    errorMode: 'ignore',
    ignoreActions: ['metadata'],
    overrideSchema: ({ valibotSchema, jsonSchema }) => {
      const { entries } = valibotSchema as { entries?: Record<string, { wrapped?: v.GenericSchema }> }
      const required = Object.entries(entries ?? {}).flatMap(([name, { wrapped }]) =>
        wrapped !== undefined && 'missing' in v.getMetadata(wrapped) ? [name] : [],
      )
      return required.length === 0 ? jsonSchema : { ...jsonSchema, required }
    },
  })
  return `${JSON.stringify(made, null, 1)}\n`
}

if (import.meta.main) {
  const docs = (name: string) => new URL(`../docs/reference/${name}`, import.meta.url)
  for (const [name, schema] of Object.entries(SCHEMAS)) writeFileSync(docs(name), schemaText(schema))
  writeFileSync(docs('settings.md'), settingsPage())
}
