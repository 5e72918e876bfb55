import { unreachable } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import type { RecordedOf } from '../../core/events/events.ts'
import type { Item } from '../../core/events/items.ts'
import { type RefusedAnswer, refusedAnswer } from '../../core/rules/answer.ts'
import { ASK_HUMAN, RUN_SHELL } from '../../core/shapes/shell.ts'
import { RUN_AGENT } from '../../core/shapes/tools.ts'
import {
  MOST_FAILURES,
  PLAN_ANSWER,
  PLAN_DECISION,
  type PlanTask,
  type TaskBoard,
  taskOf,
} from '../../core/state/plan.ts'
import { partOf, type SessionState } from '../../core/state/state.ts'
import type { ShownPlan } from '../../core/view.ts'
import { clipLines, type Description, describe, type Tone } from './names.ts'
import { formatCount, formatDuration, formatTokens } from './numbers.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 500
const PROBLEM_LINES = 20
const RESULT_LINES = 12
const MOST_TASKS = 60
const MOST_AGENTS = 20

/** Describes an unusable answer, or an unusable plan in files. */
export function describeRefusedAnswer(event: RecordedOf<'answer-refused'>, state: SessionState): Description {
  if (event.name === PLAN_ANSWER && state.taskPlan !== null) return describeRefusedPlan(event, state)
  return describeUnusable(`the answer ${line(event.name)}`, event.problem, refusedAnswer(state, event.name))
}

/** Describes an unusable plan. */
export function describeRefusedPlan({ problem }: { problem: string }, state: SessionState): Description {
  return describeUnusable('the plan', problem, refusedAnswer(state, PLAN_ANSWER))
}

function describeUnusable(what: string, problem: string, refused: RefusedAnswer | null): Description {
  const refusals = refused?.refusals ?? 0
  const again = refusals > 1 ? `, for the ${ordinal(refusals)} time` : ''
  const words = clipLines(problem, PROBLEM_LINES, 'the journal has all of it')
  return describe(`${what} cannot be used${again}:\n${words}`, 'warning')
}

const AUTHORS: Readonly<Record<string, string>> = { planner: 'the planner', person: 'a person' }
const ACCEPTED: Readonly<Record<string, string>> = {
  person: 'accepted by a person',
  auto: 'accepted automatically, without showing it',
  go: 'changed as a person said, and accepted automatically',
}

/**
 * Says who made a version of a plan, and its result: `by the planner; accepted by a person: keep the API`. Safe to write to
 * a terminal.
 */
export function wordsForVersion({ author, accepted }: Pick<ShownPlan, 'author' | 'accepted'>, waits: boolean): string {
  const by = `by ${AUTHORS[author] ?? oneLine(author, AUTHOR_CHARS)}`
  if (accepted === null) return waits ? `${by}; it waits for you` : by
  const remark = accepted.remark === null ? '' : `: ${oneLine(accepted.remark, REMARK_CHARS)}`
  return `${by}; ${ACCEPTED[accepted.by] ?? `accepted by ${oneLine(accepted.by, AUTHOR_CHARS)}`}${remark}`
}

const AUTHOR_CHARS = 60
const REMARK_CHARS = 2_000

/** Describes a usable answer; null for a reviewer's, which the review's end shows. */
export function describeAnswer({ name, output }: RecordedOf<'answer-given'>, state: SessionState): Description | null {
  const { checking, running, kind } = state
  const isTold = running?.part != null && partOf(kind, running.part).tellsAnswer === true
  return isTold || checking?.kind === 'review' ? null : describe(`answered ${line(name)}: ${outputInWords(output)}`)
}

/** Says where an output is stored: `outputs/2-notes.md, 2 KiB`. */
export function outputInWords({ file, bytes }: RecordedOf<'output-kept'>['output']): string {
  return `outputs/${line(file)}, ${formatBytes(bytes)}`
}

/** Describes a ready plan with its tasks. */
export function describePlanReady({ tasks, agents }: RecordedOf<'plan-ready'>): Description {
  const shown = tasks.slice(0, MOST_TASKS)
  const left = tasks.length - shown.length
  const lines = shown.flatMap((task, i) => {
    const name = `  ${line(task.id)}  ${line(task.name)}`
    return task.phase === shown[i - 1]?.phase ? [name] : [line(task.phase), name]
  })
  return describe(
    [planInWords({ tasks, agents }), ...lines, ...(left > 0 ? [`… and ${left} more`] : [])].join('\n'),
    'strong',
  )
}

/** Describes a ready plan without its tasks: `the plan is ready: 8 tasks, for frontend-dev and qa-engineer`. */
export function planInWords({ tasks, agents }: Pick<RecordedOf<'plan-ready'>, 'tasks' | 'agents'>): string {
  const team = agents.slice(0, MOST_AGENTS).map(line).join(', ')
  const more = agents.length > MOST_AGENTS ? ', …' : ''
  return `the plan is ready: ${formatCount(tasks.length, 'task')}${team === '' ? '' : `, with prompts for ${team}${more}`}`
}

/** Describes the start of an agent. */
export function describeAgentStart(event: RecordedOf<'agent-started'>): Description {
  const facts = agentFacts(event)
  const more = facts === '' ? '' : `  (${facts})`
  return describe(`agent ${line(event.instance)} starts: ${requestInWords(event.tasks, event.request)}${more}`)
}

/** Lists an agent's caller, writable paths, engine and model, as far as they are unusual. */
export function agentFacts({ parent, paths, engine, model }: RecordedOf<'agent-started'>): string {
  return [
    ...(parent === null ? [] : [`asked by ${line(parent)}`]),
    ...(paths === null ? [] : [`writes in ${paths.map(line).join(', ')}`]),
    ...(engine === undefined ? [] : [`engine ${line(engine)}`]),
    ...(model === null ? [] : [`model ${line(model)}`]),
  ].join('; ')
}

/** Describes the request to an agent, with its tasks. */
export function requestInWords(tasks: readonly string[], request: string): string {
  const words = oneLine(request, TEXT_CHARS)
  const ids = idsOf(tasks)
  return ids === '' || tasks.every(id => words.includes(id)) ? words : `${ids}: ${words}`
}

const ENDS: Readonly<Record<RecordedOf<'agent-ended'>['status'], Tone>> = {
  completed: 'plain',
  error: 'warning',
  terminated: 'warning',
}

/** Describes the end of an agent. */
export function describeAgentEnd(event: RecordedOf<'agent-ended'>): Description {
  const { instance, result, status } = event
  const words = clipLines(result, RESULT_LINES, 'the journal has more of it')
  const text = `agent ${line(instance)} ${agentEndInWords(event)}${words === '' ? '' : `\n${words}`}`
  return describe(text, ENDS[status])
}

/** Says how an agent's work ended, and its cost: `completed, 3m12s, 45.2k tokens`. */
export function agentEndInWords({ status, durationMs, tokens }: RecordedOf<'agent-ended'>): string {
  const end = status === 'error' ? 'failed' : status
  return [end, formatDuration(durationMs), ...(tokens === null ? [] : [formatTokens(tokens.total)])].join(', ')
}

/** Describes a judged task. */
export function describeTask(event: RecordedOf<'task-judged'>, { taskPlan }: SessionState): Description {
  const { task, name, verdict, detail, phase } = event
  const title = `${line(task)} ${line(name)}`
  const why = detail === null ? '' : `: ${oneLine(detail, TEXT_CHARS)}`
  const failures = taskPlan?.tasks.find(({ id }) => id === task)?.failures ?? 0
  const times = failures === 0 ? '' : ` (${failures} of ${MOST_FAILURES} failures)`
  switch (verdict) {
    case 'done':
      return describe(`task ${title}: done${detail === null ? '' : `, ${oneLine(detail, TEXT_CHARS)}`}`, 'good')
    case 'refused':
      return describe(`task ${title}: not accepted as done${times}${why}`, 'warning')
    case 'failed':
      return describe(`task ${title}: not done yet${times}${why}`, 'warning')
    case 'reopened':
      return describe(`task ${title}: open again${why}`, 'warning')
    case 'parked':
      return describe(`task ${title}: parked after too many failures; the other tasks continue${why}`, 'bad')
    case 'added':
      return describe(`task ${title}: new in the plan${phase === null ? '' : ` (${line(phase)})`}`)
    case 'removed':
      return describe(`task ${title}: no longer in the plan`)
    case 'changed':
      return describe(`task ${title}: now asks for something else${why}`, 'warning')
    case 'edited':
      return describe(`task ${title}: has a new name or phase${phase === null ? '' : ` (${line(phase)})`}`)
    case 'put-back':
      return describe(`task ${title}: was removed from the plan in a round, and is restored`, 'warning')
    default:
      return unreachable(verdict)
  }
}

const ORDINALS = ['', 'first', 'second', 'third']

function ordinal(count: number): string {
  return ORDINALS[count] ?? `${count}th`
}

function line(text: string): string {
  return oneLine(text, NAME_CHARS)
}

const SHORT_NAME_CHARS = 120
const MOST_NAMED_TASKS = 6

/** Names the purpose of a round: `team building`; the raw word if this version does not know it. */
export function wordsForPart({ kind }: Pick<SessionState, 'kind'>, part: string): string {
  return kind !== null && Object.hasOwn(kind.parts, part) ? partOf(kind, part).words : oneLine(part, SHORT_NAME_CHARS)
}

const STAMP = /-\d{8}T\d{6,}.*$/

/** Returns the agent of an instance: `frontend-dev` of `frontend-dev-20261122T004530123`. */
export function agentOf(instance: string): string {
  return oneLine(instance.replace(STAMP, ''), SHORT_NAME_CHARS)
}

/** Names an agent where several may work: `frontend-dev T2, T3`. */
export function agentLabel(instance: string, { agents }: Pick<SessionState, 'agents'>): string {
  const at = agents.find(each => each.instance === instance)
  return at === undefined ? agentOf(instance) : [agentOf(instance), idsOf(at.tasks)].join(' ').trimEnd()
}

/** Returns whether an item delegates a task to an agent, whose own events describe it. */
export function isDelegation(item: Item): boolean {
  return item.kind === 'tool-call' && item.tool === RUN_AGENT
}

const OF_SHELL: ReadonlySet<string> = new Set([RUN_SHELL, ASK_HUMAN])
/** A call that runs nothing is answered within this, ms; a command in a sandbox takes longer. */
const NOTHING_RUN_MS = 50
/** A refused call is answered within this, ms; any work takes longer. */
const REFUSED_WITHIN_MS = 1000

/**
 * Returns whether other events describe this call: those of its agent, its command, or its secret. A refused call describes
 * itself.
 */
export function isToldOfAgent(
  { item, at }: { item: Item; at: string },
  { agents }: Pick<SessionState, 'agents'>,
): boolean {
  if (item.kind !== 'tool-call') return false
  if (OF_SHELL.has(item.tool)) return item.status === 'completed' || (item.durationMs ?? 0) > NOTHING_RUN_MS
  if (!isDelegation(item)) return false
  if (item.status === 'completed') return true
  const tookMs = item.durationMs ?? 0
  const beganAt = Date.parse(at) - tookMs
  return tookMs > REFUSED_WITHIN_MS || agents.some(({ since }) => since >= beganAt)
}

/** Lists ids of tasks: `T2, T3`. */
export function idsOf(tasks: readonly string[]): string {
  const shown = tasks.slice(0, MOST_NAMED_TASKS).map(id => oneLine(id, SHORT_NAME_CHARS))
  return [...shown, ...(tasks.length > shown.length ? ['…'] : [])].join(', ')
}

/** Returns whether a session is held for a person to look at its plan before it runs. */
export function isPlanShown({ taskPlan, decision, pausedAt, running, ended }: PlanSigns): boolean {
  if (taskPlan === null || !taskPlan.asksPerson || taskPlan.state !== 'ready' || taskPlan.isLetGo) return false
  // Earlier versions paused for it.
  const isOpen = decision?.id === PLAN_DECISION || pausedAt !== null
  return isOpen && running === null && ended === null
}

type PlanSigns = Pick<SessionState, 'taskPlan' | 'decision' | 'pausedAt' | 'running' | 'ended'>

/**
 * Returns the tasks of a session for display. In a plan, done are those that codemachine accepted, whatever the file says;
 * current are those that agents have, else the next one. Any other session gets `board` unchanged. Pure.
 */
export function boardNow(
  board: TaskBoard | null,
  state: Pick<SessionState, 'taskPlan' | 'agents' | 'running' | 'last'>,
): TaskBoard | null {
  const { taskPlan } = state
  if (taskPlan === null || (taskPlan.tasks.length === 0 && board === null)) return board
  const known = new Map(taskPlan.tasks.map(task => [task.id, task]))
  const listed = board === null || board.tasks.length === 0 ? taskPlan.tasks : board.tasks
  const tasks = listed.map(task => believed(task, known.get(task.id)))
  return { title: board?.title ?? null, tasks, current: currentOf(tasks, board?.current ?? null, state) }
}

type Task = TaskBoard['tasks'][number]

/**
 * Returns the delegated task; else the next one that nobody worked on in this round, because the leader checks results
 * before it reports them done.
 */
function currentOf(
  tasks: readonly Task[],
  named: string | null,
  { taskPlan, agents, running, last }: Pick<SessionState, 'taskPlan' | 'agents' | 'running' | 'last'>,
): string | null {
  const round = running?.round ?? last?.round ?? 0
  const worked = new Set(
    taskPlan?.tasks.filter(({ workedIn }) => workedIn > 0 && workedIn === round).map(({ id }) => id),
  )
  const given = new Set(agents.flatMap(agent => agent.tasks.map(id => taskOf(id, tasks)?.id)))
  const open = tasks.filter(({ done, parked }) => !done && parked === undefined)
  const ahead = open.filter(({ id, claimed }) => !claimed && !worked.has(id))
  const current =
    open.find(({ id }) => given.has(id)) ?? ahead.find(({ id }) => id === named) ?? ahead[0] ?? open.at(-1)
  return current?.id ?? null
}

/** @param known null-ish: codemachine has not seen it yet */
function believed(
  { id, name, phase, done }: Pick<Task, 'id' | 'name' | 'phase' | 'done'>,
  known: PlanTask | undefined,
): Task {
  if (known?.done) return { id, name, phase, done: true }
  const task = { id, name, phase, done: false, claimed: done }
  return known === undefined || known.parked === null ? task : { ...task, claimed: false, parked: known.parked }
}

/** A change of the plan for a person: a line per task, and one for `MAIN.md`. */
export interface PlanChangeInWords {
  tasks: readonly { sign: string; text: string; tone: Tone }[]
  /** Number of further changed tasks. */
  left: number
  /** `MAIN.md: 3 lines added, 1 removed`; null: unchanged. */
  main: string | null
}

/** Describes it; null for a change from an older version's journal, which does not name tasks. */
export function planChangeInWords({ files, tasks, main }: Replanned): PlanChangeInWords | null {
  const hasMain = files.some(({ file }) => file === 'MAIN.md')
  const hasTasks = files.some(({ file }) => file === 'tasks.json')
  if (hasTasks ? tasks === undefined : main === undefined && tasks === undefined) return null
  const { changes, count } = tasks ?? { changes: [], count: 0 }
  const same = hasTasks && count === 0 ? [SAME_TASKS] : []
  return {
    tasks: [...changes.map(taskChangeInWords), ...same],
    left: count - changes.length,
    main: hasMain ? `MAIN.md: ${main === undefined ? 'rewritten' : linesInWords(main)}` : null,
  }
}

type Replanned = Pick<RecordedOf<'replanned'>, 'files' | 'tasks' | 'main'>
type TaskChange = NonNullable<Replanned['tasks']>['changes'][number]

const SAME_TASKS = {
  sign: '=',
  text: 'tasks.json was reformatted; no task changed',
  tone: 'quiet',
} as const

function linesInWords({ added, removed }: NonNullable<Replanned['main']>): string {
  const parts = [
    ...(added > 0 ? [`${formatCount(added, 'line')} added`] : []),
    ...(removed > 0 ? [added > 0 ? `${removed} removed` : `${formatCount(removed, 'line')} removed`] : []),
  ]
  return parts.length === 0 ? 'changed' : parts.join(', ')
}

/** Describes one task: `+ T5 Measure`, `~ T4 Write the docs → Write the manual: now after T1`. */
function taskChangeInWords(change: TaskChange): PlanChangeInWords['tasks'][number] {
  const { id, name, how, was, fields = [], behind } = change
  const title = `${line(id)} ${line(was ?? name)}${was === undefined ? '' : ` → ${line(name)}`}`
  if (how.includes('removed')) return { sign: '-', text: title, tone: 'bad' }
  const more = [
    ...(fields.length === 0 ? [] : [`new ${fields.map(line).join(', ')}`]),
    ...(behind === undefined ? [] : [behind === null ? 'now first' : `now after ${line(behind)}`]),
    ...(how.includes('reopened') ? ['open again'] : []),
    ...(how.includes('done') ? ['done'] : []),
  ]
  const text = more.length === 0 ? title : `${title}: ${more.join(', ')}`
  return how.includes('added') ? { sign: '+', text, tone: 'good' } : { sign: '~', text, tone: 'warning' }
}
