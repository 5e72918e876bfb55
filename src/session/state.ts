import type { AgentAtWork, BuildState, RoundPart } from './build-state.ts'
import type { RefusalReason } from './claim-events.ts'
import type { EventOf } from './events.ts'
import { type Failures, NO_FAILURES } from './failures.ts'
import type { GateFailure } from './flaky-gate.ts'
import type { Gate, GateResult, GateTime } from './gate.ts'
import type { SessionLimits, UsageWindow, WindDownLimit } from './limits.ts'
import type { RoundOutcome, SessionOutcome } from './outcome.ts'
import { NO_REVIEWS, type Reviews, type ReviewTerms } from './review.ts'
import type { Said } from './said.ts'
import { NO_STALL, type Stall } from './stall.ts'
import type { TokenCounts } from './token-counts.ts'

/** A round that has ended. */
export interface EndedRound
  extends Pick<
    EventOf<'round-ended'>,
    'round' | 'outcome' | 'counts' | 'durationMs' | 'tokens' | 'treeBefore' | 'treeAfter' | 'changed' | 'changedCount'
  > {
  part: RoundPart | null
}

/** A round at work. */
interface RunningRound {
  round: number
  part: RoundPart | null
  /** The change of plan that it is to make; null if it works on the goal. */
  replan: string | null
  /** Unix time, ms. */
  startedAt: number
  thread: string | null
  turn: string | null
  /** How many of the notices it was told with its input. */
  told: number
  /** What reached it while it worked, to be told again if the round does not count. */
  steered: readonly string[]
  /** Whether the agent has done anything yet. */
  hasWorked: boolean
  /** Whether a person has interrupted it. */
  isInterrupted: boolean
  /** How long its commands and tools have run, ms. */
  commandMs: number
  /** What the agent said last. */
  lastWords: string | null
}

/** What became of the last done claim. */
export type Claim =
  | { state: 'none' }
  /** `tree`: that of the claim, null if it was refused at once; `results`: of the gates that have run on it since. */
  | { state: 'nominated'; by: readonly string[]; tree: string | null; results: readonly GateResult[] }
  | { state: 'refused'; reason: RefusalReason; detail: string }
  | { state: 'accepted'; tree: string; verified: boolean; results: readonly GateResult[] }

/** One run of a gate, in short. */
export type GateRun = Pick<GateResult, 'gate' | 'status' | 'exitCode' | 'durationMs'> & {
  when: GateTime
  round: number
}

export interface PlanStep {
  step: string
  status: 'pending' | 'in-progress' | 'completed'
}

/** What codemachine does by itself between two rounds. `since`: Unix time, ms. */
export type Checking =
  | { kind: 'gate'; gate: string; when: GateTime; since: number }
  /** `heard`: what a person had said by then. */
  | { kind: 'review'; review: number; since: number; heard: readonly string[] }

/** What a session has come to: the pure fold of its journal. Its size does not grow with the number of events. */
export interface SessionState {
  id: string
  goal: string
  template: string
  directory: string
  queued: string | null
  limits: SessionLimits
  sandbox: string
  network: boolean
  model: string | null
  effort: string | null
  /** The model that codex last said it works with, also where the person named none; null until it has. */
  modelInUse: string | null
  /** As `modelInUse`, the reasoning effort; null: not known, or the model's own default. */
  effortInUse: string | null
  overrides: readonly string[]
  said: Said
  /** Name of the machine that it ran on last. */
  host: string
  /** Unix time, ms. */
  createdAt: number
  /** When it began or was last resumed, moved on by the time for which it has been held since; Unix time, ms. */
  beganAt: number
  /** How long it had been worked on before it was last resumed, ms. */
  workedMs: number
  /** Rounds that counted (docs/design.md, "What ends a round"). */
  roundsUsed: number
  running: RunningRound | null
  /** Agents that work because they were given a task. */
  agents: readonly AgentAtWork[]
  /** How far a build has come; null if this is none. */
  build: BuildState | null
  last: EndedRound | null
  failures: Failures
  stall: Stall
  claim: Claim
  /** What has to pass before done, and with what reviews are made if one has to agree. */
  gates: readonly Gate[]
  review: ReviewTerms | null
  /** How the gates came out before round 1, those that have run. */
  before: readonly GateResult[]
  /** How each gate came out the last time that it ran to its end, whenever that was. */
  gateRuns: readonly GateRun[]
  /** On which trees gates have failed, and which gates came out flaky at any time. */
  gateFailures: readonly GateFailure[]
  flakyGates: readonly string[]
  checking: Checking | null
  reviews: Reviews
  /** The tree that protected files are compared with; null: the one that the session began with. */
  protectFrom: string | null
  /** The files that gates protect and that rounds have changed, the last 50. */
  protectedChanged: readonly string[]
  /** The savepoint made last; `start`: the tree that the session began with, null if that was not kept. */
  savepoint: { round: number; commit: string; tree: string; start: string | null } | null
  /** How many questions were noted, and by what each is known again. */
  questions: number
  asked: readonly string[]
  /** What a person has said of the goal since it was typed, the last 20: texts that rounds were steered with, changes of plan. */
  personSaid: readonly string[]
  /** What the next round has to be told; what a round was told goes when that round has counted. */
  notices: readonly string[]
  plan: readonly PlanStep[]
  /** Tokens of the rounds that have ended. */
  tokensBefore: number
  /** Tokens of the running round's threads, its own and those of its sub-agents, as codex last reported them. */
  threadTokens: Readonly<Record<string, TokenCounts>>
  contextWindow: number | null
  contextTokens: number | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** Whether the account goes on with credits where a window is full. */
  hasCredits: boolean
  /** What is waited for now; `until` and `since` are Unix time, ms. */
  waiting: { until: number; since: number; cause: RoundOutcome } | null
  /** Since when a person wants it to pause, and since when no round has run for that; Unix time, ms. */
  pausedAt: number | null
  heldSince: number | null
  /** The change of plan that a person has asked for, and that has not been made yet. */
  replan: string | null
  /** Whether it stops when this round has ended. */
  stopAsked: boolean
  /** Since when codex has been waiting for the network; Unix time, ms. */
  offlineSince: number | null
  /** The limit for which the running round comes to a safe stop. */
  windingDown: WindDownLimit | null
  /** What keeps the machine awake. */
  keptAwake: string | null
  ended: { outcome: SessionOutcome; exitCode: number; durationMs: number } | null
  /** Events folded. */
  events: number
  /** Unix time of the last event, ms. */
  updatedAt: number
}

/** A session before its first event. */
export function emptyState(id: string): SessionState {
  return {
    id,
    goal: '',
    template: '',
    directory: '',
    queued: null,
    limits: { rounds: null, timeMs: null, tokens: null },
    sandbox: '',
    network: false,
    model: null,
    effort: null,
    modelInUse: null,
    effortInUse: null,
    overrides: [],
    said: {},
    host: '',
    createdAt: 0,
    beganAt: 0,
    workedMs: 0,
    roundsUsed: 0,
    running: null,
    agents: [],
    build: null,
    last: null,
    failures: NO_FAILURES,
    stall: NO_STALL,
    claim: { state: 'none' },
    gates: [],
    review: null,
    before: [],
    gateRuns: [],
    gateFailures: [],
    flakyGates: [],
    checking: null,
    reviews: NO_REVIEWS,
    protectFrom: null,
    protectedChanged: [],
    savepoint: null,
    questions: 0,
    asked: [],
    personSaid: [],
    notices: [],
    plan: [],
    tokensBefore: 0,
    threadTokens: {},
    contextWindow: null,
    contextTokens: null,
    primaryWindow: null,
    secondaryWindow: null,
    hasCredits: false,
    waiting: null,
    pausedAt: null,
    heldSince: null,
    replan: null,
    stopAsked: false,
    offlineSince: null,
    windingDown: null,
    keptAwake: null,
    ended: null,
    events: 0,
    updatedAt: 0,
  }
}
