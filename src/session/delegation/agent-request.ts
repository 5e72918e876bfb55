import { join } from 'node:path'
import type { ThreadSpec, ToolAnswer } from '../../core/engine.ts'
import { type AgentTask, problemOfTask } from '../../core/shapes/tools.ts'
import type { AgentStatus } from '../../core/state/plan.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { type Hold, liesWithin, type Paths } from './path-holds.ts'

/** The known agents, and the memory of their work. */
export interface AgentBook {
  /**
   * Returns the thread of an agent with its current instructions. Otherwise a sentence for the caller: the name is unknown,
   * the agent is disabled, or its prompt is missing.
   */
  thread(agent: string): Promise<{ thread: ThreadSpec } | { problem: string }>
  /** Stores the result of a request in the agent's memory. Resolves with a sentence if that failed. `at`: Unix time, ms. */
  remember(
    agent: string,
    entry: { instance: string; at: number; request: string; result: string },
  ): Promise<string | null>
  /** Returns the agent's last words without the additions of its engine. */
  clean(text: string): string
}

/** A request to give an agent work. */
export interface AgentRequest extends AgentTask {
  door: 'tool' | 'command-line' | 'template'
  /** Id of the thread that asks; null: unknown. */
  thread: string | null
  /** True if the caller on the command line has proved to be outside of the agents' sandbox. */
  isOutside?: boolean
  /** Receives the progress; undefined: nobody follows. */
  feed?: AgentFeed
}

/** Follower of an agent's work. */
interface AgentFeed {
  /** Called with the agents that have to end before its turn, again when the list changes. */
  waits(agents: readonly string[]): void
  started(instance: string): void
  /** Called with each piece of the agent's text. */
  text(text: string): void
}

/** The answer to the caller; `refused`: nothing was started, and there is no instance. */
export interface AgentAnswer extends ToolAnswer {
  status: AgentStatus | 'refused'
  instance?: string
}

/** An agent at work. */
export interface AgentWorking {
  instance: string
  agent: string
  paths: Paths
  hold: Hold
  /** The agent that asked; null: the round's own agent, or a person. */
  parent: AgentWorking | null
  /** Aborted when it has ended or must end. */
  over: AbortSignal
  /** Its own calls of agents that have not ended. */
  children: Set<Promise<unknown>>
  /** Ids of the plan's tasks that the request names. */
  tasks: readonly string[]
  /** Adds text to its turn, and waits at most 5 s for the turn to begin. False if the turn does not take it. */
  steer(text: string): Promise<boolean>
  /** Ends its turn for a person. */
  stop(): void
}

/** Folders that every agent with write access may write, whatever its paths: the knowledge base and the inbox. */
export const SHARED_FOLDERS: readonly string[] = ['kb', 'inbox'].map(name => join(memoryRoot, name))

/** Deepest level of agents that agents ask for: one below another. */
const MOST_DEPTH = 2

/** Returns a sentence on why the request is refused; null if it is allowed. Pure. */
export function problemOfRequest({ agent, task }: AgentTask, parent: AgentWorking | null): string | null {
  const waiting = upwards(parent).map(each => each.agent)
  return problemOfTask(task) ?? problemOfDepth(agent, waiting)
}

/**
 * Returns a sentence if the agent would be too deep or ask itself; otherwise null. `waiting`: its callers, the nearest
 * first. Pure.
 */
export function problemOfDepth(agent: string, waiting: readonly string[]): string | null {
  if (waiting.includes(agent)) {
    return `${agent} waits for this itself, so it cannot be given it; do it yourself, or ask another agent.`
  }
  if (waiting.length < MOST_DEPTH) return null
  return `Agents are asked for by agents at most ${MOST_DEPTH} deep, and this would be deeper; do it yourself.`
}

/** Returns the paths of an agent whose `parent` asks, or a sentence if they exceed the parent's paths. Pure. */
export function boundedPaths(
  paths: Paths,
  parent: AgentWorking | null,
  platform: NodeJS.Platform,
): { paths: Paths } | { problem: string } {
  if (parent === null || parent.paths === null) return { paths }
  if (paths === null) return { paths: parent.paths }
  const outside = paths.find(path => !liesWithin(path, parent.paths, platform))
  if (outside === undefined) return { paths }
  const own = parent.paths.length === 0 ? 'nothing' : `only in ${parent.paths.join(', ')}`
  return { problem: `"${outside}" is out of reach: ${parent.agent} itself may write ${own}.` }
}

/** Returns the agent and the agents that wait for it, the nearest first. */
function upwards(agent: AgentWorking | null): AgentWorking[] {
  return agent === null ? [] : [agent, ...upwards(agent.parent)]
}
