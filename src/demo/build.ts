import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type Action,
  addDoneEntries,
  conclude,
  findSessionPaths,
  markDone,
  patch,
  play,
  projectSources,
  type SessionPaths,
  say,
  shell,
} from './actions.ts'
import { type AgentPart, agentsScript } from './agents-script.ts'
import { functionCall, type ModelRequest, type ReplyItem, reply, type Script, type ScriptStep } from './model/reply.ts'
import { createRepository } from './project.ts'
import { goalsInTurn } from './queued.ts'

const sources = projectSources('reading-list')

/**
 * The script of a build: four agents write a small program in eight tasks, three of them at once; one task fails its
 * acceptance criterion at first. `impossibleTask`: T7 can never be done, and is tried five times. `watchable` sends
 * text at reading speed. An interrupted round is played again from the state of the plan.
 */
export function buildScript(pace: 'instant' | 'watchable', { impossibleTask }: { impossibleTask: boolean }): Script {
  const deltaMs = pace === 'watchable' ? 40 : 0
  const plan = planText(impossibleTask)
  const rounds = sources.json<Rounds>('rounds.json')
  const tasks = sources.json<Readonly<Record<string, readonly DataStep[]>>>('agents.json')
  const part = (stepsFor: (state: BuildState) => readonly BuildStep[]): AgentPart => {
    const begun = new Map<number, readonly ScriptStep[]>()
    return (_, request) => {
      const known = begun.get(request.conversation)
      if (known !== undefined) return known
      const steps = stepsFor(readBuildState(request)).map(step => scriptStep(step, deltaMs))
      begun.set(request.conversation, steps)
      return steps
    }
  }
  return agentsScript({
    'agents-builder': part(state => stepsOfRound(rounds.team, state, plan)),
    'master-mind': part(state => stepsOfRound(rounds[masterMindRound(impossibleTask, state)], state, plan)),
    'project-summarizer': part(() => summarizing),
    'last-look': part(state => stepsOfRound(rounds['last-look'], state, plan)),
    replan: part(() => replanning),
    goal: goalsInTurn(null, deltaMs),
    ...Object.fromEntries(
      taskAgents.map(name => [
        name,
        part(({ asked }) => stepsForTask(tasks, asked).map(step => buildStep(step, plan))),
      ]),
    ),
  })
}

function scriptStep(step: BuildStep, deltaMs: number): ScriptStep {
  return request => ({ ...reply(...step(readBuildState(request))), deltaMs })
}

/**
 * Creates the git repository of the build in `directory`, which has to be empty or missing: a list of books in one
 * commit, and the specification where `codemachine start` reads it. `env`: the environment of git.
 */
export async function createBuildRepository(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  await createRepository(
    directory,
    { files: { 'books.json': sources.text('books.json') }, message: 'Begin with a list' },
    env,
  )
  const specification = join(directory, '.codemachine', 'inputs', 'specifications.md')
  await mkdir(dirname(specification), { recursive: true })
  await writeFile(specification, sources.text('codemachine/inputs/specifications.md'))
}

/** One thing that an agent of the build does: what every demo knows, a call of an agent, or tasks that are marked. */
type BuildAction =
  | Action
  | { agent: string; task: string; paths?: readonly string[]; ifOpen?: readonly string[] }
  | { finish: readonly string[] }
type DataStep = readonly BuildAction[]

/** A round of a main agent. Parts and calls with `ifOpen` are left out if none of these tasks is open as it begins. */
interface Round {
  parts: readonly { ifOpen?: readonly string[]; steps: readonly DataStep[] }[]
}
type MasterMindRound = 'first' | 'last' | 'last-without-T7' | 'retry-T7'
type Rounds = Readonly<Record<'team' | MasterMindRound | 'last-look', Round>>

/** The round of master-mind, chosen by the open tasks: T1 to T6 in the first one, the rest in later ones. */
function masterMindRound(impossibleTask: boolean, state: BuildState): MasterMindRound {
  if (openTasks(state, ...UP_TO_T6).length > 0) return 'first'
  if (!impossibleTask) return 'last'
  return openTasks(state, 'T8').length > 0 ? 'last-without-T7' : 'retry-T7'
}

const UP_TO_T6 = ['T1', 'T2', 'T3', 'T4', 'T5', 'T6']

function stepsOfRound({ parts }: Round, state: BuildState, plan: string): readonly BuildStep[] {
  const isWanted = (piece: BuildAction | Round['parts'][number]) =>
    !('ifOpen' in piece) || piece.ifOpen === undefined || openTasks(state, ...piece.ifOpen).length > 0
  return parts
    .filter(isWanted)
    .flatMap(({ steps }) => steps)
    .map(step => buildStep(step.filter(isWanted), plan))
}

function buildStep(step: DataStep, plan: string): BuildStep {
  return state =>
    step.map(action => {
      if ('finish' in action) return markOpen(state, action.finish)
      if (!('agent' in action)) return play(action, { sources, session: state, plan })
      const { agent, task, paths } = action
      return functionCall('run_agent', { agent, task, paths })
    })
}

/** Marks the open ones of these tasks as done; looks at the plan if there is none. */
function markOpen(state: BuildState, ids: readonly string[]): ReplyItem {
  const open = openTasks(state, ...ids)
  if (open.length === 0) return shell(`cat ${planFile}`)
  const entries = open.map(id => `${id} ${state.plan.find(task => task.id === id)?.name ?? ''}`)
  return patch(markDone(state, ...open), addDoneEntries(state, ...entries))
}

/** Names of the agents that are given tasks. */
const taskAgents = ['software-architect', 'backend-dev', 'frontend-dev', 'qa-engineer']

/** An agent's steps for a task, by the beginning of the request's text; none if it is no task of this build. */
function stepsForTask(tasks: Readonly<Record<string, readonly DataStep[]>>, asked: string): readonly DataStep[] {
  const task = /^T\d: .*/m.exec(asked)?.[0] ?? ''
  return Object.entries(tasks).find(([beginning]) => task.startsWith(beginning))?.[1] ?? []
}

/** The round of project-summarizer, after each of master-mind. */
const summarizing: readonly BuildStep[] = [
  () => [shell(`cat ${planFile}; git log --oneline; git status --short`)],
  state => [conclude(summaryOf(state))],
]

function summaryOf(state: BuildState): string {
  const open = state.plan.filter(({ done }) => !done)
  const [first] = open
  if (first === undefined)
    return 'All eight tasks are done, and the tests pass. To use it: node bin/reading-list.js books.json index.html'
  if (first.parked !== undefined)
    return 'Seven of eight tasks are done, and the tests pass. T7, the validator, needs somebody with a network. To use what there is: node bin/reading-list.js books.json index.html'
  if (openTasks(state, ...UP_TO_T6).length > 0)
    return `${state.plan.length - open.length} of ${state.plan.length} tasks are done. Next: ${first.id} ${first.name}.`
  return open.length === 1 && first.id === 'T7'
    ? 'Everything but T7 is done. T7 wants an answer of validator.w3.org, and there is no network here. Next: T7.'
    : `T1 to T6 are done: reading-list reads books.json and makes a page. T4 took two tries, as titles were put into the page as HTML at first. Next: ${open.map(({ id }) => id).join(' and ')}.`
}

/** A change of plan: adds the person's words to the last open task. */
const replanning: readonly BuildStep[] = [
  state => [say('I read the plan.'), shell(`cat ${state.main} ${planFile}`)],
  state => {
    const last = state.plan.findLast(({ done }) => !done)
    if (last === undefined) return [conclude('Every task is done, so a script like me can change nothing any more.')]
    const wish = state.asked.replace(/^Change the plan:\s*/, '').trim()
    const plan = state.plan.map(task =>
      task === last ? { ...task, details: `${task.details} A person wants: ${wish}` } : task,
    )
    return [shell(`cat > ${planFile} <<'EOF'\n${JSON.stringify({ tasks: plan }, null, 2)}\nEOF`)]
  },
  () => [
    conclude(
      'What you said stands in the details of the last task that is open. A script plays my part, so it can do no more than that.',
    ),
  ],
]

/** A task in the plan's file. */
interface PlannedTask {
  id: string
  name: string
  details: string
  done: boolean
  parked?: string
}

/** The state of a build at a request, read from its files, so that an interrupted round can be played again. */
interface BuildState extends SessionPaths {
  /** In order; empty before there is a plan. */
  plan: readonly PlannedTask[]
  /** The turn's last user message. */
  asked: string
}

/** One step of a conversation: the reply's items, made from the state of the build. */
type BuildStep = (state: BuildState) => readonly ReplyItem[]

/** Reads the state of the build to which a request belongs. */
function readBuildState({ developerTexts, userTexts }: ModelRequest): BuildState {
  // Only main agents are told of a MAIN.md; every agent knows the plan.
  const found = findSessionPaths(developerTexts) ?? { main: 'MAIN.md', kb: '.codemachine/kb' }
  const directory = /<cwd>([^<]+)<\/cwd>/.exec(userTexts.join('\n'))?.[1]
  return {
    ...found,
    tasks: planFile,
    plan: directory === undefined ? [] : readPlan(join(directory, planFile)),
    asked: userTexts.at(-1) ?? '',
  }
}

/** The ids of the open ones of these tasks. */
function openTasks({ plan }: BuildState, ...ids: readonly string[]): string[] {
  return ids.filter(id => plan.find(task => task.id === id)?.done !== true)
}

function readPlan(path: string): PlannedTask[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).tasks
  } catch {
    // There is no plan yet, or a person is writing it.
    return []
  }
}

/** Path of the plan, relative to the work directory. */
const planFile = '.codemachine/plan/tasks.json'

/** The plan as JSON. `impossibleTask`: T7 is one that cannot be done without a network. */
export function planText(impossibleTask: boolean): string {
  return sources.text(`codemachine/plan/${impossibleTask ? 'tasks.impossible.json' : 'tasks.json'}`)
}
