import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { packageFile } from '../../../base/package.ts'
import { FILES_WITH_SCHEMA, type FileWithSchema, schemaAddress, schemaPath } from '../../../base/schemas.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { inColumns } from '../output.ts'

/** `codemachine settings schema`: prints the JSON Schema of a file, or lists all of them with their places. */
export async function settingsSchema(
  { stdout, program }: CliContext,
  named: FileWithSchema | undefined,
  { file = named, json = false }: { file?: FileWithSchema; json?: boolean },
): Promise<number> {
  if (file !== undefined) {
    const schema: unknown = JSON.parse(readFileSync(packageFile(schemaPath(file)), 'utf8'))
    stdout.write(`${JSON.stringify(schema, null, 2)}\n`)
    return 0
  }
  const files = Object.entries(FILES_WITH_SCHEMA) as [FileWithSchema, string][]
  const schemas = files.map(([name, what]) => ({
    file: name,
    what,
    path: packageFile(schemaPath(name)),
    address: schemaAddress(name),
  }))
  if (json) stdout.write(`${JSON.stringify(schemas)}\n`)
  else {
    const rows = inColumns(schemas.map(({ file, what, path }) => [file, what, path]))
    stdout.write(`${rows.join('\n')}\nWith a network: ${dirname(schemaAddress('workflow'))}/\n`)
    stdout.write(`To print one: ${program} settings schema night.toml\n`)
  }
  return 0
}
