import * as v from 'valibot'
import { isBalanced } from '../../base/glob.ts'
import { parseBytes, parseDuration } from '../../base/text.ts'
import { SANDBOX_MODES } from '../../core/shapes/sandbox.ts'

/** Parses a count such as `5000000`, `"2_000_000"`, `"500k"` or `"1.5M"` into a whole number; null for anything else. */
export function parseCount(written: number | string): number | null {
  if (typeof written === 'number') return Number.isInteger(written) ? written : null
  const [, whole, fraction = '', unit = ''] = COUNT.exec(written.trim()) ?? []
  const digits = unit === '' ? 0 : unit.toLowerCase() === 'k' ? 3 : 6
  if (whole === undefined || fraction.length > digits) return null
  // By its digits: 2.3 * 1e6 is less than 2300000.
  return Number(`${whole.replaceAll('_', '')}${fraction.padEnd(digits, '0')}`)
}

const COUNT = /^(\d+(?:_\d+)*)(?:\.(\d+))? ?([kKmM]?)$/

// The types of settings. A description completes "use …" in the message about a wrong value.

/** One of some names. */
export const oneOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.picklist(names), v.description(names.length === 1 ? `"${names[0]}"` : `one of ${quoted(names)}`))

/** Any of some names, none too. */
const anyOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.array(v.picklist(names)), v.description(`a list of any of ${quoted(names)}`))

/** A whole number between two, both allowed. */
const wholeNumber = (min: number, max: number) =>
  v.pipe(
    v.number(),
    v.integer(),
    v.minValue(min),
    v.maxValue(max),
    v.description(`a whole number from ${min} to ${max}`),
  )

/** A number of some unit, with a fraction or without. */
const numberOf = (unit: string, min: number, max: number) =>
  v.pipe(v.number(), v.minValue(min), v.maxValue(max), v.description(`a number of ${unit} from ${min} to ${max}`))

const seconds = numberOf('seconds', 0.1, 3600)
const minutes = numberOf('minutes', 0.05, 1440)

/** From one second on, written with its unit, such as `8h`; ms once it is parsed. */
const durationUpTo = (most: number, description: string) =>
  v.pipe(
    v.string(),
    v.transform(parseDuration),
    v.number(),
    v.minValue(1000),
    v.maxValue(most),
    v.description(description),
  )

const DAY_MS = 24 * 60 * 60 * 1000

const duration = durationUpTo(
  365 * DAY_MS,
  'a time with its unit from 1 second to 365 days, such as "8h", "90m" or "1h30m"',
)

/** As `duration`, for one command. */
export const shortDuration = durationUpTo(
  DAY_MS,
  'a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"',
)

/** A number of tokens, written as one or with `k` or `M`. */
export const tokensBetween = (least: number, most: number, description: string) =>
  v.pipe(
    v.union([v.number(), v.string()]),
    v.transform(parseCount),
    v.number(),
    v.minValue(least),
    v.maxValue(most),
    v.description(description),
  )

const tokens = tokensBetween(1, 1e12, 'a whole number of tokens up to 1000000M, such as 5000000, "5M" or "500k"')

/** From 1 to 100, with or without `%`. */
const percent = v.pipe(
  v.union([
    v.number(),
    v.pipe(
      v.string(),
      v.regex(/^\d+(\.\d+)? ?%$/),
      v.transform(text => Number.parseFloat(text)),
    ),
  ]),
  v.minValue(1),
  v.maxValue(100),
  v.description('a percentage from 1 to 100, such as 90 or "90%"'),
)

/** A number of bytes, written as one or with `k`, `M`, `G` or `T`. */
const size = v.pipe(
  v.union([v.number(), v.string()]),
  v.transform(written => parseBytes(String(written))),
  v.number(),
  v.minValue(1024 ** 2),
  v.maxValue(1024 ** 5),
  v.description('a size from 1 MiB to 1024 TiB, such as "2G" or "500M"'),
)

/** A truth value. */
export const trueOrFalse = v.pipe(v.boolean(), v.description('true or false'))

/** One line that is not blank, of at most `most` characters. */
export const line = (description: string, most = 10_000) =>
  v.pipe(v.string(), v.maxLength(most), v.check(isOneLine), v.description(description))

/** Two looks, each of which takes time that grows with the length alone: in one pattern a long text would take for ever. */
function isOneLine(text: string): boolean {
  return /\S/.test(text) && !/\p{Cc}/u.test(text)
}

/** A line for a shell. */
export const command = line('a command on one line, such as "npm test"', 4000)

/** Names of files with `*`, relative to the work directory. One that could name no file in there would protect nothing. */
export const globs = v.pipe(
  v.array(
    v.pipe(
      line('', 500),
      v.regex(/^(?![!/]|\.\/|[a-z]:)(?!.*(?:^|\/)\.\.(?:\/|$))[^\\]*[^\\/]$/i),
      v.check(isBalanced),
    ),
  ),
  v.maxLength(200),
  v.description(
    'a list of globs relative to the work directory, without ".." or an open bracket, such as ["tests/**", "package.json"]',
  ),
)

/** Files of a checkout. */
const filesInside = v.pipe(
  v.array(
    v.pipe(
      line('', 500),
      v.regex(/^(?![/:]|[a-z]:)(?!(?:.*\/)?\.{1,2}(?:\/|$))(?!(?:.*\/)?\.git(?:\/|$))[^\\]*[^\\/]$/i),
    ),
  ),
  v.maxLength(100),
  v.description(
    'a list of files inside the checkout, by their paths in it without "..", such as [".env", "config/local.json"]',
  ),
)

/** Directories of the person, wherever they lie. */
const directories = v.pipe(
  v.array(v.pipe(line('', 4000), v.regex(/^(?:[/\\]|[a-z]:[/\\])/i))),
  v.maxLength(100),
  v.description('a list of absolute paths of directories, such as ["/home/me/shop"]'),
)

/** Where a fleet's queue is. Whoever writes a password into it against all advice does not see it again in a message. */
const databaseAddress = v.pipe(
  v.string(),
  v.regex(/^postgres(?:ql)?:\/\/\S{1,2000}$/),
  v.description('the address of a PostgreSQL database, such as "postgres://night@db.example/fleet"'),
  v.metadata({ secret: true }),
)

const names = v.pipe(
  v.array(v.pipe(v.string(), v.regex(/^[\w.-]{1,60}$/))),
  v.maxLength(100),
  v.description('a list of names of templates, such as ["goal", "build"]'),
)

/** A small word, such as an effort that a model knows. */
export const word = (description: string) => v.pipe(v.string(), v.regex(/^[a-z]+$/), v.description(description))

/** The name of a provider: of a table, or one that is there without. */
export const providerName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9_-]{0,39}$/),
  v.description('the name of a provider, such as "local" of a table [providers.local], "ollama" or "codex"'),
)

/** The name of an environment variable; what was meant as its value is not shown. */
export const variableName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/),
  v.metadata({ secret: true }),
  v.description('the name of an environment variable, such as "LOCAL_KEY", and never the key itself'),
)

const argument = v.pipe(
  v.string(),
  v.check(text => /\S/.test(text) && !text.includes('\0')),
)

/** A program and its arguments. Not by a relative path: that would lie in the work directory, where agents write. */
const commandLine = v.pipe(
  v.tupleWithRest([v.pipe(argument, v.regex(/^(?:[^/\\]+$|[/\\]|[a-z]:[/\\])/i))], argument),
  v.metadata({ secret: true }),
  v.description(
    'a list of texts, first the program by its name or absolute path, such as ["notify-send", "codemachine"]',
  ),
)

/** An http or https URL; it may hold credentials. */
export const webAddress = v.pipe(
  v.string(),
  v.regex(/^https?:\/\/[^\s\p{Cc}]+$/iu),
  v.check(text => URL.canParse(text)),
  v.metadata({ secret: true }),
  v.description('an http or https URL, such as "https://example.org/hook"'),
)

/** The same, or null for none. */
function orNull<const S extends v.GenericSchema>(schema: S) {
  return v.pipe(v.nullable(schema), v.metadata(v.getMetadata(schema)), v.description(v.getDescription(schema) ?? ''))
}

function quoted(names: readonly string[]): string {
  return names.map(name => `"${name}"`).join(', ')
}

/** Who says that a plan may be carried out, the stricter one first. */
export const CHANGE_REVIEWS = ['manual', 'auto'] as const

/** What an effort is, for messages. */
export const EFFORT = 'an effort that the model knows, such as "low", "medium" or "high"'

/** All settings. */
export const settingsSchema = v.strictObject({
  mode: oneOf(['build', 'goal']),
  rounds: wholeNumber(1, 100_000),
  maxTime: orNull(duration),
  maxTokens: orNull(tokens),
  maxCost: orNull(numberOf('money, in the currency of your prices,', 0.01, 1e9)),
  maxUsage: orNull(percent),
  maxWait: duration,
  decideAfter: duration,
  model: orNull(line('the name of a model')),
  effort: orNull(word(EFFORT)),
  provider: providerName,
  sandbox: oneOf(SANDBOX_MODES),
  network: trueOrFalse,
  silenceMinutes: minutes,
  commandMinutes: minutes,
  graceMinutes: minutes,
  stallRounds: wholeNumber(2, 100_000),
  keepAwake: trueOrFalse,
  maxFileSize: size,
  review: trueOrFalse,
  reviewer: v.strictObject({
    model: orNull(line('the name of a model')),
    effort: orNull(word(EFFORT)),
  }),
  change: v.strictObject({
    review: oneOf(CHANGE_REVIEWS),
    fixAttempts: wholeNumber(1, 10),
    executor: orNull(providerName),
    plannerModel: orNull(line('the name of a model')),
    plannerEffort: word(EFFORT),
  }),
  worktree: v.strictObject({ setup: orNull(command), setupMinutes: minutes, copy: filesInside }),
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
    enter: oneOf(['queue', 'tell']),
    mouse: trueOrFalse,
  }),
  codexBin: orNull(line('the path of the codex program')),
  codexHome: oneOf(['auto', 'own', 'codemachine']),
  agents: v.strictObject({ atOnce: wholeNumber(1, 20) }),
  requestSeconds: seconds,
  endSeconds: seconds,
  port: wholeNumber(1, 65_535),
  mcp: v.strictObject({ dirs: directories }),
  fleet: v.strictObject({ queue: orNull(databaseAddress), templates: names }),
  logging: v.strictObject({ level: oneOf(['error', 'warn', 'info', 'debug']) }),
})

/**
 * The settings that a run goes by: every one present, valid and parsed. What each is: `settings.js`. A time that is
 * written with its unit (`maxTime`, `maxWait`) is in ms here.
 */
export type Settings = v.InferOutput<typeof settingsSchema>

/** The name of one setting: its path in `Settings`, joined by dots. */
export type SettingKey =
  | Exclude<
      keyof Settings,
      'agents' | 'change' | 'fleet' | 'logging' | 'mcp' | 'notify' | 'reviewer' | 'screen' | 'worktree'
    >
  | `agents.${keyof Settings['agents']}`
  | `change.${keyof Settings['change']}`
  | `fleet.${keyof Settings['fleet']}`
  | `logging.${keyof Settings['logging']}`
  | `mcp.${keyof Settings['mcp']}`
  | `notify.${keyof Settings['notify']}`
  | `reviewer.${keyof Settings['reviewer']}`
  | `screen.${keyof Settings['screen']}`
  | `worktree.${keyof Settings['worktree']}`

/** One setting: its name in each place, and its type. */
export interface SettingInfo {
  key: SettingKey
  /** `request_seconds`; with its table's name before a dot. */
  toml: string
  /** `CODEMACHINE_REQUEST_SECONDS`. */
  variable: string
  /** `--max-time`; null if there is no flag. */
  flag: string | null
  /** With the metadata `secret: true` its value may hold a secret, and is never shown. */
  schema: v.GenericSchema
}

const FLAGS = {
  rounds: '--rounds',
  maxTime: '--max-time',
  maxTokens: '--max-tokens',
  maxCost: '--max-cost',
  maxUsage: '--max-usage',
  maxWait: '--max-wait',
  model: '--model',
  effort: '--effort',
  provider: '--provider',
  sandbox: '--sandbox',
  network: '--network',
  keepAwake: '--no-keep-awake',
  review: '--review',
  'change.review': '--auto',
  'change.fixAttempts': '--fix-attempts',
  'change.executor': '--executor',
  'change.plannerModel': '--planner-model',
  'change.plannerEffort': '--planner-effort',
  codexBin: '--codex-bin',
} as const satisfies { readonly [Key in SettingKey]?: string }

/** The settings that have a flag. */
export type FlagKey = keyof typeof FLAGS

/** The value of one setting. */
export type SettingValue<Key extends SettingKey> = Key extends keyof Settings
  ? Settings[Key]
  : Key extends `${infer Table extends keyof Settings & string}.${infer Name}`
    ? Settings[Table][Name & keyof Settings[Table]]
    : never

/** Variables that are not called as their setting is. */
const VARIABLES: { readonly [Key in SettingKey]?: string } = {
  // The name by which codex's own tools know it.
  codexBin: 'CODEX_BIN',
  'fleet.queue': 'CODEMACHINE_QUEUE',
}

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
      variable: VARIABLES[key] ?? `CODEMACHINE_${snake.join('_').toUpperCase()}`,
      flag: flags[key] ?? null,
      schema,
    },
  ]
}

function isTable(schema: v.GenericSchema): schema is v.GenericSchema & { entries: Record<string, v.GenericSchema> } {
  return schema.type === 'strict_object'
}
