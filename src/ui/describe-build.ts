import { unreachable } from '../base/errors.ts'
import type { BuildEvent } from '../session/build-events.ts'
import { MOST_FAILURES } from '../session/build-state.ts'
import type { Recorded, RecordedOf } from '../session/events.ts'
import type { SessionState } from '../session/state.ts'
import { clipLines } from './clip-lines.ts'
import { type Description, describe, type Tone } from './description.ts'
import { formatCount } from './format-count.ts'
import { formatDuration } from './format-duration.ts'
import { formatTokens } from './format-tokens.ts'
import { oneLine } from './safe-text.ts'
import { idsOf } from './words-for-build.ts'

const NAME_CHARS = 200
const TEXT_CHARS = 500
const PROBLEM_LINES = 20
const RESULT_LINES = 12
const MOST_TASKS = 60
const MOST_AGENTS = 20

/** What a person is told of a plan, of the agents that carry it out, and of its tasks; null if nothing. Pure. */
export function describeBuild(event: Recorded<BuildEvent>, state: SessionState): Description | null {
  switch (event.type) {
    case 'plan-refused':
      return describeRefusedPlan(event, state)
    case 'plan-ready':
      return describePlanReady(event)
    case 'agent-started':
      return describeAgentStart(event)
    case 'agent-ended':
      return describeAgentEnd(event)
    case 'task-judged':
      return describeTask(event, state)
    // Each task for which that changes something has been told.
    case 'tasks-judged':
      return null
    default:
      return unreachable(event)
  }
}

function describeRefusedPlan({ problem }: RecordedOf<'plan-refused'>, { build }: SessionState): Description {
  const again = build !== null && build.refusals > 1 ? `, for the ${ordinal(build.refusals)} time` : ''
  const words = clipLines(problem, PROBLEM_LINES, 'the journal has all of it')
  return describe(`the plan cannot be used${again}:\n${words}`, 'warning')
}

function describePlanReady({ tasks, agents }: RecordedOf<'plan-ready'>): Description {
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

/** A plan that is ready, without its tasks: `the plan is ready: 8 tasks, for frontend-dev and qa-engineer`. */
export function planInWords({ tasks, agents }: Pick<RecordedOf<'plan-ready'>, 'tasks' | 'agents'>): string {
  const team = agents.slice(0, MOST_AGENTS).map(line).join(', ')
  const more = agents.length > MOST_AGENTS ? ', …' : ''
  return `the plan is ready: ${formatCount(tasks.length, 'task')}${team === '' ? '' : `, with prompts for ${team}${more}`}`
}

function describeAgentStart(event: RecordedOf<'agent-started'>): Description {
  const facts = agentFacts(event)
  const more = facts === '' ? '' : `  (${facts})`
  return describe(`agent ${line(event.instance)} starts: ${requestInWords(event.tasks, event.request)}${more}`)
}

/** Who asked an agent, where it may write, and with what it works, as far as that is not as always. */
export function agentFacts({ parent, paths, model }: RecordedOf<'agent-started'>): string {
  return [
    ...(parent === null ? [] : [`asked by ${line(parent)}`]),
    ...(paths === null ? [] : [`writes in ${paths.map(line).join(', ')}`]),
    ...(model === null ? [] : [`model ${line(model)}`]),
  ].join('; ')
}

/** What an agent was asked for, with the tasks that it is about. */
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

function describeAgentEnd(event: RecordedOf<'agent-ended'>): Description {
  const { instance, result, status } = event
  const words = clipLines(result, RESULT_LINES, 'the journal has more of it')
  const text = `agent ${line(instance)} ${agentEndInWords(event)}${words === '' ? '' : `\n${words}`}`
  return describe(text, ENDS[status])
}

/** How the work of an agent ended, and what it took: `completed, 3m12s, 45.2k tokens`. */
export function agentEndInWords({ status, durationMs, tokens }: RecordedOf<'agent-ended'>): string {
  const end = status === 'error' ? 'failed' : status
  return [end, formatDuration(durationMs), ...(tokens === null ? [] : [formatTokens(tokens.total)])].join(', ')
}

function describeTask(event: RecordedOf<'task-judged'>, { build }: SessionState): Description {
  const { task, name, verdict, detail, phase } = event
  const title = `${line(task)} ${line(name)}`
  const why = detail === null ? '' : `: ${oneLine(detail, TEXT_CHARS)}`
  const failures = build?.tasks.find(({ id }) => id === task)?.failures ?? 0
  const times = failures === 0 ? '' : ` (${failures} of ${MOST_FAILURES} failures)`
  switch (verdict) {
    case 'done':
      return describe(`task ${title}: done${detail === null ? '' : `, ${oneLine(detail, TEXT_CHARS)}`}`, 'good')
    case 'refused':
      return describe(`task ${title}: not taken for done${times}${why}`, 'warning')
    case 'failed':
      return describe(`task ${title}: not done yet${times}${why}`, 'warning')
    case 'reopened':
      return describe(`task ${title}: open again${why}`, 'warning')
    case 'parked':
      return describe(`task ${title}: parked, and the rest goes on without it${why}`, 'bad')
    case 'added':
      return describe(`task ${title}: new in the plan${phase === null ? '' : ` (${line(phase)})`}`)
    case 'removed':
      return describe(`task ${title}: not in the plan any more`)
    case 'changed':
      return describe(`task ${title}: asks for something else now${why}`, 'warning')
    case 'edited':
      return describe(`task ${title}: its name or phase is another now${phase === null ? '' : ` (${line(phase)})`}`)
    case 'put-back':
      return describe(`task ${title}: was taken out of the plan in a round, and is put back`, 'warning')
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
