import type { MemoryProblem } from '../contracts/memory.ts'
import type { Judgement } from '../rules/plan-rule.ts'
import type { Finding, ReviewAnswer, ReviewCause, ReviewTerms } from '../rules/review.ts'
import type { AgentStatus } from '../state/plan.ts'
import type { SessionState } from '../state/state.ts'
import type { Item } from './items.ts'
import type {
  Gate,
  GateResult,
  GateTime,
  RoundOutcome,
  SessionLimits,
  SessionOutcome,
  StallReason,
  UsageWindow,
  WaitReason,
  WindDownLimit,
} from './outcome.ts'

/**
 * Everything that can happen in a session and is kept: the journal is a list of these. Documented, with the tree of
 * their order, in docs/events.md.
 */
export type SessionEvent = LifecycleEvent | RoundEvent | FileEvent | PlanEvent | ClaimEvent

/** The event of one type; of several, a union. */
export type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** One line of the journal and of `--json`. `at` is ISO 8601 in UTC with ms. */
export type Recorded<E extends SessionEvent = SessionEvent> = E extends SessionEvent
  ? { v: 1; at: string; session: string } & E
  : never

/** The line of one type of event; of several, a union. */
export type RecordedOf<T extends Recorded['type']> = Extract<Recorded, { type: T }>

/** Events of a plan: whether it can be used, its tasks, and the agents that are given work. */
export type PlanEvent =
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
  | ({ type: 'task-judged'; round: number } & Judgement)
  /** Every task has been looked at after this round. */
  | { type: 'tasks-judged'; round: number }

/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export interface TokenCounts {
  input: number
  cachedInput: number
  output: number
  reasoning: number
  total: number
}

/** Why a done claim was refused. */
export type RefusalReason =
  | 'tasks-left'
  | 'progress-left'
  | 'tree-changed'
  | 'memory-broken'
  | 'round-not-completed'
  | 'gate-failed'
  | 'review-findings'
  | 'person-said-more'

/** Events of a claim that the goal is reached: gates, reviews, and the decision. */
export type ClaimEvent =
  /** `round`: the one that ended last. */
  | { type: 'gate-started'; round: number; when: GateTime; gate: string }
  /** `treeAfter`: fingerprint of what it left; left out: it is not known. */
  | ({ type: 'gate-ended'; round: number; when: GateTime; treeAfter?: string } & GateResult)
  | { type: 'done-nominated'; round: number; by: readonly ('MAIN.md' | 'tasks.json')[]; tree?: string }
  | {
      type: 'review-started'
      round: number
      /** From 1, in the session. */
      review: number
      causes: readonly ReviewCause[]
      model: string | null
      effort: string | null
    }
  | {
      type: 'review-ended'
      round: number
      review: number
      /** How its turn ended; anything but `worked` gives no answer. */
      outcome: RoundOutcome
      /** Null if it gave none that can be read. */
      answer: ReviewAnswer | null
      /** Those of the findings that a review before this one had, too. */
      repeated: readonly Finding[]
      /** Fingerprint of what was reviewed. */
      tree: string
      durationMs: number
      tokens: TokenCounts | null
    }
  | { type: 'done-refused'; round: number; reason: RefusalReason; detail: string }
  /** `verified`: gates were there, and every one that is required passed. */
  | { type: 'done-accepted'; round: number; tree: string; verified?: boolean }

/** How one work tree differs from another. */
export interface TreeChanges {
  /** How many files differ. */
  files: number
  /** Lines, in files that are text. */
  added: number
  removed: number
  /** In git's order, at most as many as were asked for; null lines: not text. */
  paths: readonly { path: string; added: number | null; removed: number | null }[]
}

/** Events of the files: of the memory, the repository, the work tree. */
export type FileEvent =
  | { type: 'memory-broken'; problem: MemoryProblem }
  | { type: 'repository-restored'; round: number; paths: readonly string[]; setAside: string | null }
  | {
      type: 'savepoint'
      /** The round after which it was made; 0: before the first. */
      round: number
      /** In codemachine's private git directory. */
      commit: string
      tree: string
      /** Since the session began; at most 50 paths. */
      changes: TreeChanges
      /** Where the person's own branch stands; null if there is none. */
      head: string | null
      /** Commits on that branch that were not there at the savepoint before, the oldest first, at most 20. */
      commits: readonly { commit: string; subject: string }[]
    }
  /** A round changed `codemachine.toml`, the project's settings; the first one that did since the run began. */
  | { type: 'settings-changed'; round: number }
  | {
      type: 'protected-changed'
      round: number
      /** At most 50 files that gates protect and that this round changed, deleted, or marked to be skipped. */
      files: readonly { path: string; how: 'changed' | 'deleted' | 'skipped'; gates: readonly string[] }[]
      count: number
    }

/** What is tried when rounds make no progress. */
export type StallRemedy = 'another-way' | 'more-effort'

/** Events of the session as a whole: it begins, waits, is held, goes on, ends. */
export type LifecycleEvent =
  | {
      type: 'session-created'
      goal: string
      template: string
      directory: string
      limits: SessionLimits
      sandbox: string
      network: boolean
      model: string | null
      effort: string | null
      /** `key=value` pairs handed to codex. */
      overrides: readonly string[]
      said: RunOverrides
      /** What has to pass before done; left out: nothing. */
      gates?: readonly Gate[]
      /** Whether a review has to agree before done, and with what; left out or null: only where a protected file was changed. */
      review?: ReviewTerms | null
      /**
       * Fingerprint that the files which gates protect are compared with: that of a session before it which changed some and
       * was not done; left out: what this one begins with.
       */
      protectFrom?: string
      /** Of a build: whether a person wants to see the plan before it is carried out; left out: no. */
      asksPlan?: boolean
      /** Id of the queued prompt that this session came from; null if it was given on the command line. */
      queued: string | null
      /** Name of the machine. */
      host: string
      codemachine: string
    }
  | {
      type: 'session-resumed'
      limits: SessionLimits
      said: RunOverrides
      /** Left out: as before. */
      gates?: readonly Gate[]
      review?: ReviewTerms | null
      host: string
      codemachine: string
    }
  | { type: 'keep-awake'; by: string | null; problem: string | null }
  | {
      type: 'waiting'
      /** The round that starts when the wait is over. */
      round: number
      reason: WaitReason
      /** What is waited out: how the round failed, or the usage limit in words. */
      cause: RoundOutcome
      /** ISO 8601. */
      until: string
    }
  | { type: 'wait-ended'; round: number; reason: 'over' | 'retry' | 'stopped' }
  | { type: 'stop-asked'; now: boolean }
  | { type: 'paused' }
  | { type: 'held' }
  | { type: 'unpaused' }
  | { type: 'interrupt-asked' }
  | { type: 'skip-asked' }
  | { type: 'replan-asked'; text: string }
  | {
      type: 'replanned'
      round: number
      /** Those that changed, as unified diffs. */
      files: readonly { file: 'MAIN.md' | 'tasks.json'; diff: string }[]
    }
  | { type: 'stuck'; round: number; rounds: number; why: StallReason; remedy: StallRemedy }
  | {
      type: 'session-ended'
      outcome: SessionOutcome
      exitCode: number
      rounds: number
      tokens: number
      durationMs: number
    }

/** Settings given by flag or environment. They outlive the process: `resume` applies them again. */
export interface RunOverrides {
  sandbox?: string
  network?: boolean
  model?: string
  effort?: string
  /** Per cent. */
  maxUsage?: number
  maxWaitMs?: number
  keepAwake?: boolean
  /** Commands that have to pass before done, as `--verify` names them. */
  verify?: readonly string[]
  review?: boolean
}

/** Events of a round, from its start to its end. */
export type RoundEvent =
  | {
      type: 'round-started'
      round: number
      agent: string
      engine: string
      codex: string
      model: string | null
      input: string
      /** What the round is for, by a word of the template; left out: the template has one kind, or the plan is changed. */
      part?: string
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

/** Events for views while a session runs: never journaled, never in `--json`. */
export type LiveEvent =
  /** Comes once a minute while something is waited for. */
  | { type: 'still-waiting'; leftMs: number }
  /** `instance`: the agent whose it is, if that is not the round's own. */
  | { type: 'item-started'; round: number; item: Item; instance?: string }
  | {
      type: 'text-delta'
      round: number
      item: string
      source: 'agent-message' | 'reasoning' | 'plan'
      text: string
      instance?: string
    }
  | { type: 'output-delta'; round: number; item: string; text: string; instance?: string }

/** A reader that shows events, and decides nothing. */
export interface View {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  live(event: LiveEvent): void
}
