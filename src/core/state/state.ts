import type { EventOf, KeptText, RefusalReason, RunOverrides, SessionEvent, TokenCounts } from '../events/events.ts'
import type {
  Gate,
  GateResult,
  GateTime,
  RoundOutcome,
  SessionLimits,
  SessionOutcome,
  UsageWindow,
  WaitReason,
  WindDownLimit,
} from '../events/outcome.ts'
import type { RefusedAnswers } from '../rules/answer.ts'
import { addTokens, type Cost, type ModelPrice, NO_COST } from '../rules/cost.ts'
import type { DecidedChoice, HoldEnd, OpenDecision } from '../rules/decision.ts'
import { NO_TRENDS, type UsageTrends } from '../rules/forecast.ts'
import type { Notice } from '../rules/notices.ts'
import type { Output } from '../rules/outputs.ts'
import type { CounterProof } from '../rules/proof/counter-proof.ts'
import { NO_REVIEWS, type Reviews, type ReviewTerms } from '../rules/review.ts'
import type { RunAllowance } from '../rules/run-limits.ts'
import { NO_STALL, type Stall } from '../rules/stall.ts'
import type { PartKind, TemplateKind } from '../template.ts'
import type { Checking, GateFailure } from './fold-claim.ts'
import type { AgentAtWork, EndedAgent, TaskPlan } from './plan.ts'
import type { GivenUpScope, Scope } from './scope.ts'

/** A round that has ended; `isReplan`: it was to change the plan as a person had asked. */
export type EndedRound = Pick<
  EventOf<'round-ended'>,
  'round' | 'outcome' | 'counts' | 'durationMs' | 'tokens' | 'treeBefore' | 'treeAfter' | 'changed' | 'changedCount'
> &
  PartOfRound & { isReplan: boolean }

/** What a round is for, by a word of its template; null where the template has but one kind, and for a change of plan. */
export interface PartOfRound {
  part: string | null
}

/** A round at work. */
interface RunningRound extends PartOfRound {
  round: number
  /** The change of plan that the round makes; null if it works on the goal. */
  replan: string | null
  /** Unix time, ms. */
  startedAt: number
  thread: string | null
  turn: string | null
  /** How many of the notices were in its input. */
  told: number
  /** What a person said to the running turn; told again if the round does not count. */
  steered: readonly Notice[]
  /** Whether the agent has done anything yet. */
  hasWorked: boolean
  /** Whether a person has interrupted it. */
  isInterrupted: boolean
  /** How long its commands and tools have run, ms. */
  commandMs: number
  /** The agent's last message; null before the first. */
  lastWords: string | null
  /** The agents that it gave tasks and that have ended, the last 50. */
  agentsEnded: readonly EndedAgent[]
}

/** The state of the last done claim. */
export type Claim =
  | { state: 'none' }
  /** `tree`: the work tree of the claim, null if it was refused at once; `results`: of the gates that have run on it since. */
  | { state: 'nominated'; by: readonly string[]; tree: string | null; results: readonly GateResult[] }
  | { state: 'refused'; reason: RefusalReason; detail: string }
  | { state: 'accepted'; by: readonly string[]; tree: string; verified: boolean; results: readonly GateResult[] }

/** One run of a gate, in short. */
export type GateRun = Pick<GateResult, 'gate' | 'status' | 'exitCode' | 'durationMs'> & {
  when: GateTime
  round: number
}

export interface PlanStep {
  step: string
  status: 'pending' | 'in-progress' | 'completed'
}

/** The state of a session: the pure fold of its journal. Its size does not grow with the number of events. */
export interface SessionState {
  id: string
  goal: string
  template: string
  /** That template; null before the first event, and where this version does not know it. */
  kind: TemplateKind | null
  /** The state of the template itself, of which only it knows the shape. */
  work: unknown
  directory: string
  queued: string | null
  /** Id of the session that it goes on from; null if it is none. */
  follows: string | null
  /** The texts that it began with, which its records keep. */
  kept: readonly KeptText[]
  limits: SessionLimits
  /** What the run may take that it belongs to, and what of that the sessions before it have used; null if not known. */
  run: RunAllowance | null
  sandbox: string
  network: boolean
  model: string | null
  effort: string | null
  /** The model that codex last reported, also where the person named none; null before that. */
  modelInUse: string | null
  /** The reasoning effort that codex last reported; null if not known, or the model's own default. */
  effortInUse: string | null
  /** The provider of the round or review that started last; null: what codex is configured with. */
  providerInUse: string | null
  overrides: readonly string[]
  said: RunOverrides
  /** Name of the machine that the session ran on last. */
  host: string
  /** Unix time, ms. */
  createdAt: number
  /** When it began or was last resumed, moved on by the time for which the machine has slept since; Unix time, ms. */
  beganAt: number
  /** How long it had been worked on before it was last resumed, ms. */
  workedMs: number
  /** Rounds that counted (docs/design.md, "What ends a round"). */
  roundsUsed: number
  running: RunningRound | null
  /** Agents at work on a task that they were given. */
  agents: readonly AgentAtWork[]
  /** The plan and its tasks; null if the template has none. */
  taskPlan: TaskPlan | null
  /** The scope that it is in; null: it works on its own goal. */
  scope: Scope | null
  /** The scopes that were given up after they changed what their gates protect, and are not done yet; the first 1,000. */
  givenUp: readonly GivenUpScope[]
  /** Whether a round was replayed from a recording: then nothing of the session can be done. */
  replayed: boolean
  /** Whether it was begun to replay recordings and do nothing else. */
  replays: boolean
  /** The first part of a round that the template of this version does not have; null if there is none. */
  unknownPart: string | null
  last: EndedRound | null
  failures: Failures
  stall: Stall
  claim: Claim
  /** Whether a round has changed files; and whether a claim was refused because nothing had been done. */
  hasChangedFiles: boolean
  toldNothingDone: boolean
  /** The commands that have to pass before done; and the reviewer's model and effort, null if no review is asked for. */
  gates: readonly Gate[]
  review: ReviewTerms | null
  /** Those of the gates that the template has added. */
  addedGates: readonly Gate[]
  /** Results of the gates that ran before round 1. */
  before: readonly GateResult[]
  /** The last complete run of each gate. */
  gateRuns: readonly GateRun[]
  /** The trees on which gates have failed, and the names of gates that were flaky at any time. */
  gateFailures: readonly GateFailure[]
  flakyGates: readonly string[]
  /** The most tests that each gate says it has run at once, and its last counter-proof. */
  testCounts: readonly { gate: string; most: number }[]
  counterProofs: readonly CounterProof[]
  checking: Checking | null
  /** The step that codemachine carries out just now, and how many have been; `since`: Unix time, ms; `mostMs`: how long a command may take. */
  step: { number: number; kind: string; name: string; since: number; mostMs?: number } | null
  steps: number
  /** The state of the template's own that it is in; null: it has none. */
  workState: string | null
  reviews: Reviews
  /** The answers that could not be used when they were given last, by name: why, and how often in a row; the last 100. */
  refusedAnswers: RefusedAnswers
  /** What its steps came to, the last 100. */
  outputs: readonly Output[]
  /** The tree that protected files are compared with; null: the one that the session began with. */
  protectFrom: string | null
  /** Protected files that rounds have changed, the last 50. */
  protectedChanged: readonly string[]
  /**
   * Configuration that gates run through and that differs from what the session began with; `programs`: what those of
   * `node_modules/.bin` were like then, null if not known. Null: nobody has looked, for no gate protects anything, and none passed before round 1.
   */
  gateConfiguration:
    | (Pick<EventOf<'gate-configuration'>, 'files' | 'count' | 'digest'> & { programs: string | null })
    | null
  /** The savepoint made last; `start`: the tree that the session began with, null if that was not kept. */
  savepoint: { round: number; commit: string; tree: string; start: string | null } | null
  /**
   * The rounds that have ended since, with the trees that they left and how many files they changed: one may be kept late,
   * while the next one works; at most two.
   */
  unkept: readonly { round: number; tree: string; files: number }[]
  /** How many questions were noted, and their keys (`questionKey`). */
  questions: number
  asked: readonly string[]
  /** The last texts of a person after the goal: what rounds were steered with, changes of plan; at most 100, and 250,000 characters. */
  personSaid: readonly string[]
  /** Whether the words by which rounds go were found changed since the last round began, and were put back. */
  goalRestored: boolean
  /** The notices for the next round; those that a round was told are dropped once it has counted. */
  notices: readonly Notice[]
  plan: readonly PlanStep[]
  /** Tokens of the rounds that have ended. */
  tokensBefore: number
  /** Of these, those of each provider of the person's. */
  providerTokens: Readonly<Record<string, number>>
  /** Tokens of the running round's threads, its own and those of its sub-agents, as codex last reported them. */
  threadTokens: Readonly<Record<string, TokenCounts>>
  /** What models cost, as the person says, and what the session has cost by that. */
  prices: readonly ModelPrice[]
  cost: Cost
  contextWindow: number | null
  contextTokens: number | null
  primaryWindow: UsageWindow | null
  secondaryWindow: UsageWindow | null
  /** Whether the account goes on with credits where a window is full. */
  hasCredits: boolean
  /** What the rounds have used of each window, and the per cent that may be used; null: all. */
  usageTrends: UsageTrends
  maxUsage: number | null
  /** What is waited for now; `until` and `since` are Unix time, ms. */
  waiting: { until: number; since: number; reason: WaitReason; cause: RoundOutcome } | null
  /** When a person asked it to pause, and since when no round has run for that; Unix time, ms; null if not. */
  pausedAt: number | null
  heldSince: number | null
  /** For how long it was held before that, ms. */
  heldMs: number
  /** When the hold ends by itself, and how; Unix time, ms. Null if it does not hold. */
  holdEnd: HoldEnd | null
  /** What a person is asked to decide; null if nothing. Of a session that has ended, what it ended without. */
  decision: OpenDecision | null
  /** The last decision that was made since it began or was resumed; null before the first. */
  decided: DecidedChoice | null
  /** The change of plan that a person has asked for and no round has made yet; null if there is none. */
  replan: string | null
  /** How often a person has asked for a change of plan. */
  replansAsked: number
  /** Whether the session stops when this round has ended. */
  stopAsked: boolean
  /** Since when codex has been waiting for the network; Unix time, ms; null if it does not. */
  offlineSince: number | null
  /** The limit for which the running round comes to a safe stop; null if there is none. */
  windingDown: WindDownLimit | null
  /** The program that keeps the machine awake; null if none does. */
  keptAwake: string | null
  ended: { outcome: SessionOutcome; exitCode: number; durationMs: number } | null
  /** Events folded. */
  events: number
  /** Unix time of the last event, ms. */
  updatedAt: number
}

/** For each event of a union, how the state is after it. `at`: Unix time, ms. Pure. */
export type FoldsOf<E extends SessionEvent> = {
  readonly [T in E['type']]: (state: SessionState, event: EventOf<T>, at: number) => SessionState
}

/** The rights of a round of a template that has but one kind of round, and of one that this version does not know. */
const USUAL_PART: PartKind = {
  words: '',
  claims: true,
  free: false,
  countsForStall: true,
  delegates: true,
  keepsWords: 400,
}

/** The kind of a round by the word for what it is for; `part` null: of a template with one kind of round. Pure. */
export function partOf(kind: TemplateKind | null, part: string | null): PartKind {
  const parts = kind?.parts ?? {}
  return part !== null && Object.hasOwn(parts, part) ? (parts[part] ?? USUAL_PART) : USUAL_PART
}

/** Whether the plan of a session is that of the work directory, which the next such session sets aside. Pure. */
export function sharesPlan({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.memory === 'project-plan'
}

/** Whether a session is a call, which is never the session of its work directory. Pure. */
export function isCall({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.isCall ?? false
}

/** Whether this version could go on with a session: it knows its template and what all of its rounds were for. Pure. */
export function isKnown({ kind, unknownPart }: Pick<SessionState, 'kind' | 'unknownPart'>): boolean {
  return kind !== null && unknownPart === null
}

const NEVER_HELD = { pausedAt: null, heldSince: null, heldMs: 0, holdEnd: null } as const
const NOTHING_SPENT = { prices: [], cost: NO_COST, usageTrends: NO_TRENDS, maxUsage: null }
const NOTHING_SAID = { questions: 0, asked: [], personSaid: [], goalRestored: false, notices: [] }
const NO_REPLAY = { replayed: false, replays: false }
const NOTHING_YET = {
  scope: null,
  givenUp: [],
  hasChangedFiles: false,
  toldNothingDone: false,
  protectedChanged: [],
  gateConfiguration: null,
  workState: null,
  replansAsked: 0,
  addedGates: [],
  testCounts: [],
  counterProofs: [],
}

/** A session before its first event. */
export function emptyState(id: string): SessionState {
  return {
    id,
    goal: '',
    template: '',
    kind: null,
    work: null,
    directory: '',
    queued: null,
    follows: null,
    kept: [],
    limits: { rounds: null, timeMs: null, tokens: null },
    run: null,
    sandbox: '',
    network: false,
    model: null,
    effort: null,
    modelInUse: null,
    effortInUse: null,
    providerInUse: null,
    overrides: [],
    said: {},
    host: '',
    createdAt: 0,
    beganAt: 0,
    workedMs: 0,
    roundsUsed: 0,
    running: null,
    agents: [],
    taskPlan: null,
    ...NO_REPLAY,
    unknownPart: null,
    last: null,
    failures: NO_FAILURES,
    stall: NO_STALL,
    claim: { state: 'none' },
    ...NOTHING_YET,
    gates: [],
    review: null,
    before: [],
    gateRuns: [],
    gateFailures: [],
    flakyGates: [],
    checking: null,
    step: null,
    steps: 0,
    reviews: NO_REVIEWS,
    refusedAnswers: {},
    outputs: [],
    protectFrom: null,
    savepoint: null,
    unkept: [],
    ...NOTHING_SAID,
    plan: [],
    tokensBefore: 0,
    providerTokens: {},
    threadTokens: {},
    ...NOTHING_SPENT,
    contextWindow: null,
    contextTokens: null,
    primaryWindow: null,
    secondaryWindow: null,
    hasCredits: false,
    waiting: null,
    ...NEVER_HELD,
    decision: null,
    decided: null,
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

/** Rounds in a row that did not come to their end; a round that worked forgets them all. */
export interface Failures {
  /** Those that used up no round. */
  inARow: number
  /** When the first of these began to fail: its end, or before that when the network was first waited for in it; Unix time, ms. */
  since: number | null
  /** Crashes in a row in which the agent had done nothing. */
  idleCrashes: number
  /** Refusals in a row. */
  refusals: number
  /** Rounds in a row that ended in silence, whether they used up a round or not. */
  silences: number
  /** Rounds in a row to which the server refused access (HTTP 403). */
  forbidden: number
}

export const NO_FAILURES: Failures = {
  inARow: 0,
  since: null,
  idleCrashes: 0,
  refusals: 0,
  silences: 0,
  forbidden: 0,
}

/** The failures after one more round, which ended at `at`; `offlineSince`: when the network went away in it (Unix time, ms). Pure. */
export function failuresAfter(
  before: Failures,
  { outcome, counts }: Pick<EventOf<'round-ended'>, 'outcome' | 'counts'>,
  hasWorked: boolean,
  { at, offlineSince }: { at: number } & Pick<SessionState, 'offlineSince'>,
): Failures {
  // What a signal or a person cut off did not fail.
  if (!counts && outcome.class === 'interrupted') return before
  if (outcome.class === 'worked') return NO_FAILURES
  const silences = outcome.class === 'silent' ? before.silences + 1 : 0
  if (counts) return { ...NO_FAILURES, refusals: outcome.class === 'refused' ? before.refusals + 1 : 0, silences }
  return {
    inARow: before.inARow + 1,
    since: before.since ?? (outcome.class === 'network' ? offlineSince : null) ?? at,
    idleCrashes: outcome.class === 'crashed' && !hasWorked ? before.idleCrashes + 1 : 0,
    refusals: before.refusals,
    silences,
    forbidden: outcome.status === 403 ? before.forbidden + 1 : 0,
  }
}

/**
 * Whether a session runs now. `cut-off`: it has not ended, and no process works on it. `unknown`: it has not ended, and
 * it cannot be told whether a process works on it.
 */
export type SessionStatus = 'running' | 'cut-off' | 'ended' | 'unknown'

/**
 * The status of a session, given the process that runs in the directory (`at`: since when, ISO 8601; null: none). A session
 * with an event since then is the one that it runs. Pure.
 */
export function sessionStatusOf(session: SessionState, runner: { at: string } | null | 'unknown'): SessionStatus {
  if (session.ended) return 'ended'
  if (runner === 'unknown') return 'unknown'
  return runner !== null && session.updatedAt >= Date.parse(runner.at) ? 'running' : 'cut-off'
}

/** How long a session has taken, ms: until it ended, until now if it runs, until its last sign of life if it was cut off. */
export function elapsedMs(session: SessionState, standing: SessionStatus, now: number): number {
  if (session.ended) return session.ended.durationMs
  const until = standing === 'running' ? now : session.updatedAt
  return session.workedMs + Math.max(0, until - session.beganAt)
}

/** Tokens of the whole session so far, all threads. */
export function sessionTokens(state: SessionState): number {
  return state.tokensBefore + (roundTokens(state)?.total ?? 0)
}

/** Of all tokens so far those of each provider of the person's; the rest is of what codex is configured with. */
export function tokensOfProviders(state: SessionState): Readonly<Record<string, number>> {
  const { providerInUse: name, providerTokens } = state
  const tokens = roundTokens(state)?.total ?? 0
  if (name === null || tokens === 0) return providerTokens
  return { ...providerTokens, [name]: (Object.hasOwn(providerTokens, name) ? (providerTokens[name] ?? 0) : 0) + tokens }
}

/** Tokens of the running round, its sub-agents included; null if none were reported. */
export function roundTokens(state: SessionState): TokenCounts | null {
  const threads = Object.values(state.threadTokens)
  return threads.length === 0 ? null : threads.reduce(addTokens)
}

/** The session after a person has asked at `at` (Unix time, ms) that no further round start. Pure. */
export function hold(state: SessionState, at: number): SessionState {
  const { running, waiting, checking, step, decision } = state
  const isIdle = running === null && waiting === null && checking === null && step === null && decision === null
  return { ...state, pausedAt: state.pausedAt ?? at, heldSince: state.heldSince ?? (isIdle ? at : null) }
}

/** The session when something runs or waits again: the time for which it was held is none in which it has failed. Pure. */
export function releaseHold(state: SessionState, at: number): SessionState {
  if (state.heldSince === null) return state
  const ms = Math.max(0, at - state.heldSince)
  const failures = failuresLater(state.failures, ms)
  return { ...state, failures, heldMs: state.heldMs + ms, heldSince: null, holdEnd: null }
}

function failuresLater(failures: Failures, ms: number): Failures {
  return failures.since === null ? failures : { ...failures, since: failures.since + ms }
}

/** The session after a person has asked that the running round end early. Pure. */
export function interruptRound(state: SessionState): SessionState {
  return state.running === null ? state : { ...state, running: { ...state.running, isInterrupted: true } }
}

/** The session after the machine has slept for `ms`, which is not counted as work; up to a minute is ignored. Pure. */
export function discountSleep(state: SessionState, ms: number): SessionState {
  if (ms <= 60_000) return state
  return { ...state, beganAt: state.beganAt + ms, failures: failuresLater(state.failures, ms) }
}
