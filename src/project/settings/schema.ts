import * as v from 'valibot'
import { isBalanced } from '../../base/glob.ts'
import { parseBytes, snakeCase } from '../../base/text.ts'
import { FALLBACK_CAUSES } from '../../core/rules/fallback.ts'
import type { HookMoment } from '../../core/shapes/hook.ts'
import { CODEX_PROVIDER } from '../../core/shapes/provider.ts'
import { SANDBOX_MODES } from '../../core/shapes/sandbox.ts'
import {
  command,
  durationUpTo,
  line,
  oneOf,
  quoted,
  shortDuration,
  type TomlAbout,
  table,
  trueOrFalse,
  wholeNumber,
} from '../../platform/toml-check.ts'

/** Parses a count such as `5000000`, `"2_000_000"`, `"500k"` or `"1.5M"` into a whole number; null for anything else. */
export function parseCount(written: number | string): number | null {
  if (typeof written === 'number') return Number.isInteger(written) ? written : null
  const [, whole, fraction = '', unit = ''] = COUNT.exec(written.trim()) ?? []
  const digits = unit === '' ? 0 : unit.toLowerCase() === 'k' ? 3 : 6
  if (whole === undefined || fraction.length > digits) return null
  // Join the digits: 2.3 * 1e6 is less than 2300000.
  return Number(`${whole.replaceAll('_', '')}${fraction.padEnd(digits, '0')}`)
}

const COUNT = /^(\d+(?:_\d+)*)(?:\.(\d+))? ?([kKmM]?)$/

// The types of settings. A description completes "use …" in the message about a wrong value.

/** A list of some of these names, possibly empty. */
const anyOf = <const Names extends readonly [string, ...string[]]>(names: Names) =>
  v.pipe(v.array(v.picklist(names)), v.description(`a list of any of ${quoted(names)}`))

/** A number of a unit, possibly with a fraction. */
const numberOf = (unit: string, min: number, max: number) =>
  v.pipe(v.number(), v.minValue(min), v.maxValue(max), v.description(`a number of ${unit} from ${min} to ${max}`))

const share = v.pipe(v.number(), v.minValue(0), v.maxValue(1), v.description('a number from 0 to 1, such as 0.3'))
const seconds = numberOf('seconds', 0.1, 3600)
const minutes = numberOf('minutes', 0.05, 1440)

const duration = durationUpTo(
  365 * 24 * 60 * 60 * 1000,
  'a time with its unit from 1 second to 365 days, such as "8h", "90m" or "1h30m"',
)

/** A number of tokens, plain or with `k` or `M`. */
const tokensBetween = (least: number, most: number, description: string) =>
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

/** A number of bytes, plain or with `k`, `M`, `G` or `T`. */
const size = v.pipe(
  v.union([v.number(), v.string()]),
  v.transform(written => parseBytes(String(written))),
  v.number(),
  v.minValue(1024 ** 2),
  v.maxValue(1024 ** 5),
  v.description('a size from 1 MiB to 1024 TiB, such as "2G" or "500M"'),
)

/** File names with `*`, relative to the work directory. A pattern that matches no file in there would protect nothing. */
const globs = v.pipe(
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

/** Absolute directories of the person, anywhere. */
const directories = v.pipe(
  v.array(v.pipe(line('', 4000), v.regex(/^(?:[/\\]|[a-z]:[/\\])/i))),
  v.maxLength(100),
  v.description('a list of absolute paths of directories, such as ["/home/me/shop"]'),
)

/** Address of a fleet's queue. A message never shows it, because it may hold a password against all advice. */
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

/** A short word, such as an effort of a model. */
const word = (description: string) => v.pipe(v.string(), v.regex(/^[a-z]+$/), v.description(description))

/** Name of a provider: of a table, or built in. */
const providerName = v.pipe(
  v.string(),
  v.regex(/^[a-z0-9][a-z0-9_-]{0,39}$/),
  v.description('the name of a provider, such as "local" of a table [providers.local], "ollama" or "codex"'),
)

/** Name of an engine for rounds. */
const engineName = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9-]{0,39}$/),
  v.description('the name of an engine, such as "codex", or "claude" of a table [engines.claude]'),
)

const NAMED_MODEL = 'the name of a model, or of a provider and its model, such as "gpt-5.5", "local" or "local/qwen3"'

/** Names of engines, as a list or in one text. */
const engineNames = v.pipe(
  v.union([
    v.array(engineName),
    v.pipe(
      v.string(),
      v.transform(text => text.split(',').map(name => name.trim())),
      v.array(engineName),
    ),
  ]),
  v.maxLength(10),
  v.description('a list of engines, such as ["claude", "gemini"], or "claude,gemini"'),
)

/** Name of an environment variable; messages hide it, because it may be the value by mistake. */
const variableName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,199}$/),
  v.metadata({ secret: true }),
  v.description('the name of an environment variable, such as "LOCAL_KEY", and never the key itself'),
)

const argument = v.pipe(
  v.string(),
  v.check(text => /\S/.test(text) && !text.includes('\0')),
)

/** A program and its arguments. No relative path: that would be in the work directory, where agents write. */
const commandLine = v.pipe(
  v.tupleWithRest([v.pipe(argument, v.regex(/^(?:[^/\\]+$|[/\\]|[a-z]:[/\\])/i))], argument),
  v.metadata({ secret: true }),
  v.description(
    'a list of texts, first the program by its name or absolute path, such as ["notify-send", "codemachine"]',
  ),
)

/** An http or https URL; it may hold credentials. */
const webAddress = v.pipe(
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

/**
 * Rights of a project's own file over a setting. Agents can write that file, and any cloned repository brings one. So it may
 * only make the sandbox stricter. It chooses no program to run, and no place to send anything. It lifts no limit that the
 * person wrote. It does not switch off what ends a stuck round or session, not even without the person's own value. It does
 * not weaken the proof of done.
 */
export type Right =
  /** Anything. */
  | 'free'
  /** It may only lower a limit that the person wrote. */
  | 'lower'
  /** It may not raise the default either; or not lower it. */
  | 'never-higher'
  | 'never-lower'
  /** It may not switch off what the person switched on. */
  | 'not-off'
  /** The person's value wins. */
  | 'yields'
  /** Throws for a looser value. */
  | 'not-looser'
  /** Only the value that applies without it. */
  | 'the-same'
  /** Nothing. */
  | 'none'

/** Metadata of a settings schema. */
interface About extends TomlAbout {
  project?: Right
}

const may = <const Schema extends v.GenericSchema>(project: Right, schema: Schema) =>
  v.pipe(schema, v.metadata({ project }))

/** Returns a project file's right over a setting or table; null: each member has its own right. */
export function rightOf(schema: v.GenericSchema): Right | null {
  return (v.getMetadata(schema) as About).project ?? null
}

/** Who approves a plan, the stricter one first. */
export const CHANGE_REVIEWS = ['manual', 'auto'] as const

/** What to run if no gate is named, the weaker one first. */
export const VERIFY_ALWAYS = ['nothing', 'auto'] as const

/** What a session publishes by itself at its end. */
const PUBLISH_STATES = ['no', 'draft', 'ready'] as const

const whatVerifies = v.pipe(
  v.picklist(VERIFY_ALWAYS),
  v.description(
    '"auto" or "nothing"; a command is a gate: begin it with a line [[gates]], and write run = "…" below it',
  ),
)

/** Describes an effort in messages. */
const EFFORT = 'an effort that the model knows, such as "low", "medium" or "high"'

/** All settings. */
export const settingsSchema = v.strictObject({
  mode: may('free', oneOf(['build', 'goal'])),
  rounds: may('lower', wholeNumber(1, 100_000)),
  maxTime: may('lower', orNull(duration)),
  maxTokens: may('lower', orNull(tokens)),
  maxCost: may('lower', orNull(numberOf('money, in the currency of your prices,', 0.01, 1e9))),
  maxUsage: may('lower', orNull(percent)),
  maxWait: may('lower', duration),
  // A short default would leave a person no time to answer.
  decideAfter: may('never-lower', duration),
  model: may('free', orNull(line('the name of a model'))),
  effort: may('free', orNull(word(EFFORT))),
  provider: may('none', providerName),
  // A clone could choose a program that has its own login.
  engine: may('none', engineName),
  fallback: may('none', engineNames),
  fallbackAfter: may('never-lower', duration),
  fallbackOn: may('none', anyOf(FALLBACK_CAUSES)),
  sandbox: may('not-looser', oneOf(SANDBOX_MODES)),
  network: may('not-looser', trueOrFalse),
  silenceMinutes: may('never-higher', minutes),
  commandMinutes: may('never-higher', minutes),
  graceMinutes: may('never-higher', minutes),
  stallRounds: may('never-higher', wholeNumber(2, 100_000)),
  keepAwake: may('lower', trueOrFalse),
  maxFileSize: may('lower', size),
  // A clone could have the result pushed, and choose where.
  publish: may('none', oneOf(PUBLISH_STATES)),
  publishRemote: may('none', orNull(line('the name of a git remote, such as "origin"', 200))),
  review: may('not-off', trueOrFalse),
  verify: may('not-off', whatVerifies),
  reviewer: v.strictObject({
    engine: may('none', orNull(engineName)),
    model: may('yields', orNull(line('the name of a model'))),
    effort: may('yields', orNull(word(EFFORT))),
  }),
  prove: v.strictObject({
    on: may('not-off', trueOrFalse),
    require: may('not-off', trueOrFalse),
    author: may('none', orNull(line(NAMED_MODEL))),
    authorEngine: may('none', orNull(engineName)),
    control: may('none', orNull(line(NAMED_MODEL))),
    controlEngine: may('none', orNull(engineName)),
    // Fewer would weaken the proof of done.
    holdOut: may('never-lower', share),
    controls: may('never-lower', wholeNumber(0, 2)),
  }),
  change: v.strictObject({
    // A clone could run its own plan unseen, choose where code goes, or the cost.
    review: may('not-looser', oneOf(CHANGE_REVIEWS)),
    fixAttempts: may('free', wholeNumber(1, 10)),
    executor: may('none', orNull(providerName)),
    plannerModel: may('none', orNull(line('the name of a model'))),
    plannerEffort: may('none', word(EFFORT)),
    plannerEngine: may('none', orNull(engineName)),
    executorEngine: may('none', orNull(engineName)),
  }),
  team: v.strictObject({
    plannerEngine: may('none', orNull(engineName)),
    workerEngine: may('none', orNull(engineName)),
    reviewerEngine: may('none', orNull(engineName)),
  }),
  worktree: v.strictObject({
    // It runs in the sandbox, like a project's gate; files copied from the checkout are the person's own.
    setup: may('free', orNull(command)),
    setupMinutes: may('never-higher', minutes),
    copy: may('none', filesInside),
  }),
  notify: v.strictObject({
    command: may('none', orNull(commandLine)),
    webhook: may('none', orNull(webAddress)),
    bell: may('none', trueOrFalse),
    events: may('none', anyOf(['ended', 'needs-person', 'waiting', 'round-ended', 'stuck', 'paused'])),
  }),
  screen: v.strictObject({
    theme: may('none', oneOf(['auto', 'dark', 'light', 'plain'])),
    motion: may('none', oneOf(['full', 'reduced'])),
    reader: may('none', trueOrFalse),
    enter: may('none', orNull(oneOf(['tell', 'queue']))),
    mouse: may('none', trueOrFalse),
  }),
  codexBin: may('the-same', orNull(line('the path of the codex program'))),
  codexHome: may('the-same', oneOf(['auto', 'own', 'codemachine'])),
  agents: v.strictObject({
    atOnce: may('lower', wholeNumber(1, 20)),
  }),
  requestSeconds: may('free', seconds),
  endSeconds: may('free', seconds),
  port: may('free', wholeNumber(1, 65_535)),
  mcp: v.strictObject({
    // A clone could choose where other agents may start sessions.
    dirs: may('none', directories),
  }),
  fleet: v.strictObject({
    // A clone could choose where sessions are sent, and what others run on this machine.
    queue: may('none', orNull(databaseAddress)),
    templates: may('none', names),
  }),
  logging: v.strictObject({
    level: may('free', oneOf(['error', 'warn', 'info', 'debug'])),
  }),
})

/**
 * The settings of a run: all present, valid and parsed. `settings.js` explains each. Times with a unit (`maxTime`,
 * `maxWait`) are in ms here.
 */
export type Settings = v.InferOutput<typeof settingsSchema>

type Entries = (typeof settingsSchema)['entries']

/** The name of one setting: its path in `Settings`, joined by dots. */
export type SettingKey = {
  [Key in keyof Entries]: Entries[Key] extends { entries: infer Inner } ? `${Key}.${keyof Inner & string}` : Key
}[keyof Entries]

/** One setting: its name in each place, and its type. */
export interface SettingInfo {
  key: SettingKey
  /** `request_seconds`; with its table's name before a dot. */
  toml: string
  /** `CODEMACHINE_REQUEST_SECONDS`. */
  variable: string
  /** `--max-time`; null if there is no flag. */
  flag: string | null
  /** With the metadata `secret: true`, its value may hold a secret, and is never shown. */
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
  engine: '--engine',
  fallback: '--fallback',
  sandbox: '--sandbox',
  network: '--network',
  keepAwake: '--no-keep-awake',
  publish: '--publish',
  review: '--review',
  'prove.on': '--prove',
  'prove.require': '--require-proof',
  'change.review': '--auto',
  'change.fixAttempts': '--fix-attempts',
  'change.executor': '--executor',
  'change.plannerModel': '--planner-model',
  'change.plannerEffort': '--planner-effort',
  'change.plannerEngine': '--planner-engine',
  'change.executorEngine': '--executor-engine',
  'team.plannerEngine': '--planner-engine',
  'team.workerEngine': '--worker-engine',
  'team.reviewerEngine': '--reviewer-engine',
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

/** Variables with another name than their setting. */
const VARIABLES: { readonly [Key in SettingKey]?: string } = {
  // Codex's own tools use this name.
  codexBin: 'CODEX_BIN',
  'fleet.queue': 'CODEMACHINE_QUEUE',
}

/** Every setting, in the order of `settings.js`. */
export const settingInfos: readonly SettingInfo[] = leavesOf(settingsSchema, [])

function leavesOf(schema: v.GenericSchema, path: readonly string[]): SettingInfo[] {
  if (isTable(schema)) return Object.entries(schema.entries).flatMap(([name, leaf]) => leavesOf(leaf, [...path, name]))
  const snake = path.map(snakeCase)
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

/** Returns the same settings with their names in a file, all optional. */
function inFile(entries: Record<string, v.GenericSchema>): v.ObjectEntries {
  return Object.fromEntries(
    Object.entries(entries).map(([name, schema]) => [
      snakeCase(name),
      isTable(schema) ? table(inFile(schema.entries)) : schema,
    ]),
  )
}

/** Message on how to begin a gate. */
const HOW_TO_BEGIN = 'begin each gate with a line [[gates]], and write run = "…" below it'

/** A gate in a file. */
const gateSchema = table({
  name: line('a name on one line, of at most 100 characters', 100),
  run: v.pipe(command, v.metadata({ missing: 'write the command that has to pass: run = "npm test"' })),
  timeout: shortDuration,
  required: trueOrFalse,
  network: trueOrFalse,
  protect: globs,
  every_round: trueOrFalse,
})

const hookFields = {
  run: v.pipe(command, v.metadata({ missing: 'write what it runs: run = "…"' })),
  timeout: shortDuration,
}

/** A hook that can refuse the action it runs for. */
const refusingHook = table({ ...hookFields, on_error: oneOf(['warn', 'refuse']) })

/** A hook at the end of a session. */
const lastHook = table(hookFields, {
  hints: { on_error: 'at this moment a hook cannot refuse anything; leave it out' },
})

/** A provider in a file or the environment. */
export const providerSchema = table(
  {
    base_url: v.pipe(
      webAddress,
      v.transform(text => text.replace(/\/+$/, '')),
      v.metadata({ refuse: problemOfAddress }),
      v.description('an http or https URL, such as "http://127.0.0.1:11434/v1"'),
    ),
    model: line('the name of a model, such as "qwen3-coder:30b"', 500),
    key_env: variableName,
    context_window: tokensBetween(1000, 100_000_000, 'a number of tokens from 1000 to 100M, such as 32768 or "128k"'),
    when_away: oneOf(['wait', 'remote', 'stop']),
  },
  {
    hints: {
      wire_api: 'codex supports only the Responses API, not "chat"; leave it out',
    },
  },
)

function problemOfAddress(text: string): string | null {
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') {
    return 'contains a user or password (not shown). Remove them, put the key into an environment variable, and name the variable with key_env'
  }
  if (!/[?#]/.test(text)) return null
  return 'has a "?" or "#" in it (not shown); name the address below which /models and /responses lie, such as "http://127.0.0.1:11434/v1"'
}

/** Table name of a provider. */
export const providerTable = v.pipe(
  providerName,
  v.notValue(CODEX_PROVIDER),
  v.description(
    'lower-case letters, digits, "-" and "_", such as [providers.local], but not "codex", which means the configuration of codex',
  ),
)

/** A host without scheme, port and path; with `*.` in front, its subdomains. */
const HOST = /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$|^\[?[0-9a-f:]+\]?$/i

/** Another maker's engine in a file. */
export const engineSchema = table({
  kind: oneOf(['acp']),
  command: commandLine,
  home: v.pipe(
    v.array(v.pipe(line('', 4000), v.regex(/^(?:~(?:[/\\]|$)|[/\\]|[a-z]:[/\\])/i))),
    v.maxLength(20),
    v.description('a list of folders, absolute or in your home, such as ["~/.claude"]'),
  ),
  configuration: filesInside,
  modes: v.pipe(
    v.array(line('', 100)),
    v.maxLength(10),
    v.description('a list of modes that it offers, in which it asks nobody, such as ["bypassPermissions"]'),
  ),
  network: v.pipe(
    v.union([v.boolean(), v.pipe(v.array(v.pipe(line('', 300), v.regex(HOST))), v.maxLength(50))]),
    v.description('a list of hosts, such as ["api.anthropic.com", "*.example.com"], or true for all'),
  ),
  env: v.record(variableName, v.pipe(v.string(), v.maxLength(4000), v.metadata({ secret: true }))),
})

/** Price of a model per million tokens; one's own model may be free. */
const price = v.pipe(
  v.number(),
  v.minValue(0),
  v.maxValue(1_000_000),
  v.description('a number from 0 to 1000000, per million tokens'),
)
const needed = v.pipe(price, v.metadata({ missing: 'write in and out, per million tokens' }))
const priceSchema = table(
  { in: needed, cached: price, out: needed },
  {
    hints: {
      '*': 'those of a price are in, cached, out; a name of a model with a dot stands in quotes: [prices."gpt-5.5"]',
    },
  },
)

/** An agent in a file. */
const agentSchema = table({
  prompt: v.pipe(
    v.string(),
    v.maxLength(500),
    // Not on another drive, above the file or in a home directory.
    v.regex(/^(?![\\/~]|[a-z]:)(?!(?:.*[\\/])?\.\.(?:[\\/]|$))\P{Cc}*[^\s\p{Cc}\\/.]\P{Cc}*$/iu),
    v.description('a path below the folder of this file, without "..", such as "agents/security-expert.md"'),
  ),
  model: line('the name of a model', 200),
  effort: word(EFFORT),
  engine: engineName,
  enabled: trueOrFalse,
  description: line('one line of at most 400 characters that says what it is for', 400),
})

/** Name of an agent, also for files and profiles. */
const agentName = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/),
  v.maxLength(40),
  v.description(
    'lower-case letters, digits and single dashes, at most 40 characters, such as [agents.security-expert]',
  ),
)

const keys = v.pipe(
  v.union([v.string(), v.pipe(v.array(v.string()), v.maxLength(8))]),
  v.description('a key such as "ctrl+x", or a list of at most 8'),
)

/** A settings file: the person's `config.toml`, or a project's `codemachine.toml`. */
export const settingsFileSchema = table(
  {
    ...inFile(settingsSchema.entries),
    agents: v.pipe(
      v.objectWithRest({ at_once: v.optional(settingsSchema.entries.agents.entries.atOnce) }, agentSchema),
      v.metadata({ names: agentName }),
    ),
    gates: v.array(gateSchema),
    // They run in the sandbox, like gates of the project.
    hooks: table({
      before_round: refusingHook,
      after_round: refusingHook,
      on_claim: refusingHook,
      on_done: lastHook,
      on_end: lastHook,
    } satisfies Record<HookMoment, v.GenericSchema>),
    // A clone could choose where code goes, lift a cost limit, or decide what Ctrl+E does.
    providers: may('none', v.record(providerTable, providerSchema)),
    engines: may('none', v.record(engineName, engineSchema)),
    prices: may(
      'none',
      v.record(v.pipe(line('', 500), v.description('the name of a model, such as [prices."gpt-5.5"]')), priceSchema),
    ),
    keys: may('none', v.objectWithRest({ preset: v.optional(oneOf(['vim'])) }, keys)),
  },
  {
    hints: {
      verify: HOW_TO_BEGIN,
      run: HOW_TO_BEGIN,
      protect: HOW_TO_BEGIN,
      required: HOW_TO_BEGIN,
      every_round: HOW_TO_BEGIN,
    },
  },
)
