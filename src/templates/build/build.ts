import { clipEnd } from '../../base/text.ts'
import type { MemorySnapshot } from '../../core/contracts/memory.ts'
import type { Template, ThreadSpec } from '../../core/contracts/template.ts'
import type { BuildState, BuildTask } from '../../core/state/plan.ts'
import type { SessionState } from '../../core/state/state.ts'
import { replanInput, withNotices } from '../round-input.ts'

/** The threads of a build's rounds, one for each of its main agents, and one that changes the plan as a person says. */
export interface BuildThreads {
  teamBuilder: ThreadSpec
  masterMind: ThreadSpec
  lastLook: ThreadSpec
  /** Writes nothing. */
  summarizer: ThreadSpec
  replan: ThreadSpec
}

/** What the master mind is told when it goes on; `lastTask`: the last in the plan that is done, null if none is. Pure. */
export type RetryInput = (state: { lastTask: string | null; summary: string }) => string

/** So often in a row may what the team builder wrote be no plan. */
const MOST_PLAN_REFUSALS = 3

type Step = ReturnType<Template['next']>

/**
 * The `build` template: a team is built and a plan made; then the master mind has the tasks of the plan done, and each
 * time that it stops the state is summed up; when all are done, a last look may claim so.
 */
export function buildTemplate(threads: BuildThreads, retryInput: RetryInput): Template {
  return {
    name: 'build',
    next(session, memory) {
      if (hasLostTasks(session, memory)) return { kind: 'check', check: 'tasks' }
      if (session.replan !== null) {
        return { kind: 'replan', round: { thread: threads.replan, input: replanInput(session.replan) } }
      }
      const { claim, build } = session
      if (claim.state === 'accepted') return { kind: 'end', outcome: { kind: 'done', verified: claim.verified } }
      if (build === null) throw new Error('A session that is no build cannot be carried out as one.')
      return build.plan === 'ready'
        ? nextOfPlan(session, build, memory, threads, retryInput)
        : nextOfTeam(session, build, threads)
    },
    ahead({ replan, running, build }) {
      if (replan !== null && running === null) return threads.replan
      if (running === null) return build?.plan === 'ready' ? threads.masterMind : threads.teamBuilder
      if (running.part === 'orchestration' || running.part === 'last-look') return threads.summarizer
      // Whether what the team builder writes is a plan is not known yet.
      if (running.part === 'team-building') return null
      return isAllDone(build) ? threads.lastLook : threads.masterMind
    },
  }
}

/** Whether a round took tasks out of the plan that was cut off, or is followed by a change of plan. */
function hasLostTasks({ build, last, replan }: SessionState, { tasks }: MemorySnapshot): boolean {
  if (build?.plan !== 'ready') return false
  const isUnjudged = replan !== null && !build.judged && last !== null && last.part !== null
  if (!isUnjudged && !build.isCutOff) return false
  const present = new Set(tasks.map(({ id }) => id))
  return build.tasks.some(({ id }) => !present.has(id))
}

/** Before there is a plan. */
function nextOfTeam({ last, notices }: SessionState, build: BuildState, { teamBuilder }: BuildThreads): Step {
  if (last?.part === 'team-building' && last.outcome.class === 'worked' && !build.judged) {
    return { kind: 'check', check: 'plan' }
  }
  if (build.refusals >= MOST_PLAN_REFUSALS) return { kind: 'end', outcome: noPlan(build) }
  const input = build.problem === null ? BUILD_TEAM : `${MEND_PLAN}\n\n${build.problem}`
  return {
    kind: 'round',
    round: { thread: teamBuilder, input: withNotices(input, notices), part: 'team-building', claims: false },
  }
}

const BUILD_TEAM =
  'Build the team and make the plan. If some of that is there already, an attempt before this one was broken off: look at it, and finish it.'
const MEND_PLAN =
  'You have built the team and made the plan before, and a program has looked at the files. Mend what it found, and leave the rest as it is:'

function noPlan({ problem }: BuildState): Extract<Step, { kind: 'end' }>['outcome'] {
  const [first = 'It could not be read.'] = (problem ?? '').split('\n')
  return {
    kind: 'needs-person',
    reason: `The team builder wrote no plan that can be carried out, ${MOST_PLAN_REFUSALS} times in a row. ${first}`,
    hint: { do: 'mend-plan', ...filesIn(problem ?? '') },
    goalOnly: true,
  }
}

/** The files that problems with a plan are about; a line is a problem, and begins with its file. `more`: not all are listed. */
function filesIn(problems: string): { files: string[]; more: boolean } {
  const named = problems.split('\n').flatMap(line => FILE.exec(line)?.[1] ?? [])
  const files = [...new Set(named)]
  return files.length === 0
    ? { files: [PLAN_FILE], more: false }
    : { files: files.slice(0, MOST_NAMED), more: files.length > MOST_NAMED }
}

const PLAN_FILE = '.codemachine/plan/tasks.json'
const FILE = /^(\.codemachine[\\/].+?)(?:: | is | has | cannot be used )/

/** Once there is a plan. */
function nextOfPlan(
  session: SessionState,
  build: BuildState,
  memory: MemorySnapshot,
  threads: BuildThreads,
  retryInput: RetryInput,
): Step {
  const { last, claim, notices } = session
  const lastLook = () => {
    const input = withNotices(`${LOOK}\n\n${clipEnd(session.goal, MOST_GOAL)}`, notices)
    return { kind: 'round', round: { thread: threads.lastLook, input, part: 'last-look' } } as const
  }
  if (last !== null && isOver(last) && !build.judged) return { kind: 'check', check: 'tasks' }
  if (last?.part === 'last-look' && isOver(last) && claim.state === 'refused' && isAllDone(build)) return lastLook()
  if (last !== null && wantsSummary(last)) {
    const round = { thread: threads.summarizer, input: SUM_UP, part: 'summary', claims: false, isFree: true } as const
    return { kind: 'round', round }
  }
  // A person has put something into the plan, or taken something out.
  if (build.judged && !isOfPlan(memory, build)) return { kind: 'check', check: 'tasks' }
  if (isAllDone(build)) return lastLook()
  const end = build.mends ? null : endOfPlan(build)
  if (end !== null) return { kind: 'end', outcome: end }
  const input = withNotices(inputOf(build, retryInput), notices)
  return { kind: 'round', round: { thread: threads.masterMind, input, part: 'orchestration', claims: false } }
}

/** Whether the state is to be summed up now: the master mind has stopped, or the summary did not come to its end. */
function wantsSummary(last: NonNullable<SessionState['last']>): boolean {
  if (last.part === 'summary') return !isOver(last)
  return (last.part === 'orchestration' || last.part === 'last-look') && isOver(last)
}

/** How a build ends on whose tasks nobody can work any more; null if somebody can. */
function endOfPlan(build: BuildState): Extract<Step, { kind: 'end' }>['outcome'] | null {
  if (build.tasks.length === 0) return EMPTY_PLAN
  return build.tasks.every(({ done, parked }) => done || parked !== null) ? parkedOnly(build) : null
}

const LOOK =
  'Every task of the plan is done. Look at the whole, and claim it if nothing has to be changed. This is what the person asked for, word for word; where a file says otherwise, this counts:'
/** A specification is no longer than this. */
const MOST_GOAL = 600_000
const SUM_UP = 'Say how the build stands now.'
const BEGIN = 'The plan is made, and no task has been begun. Begin with the first.'

const EMPTY_PLAN: Extract<Step, { kind: 'end' }>['outcome'] = {
  kind: 'needs-person',
  reason: 'There is no task left in the plan.',
  hint: { do: 'add-tasks', file: PLAN_FILE },
  goalOnly: true,
}

/** Whether the file has the same tasks as the plan that is known. */
function isOfPlan({ tasks }: MemorySnapshot, build: BuildState): boolean {
  const known = new Set(build.tasks.map(({ id }) => id))
  return tasks.length === known.size && tasks.every(({ id }) => known.has(id))
}

function isAllDone(build: BuildState | null): boolean {
  return build !== null && !build.mends && build.tasks.length > 0 && build.tasks.every(({ done }) => done)
}

const GO_ON =
  'The plan is made, and the work on it was broken off. Look at what is there already, then go on with the first task that is not done.'

/** Whether a round has done its part, well or not; else the same one is tried again. */
function isOver({ outcome }: NonNullable<SessionState['last']>): boolean {
  return OVER.has(outcome.class)
}

const OVER = new Set<string>(['worked', 'interrupted', 'context-full', 'refused', 'silent'])

function inputOf({ summary, tasks }: BuildState, retryInput: RetryInput): string {
  if (summary === null) return tasks.some(({ workedIn }) => workedIn > 0) ? GO_ON : BEGIN
  const lastDone = tasks.findLast(({ done }) => done)
  return retryInput({ lastTask: lastDone === undefined ? null : `${lastDone.id} ${lastDone.name}`, summary })
}

function parkedOnly({ tasks }: BuildState): Extract<Step, { kind: 'end' }>['outcome'] {
  const left = tasks.filter(task => task.parked !== null)
  const first = left.slice(0, MOST_NAMED).map(nameOf).join('; ')
  const more = left.length > MOST_NAMED ? `; and ${left.length - MOST_NAMED} more` : ''
  const what = left.length === 1 ? 'One task is parked' : `${left.length} tasks are parked`
  return {
    kind: 'needs-person',
    reason: `${what}, and all others are done: ${first}${more}.`,
    hint: { do: 'mend-parked-tasks', file: PLAN_FILE },
    goalOnly: true,
  }
}

const MOST_NAMED = 5

function nameOf({ id, name, parked }: BuildTask): string {
  return `${id} ${name} (${parked?.replace(/\.$/, '')})`
}

/**
 * How a build stands that ended before anybody could sum it up, as Markdown, from what codemachine itself knows; null if
 * its last summary still says it. Pure.
 * @param part what the last round was for
 */
export function summaryOfEnd(build: BuildState, part: string | null): string | null {
  if (build.plan !== 'ready' || part === 'summary') return null
  const list = (title: string, tasks: BuildState['tasks'], more: (parked: string | null) => string) =>
    tasks.length === 0
      ? []
      : ['', `## ${title}`, '', ...tasks.map(task => `- ${task.id} ${task.name}${more(task.parked)}`)]
  const { tasks, summary } = build
  return [
    '# How the build stands',
    '',
    'The session ended before this was summed up; so far goes what codemachine itself knows.',
    ...list(
      'Done',
      tasks.filter(({ done }) => done),
      () => '',
    ),
    ...list(
      'Left',
      tasks.filter(({ done, parked }) => !done && parked === null),
      () => '',
    ),
    ...list(
      'Parked',
      tasks.filter(({ done, parked }) => !done && parked !== null),
      why => `: ${why}`,
    ),
    ...(summary === null ? [] : ['', '## What was summed up before', '', summary]),
  ].join('\n')
}
