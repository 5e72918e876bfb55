import * as v from 'valibot'
import {
  anyOf,
  commandLine,
  duration,
  line,
  minutes,
  oneOf,
  orNull,
  percent,
  seconds,
  tokens,
  trueOrFalse,
  webAddress,
  wholeNumber,
  word,
} from './values.ts'

const EFFORT = 'an effort that the model knows, such as "low", "medium" or "high"'

/** All settings. */
export const settingsSchema = v.strictObject({
  mode: oneOf(['build', 'goal']),
  rounds: wholeNumber(1, 100_000),
  maxTime: orNull(duration),
  maxTokens: orNull(tokens),
  maxUsage: orNull(percent),
  maxWait: duration,
  model: orNull(line('the name of a model')),
  effort: orNull(word(EFFORT)),
  sandbox: oneOf(['read-only', 'workspace-write', 'danger-full-access']),
  network: trueOrFalse,
  silenceMinutes: minutes,
  commandMinutes: minutes,
  graceMinutes: minutes,
  stallRounds: wholeNumber(2, 100_000),
  keepAwake: trueOrFalse,
  review: trueOrFalse,
  reviewer: v.strictObject({
    model: orNull(line('the name of a model')),
    effort: orNull(word(EFFORT)),
  }),
  notify: v.strictObject({
    command: orNull(commandLine),
    webhook: orNull(webAddress),
    bell: trueOrFalse,
    events: anyOf(['ended', 'needs-person', 'waiting', 'round-ended', 'stuck', 'paused']),
  }),
  screen: v.strictObject({
    theme: oneOf(['auto', 'dark', 'light', 'plain']),
    motion: oneOf(['full', 'reduced']),
    reader: trueOrFalse,
  }),
  codexBin: orNull(line('the path of the codex program')),
  codexHome: oneOf(['auto', 'own', 'codemachine']),
  agents: v.strictObject({ atOnce: wholeNumber(1, 20) }),
  requestSeconds: seconds,
  endSeconds: seconds,
  port: wholeNumber(1, 65_535),
  logging: v.strictObject({ level: oneOf(['error', 'warn', 'info', 'debug']) }),
})

/**
 * The settings that a run goes by: every one present, valid and parsed. What each is: `settings.js`. A time that is
 * written with its unit (`maxTime`, `maxWait`) is in ms here.
 */
export type Settings = v.InferOutput<typeof settingsSchema>

/** The name of one setting: its path in `Settings`, joined by dots. */
export type SettingKey =
  | Exclude<keyof Settings, 'agents' | 'logging' | 'notify' | 'reviewer' | 'screen'>
  | `agents.${keyof Settings['agents']}`
  | `logging.${keyof Settings['logging']}`
  | `notify.${keyof Settings['notify']}`
  | `reviewer.${keyof Settings['reviewer']}`
  | `screen.${keyof Settings['screen']}`

/** One setting: how it is called in each place where it can be written, and what it may be. */
export interface SettingInfo {
  key: SettingKey
  /** `request_seconds`; with its table's name before a dot. */
  toml: string
  /** `CODEMACHINE_REQUEST_SECONDS`. */
  variable: string
  /** `--max-time`; null if it cannot be said on the command line. */
  flag: string | null
  schema: v.GenericSchema
  /** Whether what was written may hold a secret, and so is never shown. */
  secret: boolean
}

const FLAGS = {
  rounds: '--rounds',
  maxTime: '--max-time',
  maxTokens: '--max-tokens',
  maxUsage: '--max-usage',
  maxWait: '--max-wait',
  model: '--model',
  effort: '--effort',
  sandbox: '--sandbox',
  network: '--network',
  keepAwake: '--no-keep-awake',
  review: '--review',
  codexBin: '--codex-bin',
} as const satisfies { readonly [Key in SettingKey]?: string }

/** The settings that can be said on the command line. */
export type FlagKey = keyof typeof FLAGS

/** Every setting, in the order of `settings.js`. */
export const settingInfos: readonly SettingInfo[] = leavesOf(settingsSchema, [])

function leavesOf(schema: v.GenericSchema, path: readonly string[]): SettingInfo[] {
  if (isTable(schema)) return Object.entries(schema.entries).flatMap(([name, leaf]) => leavesOf(leaf, [...path, name]))
  const snake = path.map(name => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
  const key = path.join('.') as SettingKey
  const flags: { readonly [Key in SettingKey]?: string } = FLAGS
  return [
    {
      key,
      toml: snake.join('.'),
      // The name by which codex's own tools know it.
      variable: key === 'codexBin' ? 'CODEX_BIN' : `CODEMACHINE_${snake.join('_').toUpperCase()}`,
      flag: flags[key] ?? null,
      schema,
      secret: v.getMetadata(schema).secret === true,
    },
  ]
}

function isTable(schema: v.GenericSchema): schema is v.GenericSchema & { entries: Record<string, v.GenericSchema> } {
  return schema.type === 'strict_object'
}
