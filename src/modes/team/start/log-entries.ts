import type { Recorded } from '../../../core/events/events.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { TeamWork } from '../work.ts'
import { progressOf, stepAtWork } from './begin.ts'
import type { LogEntry, LogPrefix } from './log-file.ts'

type Role = 'PLANNER' | 'WORKER' | 'REVIEWER'

/** Log name of each round's agent, by purpose. */
const ROLES: Readonly<Record<string, Role>> = {
  plan: 'PLANNER',
  work: 'WORKER',
  test: 'WORKER',
  review: 'REVIEWER',
}

/**
 * Returns the log entries of an event: texts to and from a model, and codemachine's steps in between. Pure.
 * @param state after the event
 * @param before the team's memory before it
 */
export function logEntries(event: Recorded, state: SessionState, before: TeamWork | null): LogEntry[] {
  const role = ROLES[state.running?.part ?? state.last?.part ?? ''] ?? null
  return textsOf(event, state, { role, before }).map(([prefix, text]) => ({ at: Date.parse(event.at), prefix, text }))
}

interface Known {
  role: Role | null
  before: TeamWork | null
}

type Said = readonly [LogPrefix, string]

function textsOf(event: Recorded, state: SessionState, { role, before }: Known): Said[] {
  const of = (what: 'REQUEST' | 'RAW RESPONSE' | 'PARSED', text: string): Said[] =>
    role === null ? [] : [[`${role} ${what}`, text]]
  switch (event.type) {
    case 'session-created':
    case 'session-resumed':
      return [['ORCH START', startOf(event, state)]]
    case 'round-started':
      return [...orchestrated(event, state), ...of('REQUEST', event.input)]
    case 'item-completed':
      if (event.item.kind === 'agent-message') return of('RAW RESPONSE', event.item.text)
      return event.item.kind === 'user-message' && isFurther(state) ? of('REQUEST', event.item.text) : []
    case 'answer-given':
      return of('PARSED', JSON.stringify(event.value === undefined ? { output: event.output.name } : event.value))
    case 'answer-refused':
      return of('PARSED', JSON.stringify({ problem: event.problem }))
    case 'shell-ran': {
      const { command, secrets, exitCode } = event
      return of(
        'PARSED',
        JSON.stringify({ command, ...(secrets.length === 0 ? {} : { secrets }), returncode: exitCode }),
      )
    }
    case 'secret-asked': {
      const { question, key, reason } = event
      const asked = { question, key_name: key, storage: 'env', ...(reason === null ? {} : { reason }) }
      return of('PARSED', JSON.stringify({ ask_human: asked }))
    }
    case 'secret-confirmed':
      return event.ok
        ? [['SECRET CONFIRMED', event.key]]
        : [['SECRET CONFIRMATION FAILED', `${event.key}${event.problem === null ? '' : `: ${event.problem}`}`]]
    case 'session-ended':
      return [['ORCH COMPLETE', endOf(event, state, before)]]
    default:
      return []
  }
}

function startOf({ type }: Recorded, state: SessionState): string {
  const { options } = progressOf(state) ?? {}
  const resumed = type === 'session-resumed' ? { resumed: true } : {}
  return JSON.stringify({
    goal: state.goal,
    project_dir: state.directory,
    mode: options?.mode,
    session: state.id,
    ...resumed,
  })
}

/** Returns codemachine's entries at a round's start. */
function orchestrated({ part }: Extract<Recorded, { type: 'round-started' }>, state: SessionState): Said[] {
  const progress = progressOf(state)
  const step = stepAtWork(progress)
  if (part === 'work' && step !== null) {
    const { id, description, tries } = step
    return [['ORCH EXECUTE STEP', JSON.stringify({ id, description, try: tries + 1 })]]
  }
  if (part !== 'review') return []
  const steps = progress?.steps.map(({ id, status }) => ({ id, status })) ?? []
  return [['ORCH REVIEW', JSON.stringify({ steps })]]
}

/** Returns whether the agent has already acted in the round, so that a message now is not its input. */
function isFurther({ running }: SessionState): boolean {
  return running?.hasWorked ?? false
}

function endOf(
  { outcome, exitCode, durationMs }: Extract<Recorded, { type: 'session-ended' }>,
  state: SessionState,
  before: TeamWork | null,
): string {
  const { steps = [], options } = progressOf(state) ?? before ?? {}
  const count = (status: string) => steps.filter(step => step.status === status).length
  return JSON.stringify({
    outcome: outcome.kind,
    exit_code: exitCode,
    steps: steps.length,
    done: count('done'),
    failed: count('failed'),
    seconds: Math.round(durationMs / 1000),
    run: options?.workspace?.run,
  })
}
