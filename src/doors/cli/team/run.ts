import { isAbsolute, join, relative } from 'node:path'
import { UserError } from '../../../base/errors.ts'
import type { SessionState } from '../../../core/state/state.ts'
import { type BegunTeam, newTeam, type WantedTeam } from '../../../modes/team/start/begin.ts'
import { PROJECTS } from '../../../modes/team/start/places.ts'
import { pathExists } from '../../../platform/files.ts'
import type { RunOptions } from '../../../project/library.ts'
import { OpenProject } from '../../../project/open-project.ts'
import type { RunObserver } from '../../../project/sessions.ts'
import { flagValue } from '../../../project/settings/load.ts'
import { directoryOf } from '../../../project/world.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type RunFlags, readText } from '../flags.ts'
import { observerOn, whereShown } from '../output.ts'
import { listenersOn, runOptionsOf } from '../run-options.ts'
import { withNetworkIfChosen } from './with-network.ts'

/** What may be said to the commands of a team that run something, as typed. */
export interface TeamFlags extends Omit<RunFlags, 'followUp'> {
  /** The project that it works in; left out: a new one. */
  project?: string
  stepwise?: true
  plannerEngine?: string
  workerEngine?: string
  reviewerEngine?: string
  repair?: string
  yes?: true
}

/** `codemachine team <goal|->`: a project, from its goal to its review. */
export async function team(context: CliContext, words: readonly string[], flags: TeamFlags): Promise<number> {
  const wanted = wantedIn(flags)
  const goal = await textOf(context, words, 'There is no goal; say what the project should be.', TO_SAY_GOAL)
  return await shown(context, flags, { ...wanted, mode: 'all', goal, step: null }, isInputRead(words))
}

/** `codemachine team plan <goal|->`: the planner alone; its answer is all that stdout gets. */
export async function teamPlan(context: CliContext, words: readonly string[], flags: TeamFlags): Promise<number> {
  const wanted = wantedIn(flags)
  const goal = await textOf(context, words, 'There is no goal; say what to plan.', TO_SAY_GOAL_OF_PLAN)
  return await answered(context, flags, { ...wanted, mode: 'plan', goal, step: null }, 'plan')
}

/** `codemachine team work <step|->`: the worker alone, one step in a project that is there. */
export async function teamWork(context: CliContext, words: readonly string[], flags: TeamFlags): Promise<number> {
  const wanted = wantedIn(flags)
  refuseWithoutProject(flags, 'work "…"')
  const step = await textOf(context, words, 'There is no step; say what to do.', TO_SAY_STEP)
  return await shown(context, flags, { ...wanted, mode: 'work', goal: step, step }, isInputRead(words))
}

/** `codemachine team review`: the reviewer alone, of a project that is there; its answer is all that stdout gets. */
export async function teamReview(context: CliContext, flags: TeamFlags): Promise<number> {
  const wanted = wantedIn(flags)
  refuseWithoutProject(flags, 'review')
  return await answered(context, flags, { ...wanted, mode: 'review', goal: '', step: null }, 'review')
}

const TO_SAY_GOAL = [
  'codemachine team "a FastAPI service that says hello, with a start script"',
  'codemachine team -',
] as const
const TO_SAY_GOAL_OF_PLAN = [
  'codemachine team plan "a FastAPI service". If the goal itself is the word plan: codemachine team -- plan',
  'codemachine team plan -',
] as const
const TO_SAY_STEP = [
  'codemachine team work "write start.sh" --project <dir>',
  'codemachine team work - --project <dir>',
] as const

/** The text that was typed, or of standard input; a `UserError` that says how to say it where there is none. */
async function textOf(
  context: CliContext,
  words: readonly string[],
  missing: string,
  [atTerminal, fromInput]: readonly [string, string],
): Promise<string> {
  const text = words.join(' ')
  if (text.trim() !== '') return await readText(context, text)
  const hint = context.stdin.isTTY ? `Such as: ${atTerminal}` : `To read it from standard input: ${fromInput}`
  throw new UserError('CM0104', missing, { hint })
}

function isInputRead(words: readonly string[]): boolean {
  return words.join(' ') === '-'
}

/** What is said beside the goal, in values; a `UserError` for what cannot be read, or makes no sense. */
function wantedIn({
  worktree,
  project,
  stepwise,
  plannerEngine: planner,
  workerEngine: worker,
  reviewerEngine: reviewer,
  repair,
  yes,
}: TeamFlags) {
  if (worktree !== undefined)
    throw new UserError(
      'CM0102',
      '--worktree does not apply to a team, which has its own project directory. Leave it out, or name an existing directory with --project.',
    )
  if (project?.trim() === '') throw new UserError('CM0103', '--project is empty; name an existing directory.')
  return {
    project: project ?? null,
    stepwise: stepwise ?? false,
    engines: {
      ...(planner === undefined ? {} : { planner: flagValue('team.plannerEngine', planner) }),
      ...(worker === undefined ? {} : { worker: flagValue('team.workerEngine', worker) }),
      ...(reviewer === undefined ? {} : { reviewer: flagValue('team.reviewerEngine', reviewer) }),
    },
    repair: repair === undefined ? undefined : repairOf(repair),
    yes: yes ?? false,
  }
}

function repairOf(typed: string): 0 | 1 | 2 | 3 {
  const found = ([0, 1, 2, 3] as const).find(each => String(each) === typed.trim())
  if (found !== undefined) return found
  throw new UserError('CM0103', `--repair is "${oneLine(typed, MOST_SHOWN)}"; use a whole number from 0 to 3.`)
}

const MOST_SHOWN = 60

function refuseWithoutProject({ project }: TeamFlags, typed: string): void {
  if (project !== undefined) return
  throw new UserError('CM1008', `Name the project: codemachine team ${typed} --project <dir>`, {
    hint: 'The projects here: codemachine team list',
  })
}

/** A team that is to begin: its project directory, which has been made, and what it is told. */
interface Begun extends BegunTeam {
  options: RunOptions
}

async function begun(context: CliContext, options: RunOptions, wanted: WantedTeam): Promise<Begun> {
  const workspace = directoryOf(context, options)
  const project = wanted.project === null ? null : await projectNamed(workspace, wanted.project)
  const made = await newTeam(context, workspace, { ...wanted, project })
  return { ...made, options: { ...options, directory: asTyped(context, made.directory) } }
}

/** A directory that was typed, or the project of the workspace that is called so. */
async function projectNamed(workspace: string, typed: string): Promise<string> {
  if (/[\\/]/.test(typed) || (await pathExists(join(workspace, typed)))) return typed
  const named = join(PROJECTS, typed)
  return (await pathExists(join(workspace, named))) ? named : typed
}

/** A directory as a person types it where they are: commands that name it can be copied. */
function asTyped({ cwd }: CliContext, directory: string): string {
  const from = relative(cwd, directory)
  return from === '' || from.startsWith('..') || isAbsolute(from) ? directory : from
}

/** A team that was begun on the start screen: its project directory, which has been made, and what runs it to its end. */
export async function teamOnScreen(
  context: CliContext,
  goal: string,
  options: RunOptions,
): Promise<{ directory: string; work: (inner: CliContext) => Promise<number> }> {
  const wanted: WantedTeam = { ...wantedIn({}), mode: 'all', goal: await readText(context, goal), step: null }
  const made = await begun(context, options, wanted)
  return { directory: made.directory, work: inner => makeProject(inner, made, observerOn(inner, {}), {}) }
}

/** On the screen, if a person watches one whose keys are theirs, else in lines. */
async function shown(context: CliContext, flags: TeamFlags, wanted: WantedTeam, isInputRead: boolean): Promise<number> {
  const made = await begun(context, runOptionsOf(flags), wanted)
  const work = (inner: CliContext) => makeProject(inner, made, observerOn(inner, flags), flags)
  return await whereShown(context, made.options, flags, work, { goal: wanted.goal, isInputRead })
}

/** In lines on stderr; on stdout the answer of its one agent, as JSON. */
async function answered(
  context: CliContext,
  flags: TeamFlags,
  wanted: WantedTeam,
  what: 'plan' | 'review',
): Promise<number> {
  const made = await begun(context, runOptionsOf(flags), wanted)
  const beside = { ...context, stdout: context.stderr }
  const lines = observerOn(beside, flags)
  let last: SessionState | null = null
  const view: RunObserver['view'] = {
    event(event, state) {
      last = state
      lines.view.event(event, state)
    },
    live: event => lines.view.live(event),
  }
  const exitCode = await makeProject(beside, made, { ...lines, view }, flags)
  const answer = answerIn(last, what)
  if (answer !== null) context.stdout.write(`${JSON.stringify(answer)}\n`)
  return exitCode
}

/** What the planner or the reviewer has answered; null if it has not come to that. */
function answerIn(state: SessionState | null, what: 'plan' | 'review'): unknown {
  const { work } = state ?? {}
  return typeof work === 'object' && work !== null ? ((work as Record<string, unknown>)[what] ?? null) : null
}

/** Runs a team to its end, and goes on with the network at once where a person has allowed it meanwhile. */
async function makeProject(
  context: CliContext,
  { first, options, dropUnused }: Begun,
  observer: RunObserver,
  flags: RunFlags,
): Promise<number> {
  const listeners = listenersOn(context, flags)
  try {
    await using project = await OpenProject.open(context, options)
    return await withNetworkIfChosen(context, options, { observer, listeners }, async inner => {
      const worked = await project.runQueue({ first }, inner, listeners)
      if (worked === null) throw new Error('No session was run.')
      return worked
    })
  } finally {
    await dropUnused()
  }
}
