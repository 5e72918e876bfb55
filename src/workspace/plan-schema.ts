import * as v from 'valibot'
import { type Mends, parseJson, problemOfDuplicate, problemOfIssue } from './json-problems.ts'

const PHASES = ['Planning', 'Building', 'Testing', 'Runtime'] as const

/** What is known of a task of a new plan (docs/design.md, "tasks.json"); all else in it is for the agents. */
export interface PlanTask {
  id: string
  name: string
  phase: (typeof PHASES)[number]
}

/** A new plan, or what is wrong with it: a sentence each, at most 11. */
export type ParsedPlan = { ok: true; tasks: readonly PlanTask[] } | { ok: false; problems: readonly string[] }

const MOST_TASKS = 500
const MOST_PROBLEMS = 10
const NAME_CHARACTERS = 200

const mends: Mends = {
  '': 'write { "tasks": [ … ] }',
  tasks: 'write a list with at least one task',
  'tasks[]':
    'write { "id": "T1", "name": "…", "details": "…", "acceptanceCriteria": "…", "phase": "…", "done": false }',
  id: 'use a short string without spaces, such as "T1"',
  name: `use a line of at most ${NAME_CHARACTERS} characters that says what the task is`,
  details: 'use a string that says what is to be done',
  acceptanceCriteria: 'use a string, or a list of strings, that says what can be checked',
  'acceptanceCriteria[]': 'use a string that says what can be checked',
  phase: `use ${PHASES.slice(0, -1).join(', ')} or ${PHASES.at(-1)}`,
  done: 'use false, for nobody has worked on it yet',
  subtasks: 'use a list, or leave it out',
  'subtasks[]': 'write { "id": "T1.1", "name": "…", "details": "…" }',
}

const filled = v.pipe(
  v.string(),
  v.check(text => text.trim() !== ''),
)
const id = v.pipe(v.string(), v.regex(/^[\p{L}\p{N}][\p{L}\p{N}._-]{0,39}$/u))
const name = v.pipe(filled, v.maxLength(NAME_CHARACTERS), v.regex(/^\P{Cc}*$/u))

const schema = v.object({
  tasks: v.pipe(
    v.array(
      v.object({
        id,
        name,
        details: v.string(),
        acceptanceCriteria: v.union([filled, v.pipe(v.array(filled), v.minLength(1))]),
        phase: v.picklist(PHASES),
        done: v.literal(false),
        subtasks: v.optional(v.array(v.object({ id, name, details: v.string() })), []),
      }),
    ),
    v.minLength(1),
  ),
})

/** All that can be said of ids, whatever else is wrong. */
const idsSchema = v.object({
  tasks: v.array(v.object({ id: v.string(), subtasks: v.optional(v.array(v.object({ id: v.string() })), []) })),
})

/** Parses the plan that an agent has written. A problem names its place and its mend: `tasks[3].phase is "Build"; …`. */
export function parsePlan(text: string): ParsedPlan {
  const json = parseJson(text)
  if (!json.ok) return { ok: false, problems: [json.problem] }
  const result = v.safeParse(schema, json.value)
  const wrong = (result.issues ?? []).map(issue => problemOfIssue(issue, mends))
  // A name that is blank and too long is one problem.
  const problems = [...new Set([...wrong, ...problemsOfIds(json.value)])]
  if (!result.success || problems.length > 0) return { ok: false, problems: fewest(problems) }
  return { ok: true, tasks: result.output.tasks.map(({ id, name, phase }) => ({ id, name, phase })) }
}

function problemsOfIds(json: unknown): string[] {
  const result = v.safeParse(idsSchema, json)
  if (!result.success) return []
  const { tasks } = result.output
  const places = tasks.flatMap((task, index) => [
    { id: task.id, place: `tasks[${index}]` },
    ...task.subtasks.map((subtask, at) => ({ id: subtask.id, place: `tasks[${index}].subtasks[${at}]` })),
  ])
  const seen = new Set<string>()
  const duplicates = places.filter(({ id }) => {
    const isSecond = seen.has(id)
    seen.add(id)
    return isSecond
  })
  const problems = duplicates.map(({ id, place }) => problemOfDuplicate(id, place))
  if (tasks.length <= MOST_TASKS) return problems
  return [`tasks has ${tasks.length} entries; write at most ${MOST_TASKS}.`, ...problems]
}

/** They go back to the agent. */
function fewest(problems: readonly string[]): string[] {
  const more = problems.length - MOST_PROBLEMS
  const first = problems.slice(0, MOST_PROBLEMS)
  return more > 0 ? [...first, `… and ${more} more.`] : first
}
