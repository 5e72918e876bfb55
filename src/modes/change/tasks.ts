import * as v from 'valibot'
import { cleanText, truncate } from '../../base/text.ts'
import type { AskedAnswer, JsonSchema } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'
import { listOfObjects, objectShape, pairsShape, readShape } from './plan.ts'

/** Kind of a task's work: to find something out, to change something, or a command that must succeed. */
type TaskType = (typeof TASK_TYPES)[number]

const TASK_TYPES = ['INFO_GATHERING', 'ACTION', 'VERIFICATION'] as const

/** A planned task. */
export interface TaskSpec {
  id: string
  type: TaskType
  description: string
  /** Inputs by name, each from an earlier task: `<task>.<output>`. */
  inputs: Readonly<Record<string, string>>
  /** Descriptions of its outputs by name; a VERIFICATION has none. */
  outputs: Readonly<Record<string, string>>
  /** Files that it changes or reads, relative to the project with `/`. */
  files: readonly string[]
  /** Command of a VERIFICATION, a shell line; null for other types. */
  run: string | null
}

/**
 * Answer of a round that cuts a plan into tasks. Strict models accept no free keys, so inputs and outputs are lists of
 * pairs. `readTasks` accepts objects too, and reports all other mistakes.
 */
export const TASKS_ANSWER: AskedAnswer = {
  name: 'tasks',
  schema: tasksSchema(listOfObjects('name', 'from'), listOfObjects('name', 'what')),
  accepts: {
    type: 'object',
    properties: { tasks: { type: 'array', items: { type: 'object' } } },
    required: ['tasks'],
  },
}

function tasksSchema(inputs: object, outputs: object): JsonSchema {
  const properties = {
    id: { type: 'string' },
    type: { type: 'string', enum: [...TASK_TYPES] },
    description: { type: 'string' },
    inputs,
    outputs,
    files: { type: 'array', items: { type: 'string' } },
    run: { type: ['string', 'null'] },
  }
  const task = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
  return {
    type: 'object',
    properties: { tasks: { type: 'array', items: task } },
    required: ['tasks'],
    additionalProperties: false,
  }
}

const text = v.string('has to be a text.')
const texts = v.array(text, 'has to be a list.')
const taskShape = objectShape(
  {
    id: text,
    type: v.picklist(TASK_TYPES, `has to be one of ${TASK_TYPES.join(', ')}.`),
    description: text,
    inputs: v.pipe(v.unknown(), v.transform(asPairs('from')), pairsShape('name', 'from')),
    outputs: v.pipe(v.unknown(), v.transform(asPairs('what')), pairsShape('name', 'what')),
    files: texts,
    run: v.nullish(v.string('has to be a text, or null.')),
  },
  'has to be an object.',
)
const tasksShape = objectShape(
  { tasks: v.array(taskShape, 'has to be a list.') },
  'is no list of tasks; give one JSON object with a list "tasks".',
)

/**
 * Reads a list of tasks from an answer: `{ "tasks": […] }`, with inputs and outputs as lists of pairs or objects. It cleans
 * texts, treats an empty `run` as none, and drops a VERIFICATION's outputs, because no model answers it. A problem has a
 * line per mistake. `tasksProblem` checks whether the tasks are usable. Pure.
 */
export function readTasks(value: unknown): Parsed<TaskSpec[]> {
  const read = readShape(tasksShape, value)
  return read.ok ? { ok: true, value: read.value.tasks.map(readTask) } : read
}

function readTask({ id, type, description, inputs, outputs, files, run }: v.InferOutput<typeof taskShape>): TaskSpec {
  const line = run?.toWellFormed().trim() ?? ''
  return {
    id: id.trim(),
    type,
    description: cleanText(description),
    inputs: recordOf(inputs.map(({ name, from }) => [name, from])),
    outputs: type === 'VERIFICATION' ? {} : recordOf(outputs.map(({ name, what }) => [name, what])),
    files: files.map(path =>
      path
        .toWellFormed()
        .trim()
        .replace(/^(?:\.\/+)+(?=.)/, ''),
    ),
    run: line === '' ? null : line,
  }
}

/** Converts an object of texts to a list of pairs. */
function asPairs(field: string): (value: unknown) => unknown {
  return value =>
    typeof value !== 'object' || value === null || Array.isArray(value)
      ? value
      : Object.entries(value).map(([name, text]) => ({ name, [field]: text }))
}

function recordOf(pairs: readonly (readonly [name: string, text: string])[]): Record<string, string> {
  return Object.fromEntries(pairs.map(([name, text]) => [name.trim(), cleanText(text)]))
}

/** A task in `tasks.json`. */
interface FiledTask {
  spec: TaskSpec
  status: 'PENDING' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED'
  why: string | null
}

/**
 * Returns the text of `tasks.json`, in the format of a session's memory (docs/inside/design.md); `done` and `status` are
 * codemachine's own. Pure.
 */
export function tasksFile(records: readonly FiledTask[]): string {
  const tasks = records.map(({ spec, status, why }) => {
    const { id, type, description, inputs, outputs, files, run } = spec
    const said = why === null ? {} : { why }
    const done = status === 'COMPLETED'
    return { id, name: nameOfTask(spec), done, type, status, ...said, description, inputs, outputs, files, run }
  })
  return `${JSON.stringify({ tasks }, null, 2)}\n`
}

/** Returns a task's name: its description's first sentence, at most 80 characters; else its id. Pure. */
export function nameOfTask({ id, description }: Pick<TaskSpec, 'id' | 'description'>): string {
  const line = description.split('\n').find(each => each.trim() !== '') ?? ''
  const plain = line.trim().replace(/^(?:#+|[-*+]|\d+[.)])\s+/, '')
  const [sentence = ''] = /^.*?(?=[.!?]\s|[。！？]|\.?$)/u.exec(plain) ?? []
  const name = truncate((sentence === '' ? plain : sentence).trim(), 80)
  return name === '' ? id : name
}
