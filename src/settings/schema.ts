import * as v from 'valibot'

const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.picklist(names), v.description(names.length === 1 ? `"${names[0]}"` : `one of ${quoted(names)}`))

const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

const seconds = v.pipe(
  v.number(),
  v.minValue(0.1),
  v.maxValue(3600),
  v.description('a number of seconds from 0.1 to 3600'),
)

const trueOrFalse = v.pipe(v.boolean(), v.description('true or false'))

const textOrNull = (description: string) =>
  v.pipe(v.nullable(v.pipe(v.string(), v.regex(/^\P{Cc}*[^\s\p{Cc}]\P{Cc}*$/u))), v.description(description))

/** All settings. A leaf's description goes on after "use …" and is what a person is told who wrote something else. */
export const settingsSchema = v.strictObject({
  mode: oneOf(['goal']),
  rounds: wholeNumber(1, 100_000),
  model: textOrNull('the name of a model'),
  effort: v.pipe(
    v.nullable(v.pipe(v.string(), v.regex(/^[a-z]+$/))),
    v.description('an effort that the model knows, such as "low", "medium" or "high"'),
  ),
  sandbox: oneOf(['read-only', 'workspace-write', 'danger-full-access']),
  network: trueOrFalse,
  codexBin: textOrNull('the path of the codex program'),
  codexHome: oneOf(['auto', 'own', 'codemachine']),
  requestSeconds: seconds,
  endSeconds: seconds,
  port: wholeNumber(1, 65_535),
  logging: v.strictObject({ level: oneOf(['error', 'warn', 'info', 'debug']) }),
})

/** The settings that a run goes by: every one present and valid. What each is: `settings.js`. */
export type Settings = v.InferOutput<typeof settingsSchema>

/** The name of one setting: its path in `Settings`, joined by dots. */
export type SettingKey = Exclude<keyof Settings, 'logging'> | `logging.${keyof Settings['logging']}`

/** One setting: how it is called in each place where it can be written, and what it may be. */
export interface SettingInfo {
  key: SettingKey
  /** `request_seconds`; with its table's name before a dot. */
  toml: string
  /** `CODEMACHINE_REQUEST_SECONDS`. */
  variable: string
  /** `--request-seconds`. */
  flag: string
  schema: v.GenericSchema
}

/** Every setting, in the order of `settings.js`. */
export const settingInfos: readonly SettingInfo[] = leavesOf(settingsSchema, [])

function leavesOf(schema: v.GenericSchema, path: readonly string[]): SettingInfo[] {
  if (isTable(schema)) return Object.entries(schema.entries).flatMap(([name, leaf]) => leavesOf(leaf, [...path, name]))
  const snake = path.map(name => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
  const key = path.join('.') as SettingKey
  return [
    {
      key,
      toml: snake.join('.'),
      // The name by which codex's own tools know it.
      variable: key === 'codexBin' ? 'CODEX_BIN' : `CODEMACHINE_${snake.join('_').toUpperCase()}`,
      flag: `--${snake.join('-').replaceAll('_', '-')}`,
      schema,
    },
  ]
}

function isTable(schema: v.GenericSchema): schema is v.GenericSchema & { entries: Record<string, v.GenericSchema> } {
  return schema.type === 'strict_object'
}

function quoted(names: readonly string[]): string {
  return names.map(name => `"${name}"`).join(', ')
}
