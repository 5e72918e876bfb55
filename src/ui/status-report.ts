import type { StallRemedy } from '../session/lifecycle-events.ts'
import type { SessionLimits, UsageWindow, WindDownLimit } from '../session/limits.ts'
import type { RoundOutcome, SessionOutcome } from '../session/outcome.ts'
import type { Standing } from '../session/standing.ts'
import type { Claim, PlanStep } from '../session/state.ts'
import type { Activity } from './activity.ts'
import type { BuildReport } from './build-report.ts'
import type { ProofReport } from './proof-report.ts'

/** What goes on in a work directory. Times are ISO 8601 in UTC. */
export interface StatusReport {
  directory: string
  /** Null if nobody runs there; `unknown` if the lock cannot be read. */
  runner: { pid: number; host: string; since: string } | null | 'unknown'
  /** The session that runs, or the last that did. */
  session: SessionReport | null
  /** How many sessions there are, those that cannot be read too. */
  sessions: number
  /** Prompts that wait. */
  queued: number
}

/** How far a session is. */
export interface SessionReport extends ProofReport {
  id: string
  goal: string
  standing: Standing
  /** What it does now; null if nobody runs it. */
  activity: Activity | null
  outcome: SessionOutcome | null
  /** The round that runs; null between rounds. */
  round: { round: number; elapsedMs: number } | null
  roundsUsed: number
  limits: SessionLimits
  elapsedMs: number
  tokens: number
  /** The model that codex works with; before it has said so, what was asked for; null: its own choice. */
  model: string | null
  /** As `model`, the reasoning effort. */
  effort: string | null
  /** The last thing that happened, as the log tells it. */
  last: { at: string; text: string } | null
  /** What it waits for; of one that was broken off while it waited, what it will go on to wait for. */
  waiting: { until: string; since: string; cause: RoundOutcome } | null
  /** Since when a person wants it to pause, which it does when its round has ended. */
  pausedAt: string | null
  /** Whether a person has asked for a change of plan that is not made yet. */
  replanAsked: boolean
  /** Whether it stops when its round has ended. */
  stopAsked: boolean
  /** Since when codex has been waiting for the network. */
  offlineSince: string | null
  /** The limit for which its round comes to a safe stop. */
  windingDown: WindDownLimit | null
  /** How far it has got stuck, and what has been done about it. */
  stall: { idleRounds: number; sameRefusals: number; remedy: StallRemedy | null }
  /** What keeps the machine awake for it. */
  keptAwake: string | null
  plan: readonly PlanStep[]
  claim: Claim
  /** `current`: the one at work; null if nobody works, or all are done. */
  tasks: {
    done: number
    total: number
    current: { id: string; name: string; phase: string | null } | null
  } | null
  /** Null if it is no build. */
  build: BuildReport | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
}
