import { lstat, opendir, realpath, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import * as v from 'valibot'
import { parseJson } from '../../base/json.ts'
import { loadPrompt } from '../../base/package.ts'
import { clipEnd } from '../../base/text.ts'
import { renameIfThere, succeeds } from '../../platform/files.ts'
import { findObstacle, readTextFile, writeFileInside } from '../files/inside-directory.ts'
import { makeMemoryFolderOrRefuse, writeIfMissing, writingInside } from './memory-folder.ts'
import { memoryRoot, planPaths, projectFolders } from './memory-paths.ts'
import { type Corrections, describeDuplicateId, describeIssue } from './tasks-file.ts'

/** Path of the specification, relative to the work directory. */
export const specificationFile = join(projectFolders.inputs, 'specifications.md')

/** Returns the initial text of a specification: a guide to writing one. */
export function specificationGuide(): string {
  return loadPrompt('specifications.template')
}

/**
 * Creates the missing project folders of a work directory, and a missing specification with the guide. Throws a `UserError`
 * if a link or file replaces a folder, or if a write fails.
 */
export async function makeProjectFolders(directory: string): Promise<void> {
  const write = async () => {
    const root = await realpath(directory)
    for (const folder of Object.values(projectFolders)) await makeProjectFolder(root, folder)
    await writeIfMissing(root, specificationFile, specificationGuide())
  }
  const sentence = (code: string) =>
    `codemachine cannot write to ${directory} (${code}); make it a directory that you can write to.`
  await writingInside(join(directory, memoryRoot), write, sentence)
}

/** Creates a folder below the work directory's real path. */
function makeProjectFolder(root: string, folder: string): Promise<void> {
  return makeMemoryFolderOrRefuse(root, folder, 'make a folder in its place')
}

/** Paths relative to the work directory. */
const PLAN_FILES = planPaths('')

const MOST_BYTES = 1024 * 1024
const MOST_SUMMARY = 64 * 1024
/** Most kept plans, and most kept summaries. */
const MOST_KEPT = 20
const MOST_LISTED = 10_000
const MOST_PROMPT_PROBLEMS = 10

/**
 * Makes room for a new build's plan: moves the current plan and summary to `plan/earlier/<session>.json` and `.md`. Files of
 * an unknown session or with a taken name become `before-<new session>`. Moves a link itself, never its target. Keeps the
 * last 20, and writes a plan without tasks. Call it only during the creation of the session `id`. Throws a `UserError` if a
 * folder is in the way or a write fails.
 */
export async function archiveEarlierPlan(
  directory: string,
  { id, planOf = null }: { id: string; planOf?: string | null },
): Promise<void> {
  const root = await realpath(directory)
  await writingPlan(root, async () => {
    await makeProjectFolder(root, PLAN_FILES.earlier)
    const earlier = join(root, PLAN_FILES.earlier)
    const isTaken = async (ending: string) => await succeeds(lstat(join(earlier, `${planOf}${ending}`)))
    const isUnknown = planOf === null || (await isTaken('.json')) || (await isTaken('.md'))
    const name = isUnknown ? `before-${id}` : planOf
    await renameIfThere(join(root, PLAN_FILES.tasks), join(earlier, `${name}.json`))
    await renameIfThere(join(root, PLAN_FILES.summary), join(earlier, `${name}.md`))
    await writeFileInside(root, PLAN_FILES.tasks, `${JSON.stringify({ tasks: [] }, null, 2)}\n`)
    for (const ending of ['.json', '.md']) await removeOldest(earlier, ending)
  })
}

/** Writes `plan/summary.md`, cut at 64 Ki characters. Throws a `UserError` if it cannot be written. */
export async function writePlanSummary(directory: string, text: string): Promise<void> {
  const root = await realpath(directory)
  await writingPlan(root, async () => {
    await makeProjectFolder(root, projectFolders.plan)
    await writeFileInside(root, PLAN_FILES.summary, `${clipEnd(text.trim(), MOST_SUMMARY)}\n`)
  })
}

/** A valid plan, and the agents with a project prompt; or its problems, one sentence each. */
type CheckedPlan =
  | { ok: true; tasks: readonly PlanTask[]; agents: readonly string[] }
  | { ok: false; problems: readonly string[] }

/**
 * Checks the plan of the agents builder. Each problem names its file.
 * @param prompts the agents with a usable prompt of the project's own, and the problems of other prompts
 */
export async function checkPlanFiles(
  directory: string,
  prompts: { agents: readonly string[]; problems: readonly string[] },
): Promise<CheckedPlan> {
  const plan = await readPlan(await realpath(directory))
  if (plan.ok && prompts.problems.length === 0) return { ok: true, tasks: plan.tasks, agents: prompts.agents }
  const file = PLAN_FILES.tasks.replaceAll(sep, '/')
  const wrong = plan.ok ? [] : plan.problems.map(problem => (problem.startsWith('…') ? problem : `${file}: ${problem}`))
  return { ok: false, problems: [...wrong, ...prompts.problems.slice(0, MOST_PROMPT_PROBLEMS)] }
}

async function readPlan(root: string): Promise<ParsedPlan> {
  const wrong = (problem: string) => ({ ok: false as const, problems: [problem] })
  const obstacle = await findObstacle(root, projectFolders.plan)
  if (obstacle !== null && obstacle.kind !== 'missing')
    return wrong('its folder is a link or a file; make it a folder.')
  const read = await readTextFile(join(root, PLAN_FILES.tasks), MOST_BYTES)
  if (read.kind === 'gone') return wrong('it is missing; write { "tasks": [ … ] }.')
  return read.kind === 'broken' ? wrong(read.problem) : parsePlan(read.text)
}

/** Removes all except the newest 20. Names end in a day and a counter, so the newest sort last. */
async function removeOldest(folder: string, ending: string): Promise<void> {
  const names: string[] = []
  for await (const { name } of await opendir(folder)) {
    if (name.endsWith(ending) && names.length < MOST_LISTED) names.push(name)
  }
  const order = new Intl.Collator('en', { numeric: true })
  const bySession = (a: string, b: string) => order.compare(a.replace(BEFORE, ''), b.replace(BEFORE, ''))
  const old = names.sort(bySession).slice(0, -MOST_KEPT)
  for (const name of old) await rm(join(folder, name), { recursive: true, force: true })
}

const BEFORE = /^before-/

function writingPlan(root: string, write: () => Promise<void>): Promise<void> {
  const folder = join(root, projectFolders.plan)
  const sentence = (code: string) =>
    `codemachine cannot write to ${folder} (${code}); make it a folder that you can write to.`
  return writingInside(folder, write, sentence, 4)
}

const PHASES = ['Planning', 'Building', 'Testing', 'Runtime'] as const

/** The fields of a new plan's task that codemachine reads (docs/inside/design.md, "tasks.json"). */
interface PlanTask {
  id: string
  name: string
  phase: (typeof PHASES)[number]
}

/** The tasks of a new plan; or its problems, one sentence each, at most 11. */
type ParsedPlan = { ok: true; tasks: readonly PlanTask[] } | { ok: false; problems: readonly string[] }

const MOST_TASKS = 500
const MOST_PROBLEMS = 10
const NAME_CHARACTERS = 200

const corrections: Corrections = {
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

/** Schema of the ids only, to report duplicates regardless of other problems. */
const idsSchema = v.object({
  tasks: v.array(v.object({ id: v.string(), subtasks: v.optional(v.array(v.object({ id: v.string() })), []) })),
})

/** Parses a plan by an agent. A problem names its place and the correction: `tasks[3].phase is "Build"; …`. */
export function parsePlan(text: string): ParsedPlan {
  const json = parseJson(text)
  if (!json.ok) return { ok: false, problems: [json.problem] }
  const result = v.safeParse(schema, json.value)
  const wrong = (result.issues ?? []).map(issue => describeIssue(issue, corrections))
  // Count a blank and too long name as one problem.
  const problems = [...new Set([...wrong, ...idProblems(json.value)])]
  if (!result.success || problems.length > 0) return { ok: false, problems: firstProblems(problems) }
  return { ok: true, tasks: result.output.tasks.map(({ id, name, phase }) => ({ id, name, phase })) }
}

function idProblems(json: unknown): string[] {
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
  const problems = duplicates.map(({ id, place }) => describeDuplicateId(id, place))
  if (tasks.length <= MOST_TASKS) return problems
  return [`tasks has ${tasks.length} entries; write at most ${MOST_TASKS}.`, ...problems]
}

/** Returns the first ten problems and the number of others, for the agent to correct. */
function firstProblems(problems: readonly string[]): string[] {
  const more = problems.length - MOST_PROBLEMS
  const first = problems.slice(0, MOST_PROBLEMS)
  return more > 0 ? [...first, `… and ${more} more.`] : first
}
