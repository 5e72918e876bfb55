import type { Shortened } from './shortened.ts'

/** What is told of a build: its tasks as codemachine believes them to stand, and who worked on them. */
export interface ReportBuild {
  /** What the last summary said, in an agent's own words: how it is run, and what is left. A claim, and no proof. */
  summary: string | null
  /** At most 200. */
  tasks: readonly ReportTask[]
  /** Of all of them. */
  counts: { tasks: number; done: number; parked: number }
  /** At most 50, as they came to work first. */
  agents: readonly ReportAgent[]
  /** What the team builder wrote and was no plan. */
  refusals: Shortened<{ at: string; round: number; problem: string }>
}

export interface ReportTask {
  id: string
  name: string
  phase: string | null
  state: 'done' | 'parked' | 'open'
  /** Why it is parked. */
  reason: string | null
  failures: number
}

/** All that one agent was asked for. */
export interface ReportAgent {
  agent: string
  instances: number
  completed: number
  failed: number
  terminated: number
  /** Sums. */
  durationMs: number
  tokens: number
}
