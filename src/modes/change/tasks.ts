import { truncate } from '../../base/text.ts'
import type { AskedAnswer, JsonSchema } from '../../core/rules/answer.ts'
import type { Parsed } from '../../core/shapes/memory.ts'
import {
  cleanText,
  isPair,
  isRecord,
  isText,
  listOfObjects,
  type Mistake,
  problemOfMistakes,
  wrongEntries,
} from './plan.ts'

/** What kind of work a task is: to find something out, to change something, or a command that has to succeed. */
type TaskType = (typeof TASK_TYPES)[number]

const TASK_TYPES = ['INFO_GATHERING', 'ACTION', 'VERIFICATION'] as const

/** A task as it was planned. */
export interface TaskSpec {
  id: string
  type: TaskType
  description: string
  /** By name, what an earlier task gives: `<task>.<output>`. */
  inputs: Readonly<Record<string, string>>
  /** By name, what it gives; a VERIFICATION gives nothing. */
  outputs: Readonly<Record<string, string>>
  /** Files that it changes or looks at, relative to the project with `/`. */
  files: readonly string[]
  /** The command of a VERIFICATION, a line for a shell; null of any other. */
  run: string | null
}

/**
 * The answer of a round that cuts a plan into tasks. Strict models take no objects with free keys, so that inputs and outputs are
 * asked for as lists of pairs; `readTasks` takes objects, too, and says what is wrong with the rest.
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

/**
 * Reads an answer that is to be a list of tasks: `{ "tasks": […] }`, with inputs and outputs as lists of pairs or as objects.
 * Texts are cleaned, an empty `run` is none, and a VERIFICATION has no outputs, for no model answers it. A problem has a line for
 * each mistake. Whether the tasks can be carried out, `tasksProblem` says. Pure.
 */
export function readTasks(value: unknown): Parsed<TaskSpec[]> {
  const list = isRecord(value) ? value.tasks : undefined
  if (!Array.isArray(list)) {
    return { ok: false, problem: '- The answer is no list of tasks; give one JSON object with a list "tasks".' }
  }
  const mistakes: Mistake[] = []
  const tasks = list.flatMap((each, at) => {
    const wrong = shapeMistakes(each, `tasks[${at}]`)
    mistakes.push(...wrong)
    return wrong.length > 0 ? [] : [readTask(each as RawTask)]
  })
  return mistakes.length === 0 ? { ok: true, value: tasks } : { ok: false, problem: problemOfMistakes(mistakes) }
}

interface RawTask extends Pick<TaskSpec, 'id' | 'type' | 'description' | 'files' | 'run'> {
  inputs: unknown
  outputs: unknown
}

function shapeMistakes(task: unknown, place: string): Mistake[] {
  if (!isRecord(task)) return [{ place, wrong: 'has to be an object.' }]
  const { id, type, description, inputs, outputs, files, run } = task
  return [
    ...(isText(id) ? [] : [{ place: `${place}.id`, wrong: 'has to be a text such as "T1".' }]),
    ...(TASK_TYPES.some(each => each === type)
      ? []
      : [{ place: `${place}.type`, wrong: `has to be one of ${TASK_TYPES.join(', ')}.` }]),
    ...(isText(description) ? [] : [{ place: `${place}.description`, wrong: 'has to be a text.' }]),
    ...pairMistakes(inputs, 'from', `${place}.inputs`),
    ...pairMistakes(outputs, 'what', `${place}.outputs`),
    ...wrongEntries(`${place}.files`, files, isText, 'a text'),
    ...(run === null || run === undefined || isText(run)
      ? []
      : [{ place: `${place}.run`, wrong: 'has to be a text, or null.' }]),
  ]
}

/** What is wrong with a list of pairs, or with an object of texts. */
function pairMistakes(pairs: unknown, field: string, place: string): Mistake[] {
  if (isRecord(pairs)) {
    const wrong = Object.entries(pairs).filter(([, text]) => !isText(text))
    return wrong.map(([name]) => ({ place: `${place}.${truncate(name, 60)}`, wrong: 'has to be a text.' }))
  }
  const wrong = wrongEntries(place, pairs, isPair('name', field), `an object with the texts "name" and "${field}"`)
  if (wrong.length > 0) return wrong
  const names = (pairs as { name: string }[]).map(({ name }) => name.trim())
  const again = names.find((name, at) => names.indexOf(name) < at)
  return again === undefined ? [] : [{ place, wrong: `has the name ${shown(again)} twice; give every one its own.` }]
}

function readTask({ id, type, description, inputs, outputs, files, run }: RawTask): TaskSpec {
  const line = run?.toWellFormed().trim() ?? ''
  return {
    id: id.trim(),
    type,
    description: cleanText(description),
    inputs: recordOf(inputs, 'from'),
    outputs: type === 'VERIFICATION' ? {} : recordOf(outputs, 'what'),
    files: files.map(path =>
      path
        .toWellFormed()
        .trim()
        .replace(/^(?:\.\/+)+(?=.)/, ''),
    ),
    run: line === '' ? null : line,
  }
}

function recordOf(pairs: unknown, field: string): Record<string, string> {
  const entries: [string, string][] = Array.isArray(pairs)
    ? pairs.map(pair => [pair.name, pair[field]])
    : Object.entries(pairs as Record<string, string>)
  return Object.fromEntries(entries.map(([name, text]) => [name.trim(), cleanText(text)]))
}

function shown(text: string): string {
  return JSON.stringify(truncate(text, 60))
}

/** A task as `tasks.json` has it. */
export interface FiledTask {
  spec: TaskSpec
  status: 'PENDING' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED'
  why: string | null
}

/** The text of `tasks.json`, as the memory of a session reads it (docs/design.md); `done` and `status` are codemachine's own. Pure. */
export function tasksFile(records: readonly FiledTask[]): string {
  const tasks = records.map(({ spec, status, why }) => {
    const { id, type, description, inputs, outputs, files, run } = spec
    const said = why === null ? {} : { why }
    const done = status === 'COMPLETED'
    return { id, name: nameOfTask(spec), done, type, status, ...said, description, inputs, outputs, files, run }
  })
  return `${JSON.stringify({ tasks }, null, 2)}\n`
}

/** A task in a few words: the first sentence of its description, at most 80 characters; its id if there is none. Pure. */
export function nameOfTask({ id, description }: Pick<TaskSpec, 'id' | 'description'>): string {
  const line = description.split('\n').find(each => each.trim() !== '') ?? ''
  const plain = line.trim().replace(/^(?:#+|[-*+]|\d+[.)])\s+/, '')
  const [sentence = ''] = /^.*?(?=[.!?]\s|[。！？]|\.?$)/u.exec(plain) ?? []
  const name = truncate((sentence === '' ? plain : sentence).trim(), 80)
  return name === '' ? id : name
}
