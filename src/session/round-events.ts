import type { RoundPart } from './build-state.ts'
import type { Item } from './items.ts'
import type { UsageWindow, WindDownLimit } from './limits.ts'
import type { RoundOutcome } from './outcome.ts'
import type { TokenCounts } from './token-counts.ts'

/** What happens in a round, from its start to its end. */
export type RoundEvent =
  | {
      type: 'round-started'
      round: number
      agent: string
      engine: string
      codex: string
      model: string | null
      input: string
      /** Of a build: what the round is for. */
      part?: RoundPart
    }
  | {
      type: 'turn-started'
      round: number
      thread: string
      turn: string
      /** What codex says that the thread works with; left out if its version does not say so. */
      model?: string
      /** As `model`, the reasoning effort; null: the model's own default. */
      effort?: string | null
    }
  /** `instance`: the agent whose it is, if that is not the round's own. */
  | { type: 'item-completed'; round: number; item: Item; instance?: string }
  | {
      type: 'plan-updated'
      round: number
      explanation: string | null
      steps: readonly { step: string; status: 'pending' | 'in-progress' | 'completed' }[]
    }
  | {
      type: 'usage'
      round: number
      thread: string
      total: TokenCounts
      last: TokenCounts
      contextWindow: number | null
    }
  | {
      type: 'limits'
      primary: UsageWindow | null
      secondary: UsageWindow | null
      /** Whether there are credits, with which the account goes on where a window is full; left out if codex did not say. */
      credits?: boolean
    }
  | { type: 'model-rerouted'; round: number; from: string; to: string; reason: string }
  | { type: 'request-answered'; round: number; method: string; subject: string; answer: string }
  | {
      type: 'question-asked'
      round: number
      /** `Q1`, `Q2`, … in the session. */
      question: string
      text: string
      /** Answers to choose from; none: any. */
      options: readonly string[]
      /** On what the agent goes on meanwhile. */
      assumption: string
    }
  | { type: 'steered'; round: number | null; text: string; delivered: boolean }
  | { type: 'warning'; round: number | null; message: string }
  | {
      type: 'error'
      round: number
      message: string
      details: string | null
      willRetry: boolean
      /** Codex tries again until the network is back, and does not give up. */
      waitsForNetwork: boolean
    }
  | { type: 'turn-continued'; round: number; cause: RoundOutcome }
  | { type: 'winding-down'; round: number; limit: WindDownLimit; graceMs: number }
  | { type: 'machine-slept'; round: number | null; ms: number }
  | {
      type: 'round-ended'
      round: number
      outcome: RoundOutcome
      /** Whether it uses up one of the person's rounds. */
      counts: boolean
      durationMs: number
      /** Tokens of the round's threads, its own and those of its sub-agents; null if codex reported none. */
      tokens: TokenCounts | null
      /** Fingerprints of the work tree (git tree hashes). */
      treeBefore: string
      treeAfter: string
      /** Paths that differ between the two, at most 50, relative to the work directory. */
      changed: readonly string[]
      changedCount: number
      /** Fingerprint of the memory files: a hash. */
      memory: string
      /** What `tasks.json` said then, `left` the names of at most 20 that are not done; left out: it has none. */
      tasks?: { done: number; total: number; left?: readonly string[] }
    }
