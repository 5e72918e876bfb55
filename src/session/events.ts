import type { MemoryProblem } from '../workspace/memory.ts'
import type { Item } from './items.ts'
import type { RoundOutcome, SessionOutcome } from './outcome.ts'

/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export interface TokenCounts {
  input: number
  cachedInput: number
  output: number
  reasoning: number
  total: number
}

/** One window of the account's usage limits. */
export interface UsageWindow {
  usedPercent: number
  windowMinutes: number | null
  /** Unix time, ms. */
  resetsAt: number | null
}

/** Why a done claim was not believed. */
export type RefusalReason = 'tasks-left' | 'progress-left' | 'tree-changed' | 'memory-broken' | 'round-not-completed'

/**
 * Everything that can happen in a session and is kept: the journal is a list of these. Documented, with the tree of
 * their order, in docs/events.md.
 */
export type SessionEvent =
  | {
      type: 'session-created'
      goal: string
      template: string
      directory: string
      limits: { rounds: number }
      sandbox: string
      network: boolean
      model: string | null
      effort: string | null
      /** `key=value` pairs handed to codex. */
      overrides: readonly string[]
      /** Id of the queued prompt that this session came from; null if it was given on the command line. */
      queued: string | null
      codemachine: string
    }
  | { type: 'session-resumed'; limits: { rounds: number }; codemachine: string }
  | {
      type: 'round-started'
      round: number
      agent: string
      engine: string
      codex: string
      model: string | null
      input: string
    }
  | { type: 'turn-started'; round: number; thread: string; turn: string }
  | { type: 'item-completed'; round: number; item: Item }
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
  | { type: 'limits'; primary: UsageWindow | null; secondary: UsageWindow | null }
  | { type: 'model-rerouted'; round: number; from: string; to: string; reason: string }
  | { type: 'request-answered'; round: number; method: string; subject: string; answer: string }
  | { type: 'steered'; round: number | null; text: string; delivered: boolean }
  | { type: 'warning'; round: number | null; message: string }
  | { type: 'error'; round: number; message: string; details: string | null; willRetry: boolean }
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
    }
  | {
      type: 'waiting'
      round: number
      /** What is waited out: the round that failed. */
      cause: RoundOutcome
      /** ISO 8601; the round is tried again then. */
      until: string
    }
  | { type: 'memory-broken'; problem: MemoryProblem }
  | { type: 'repository-restored'; round: number; paths: readonly string[]; setAside: string | null }
  | { type: 'done-nominated'; round: number; by: readonly ('MAIN.md' | 'tasks.json')[] }
  | { type: 'done-refused'; round: number; reason: RefusalReason; detail: string }
  | { type: 'done-accepted'; round: number; tree: string }
  | {
      type: 'session-ended'
      outcome: SessionOutcome
      exitCode: number
      rounds: number
      tokens: number
      durationMs: number
    }

/** What views may show as it happens and nobody keeps: never journaled, never in `--json`. */
export type LiveEvent =
  | { type: 'item-started'; round: number; item: Item }
  | { type: 'text-delta'; round: number; item: string; source: 'agent-message' | 'reasoning' | 'plan'; text: string }
  | { type: 'output-delta'; round: number; item: string; text: string }

/** One line of the journal and of `--json`. `at` is ISO 8601 in UTC with ms. */
export type Recorded<E extends SessionEvent = SessionEvent> = E extends SessionEvent
  ? { v: 1; at: string; session: string } & E
  : never
