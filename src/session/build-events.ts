import type { AgentStatus, TaskVerdict } from './build-state.ts'
import type { TokenCounts } from './token-counts.ts'

/** What happens to the plan of a build, and to those who carry it out. */
export type BuildEvent =
  /** `problem`: what is wrong with what the team builder wrote, a sentence a line. */
  | { type: 'plan-refused'; round: number; problem: string }
  | {
      type: 'plan-ready'
      round: number
      tasks: readonly { id: string; name: string; phase: string }[]
      /** Agents that have a prompt of this project's own. */
      agents: readonly string[]
    }
  | {
      type: 'agent-started'
      round: number
      instance: string
      agent: string
      /** Ids of the tasks of the plan that it is about, as they were named: `T3.1` for a part of `T3`. */
      tasks: readonly string[]
      /** What it was asked for, at most 4,000 characters. */
      request: string
      /** By which door: an agent's tool, or a command line. */
      door: 'tool' | 'command-line'
      /** The instance that asked; null: the round's own agent, or a person. */
      parent: string | null
      model: string | null
      effort: string | null
      /** All that it may write, relative to the work directory; null: the whole of it. */
      paths: readonly string[] | null
    }
  | {
      type: 'agent-ended'
      round: number
      instance: string
      status: AgentStatus
      /** What it said last, or why it did not come to its end; at most 4,000 characters. */
      result: string
      durationMs: number
      tokens: TokenCounts | null
    }
  /** `detail`: why, a sentence; null if the verdict says it all. */
  | {
      type: 'task-judged'
      round: number
      task: string
      name: string
      phase: string | null
      verdict: TaskVerdict
      detail: string | null
    }
  /** Every task has been looked at after this round. */
  | { type: 'tasks-judged'; round: number }
