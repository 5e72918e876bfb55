import * as v from 'valibot'
import { placeOfJsonError } from './json-place.ts'
import type { Parsed, Task } from './memory.ts'

const mends: Readonly<Record<string, string>> = {
  tasks: 'write { "tasks": [ … ] }',
  task: 'write { "id": "T1", "name": "…", "done": false }',
  id: 'use a string such as "T1"',
  name: 'use a string that says what the task is',
  done: 'use true or false',
}

const filledString = v.pipe(
  v.string(),
  v.check(text => text.trim() !== ''),
)

// What else a task has (details, acceptanceCriteria, phase, subtasks, …) is the agent's own and stays unread.
const schema = v.object({
  tasks: v.array(v.object({ id: filledString, name: filledString, done: v.boolean() })),
})

/** Parses a `tasks.json` (docs/design.md, "tasks.json"). A problem names its place: `tasks[3].done is "yes"; …`. */
export function parseTasksFile(text: string): Parsed<readonly Task[]> {
  const json = parseJson(text)
  if (!json.ok) return json
  const result = v.safeParse(schema, json.value, { abortEarly: true })
  if (!result.success) return { ok: false, problem: sentence(result.issues[0]) }
  const tasks = result.output.tasks
  const seen = new Set<string>()
  for (const [index, { id }] of tasks.entries()) {
    if (seen.has(id)) {
      return { ok: false, problem: `duplicate id ${shown(id)} at tasks[${index}]; give every task its own id.` }
    }
    seen.add(id)
  }
  return { ok: true, value: tasks }
}

function parseJson(text: string): Parsed<unknown> {
  const json = text.replace(/^\uFEFF/, '')
  try {
    return { ok: true, value: JSON.parse(json) }
  } catch {
    const { line, column, found } = placeOfJsonError(json)
    const what = found === null ? 'the file ends too early' : `${JSON.stringify(found)} is not JSON here`
    return {
      ok: false,
      problem: `line ${line}, column ${column}: ${what}; write JSON without comments or trailing commas.`,
    }
  }
}

function sentence(issue: v.BaseIssue<unknown>): string {
  const keys = issue.path?.map(item => item.key) ?? []
  const last = keys.at(-1)
  const place = keys
    .map(key => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1)
  const mend = mends[typeof last === 'string' ? last : typeof last === 'number' ? 'task' : 'tasks']
  const what = issue.input === undefined ? 'is missing' : `is ${shown(issue.input)}`
  return `${place === '' ? 'the whole' : place} ${what}; ${mend}.`
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (value !== null && typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}
