import { unreachable } from '../base/errors.ts'
import type { RoundPart } from '../session/build-state.ts'
import type { Item } from '../session/items.ts'
import { RUN_AGENT } from '../session/run-agent-tool.ts'
import type { SessionState } from '../session/state.ts'
import { oneLine } from './safe-text.ts'

const NAME_CHARS = 120
const MOST_TASKS = 6

/** What a round of a build is for: `team building`. */
export function wordsForPart(part: RoundPart): string {
  switch (part) {
    case 'team-building':
      return 'team building'
    case 'orchestration':
      return 'building'
    case 'summary':
      return 'summary'
    case 'last-look':
      return 'last look'
    default:
      return unreachable(part)
  }
}

const STAMP = /-\d{8}T\d{6,}.*$/

/** The agent of an instance: `frontend-dev` of `frontend-dev-20261122T004530123`. */
export function agentOf(instance: string): string {
  return oneLine(instance.replace(STAMP, ''), NAME_CHARS)
}

/** Who does a thing, where several may be at work: `frontend-dev T2, T3`. */
export function agentLabel(instance: string, { agents }: Pick<SessionState, 'agents'>): string {
  const at = agents.find(each => each.instance === instance)
  return at === undefined ? agentOf(instance) : [agentOf(instance), idsOf(at.tasks)].join(' ').trimEnd()
}

/** Whether an item is that an agent gives another one a task, which is told of that one. */
export function isDelegation(item: Item): boolean {
  return item.kind === 'tool-call' && item.tool === RUN_AGENT
}

/** A call that is refused is answered within this, ms; whoever works takes longer. */
const REFUSED_WITHIN_MS = 1000

/** Whether an item is a call that gave an agent a task, which is told of that agent; one that was refused is told of itself. */
export function isToldOfAgent(
  { item, at }: { item: Item; at: string },
  { agents }: Pick<SessionState, 'agents'>,
): boolean {
  if (item.kind !== 'tool-call' || !isDelegation(item)) return false
  if (item.status === 'completed') return true
  const tookMs = item.durationMs ?? 0
  const beganAt = Date.parse(at) - tookMs
  return tookMs > REFUSED_WITHIN_MS || agents.some(({ since }) => since >= beganAt)
}

/** Ids of tasks: `T2, T3`. */
export function idsOf(tasks: readonly string[]): string {
  const shown = tasks.slice(0, MOST_TASKS).map(id => oneLine(id, NAME_CHARS))
  return [...shown, ...(tasks.length > shown.length ? ['…'] : [])].join(', ')
}

/** Whether a build is held so that a person looks at its plan before it is carried out. */
export function isPlanShown({ build, pausedAt, running, ended }: PlanSigns): boolean {
  if (build === null || !build.asksPlan || build.plan !== 'ready' || build.isLetGo) return false
  return pausedAt !== null && running === null && ended === null
}

type PlanSigns = Pick<SessionState, 'build' | 'pausedAt' | 'running' | 'ended'>
