import { join } from 'node:path'
import type { ThreadSpec, ToolAnswer } from '../../core/engine.ts'
import { type AgentTask, problemOfTask } from '../../core/shapes/tools.ts'
import type { AgentStatus } from '../../core/state/plan.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { type Hold, liesWithin, type Paths } from './path-holds.ts'

/** What is known of the agents that can be given work, and what is kept of what they did. */
export interface AgentBook {
  /**
   * The thread of an agent, with its instructions as they are now; or a sentence for whoever asked: there is none of that
   * name, it is disabled, its prompt is missing.
   */
  thread(agent: string): Promise<{ thread: ThreadSpec } | { problem: string }>
  /** Keeps what came of a request in the agent's memory; a sentence if that failed. `at`: Unix time, ms. */
  remember(
    agent: string,
    entry: { instance: string; at: number; request: string; result: string },
  ): Promise<string | null>
  /** What an agent said last, without what its engine puts around it. */
  clean(text: string): string
}

/** That an agent is to be given work. */
export interface AgentRequest extends AgentTask {
  door: 'tool' | 'command-line'
  /** The thread in which it is asked for; null: not known. */
  thread: string | null
  /** Whether who asks from a command line has shown to be outside of the agents' sandbox. */
  isOutside?: boolean
  /** Told what happens meanwhile; left out: nobody is. */
  feed?: AgentFeed
}

/** Who follows the work of an agent. */
interface AgentFeed {
  /** It has no turn before these agents have ended; called again when they are others. */
  waits(agents: readonly string[]): void
  started(instance: string): void
  /** What the agent says, in pieces as they come. */
  text(text: string): void
}

/** What whoever asked is told; `refused`: nothing was started, and there is no instance. */
export interface AgentAnswer extends ToolAnswer {
  status: AgentStatus | 'refused'
  instance?: string
}

/** An agent that works. */
export interface AgentWorking {
  instance: string
  agent: string
  paths: Paths
  hold: Hold
  /** Who asked; null: the round's own agent, or a person. */
  parent: AgentWorking | null
  /** Aborted when it has ended, or is to. */
  over: AbortSignal
  /** Calls of agents that it has asked for, until they have ended. */
  children: Set<Promise<unknown>>
  /** Ids of the tasks of the plan that it is about. */
  tasks: readonly string[]
  /** Adds text to its turn, for whose beginning it waits at most 5 s; false if that does not take it. */
  steer(text: string): Promise<boolean>
  /** Ends its turn, as a person. */
  stop(): void
}

/** Folders that every agent with write access may write in, whatever paths it was given: the knowledge base and the inbox. */
export const SHARED_FOLDERS: readonly string[] = ['kb', 'inbox'].map(name => join(memoryRoot, name))

/** How deep agents may be that are asked for by agents: one below one. */
const MOST_DEPTH = 2

/** Why this request is refused, a sentence; null if it may be made. Pure. */
export function problemOfRequest({ agent, task }: AgentTask, parent: AgentWorking | null): string | null {
  const waiting = upwards(parent).map(each => each.agent)
  return problemOfTask(task) ?? problemOfDepth(agent, waiting)
}

/** Why the agent would be asked too deep, or by itself, a sentence; null if it may be asked. `waiting`: the agents that wait, the nearest first. Pure. */
export function problemOfDepth(agent: string, waiting: readonly string[]): string | null {
  if (waiting.includes(agent)) {
    return `${agent} waits for this itself, so it cannot be given it; do it yourself, or ask another agent.`
  }
  if (waiting.length < MOST_DEPTH) return null
  return `Agents are asked for by agents at most ${MOST_DEPTH} deep, and this would be deeper; do it yourself.`
}

/** The paths of who is asked for by `parent`, which are bound by its; or a sentence if they are not. Pure. */
export function boundedPaths(
  paths: Paths,
  parent: AgentWorking | null,
  ignoresCase: boolean,
): { paths: Paths } | { problem: string } {
  if (parent === null || parent.paths === null) return { paths }
  if (paths === null) return { paths: parent.paths }
  const outside = paths.find(path => !liesWithin(path, parent.paths, ignoresCase))
  if (outside === undefined) return { paths }
  const own = parent.paths.length === 0 ? 'nothing' : `only in ${parent.paths.join(', ')}`
  return { problem: `"${outside}" is out of reach: ${parent.agent} itself may write ${own}.` }
}

/** The agent and those that wait for it, the nearest first. */
function upwards(agent: AgentWorking | null): AgentWorking[] {
  return agent === null ? [] : [agent, ...upwards(agent.parent)]
}
