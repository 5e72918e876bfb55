import packageJson from '../../package.json' with { type: 'json' }

/** The files that a JSON Schema describes, by their names at the command line, and what each holds. */
export const FILES_WITH_SCHEMA = {
  'codemachine.toml': 'settings and gates of a project',
  'config.toml': 'your own settings',
  workflow: 'a workflow, *.workflow.toml',
  'night.toml': 'sessions for a fleet',
  'tasks.json': 'tasks of a session or a plan',
} as const

export type FileWithSchema = keyof typeof FILES_WITH_SCHEMA

/** Returns the path of a file's schema, from the package root with `/`. */
export function schemaPath(file: FileWithSchema): string {
  return `schemas/${file.replace(/\.\w+$/, '')}.schema.json`
}

/**
 * Returns the web address of a file's schema, for editors: that of the newest release with our major version, because a
 * project's file outlives a release.
 */
export function schemaAddress(file: FileWithSchema): string {
  return `https://unpkg.com/${packageJson.name}@${packageJson.version.split('.')[0]}/${schemaPath(file)}`
}

/** Returns the first line of a new TOML file, by which editors find its schema. */
export function schemaLine(file: FileWithSchema): string {
  return `#:schema ${schemaAddress(file)}\n`
}
