import * as v from 'valibot'
import type { JsonSchema } from '../rules/answer.ts'
import type { Parsed } from './memory.ts'
import type { WantedCommand, WantedSecret } from './shell.ts'
import { MOST_TEXT, readCall, text } from './tools.ts'

/** Limits: characters of a command line, secrets of one command. */
const MOST_COMMAND = 16_000
const MOST_SECRETS = 20

/** An agent's answer in a round without tools. */
export interface StepAnswer extends WantedCommand {
  /** True if the agent says that it is done; with a command, it is not yet. */
  done: boolean
  thoughts: string
  ask: WantedSecret | null
}

const SECRETS_FIELD = {
  type: 'array',
  items: { type: 'string' },
  description:
    'The names of the secrets that the command needs, such as ["SERVICE_API_KEY"]. The command gets each as a variable of that name. Leave this out if it needs none.',
} as const

const ASK_FIELDS = {
  question: {
    type: 'string',
    description: 'What the person has to get, where to get it, and its purpose. The person has not seen the work.',
  },
  key_name: {
    type: 'string',
    description: 'The name of the secret: capital letters, digits and _, as in SERVICE_API_KEY; at most 64.',
  },
  storage: { type: 'string', enum: ['env'], description: 'Always "env": commands have it as a variable.' },
} as const

const REASON_FIELD = {
  type: 'string',
  description:
    'Only if the stored secret does not work: what the service answered, and which kind of key with which rights you need.',
} as const

const STEP_FIELDS = {
  command: { type: 'string', description: 'The next line for bash; empty if there is none.' },
  secrets: SECRETS_FIELD,
  done: { type: 'boolean', description: 'Whether the work is done; then the command is empty.' },
  thoughts: { type: 'string' },
} as const

/** Schemas for each turn of a round without tools: `schema` is sent, `accepts` allows unneeded fields to be missing. */
export const STEP_ANSWER: Readonly<Record<'schema' | 'accepts', JsonSchema>> = {
  schema: {
    type: 'object',
    properties: {
      ...STEP_FIELDS,
      ask_human: {
        type: ['object', 'null'],
        description: 'Only to ask the person for a secret; else null.',
        properties: { ...ASK_FIELDS, reason: { ...REASON_FIELD, type: ['string', 'null'] } },
        required: ['question', 'key_name', 'storage', 'reason'],
        additionalProperties: false,
      },
    },
    required: ['command', 'secrets', 'done', 'thoughts', 'ask_human'],
    additionalProperties: false,
  },
  accepts: {
    type: 'object',
    properties: {
      ...STEP_FIELDS,
      secrets: { type: ['array', 'null'], items: { type: 'string' } },
      ask_human: { type: ['object', 'null'] },
    },
    required: ['command', 'done', 'thoughts'],
  },
}

const shellFields = {
  command: v.pipe(v.string('use a text'), v.maxLength(MOST_COMMAND, `use at most ${MOST_COMMAND} characters`)),
  secrets: v.optional(
    v.pipe(
      v.nullable(v.array(v.string('use a text'), 'use a list of names')),
      v.transform(names => [...new Set(names)]),
      v.maxLength(MOST_SECRETS, `use at most ${MOST_SECRETS}`),
    ),
    [],
  ),
}

const shellSchema = v.object({
  ...shellFields,
  command: v.pipe(shellFields.command, v.regex(/\S/, 'use a command that is not empty')),
})

const secretSchema = v.pipe(
  v.object({
    question: text(MOST_TEXT),
    key_name: v.pipe(v.string('use a text'), v.trim()),
    storage: v.literal('env', 'use "env"'),
    reason: v.nullish(
      v.pipe(v.string('use a text'), v.trim(), v.maxLength(MOST_TEXT, `use at most ${MOST_TEXT} characters`)),
    ),
  }),
  v.transform(({ question, key_name: key, reason }): WantedSecret => ({ question, key, reason: reason || null })),
)

const stepSchema = v.pipe(
  v.object({
    ...shellFields,
    done: v.boolean('use true or false'),
    thoughts: v.string('use a text'),
    ask_human: v.nullish(secretSchema),
  }),
  v.transform(({ ask_human: ask, ...rest }): StepAnswer => ({ ...rest, ask: ask ?? null })),
)

/** Parses the command in a call's arguments, or returns their problem, a sentence for the agent. */
export function readRunShell(args: unknown): WantedCommand | { problem: string } {
  return readCall(shellSchema, args, { fields: '`command` and `secrets`', result: 'Nothing was run' })
}

/** Parses the secret in a call's arguments, or returns their problem, a sentence for the agent. */
export function readAskHuman(args: unknown): WantedSecret | { problem: string } {
  return readCall(secretSchema, args, {
    fields: '`question`, `key_name`, `storage` and `reason`',
    result: 'Nobody was asked',
  })
}

/** Parses an agent's answer in a turn without tools; a problem is a sentence for the agent. */
export function readStepAnswer(value: unknown): Parsed<StepAnswer> {
  const fields = '`command`, `done` and `thoughts`'
  const read = readCall(stepSchema, value, { fields, result: 'Nothing was run', call: 'answer' })
  return 'problem' in read ? { ok: false, problem: read.problem } : { ok: true, value: read }
}
