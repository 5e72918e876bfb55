import * as v from 'valibot'
import type { HostTool, ToolAnswer } from '../engine.ts'

/** A tool that codemachine answers; `T`: the parsed arguments. */
export interface AnsweredTool<T extends object = object> {
  /** Its description for agents. */
  readonly offer: HostTool
  /** Parses a model's arguments, or returns their problem, a sentence for the model. */
  read(args: unknown): T | { problem: string }
  /** Runs the call. `over` is aborted when nobody waits for the answer any more. */
  answer(call: T, over: AbortSignal): Promise<ToolAnswer>
}

/** Name of the tool that gives work to another agent. */
export const RUN_AGENT = 'run_agent'

/** A task for an agent. `paths`: the folders that it may write in; null: the whole work directory. */
export interface AgentTask {
  agent: string
  task: string
  paths: readonly string[] | null
}

/** Size limit of a task, UTF-8 bytes. */
const MOST_TASK_BYTES = 256 * 1024

/** Returns why a task is invalid, a sentence; null: it is valid. */
export function problemOfTask(task: string): string | null {
  if (task.trim() === '') return 'The task is empty; say what to do.'
  if (Buffer.byteLength(task) <= MOST_TASK_BYTES) return null
  return `The task is larger than ${MOST_TASK_BYTES / 1024} KiB; put what is long into a file, and name the file.`
}

/** The tool that gives work to another agent, and waits for its result. */
export const runAgentTool: HostTool = {
  name: RUN_AGENT,
  description:
    'Gives a task to another agent, waits until it ends, and answers with its last message. Several calls may run side by side if each names other `paths`; calls whose paths overlap wait for each other. A call that takes too long, including the wait, is interrupted: after 54 minutes, unless the person has set another limit. So give small tasks.',
  inputSchema: {
    type: 'object',
    properties: {
      agent: { type: 'string', description: 'Name of the agent, such as "frontend-dev".' },
      task: {
        type: 'string',
        description:
          'The task. Explain everything: the agent sees only this text and the files. Its first line begins with the ids of the tasks of the plan that it is about, such as "T3: Create the homepage".',
      },
      paths: {
        type: 'array',
        items: { type: 'string' },
        description:
          'The folders that it may write to, relative to the work directory, such as ["src/web", "tests/web"]. It can only read the rest. Leave this out if it needs the whole work directory: then no other agent works at the same time.',
      },
    },
    required: ['agent', 'task'],
    additionalProperties: false,
  },
}

const schema = v.object({
  agent: v.pipe(v.string('use the name of an agent'), v.trim()),
  task: v.string('use a text'),
  paths: v.optional(
    v.pipe(
      v.nullable(v.array(v.string('use a text'), 'use a list of folders')),
      v.transform(paths => (paths?.length ? paths : null)),
    ),
    null,
  ),
})

/** Parses a call's arguments, or returns their problem, a sentence for the agent. */
export function readRunAgent(args: unknown): AgentTask | { problem: string } {
  return readCall(schema, args, { fields: '`agent`, `task` and `paths`', result: 'No agent was started' })
}

/** Parses a call's arguments, or returns the problem. `fields`: expected; `result`: effect; `call`: what to repeat. */
export function readCall<T>(
  schema: v.GenericSchema<unknown, T>,
  args: unknown,
  { fields, result, call = 'call it' }: { fields: string; result: string; call?: string },
): T | { problem: string } {
  const read = v.safeParse(schema, args)
  if (read.success) return read.output
  const [issue] = read.issues
  const place = v.getDotPath(issue)
  if (place === null) return { problem: `${call[0]?.toUpperCase()}${call.slice(1)} with an object of ${fields}.` }
  const what = issue.received === 'undefined' ? 'is missing' : `is wrong: ${issue.message}`
  return { problem: `\`${place}\` ${what}. ${result}; ${call} again.` }
}

/** Name of the tool to ask what only a person can decide. */
export const ASK_PERSON = 'ask_person'

/** An agent's question, and the assumption that it works with meanwhile. */
export interface Question {
  question: string
  /** Answers to choose from; empty: a free answer. */
  options: string[]
  assumption: string
}

/** Limits: characters of a question or assumption, characters of an option, number of options. */
export const MOST_TEXT = 2000
export const MOST_OPTION = 300
export const MOST_OPTIONS = 10

/** The tool for questions: it stores the question, and does not wait. */
export const askPersonTool: HostTool = {
  name: ASK_PERSON,
  description:
    'Saves a question for the person, who is away. Use it for decisions that only the person can make. It returns at once, without an answer; continue with your assumption. An answer may come later, as a message or as new work.',
  inputSchema: {
    type: 'object',
    properties: {
      question: {
        type: 'string',
        description: 'The decision to make. The person has not seen the work, so explain it.',
      },
      options: {
        type: 'array',
        items: { type: 'string' },
        description: `Answers to choose from, at most ${MOST_OPTIONS}; leave it out if any answer will do.`,
      },
      assumption: { type: 'string', description: 'What you assume meanwhile, and work with.' },
    },
    required: ['question', 'assumption'],
    additionalProperties: false,
  },
}

/** Returns the schema of a non-empty text argument with at most `most` characters. */
export const text = (most: number): v.GenericSchema<unknown, string> => {
  return v.pipe(
    v.string('use a text'),
    v.trim(),
    v.nonEmpty('use a text that is not empty'),
    v.maxLength(most, `use at most ${most} characters`),
    v.transform(text => text.toWellFormed()),
  )
}

const questionSchema = v.object({
  question: text(MOST_TEXT),
  options: v.optional(
    v.pipe(
      v.nullable(v.array(text(MOST_OPTION), 'use a list of texts')),
      v.transform(options => [...new Set(options)]),
      v.maxLength(MOST_OPTIONS, `use at most ${MOST_OPTIONS}`),
    ),
    [],
  ),
  assumption: text(MOST_TEXT),
})

/** Parses the question in a call's arguments, or returns their problem, a sentence for the agent. */
export function readQuestion(args: unknown): Question | { problem: string } {
  return readCall(questionSchema, args, {
    fields: '`question`, `options` and `assumption`',
    result: 'Nothing was kept',
  })
}

/** Returns the key of equal questions: its words, without case and spacing. */
export function questionKey(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase()
}
