import { basename, join, resolve } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import { problemOfPrompt } from '../../../base/text.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { realWorkDirectory } from '../../../platform/files.ts'
import { readableState } from '../../../project/find.ts'
import type { Run } from '../../../project/open-run.ts'
import type { NewSession } from '../../../project/sessions.ts'
import type { World } from '../../../project/world.ts'
import { type Records, recordsAround } from '../../../session/records/records.ts'
import { readTextFile } from '../../../workspace/files/inside-directory.ts'
import { INFO_FILE } from '../fold.ts'
import type { StepWork, TeamOptions, TeamWork } from '../work.ts'
import { LOGS, makePlaces, type TeamPlaces } from './places.ts'

/** Name of the template of a team. */
export const TEAM = 'team'
/** A team to begin. */
export interface WantedTeam {
  /** Goal as typed; in the mode `work` the step, in the mode `review` empty. */
  goal: string
  /** `all`: plan, work and review; else only that part. */
  mode: 'all' | 'plan' | 'work' | 'review'
  /** Step of the mode `work`; null in the others. */
  step: string | null
  /** Whether workers work without tools, one command per answer. */
  stepwise: boolean
  /** Engines of roles from flags, which win over the settings. */
  engines: NonNullable<TeamOptions['engines']>
  /** How often to repair high issues; undefined: once. */
  repair: 0 | 1 | 2 | 3 | undefined
  /** Whether to ask nobody. */
  yes: boolean
  /** Its directory as typed, relative to the workspace; null: a new one. */
  project: string | null
}

/** A team with its places. */
export interface BegunTeam {
  /** Real path of its project, the work directory of its session. */
  directory: string
  /** Creates its session, for `OpenProject.runQueue` in that directory. */
  first: (run: Run) => Promise<Omit<NewSession, 'queued'>>
  /** Removes the places of a session that could not begin. */
  dropUnused(): Promise<void>
}

/** Creates the places of a team. Throws a `UserError`, and creates nothing, if its goal or workspace is unusable. */
export async function newTeam(world: World, named: string, wanted: WantedTeam): Promise<BegunTeam> {
  const { goal: said, mode, step, stepwise, engines, repair = 1, yes, project } = wanted
  const isAlone = mode === 'work' || mode === 'review'
  const problem = mode === 'review' ? null : problemOfGoal(said)
  if (problem !== null) throw new UserError('CM0107', problem)
  if (project === null && isAlone)
    throw new UserError('CM1008', 'Name the project: --project <dir>', {
      hint: 'The projects here: codemachine team list',
    })
  const workspace = await realWorkDirectory(named)
  const given = project === null ? null : await realWorkDirectory(resolve(workspace, project))
  refusePattern(given ?? workspace)
  const before = given === null || !isAlone ? null : await projectBefore(world, given, mode)
  const goal = before?.goal ?? (said.trim() === '' ? `The project ${basename(given ?? workspace)}` : said)
  const places = await makePlaces(world, { workspace, goal: said.trim() === '' ? goal : said, project: given })
  // If the project is deleted meanwhile, nobody could find them any more.
  const [records] = await recordsAround({ ...world, directory: places.project })
  const terms: TeamOptions = {
    mode,
    step,
    stepwise,
    repair,
    accept: yes ? 'auto' : 'ask',
    workspace: { directory: places.workspace, run: places.run, logs: LOGS },
    ...(before?.earlier == null ? {} : { earlier: before.earlier }),
  }
  return {
    directory: places.project,
    first: async run => {
      const options = { ...terms, ...enginesIn(run, engines, stepwise) }
      return { text: goal, template: TEAM, by: 'command', terms: { options } }
    },
    dropUnused: async () => {
      if (records === undefined || !(await hasBegun(records, places))) await places.undo()
    },
  }
}

/** Returns the engines of a team's roles, by flags and settings. Throws a `UserError` for an unknown or unfit engine. */
function enginesIn(
  { engines, settings: { team } }: Run,
  said: WantedTeam['engines'],
  stepwise: boolean,
): Pick<TeamOptions, 'engines'> {
  const worker = said.worker ?? team.workerEngine
  engines.check(worker ?? engines.usual, '--worker-engine', stepwise ? { noShell: true } : {})
  const named = { planner: said.planner ?? team.plannerEngine, worker, reviewer: said.reviewer ?? team.reviewerEngine }
  const chosen = Object.entries(named).flatMap(([role, name]) => (name === null ? [] : [[role, name] as const]))
  for (const [role, name] of chosen) engines.check(name, `--${role}-engine`)
  return chosen.length === 0 ? {} : { engines: Object.fromEntries(chosen) }
}

/** Codex reads a path with these characters as a pattern, and builds no sandbox that writes to a pattern. */
function refusePattern(directory: string): void {
  const [sign] = directory.match(/[*?[]/) ?? []
  if (sign === undefined) return
  throw new UserError('CM0209', `${directory} contains "${sign}", which codex's sandbox would read as a pattern.`, {
    hint: 'Rename the folder, or work in another one.',
  })
}

/** A control character other than line end and tab. */
const CONTROL = /[^\t\r\n\P{Cc}]/u

/** Returns a sentence why a text cannot be a team's goal; null: it can. */
function problemOfGoal(goal: string): string | null {
  if (goal.trim() === '') return 'There is no goal; say what the project should be.'
  const problem = problemOfPrompt(goal)
  if (problem !== null) return problem
  return CONTROL.test(goal) ? 'The goal contains control characters; leave them out.' : null
}

/** Number of sessions to search for a project's goal, and for a run. */
const MOST_LOOKED_AT = 20
const MOST_INFO = 4 * 1024 * 1024
/** Most characters, as JSON, of an earlier session's result for the next one. */
const MOST_EARLIER = 256 * 1024

/** Facts of a project from earlier sessions. */
interface ProjectBefore {
  /** Its original goal; null: unknown. */
  goal: string | null
  earlier: TeamOptions['earlier'] | null
}

/** Reads the newest session of a team there; the files in it can only give its goal. */
async function projectBefore(world: World, project: string, mode: TeamOptions['mode']): Promise<ProjectBefore> {
  const [records] = await recordsAround({ ...world, directory: project })
  const teams = records === undefined ? [] : await teamsIn(records)
  const [newest] = teams
  if (newest !== undefined) {
    const { plan = null, review = null, howToTest = null } = progressOf(newest) ?? {}
    const earlier = { plan, review, howToTest }
    const steps = mode === 'review' ? teams.map(stepsOf).find(({ length }) => length > 0) : undefined
    const shorter = steps === undefined ? [] : [steps, steps.map(step => ({ ...step, told: [] }))]
    const candidates = [...shorter.map(each => ({ ...earlier, steps: each })), earlier]
    const isShort = (each: unknown) => JSON.stringify(each).length <= MOST_EARLIER
    return { goal: newest.goal, earlier: candidates.find(isShort) ?? null }
  }
  const read = await readTextFile(join(project, INFO_FILE), MOST_INFO)
  const found = read.kind === 'text' ? fieldOf(read.text, 'goal') : null
  return { goal: typeof found === 'string' && problemOfGoal(found) === null ? found : null, earlier: null }
}

function stepsOf(session: SessionState): readonly StepWork[] {
  return progressOf(session)?.steps ?? []
}

function fieldOf(text: string, name: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? Reflect.get(value, name) : null
  } catch {
    return null
  }
}

/** Returns whether a session began for the run of these places. */
async function hasBegun(records: Records, { run, workspace, isNew }: TeamPlaces): Promise<boolean> {
  if (isNew) return (await records.sessions().catch(() => [])).length > 0
  const runs = (await teamsIn(records)).map(state => progressOf(state)?.options.workspace ?? null)
  return runs.some(each => each?.run === run && each.directory === workspace)
}

/** Returns the newest team sessions in a directory, newest first. */
async function teamsIn(records: Records): Promise<SessionState[]> {
  const ids = await records.sessions().catch(() => [])
  const found: SessionState[] = []
  for (const id of ids.reverse().slice(0, MOST_LOOKED_AT)) {
    const state = await readableState(records, id)
    if (state?.template === TEAM) found.push(state)
  }
  return found
}

/** Returns the memory of a team; null: it is none. */
export function progressOf({ template, work }: Pick<SessionState, 'template' | 'work'>): TeamWork | null {
  return template === TEAM && typeof work === 'object' && work !== null ? (work as TeamWork) : null
}

/** Returns the step that an agent works on; null: none. */
export function stepAtWork(progress: TeamWork | null): StepWork | null {
  return progress?.steps.find(({ status }) => status === 'running') ?? null
}
