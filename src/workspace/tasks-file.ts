import * as v from 'valibot'
import { type Mends, parseJson, problemOfDuplicate, problemOfIssue } from './json-problems.ts'
import type { Parsed, Task } from './memory.ts'

const mends: Mends = {
  '': 'write { "tasks": [ … ] }',
  tasks: 'write { "tasks": [ … ] }',
  'tasks[]': 'write { "id": "T1", "name": "…", "done": false }',
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
  tasks: v.array(v.object({ id: filledString, name: filledString, done: v.boolean(), phase: v.optional(v.unknown()) })),
})

/** Parses a `tasks.json` (docs/design.md, "tasks.json"). A problem names its place: `tasks[3].done is "yes"; …`. */
export function parseTasksFile(text: string): Parsed<readonly Task[]> {
  const json = parseJson(text)
  if (!json.ok) return json
  const result = v.safeParse(schema, json.value, { abortEarly: true })
  if (!result.success) return { ok: false, problem: problemOfIssue(result.issues[0], mends) }
  const tasks = result.output.tasks
  const seen = new Set<string>()
  for (const [index, { id }] of tasks.entries()) {
    if (seen.has(id)) return { ok: false, problem: problemOfDuplicate(id, `tasks[${index}]`) }
    seen.add(id)
  }
  return { ok: true, value: tasks.map(({ phase, ...task }) => (typeof phase === 'string' ? { ...task, phase } : task)) }
}
