import { readFileSync, writeFileSync } from 'node:fs'
import { toJsonSchema } from '@valibot/to-json-schema'
import * as v from 'valibot'
import { flowFileSchema } from '../src/modes/flow/file/file.ts'
import { settingInfos, settingsFileSchema } from '../src/project/settings/schema.ts'

/** The JSON Schemas by which editors check and complete settings files and workflow files, by their names in `docs`. */
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

/** A page with name, flag and default of each setting as the schema and `settings.js` say. What a setting is, and a default that depends, stay. */
export function withSettingRows(page: string, defaults: unknown): string {
  return page.replace(/^\| `([\w.]+)` \| (?:`--[\w-]+`)? ?\| ([^|]*) \|/gm, (row, name: string, written: string) => {
    const info = settingInfos.find(({ toml }) => toml === name)
    if (info === undefined) return row
    const value = info.key.split('.').reduce((table: unknown, key) => Reflect.get(Object(table), key), defaults)
    const usual = value === null ? written : `\`${JSON.stringify(value).replaceAll('","', '", "')}\``
    return `| \`${name}\` | ${info.flag === null ? '' : `\`${info.flag}\` `}| ${usual} |`
  })
}

if (import.meta.main) {
  const docs = (name: string) => new URL(`../docs/${name}`, import.meta.url)
  for (const [name, schema] of Object.entries(SCHEMAS)) writeFileSync(docs(name), schemaText(schema))
  const { default: defaults } = await import(new URL('../settings.js', import.meta.url).href)
  writeFileSync(docs('settings.md'), withSettingRows(readFileSync(docs('settings.md'), 'utf8'), defaults))
}
