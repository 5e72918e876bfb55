import * as v from 'valibot'
import { parseJson } from '../../base/json.ts'
import { clipEnd } from '../../base/text.ts'
import type { Parsed, Task, TaskMark } from '../../core/shapes/memory.ts'

const corrections: Corrections = {
  '': 'write { "tasks": [ … ] }',
  tasks: 'write { "tasks": [ … ] }',
  'tasks[]': 'write { "id": "T1", "name": "…", "done": false }',
  id: 'use a string such as "T1"',
  name: 'use a string that says what the task is',
  done: 'use true or false',
}

const filledString = (description: string) => v.pipe(v.string(), v.regex(/\S/), v.description(description))

/** A `tasks.json`. Other fields of a task (details, acceptanceCriteria, subtasks, …) are the agent's own and not read. */
export const tasksFileSchema = v.object({
  tasks: v.array(
    v.object({
      id: filledString('the name of the task for other files, such as "T1"; unique'),
      name: filledString('what the task is'),
      done: v.pipe(v.boolean(), v.description('true or false')),
      phase: v.optional(v.pipe(v.unknown(), v.description('the name of its phase'))),
    }),
  ),
})

/** Parses a `tasks.json` (docs/inside/design.md, "tasks.json"). A problem names its place: `tasks[3].done is "yes"; …`. */
export function parseTasksFile(text: string): Parsed<readonly Task[]> {
  const json = parseJson(text)
  if (!json.ok) return json
  const result = v.safeParse(tasksFileSchema, json.value, { abortEarly: true })
  if (!result.success) return { ok: false, problem: describeIssue(result.issues[0], corrections) }
  const tasks = result.output.tasks
  const seen = new Set<string>()
  for (const [index, { id }] of tasks.entries()) {
    if (seen.has(id)) return { ok: false, problem: describeDuplicateId(id, `tasks[${index}]`) }
    seen.add(id)
  }
  return { ok: true, value: tasks.map(({ phase, ...task }) => (typeof phase === 'string' ? { ...task, phase } : task)) }
}

/**
 * Correction for each value of a file, by key; `''`: the whole file, `tasks[]`: an entry of the list `tasks`. Follows "; "
 * in a problem, without a full stop.
 */
export type Corrections = Readonly<Record<string, string>>

/** Returns a schema issue as a sentence with place and correction: `tasks[3].done is "yes"; use true or false.` */
export function describeIssue(issue: v.BaseIssue<unknown>, corrections: Corrections): string {
  const keys = issue.path?.map(item => item.key) ?? []
  const place = keys
    .map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1)
  const last = keys.at(-1)
  const mend = corrections[typeof last === 'number' ? `${String(keys.at(-2))}[]` : String(last ?? '')]
  const what = issue.input === undefined ? 'is missing' : `is ${shown(issue.input)}`
  return `${place === '' ? 'the whole' : place} ${what}; ${mend ?? corrections['']}.`
}

/** Returns a sentence on a duplicate id. @param place of the second one, such as `tasks[4]` */
export function describeDuplicateId(id: string, place: string): string {
  return `duplicate id ${shown(id)} at ${place}; give every task its own id.`
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

/** Applies codemachine's marks to a valid text of `tasks.json`. Returns the same text if it already has them. */
export function applyTaskMarks(text: string, marks: readonly TaskMark[]): string {
  const byId = new Map(marks.map(mark => [mark.id, mark]))
  const file = parseRaw(text)
  const tasks = file.tasks.map(task => applyMark(task, byId.get(String(task.id))))
  const there = new Set(file.tasks.map(({ id }) => String(id)))
  for (const { id, lost } of marks) if (lost !== undefined && !there.has(id)) tasks.push({ ...lost, id })
  if (tasks.length === file.tasks.length && tasks.every((task, index) => task === file.tasks[index])) return text
  return `${JSON.stringify({ ...file, tasks }, null, 2)}\n`
}

/** Returns the unparsed tasks of a valid text of `tasks.json`, by id. */
export function rawTasksById(text: string): Map<string, RawTask> {
  return new Map(parseRaw(text).tasks.map(task => [String(task.id), task]))
}

type RawTask = Readonly<Record<string, unknown>>

function parseRaw(text: string): { tasks: readonly RawTask[] } {
  return JSON.parse(text.replace(/^\uFEFF/, ''))
}

function applyMark(task: RawTask, mark: TaskMark | undefined): RawTask {
  if (mark === undefined) return task
  const { done = task.done, parked } = mark
  const before = task.parked ?? null
  const after = parked === undefined ? before : parked
  if (task.done === done && before === after) return task
  const { parked: _, ...rest } = task
  return after === null ? { ...rest, done } : { ...rest, done, parked: after }
}

/** A task for the task board. */
export interface BoardTask {
  id: string
  name: string
  phase: string | null
  done: boolean
}

/** Maximum characters of one text on the task board. */
export const MOST_CHARACTERS = 1000

/**
 * Parses a `tasks.json` for the board; `null` if it is invalid, for example during a write.
 * @param redact takes the secrets out of a text, before it is cut
 */
export function parseBoardTasks(text: string, redact: (text: string) => string): readonly BoardTask[] | null {
  const tasks = parseTasksFile(text)
  if (!tasks.ok) return null
  return tasks.value.map(({ id, name, phase, done }) => ({
    id: redact(id),
    name: clipEnd(redact(name), MOST_CHARACTERS),
    phase: phase === undefined ? null : clipEnd(redact(phase), MOST_CHARACTERS),
    done,
  }))
}

/**
 * Returns the id of the current task: the first open one that an "In progress" entry names, otherwise the first open one,
 * otherwise `null`.
 */
export function currentTask(tasks: readonly BoardTask[], inProgress: readonly string[]): string | null {
  const open = new Set(tasks.filter(({ done }) => !done).map(({ id }) => id))
  for (const entry of inProgress) {
    const named = findNamedTask(entry, open)
    if (named !== null) return named
  }
  return tasks.find(({ done }) => !done)?.id ?? null
}

/** Returns the task that an entry names: `**T3**: build it`, `T3 build it`. */
function findNamedTask(entry: string, ids: ReadonlySet<string>): string | null {
  const words = entry.slice(0, MOST_CHARACTERS).split(/[\s*_`~:;,()[\]]+/)
  return words.find(word => ids.has(word)) ?? null
}
