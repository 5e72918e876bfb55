import type { LiveItem } from '../../../core/events/live-board.ts'
import type { AgentStatus } from '../../../core/state/plan.ts'
import { roundTokens, type SessionState } from '../../../core/state/state.ts'
import { doing } from '../../../tell/words/doing.ts'
import { formatClock, formatDuration } from '../../../tell/words/numbers.ts'
import { agentOf, idsOf } from '../../../tell/words/plan.ts'
import { workOf } from '../live.ts'
import type { Role } from '../terminal/theme.ts'

/** An agent of the running round. `instance`: null of the round's own. */
export interface AgentRow {
  instance: string | null
  name: string
  /** Ids of the tasks that it is about: `T2, T3`. */
  tasks: string
  /** `main`: the round's own agent, whether or not it works just now; else whether it is at work, or how it ended. */
  standing: 'main' | 'at-work' | AgentStatus
  /** What it does, or how it ended. */
  activity: string
  /** For how long it has worked: `3:12`, of one that has ended `3m12s`. */
  time: string
  /** Tokens of its threads; null if none were reported. */
  tokens: number | null
  /** What it was asked for, in a line. */
  request: string
}

const MAIN_AGENT = 'main agent'

/** The agents of a session at the time `now` (Unix time, ms): the round's own, those at work for it, and those that have ended in the round, the last first. Pure. */
export function agentRows(state: SessionState, live: readonly LiveItem[], now: number): AgentRow[] {
  const ended = state.running?.agentsEnded ?? []
  const atWork = state.agents.map(agent => {
    const { words, time } = workOf(agent, live, now)
    const { instance, tasks, request, since } = agent
    return row(instance, tasks, request, {
      standing: 'at-work',
      activity: time === null ? words : `${words} ${time}`,
      time: formatClock(now - since),
      tokens: tokensOf(state, agent.threads),
    })
  })
  const over = ended.map(({ instance, tasks, request, status, durationMs, tokens }) =>
    row(instance, tasks, request, {
      standing: status,
      activity: status === 'error' ? 'failed' : status,
      time: formatDuration(durationMs),
      tokens,
    }),
  )
  const others = [...atWork, ...over].reduce((sum, each) => sum + (each.tokens ?? 0), 0)
  return [mainRow(state, live, now, others), ...atWork, ...over.reverse()]
}

function row(
  instance: string,
  tasks: readonly string[],
  request: string,
  rest: Pick<AgentRow, 'standing' | 'activity' | 'time' | 'tokens'>,
): AgentRow {
  return { instance, name: agentOf(instance), tasks: idsOf(tasks), request, ...rest }
}

/** @param others tokens of the agents that it gave tasks */
function mainRow(state: SessionState, live: readonly LiveItem[], now: number, others: number): AgentRow {
  const { running } = state
  const { words, time } = doing(state, live, now)
  const own = (roundTokens(state)?.total ?? 0) - others
  return {
    instance: null,
    name: MAIN_AGENT,
    tasks: '',
    standing: 'main',
    activity: time === null ? words : `${words} ${time}`,
    time: running === null ? '' : formatClock(now - running.startedAt),
    tokens: own > 0 ? own : null,
    request: '',
  }
}

/** Tokens of these threads; null if none were reported. */
function tokensOf({ threadTokens }: SessionState, threads: readonly string[]): number | null {
  if (threads.length === 0) return null
  return threads.reduce((sum, thread) => sum + (threadTokens[thread]?.total ?? 0), 0)
}

/** How an agent is marked and painted, by its standing. */
export const STANDINGS: Readonly<Record<AgentRow['standing'], { sign: string; role: Role }>> = {
  main: { sign: '●', role: 'accent' },
  'at-work': { sign: '●', role: 'accent' },
  completed: { sign: '✔', role: 'good' },
  error: { sign: '✘', role: 'bad' },
  terminated: { sign: '–', role: 'warning' },
}
