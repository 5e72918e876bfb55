import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import type { BuildEvent, EventOf } from '../events/events.ts'
import { hasPassed } from '../events/outcome.ts'
import { taskNotice } from '../rules/notices.ts'
import { withNotice } from '../rules/notices-after-round.ts'
import {
  type AgentAtWork,
  type BuildState,
  type BuildTask,
  countFailure,
  isHeldToAllGates,
  newBuild,
  type RoundPart,
  taskOf,
} from './plan.ts'
import type { FoldsOf, SessionState } from './state.ts'

/** The template whose sessions are builds. */
const BUILD = 'build'
/** The most of a summary that is kept, and of what an agent was asked for. */
const SUMMARY_CHARACTERS = 8000
const REQUEST_CHARACTERS = 200

/** The state after one more event of a build. Pure. */
export const BUILD_FOLDS: FoldsOf<BuildEvent> = {
  'plan-refused': (state, event) => ({ ...state, build: planRefused(state.build, event) }),
  'plan-ready': (state, event) => ({ ...state, build: planReady(state.build, event) }),
  'agent-started': (state, event, at) => ({
    ...state,
    agents: withAgent(state.agents, event, at),
    running: state.running && { ...state.running, hasWorked: true },
  }),
  'agent-ended': (state, event) => {
    const { agents, build } = state
    const ended = agents.find(({ instance }) => instance === event.instance)
    return {
      ...state,
      agents: agents.filter(each => each !== ended),
      build: ended !== undefined && event.status === 'completed' ? workedOn(build, ended, event.round) : build,
    }
  },
  'task-judged': (state, event) => {
    const notice = taskNotice(event)
    const next = { ...state, build: taskJudged(state.build, event) }
    return notice === null ? next : withNotice(next, notice)
  },
  'tasks-judged': state => ({ ...state, build: state.build && { ...state.build, judged: true } }),
}

/** The build of a session that begins; null if it is none. */
export function firstBuild({ template, asksPlan = false }: EventOf<'session-created'>): BuildState | null {
  return template === BUILD ? newBuild(asksPlan) : null
}

/** The build of a session that goes on: a person who has looked at it may have parked tasks tried again. */
export function buildAtResume(state: SessionState): BuildState | null {
  const build = buildAtCut(state)
  const { ended } = state
  if (build === null || ended === null) return build
  const tasks = build.tasks.map(task => ({ ...task, failures: 0, failedIn: 0, parked: null, givenTo: {} }))
  // A plan that a person has mended by hand is looked at before anything else.
  return { ...build, refusals: 0, tasks, judged: build.plan === 'ready' && build.judged }
}

/** The build when what ran is over without having come to its end. */
export function buildAtCut({ build, running }: SessionState): BuildState | null {
  if (build === null || running === null || running.part === null || running.part === 'summary') return build
  return { ...build, isCutOff: true }
}

/** The build when a round begins: one that works on the plan shows that it was let go on. */
export function buildAtRound(build: BuildState | null, part: RoundPart | null): BuildState | null {
  const isLetGo = build !== null && (build.isLetGo || part === 'orchestration')
  if (build === null) return null
  const tasks = build.tasks.map(task => ({ ...task, givenTo: {} }))
  return { ...build, isLetGo, isCutOff: false, broken: null, tasks }
}

/** The build when a person lets the session go on: they have seen the plan, if there is one. */
export function buildAfterUnpause(build: BuildState | null): BuildState | null {
  return build?.plan === 'ready' ? { ...build, isLetGo: true } : build
}

/** The build when a file of the memory could not be used. */
export function buildAfterBrokenMemory(
  build: BuildState | null,
  { problem }: EventOf<'memory-broken'>,
): BuildState | null {
  return build && problem.file === 'tasks.json' ? { ...build, broken: problem.problem } : build
}

/** The build when a round has ended: what it was to mend has been looked at. */
export function buildAfterRound(
  { build, running }: SessionState,
  { outcome }: EventOf<'round-ended'>,
): BuildState | null {
  if (build === null || running === null) return build
  const isSummary = running.part === 'summary'
  const hasWorked = outcome.class === 'worked'
  return {
    ...build,
    judged: build.judged && isSummary,
    mends: build.mends && !(hasWorked && running.part === 'orchestration'),
    summary: isSummary && hasWorked && running.lastWords !== null ? running.lastWords : build.summary,
  }
}

/** How much is kept of what the agent of a round says last: a summary is needed whole. */
export function lastWordsLimit(running: SessionState['running']): number {
  return running?.part === 'summary' ? SUMMARY_CHARACTERS : 400
}

/** After a claim was refused. */
export function buildAfterRefusal(build: BuildState | null, { reason }: EventOf<'done-refused'>): BuildState | null {
  return build && { ...build, mends: !LOOK_AGAIN.has(reason) }
}

/** After a gate has run. */
export function buildAfterGate(build: BuildState | null, { gate, status }: EventOf<'gate-ended'>): BuildState | null {
  if (build === null || !hasPassed(status) || build.passedGates.includes(gate)) return build
  return { ...build, passedGates: [...build.passedGates, gate] }
}

/** Nothing has to be mended; whoever claimed it only has to look once more. */
const LOOK_AGAIN = new Set<string>(['tree-changed', 'round-not-completed', 'memory-broken'])

/** After the team builder has written something that is no plan. */
function planRefused(build: BuildState | null, { problem }: EventOf<'plan-refused'>): BuildState | null {
  return build && { ...build, plan: 'refused', refusals: build.refusals + 1, problem, judged: true }
}

/** After there is a plan. */
function planReady(build: BuildState | null, { tasks }: EventOf<'plan-ready'>): BuildState | null {
  if (build === null) return null
  const all = tasks.map(task => newTask(task.id, task.name, task.phase))
  return { ...build, plan: 'ready', refusals: 0, problem: null, tasks: all, judged: true }
}

/** After a task has been judged. */
function taskJudged(build: BuildState | null, event: EventOf<'task-judged'>): BuildState | null {
  if (build === null) return null
  const { task: id, name, phase, verdict, detail, round } = event
  const failed = (task: BuildTask) => ({ ...task, failures: countFailure(task, round), failedIn: round })
  const change = (how: (task: BuildTask) => BuildTask) => ({
    ...build,
    tasks: build.tasks.map(task => (task.id === id ? how(task) : task)),
  })
  switch (verdict) {
    case 'done':
      return change(task => ({ ...task, done: true, parked: null }))
    case 'reopened':
      return change(task => ({ ...task, done: false }))
    case 'refused':
    case 'failed':
      return change(failed)
    case 'parked':
      return change(task => ({ ...failed(task), parked: detail ?? 'It failed too often.' }))
    case 'added':
      return { ...build, tasks: [...build.tasks, newTask(id, name, phase)] }
    case 'put-back':
      return build
    case 'changed':
      return change(task => ({ ...task, name, phase, wasMovedFromGates: isMovedFromGates(task, phase) }))
    case 'edited':
      return change(task => ({ ...task, name, phase, wasMovedFromGates: false }))
    case 'removed':
      return { ...build, tasks: build.tasks.filter(task => task.id !== id) }
    default:
      return unreachable(verdict)
  }
}

function isMovedFromGates({ phase, wasMovedFromGates }: BuildTask, now: string | null): boolean {
  return (wasMovedFromGates || isHeldToAllGates(phase)) && !isHeldToAllGates(now)
}

/**
 * After an agent has come to the end of what it was given. That it was given a whole task once more shows that it fell
 * short before; the parts of a task are many.
 */
function workedOn(build: BuildState | null, { agent, tasks: ids }: AgentAtWork, round: number): BuildState | null {
  if (build === null) return null
  const whole = new Set(ids)
  const about = new Set(ids.map(id => taskOf(id, build.tasks)?.id))
  const tasks = build.tasks.map(task => {
    if (!about.has(task.id)) return task
    if (!whole.has(task.id)) return { ...task, workedIn: round }
    const times = task.givenTo[agent] ?? 0
    return {
      ...task,
      workedIn: round,
      givenTo: { ...task.givenTo, [agent]: times + 1 },
      failures: times === 0 ? task.failures : task.failures + 1,
    }
  })
  return { ...build, tasks }
}

/** The agents at work with one more of them. */
function withAgent(agents: readonly AgentAtWork[], event: EventOf<'agent-started'>, at: number): AgentAtWork[] {
  const { instance, agent, tasks } = event
  const request = clipEnd(event.request.replace(/\s+/g, ' ').trim(), REQUEST_CHARACTERS)
  return [...agents, { instance, agent, tasks, request, since: at }]
}

function newTask(id: string, name: string, phase: string | null): BuildTask {
  const begun = { done: false, failures: 0, parked: null, workedIn: 0, failedIn: 0, givenTo: {} }
  return { id, name, phase, wasMovedFromGates: false, ...begun }
}
