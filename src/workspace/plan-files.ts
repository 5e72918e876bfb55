import { lstat, opendir, realpath, rename, rm } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { clipEnd } from '../base/clip.ts'
import { diskFull, isNoRoom } from '../base/disk-full.ts'
import { systemErrorCode, UserError } from '../base/errors.ts'
import { findObstacle, writeFileInside } from './inside-directory.ts'
import { type ParsedPlan, type PlanTask, parsePlan } from './plan-schema.ts'
import { makeProjectFolder, projectFolders } from './project-folders.ts'
import { readTextFile } from './read-text-file.ts'

/** Where a plan lies; absolute paths. */
interface PlanPaths {
  folder: string
  tasks: string
  /** What the last summary said. */
  summary: string
  /** Folder of the plans of earlier builds. */
  earlier: string
}

const inside = {
  tasks: join(projectFolders.plan, 'tasks.json'),
  summary: join(projectFolders.plan, 'summary.md'),
  earlier: join(projectFolders.plan, 'earlier'),
}

const MOST_BYTES = 1024 * 1024
const MOST_SUMMARY = 64 * 1024
/** Of plans, and of summaries. */
const MOST_KEPT = 20
const MOST_LISTED = 10_000
const MOST_PROMPT_PROBLEMS = 10

/** Where the plan of a work directory lies. Touches nothing. */
export function planPaths(directory: string): PlanPaths {
  return {
    folder: join(directory, projectFolders.plan),
    tasks: join(directory, inside.tasks),
    summary: join(directory, inside.summary),
    earlier: join(directory, inside.earlier),
  }
}

/**
 * Begins the plan of a new build: moves what lies in its place, with its summary, to `plan/earlier/<session>.json` and `.md`
 * (a link itself, never what it leads to), and writes a plan without tasks. The last 20 are kept. For the moment at which
 * the session is made, and no later one. Throws a `UserError` if a folder is in the way or nothing can be written.
 */
export async function setEarlierPlanAside(directory: string, session: string): Promise<void> {
  const root = await realpath(directory)
  await writingPlan(root, async () => {
    await makeProjectFolder(root, inside.earlier)
    await moveIfThere(join(root, inside.tasks), join(root, inside.earlier, `${session}.json`))
    await moveIfThere(join(root, inside.summary), join(root, inside.earlier, `${session}.md`))
    await writeFileInside(root, inside.tasks, `${JSON.stringify({ tasks: [] }, null, 2)}\n`)
    for (const ending of ['.json', '.md']) await keepTheLast(join(root, inside.earlier), ending)
  })
}

/** Writes `plan/summary.md`, at most 64 Ki characters of it; a `UserError` if it cannot be written. */
export async function writePlanSummary(directory: string, text: string): Promise<void> {
  const root = await realpath(directory)
  await writingPlan(root, async () => {
    await makeProjectFolder(root, projectFolders.plan)
    await writeFileInside(root, inside.summary, `${clipEnd(text.trim(), MOST_SUMMARY)}\n`)
  })
}

/** A plan that can be carried out, with the agents that have a prompt of the project's own; or what is wrong, a sentence each. */
type CheckedPlan =
  | { ok: true; tasks: readonly PlanTask[]; agents: readonly string[] }
  | { ok: false; problems: readonly string[] }

/**
 * Looks at what a team builder has written. A problem names its file.
 * @param prompts the agents that have a usable prompt of the project's own, and what is wrong with others
 */
export async function checkPlanFiles(
  directory: string,
  prompts: { agents: readonly string[]; problems: readonly string[] },
): Promise<CheckedPlan> {
  const plan = await readPlan(await realpath(directory))
  if (plan.ok && prompts.problems.length === 0) return { ok: true, tasks: plan.tasks, agents: prompts.agents }
  const file = inside.tasks.replaceAll(sep, '/')
  const wrong = plan.ok ? [] : plan.problems.map(problem => (problem.startsWith('…') ? problem : `${file}: ${problem}`))
  return { ok: false, problems: [...wrong, ...prompts.problems.slice(0, MOST_PROMPT_PROBLEMS)] }
}

async function readPlan(root: string): Promise<ParsedPlan> {
  const wrong = (problem: string) => ({ ok: false as const, problems: [problem] })
  const obstacle = await findObstacle(root, projectFolders.plan)
  if (obstacle !== null && obstacle.kind !== 'missing')
    return wrong('its folder is a link or a file; make it a folder.')
  const read = await readTextFile(join(root, inside.tasks), MOST_BYTES)
  if (read.kind === 'gone') return wrong('it is missing; write { "tasks": [ … ] }.')
  return read.kind === 'broken' ? wrong(read.problem) : parsePlan(read.text)
}

async function moveIfThere(from: string, to: string): Promise<void> {
  try {
    await lstat(from)
    await rename(from, to)
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error
  }
}

/** Their names are a day and a counter, so the newest have the greatest. */
async function keepTheLast(folder: string, ending: string): Promise<void> {
  const names: string[] = []
  for await (const { name } of await opendir(folder)) {
    if (name.endsWith(ending) && names.length < MOST_LISTED) names.push(name)
  }
  const order = new Intl.Collator('en', { numeric: true })
  const old = names.sort(order.compare).slice(0, -MOST_KEPT)
  for (const name of old) await rm(join(folder, name), { recursive: true, force: true })
}

async function writingPlan(root: string, write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    const folder = join(root, projectFolders.plan)
    if (isNoRoom(error)) throw diskFull(folder, error)
    throw new UserError(`codemachine cannot write to ${folder} (${code}); make it a folder that you can write to.`, {
      exitCode: 4,
      cause: error,
    })
  }
}
