import type * as v from 'valibot'
import type {
  EventOf,
  KeptText,
  LiveEvent,
  Recorded,
  RefusalReason,
  RunOverrides,
  SessionEvent,
  TokenCounts,
} from '../events/events.ts'
import type {
  Gate,
  GateResult,
  GateTime,
  RoundOutcome,
  RunAllowance,
  SessionLimits,
  SessionOutcome,
  WaitReason,
  WindDownLimit,
} from '../events/outcome.ts'
import type { RefusedAnswers } from '../rules/answer.ts'
import type { ContractState } from '../rules/contract.ts'
import { addTokens, type Cost, type ModelPrice, NO_COST } from '../rules/cost.ts'
import type { DecidedChoice, HoldEnd, OpenDecision } from '../rules/decision.ts'
import type { Notice } from '../rules/notices.ts'
import type { Output } from '../rules/outputs.ts'
import type { CounterProof } from '../rules/proof/counter-proof.ts'
import { NO_REVIEWS, type Reviews, type ReviewTerms } from '../rules/review.ts'
import { NO_STALL, type Stall } from '../rules/stall.ts'
import type { Adopted } from '../shapes/conversation.ts'
import type { HookMoment } from '../shapes/hook.ts'
import type { IssueRef, Published } from '../shapes/published.ts'
import type { BoardRow, CardFact, ReportSection, RoundTitle, ShownPlan, StepName } from '../view.ts'
import type { AgentAtWork, EndedAgent, TaskPlan } from './plan.ts'
import { CODEX_LOGIN, NO_LOGINS, type UsedLogins } from './usage.ts'

/** A round that has ended. `isReplan`: it was to change the plan for a person. */
export type EndedRound = Pick<
  EventOf<'round-ended'>,
  'round' | 'outcome' | 'counts' | 'durationMs' | 'tokens' | 'treeBefore' | 'treeAfter' | 'changed' | 'changedCount'
> &
  PartOfRound & { isReplan: boolean }

/** Purpose of a round, a word of its template. Null: the template has one kind of round, or the plan changes. */
export interface PartOfRound {
  part: string | null
}

/** The running round. */
interface RunningRound extends PartOfRound {
  round: number
  /** The change of plan that the round makes; null: it works on the goal. */
  replan: string | null
  /** Unix time, ms. */
  startedAt: number
  thread: string | null
  turn: string | null
  /** Number of notices in its input. */
  told: number
  /** Messages of a person to the running turn; sent again if the round does not count. */
  steered: readonly Notice[]
  /** True once the agent has done something. */
  hasWorked: boolean
  /** True if a person interrupted it. */
  isInterrupted: boolean
  /** Total run time of its commands and tools, ms. */
  commandMs: number
  /** The agent's last message; null: none yet. */
  lastWords: string | null
  /** Agents that got a task from it and have ended; the last 50. */
  agentsEnded: readonly EndedAgent[]
}

/** The state of the last done claim. */
export type Claim =
  | { state: 'none' }
  /** `tree`: the work tree of the claim; null: refused at once. `results`: of the gates that ran on it since. */
  | { state: 'nominated'; by: readonly string[]; tree: string | null; results: readonly GateResult[] }
  | { state: 'refused'; reason: RefusalReason; detail: string }
  | { state: 'accepted'; by: readonly string[]; tree: string; verified: boolean; results: readonly GateResult[] }

/** Summary of one run of a gate. */
export type GateRun = Pick<GateResult, 'gate' | 'status' | 'exitCode' | 'durationMs'> & {
  when: GateTime
  round: number
}

export interface PlanStep {
  step: string
  status: 'pending' | 'in-progress' | 'completed'
}

/** Rights and name of one kind of round of a template. */
export interface PartKind {
  /** Its name for people, for example `team building`. */
  words: string
  /** True if the memory files can claim after it that all is done. */
  claims: boolean
  /** True if it does not count as a round. Such a round only reads, and changes no plan. */
  free: boolean
  /** True: a round that worked but changed nothing counts for the stall rule. */
  countsForStall: boolean
  /** True if it may give work to other agents. */
  delegates: boolean
  /** Length of the agent's last message in the state, characters. */
  keepsWords: number
  /** True: the template words its JSON answer, so the message itself is only in the whole log. Left out: it is shown. */
  tellsAnswer?: true
}

/**
 * Place of a session's tasks: its own folder, or `.codemachine/plan/`, which all sessions of a project share. `none`: it has
 * no memory files.
 */
export type MemoryLayout = 'session' | 'project-plan' | 'none'

/** A kind of session, named as in its journal: the purpose of its rounds, and its own state of type `S`. Pure. */
export interface SessionKind<S = unknown> {
  readonly name: string
  /** One line for a list. */
  readonly description: string
  /** The command that starts one. */
  readonly command: string
  /** Default limit of rounds for these options; null: the setting `rounds`. Pure. */
  defaultRounds(options: unknown): number | null
  /** Its kinds of rounds, by `part` of `round-started`. Empty: only one kind. */
  readonly parts: Readonly<Record<string, PartKind>>
  /** True if its sessions have a plan of tasks, which codemachine checks. */
  readonly hasPlan: boolean
  readonly memory: MemoryLayout
  /**
   * True: each session is a call, and its caller waits for the answer. Calls run in parallel with each other and with the
   * session of the work directory. A call takes no lock, is never the newest session, and cannot be resumed.
   */
  readonly isCall?: true
  /** True: only its own `command` starts a session, never a prompt, typed or queued. Left out: prompts do, too. */
  readonly hasOwnCommand?: true
  /** With `hasOwnCommand`, what a queued prompt names in place of a goal: `a workflow`. Left out: it starts none. */
  readonly promptNames?: string
  /** True: only a person's request starts a session, never `start` from the specification. Left out: both do. */
  readonly needsRequest?: true
  /**
   * True: it changes its plan itself. Then `replan-asked` stops the running round, command, look or decision, but does not
   * pause. Its `fold` gets the text, and `next` returns the next step. A stopped round still sends `round-ended`
   * (`interrupted`); `wrote` and `kept` may still arrive. An open or accepted claim is dropped. Left out: `next` is asked
   * for a round `replan`.
   */
  readonly replansItself?: true
  /**
   * For `replansItself`: a sentence why it no longer changes its plan; null: it does. Called before anything is stopped for
   * it. Pure. Left out: it always does.
   */
  refusesReplan?(own: S, session: SessionState): string | null
  /**
   * Returns true if only the summary is left, so no round gets messages of a person any more. Pure. Left out: rounds get
   * them until a claim is accepted.
   */
  isSummedUp?(own: S, session: SessionState): boolean
  /** True: it adds gates during a session (`gates`), so their configuration is recorded before round 1. */
  readonly addsGates?: true
  /** True if its requests can be proved sentence by sentence (`--prove`). Left out: they cannot. */
  readonly proves?: true
  /**
   * True: codemachine runs commands for its rounds (`run_shell`), with secrets of the project if needed. Its agents cannot
   * read these secrets or the records. Left out: none.
   */
  readonly usesShell?: true
  /** Its own state at the start, until the first `enter`. Left out: none. */
  readonly firstState?: string
  /** Schema of `options` of `session-created`. Left out: no options, or those of its own command. */
  readonly options?: v.GenericSchema
  /**
   * True: the template limits the fixes of its refused claims, so they never end a session as stalled. Left out: they do.
   */
  readonly mendsClaims?: true
  /**
   * True for built-in templates: their state survives JSON unchanged, and `first` and `fold` change only with codemachine.
   * So a long session's state is stored with its journal. Left out: the journal is folded from its start each time.
   */
  readonly hasPlainState?: true
  /** Returns the template's own state at the start of a session. */
  first(created: EventOf<'session-created'>): S
  /** Returns that state after one more event. `session`: the state before the event. Pure and bounded. */
  fold(own: S, event: SessionEvent, session: SessionState): S
  /** Words for its sessions. Left out: derived from its kinds of rounds and its tasks. */
  readonly view?: TemplateView<S>
}

/**
 * Words for a session: on the screen, on plain lines, in `status`, notifications and the report. All are pure functions of
 * the template's own state and may be left out; `session` is the whole state. Texts may contain anything: they are bounded
 * when stored, and made safe when drawn. If one throws, its error is shown instead.
 */
export interface TemplateView<S = unknown> {
  /**
   * Name of a running step between two rounds: `checking the links`; null: codemachine's name. Empty: a look's result, an
   * entered state (`enter`) or a kept file (`keep`) is not shown. For a state: further lines are shown below the first.
   */
  step?(step: StepName, own: S, session: SessionState): string | null
  /** Name of the running or next round instead of its number: `Step 2/4: lint`; null: codemachine's name. */
  round?(own: S, session: SessionState): RoundTitle | null
  /** Progress in a few words for one line: `step 3 of 8`; null: nothing. Left out: the number of done rows. */
  status?(own: S, session: SessionState): string | null
  /** Rows of the work; the first 500 are shown. Left out: the tasks of its plan, or of `tasks.json`. */
  board?(own: S, session: SessionState): readonly BoardRow[]
  /** The first facts of the card at the end, at most six. */
  card?(own: S, session: SessionState): readonly CardFact[]
  /** Its own section of the report; null: none. */
  report?(own: S, session: SessionState): ReportSection | null
  /** More fields for `work` of `status --json`: JSON of at most 512 KiB. Left out: nothing. */
  data?(own: S, session: SessionState): Readonly<Record<string, unknown>>
  /**
   * Markdown of at most 64 KiB about its work for a session that follows it. The goal, end and changed files are added
   * anyway. Null or left out: its agent's last words.
   */
  followUp?(own: S, session: SessionState): string | null
  /** Plan versions that a person accepts or changed, oldest first, at most 50. Left out: none. */
  plans?(own: S, session: SessionState): readonly ShownPlan[]
}

/**
 * The scope of a session: a part with its own done rule. Inside it, the `SET_ASIDE` fields of the state are those of the
 * scope. So its claims are proved like those of a session.
 */
export interface Scope {
  name: string
  /** Goal of its rounds. */
  goal: string
  /** Rounds that counted since it was entered. */
  rounds: number
  /** Fingerprint of the work tree on entry. */
  tree: string
  /** Fingerprint that its protected files are compared with. */
  since: string
  /** True if one of its rounds was replayed from a recording: then nothing in it can be done. */
  replayed: boolean
  /** The session's own `SET_ASIDE` fields, and its notices about its own claims and gates. */
  session: SetAside & { notices: readonly Notice[] }
}

/**
 * The base of comparison of a scope that was left after it changed files that its gates protect or run. Nobody has agreed to
 * that change. `programs`: as in `gateConfiguration`.
 */
export interface GivenUpScope {
  name: string
  tree: string
  programs: string | null
}

/** Fields of a session set aside during a scope: the proof of its own claims, and its results. */
export const SET_ASIDE = [
  'gates',
  'review',
  'before',
  'gateRuns',
  'gateFailures',
  'flakyGates',
  'testCounts',
  'counterProofs',
  'reviews',
  'gateConfiguration',
  'protectedChanged',
  'hasChangedFiles',
  'toldNothingDone',
  'claim',
  'stall',
] as const satisfies readonly (keyof SessionState)[]

export type SetAside = Pick<SessionState, (typeof SET_ASIDE)[number]>

/** A gate or review that runs between two rounds. `since`: Unix time, ms. */
export type Checking =
  | { kind: 'gate'; gate: string; when: GateTime; since: number }
  /** `heard`: `personSaid` at the start of the review. `configuration`: digest of the gates' configuration. */
  | { kind: 'review'; review: number; since: number; heard: readonly string[]; configuration: string | null }
  | { kind: 'check'; sentence: string; when: EventOf<'check-started'>['when']; since: number }
  | { kind: 'hook'; hook: HookMoment; since: number }
  /** An agent writes the contract, or wrong versions of the work. `sentence` null: the whole contract. */
  | { kind: 'contract'; role: EventOf<'contract-turn-started'>['role']; sentence: string | null; since: number }

/** A failed run of a gate: its command and tree. For a flaky gate: the run that failed. */
export interface GateFailure {
  gate: string
  run: string
  tree: string
  exitCode: number | null
}

/** The state of a session: the pure fold of its journal. Its size is independent of the number of events. */
export interface SessionState extends UsedLogins {
  id: string
  goal: string
  template: string
  /** The kind of that name; null: before the first event, or unknown in this version. */
  kind: SessionKind | null
  /** The template's own state; only the template knows its shape. */
  work: unknown
  directory: string
  queued: string | null
  /** Id of the session that it follows; null: none. */
  follows: string | null
  /** The agent conversation that it continues; null: none. */
  adopted: Adopted | null
  /** The issue that it works on; null: none. */
  issue: IssueRef | null
  /** Place where its result was last published; null: never. */
  published: Published | null
  /** Texts stored in its records at the start. */
  kept: readonly KeptText[]
  limits: SessionLimits
  /** Limits of its run, and how much earlier sessions of the run used; null: not known. */
  run: RunAllowance | null
  sandbox: string
  network: boolean
  model: string | null
  effort: string | null
  /** The model that codex last reported, even if the person named none; null: none yet. */
  modelInUse: string | null
  /** The reasoning effort that codex last reported; null: not known, or the model's default. */
  effortInUse: string | null
  /** Provider of the last started round or review; null: codex's configured one. */
  providerInUse: string | null
  /** The fallback engine of the rounds; null: the session's engine. */
  engine: string | null
  /** Reset time of full usage windows, by engine; Unix time, ms. */
  fullUntil: Readonly<Record<string, number>>
  /** A person ended the wait for usage windows that reset until then; Unix time, ms. */
  waivedUntil: number
  /** The last changes of engine, each with the round that began with it. */
  engineChanges: readonly Pick<EventOf<'engine-changed'>, 'round' | 'from' | 'to'>[]
  /** Started rounds by engine; older journals did not count them. */
  roundsOfEngines: Readonly<Record<string, number>>
  /** Calls of agents that have their own engine, by engine. */
  agentsOfEngines: Readonly<Record<string, number>>
  /** Hosts that engines reach according to events, by engine. */
  reachOfEngines: Readonly<Record<string, readonly string[]>>
  overrides: readonly string[]
  said: RunOverrides
  /** Name of the machine that the session ran on last. */
  host: string
  /** Unix time, ms. */
  createdAt: number
  /** Time of start or last resume, plus the machine's sleep since then; Unix time, ms. */
  beganAt: number
  /** Work time before the last resume, ms. */
  workedMs: number
  /** Rounds that counted (docs/inside/design.md, "What ends a round"). */
  roundsUsed: number
  running: RunningRound | null
  /** Agents that work on a task. */
  agents: readonly AgentAtWork[]
  /** The plan and its tasks; null: the template has none. */
  taskPlan: TaskPlan | null
  /** The current scope; null: it works on its own goal. */
  scope: Scope | null
  /** Scopes that were left after they changed protected files, and are not done yet; the first 1,000. */
  givenUp: readonly GivenUpScope[]
  /** True if a round was replayed from a recording: then nothing of the session can be done. */
  replayed: boolean
  /** True if it was started only to replay recordings. */
  replays: boolean
  /** First `part` of a round that this version's template does not know; null: none. */
  unknownPart: string | null
  last: EndedRound | null
  failures: Failures
  stall: Stall
  claim: Claim
  /** True if a round changed files; true if a claim was refused because nothing was done. */
  hasChangedFiles: boolean
  toldNothingDone: boolean
  /** Commands that must pass before done; reviewer's model and effort (null: no review wanted). */
  gates: readonly Gate[]
  review: ReviewTerms | null
  /** Gates that the template added. */
  addedGates: readonly Gate[]
  /** Results of the gates before round 1. */
  before: readonly GateResult[]
  /** The last complete run of each gate. */
  gateRuns: readonly GateRun[]
  /** Trees on which gates failed; names of gates that were ever flaky. */
  gateFailures: readonly GateFailure[]
  flakyGates: readonly string[]
  /** Highest number of tests that each gate reported; last counter-proof of each gate. */
  testCounts: readonly { gate: string; most: number }[]
  counterProofs: readonly CounterProof[]
  checking: Checking | null
  /** The running step, and the number of steps so far. `since`: Unix time, ms. `mostMs`: time limit of a command, ms. */
  step: { number: number; kind: string; name: string; since: number; mostMs?: number } | null
  steps: number
  /** Current state name of the template; null: it has none. */
  workState: string | null
  reviews: Reviews
  /** The request, sentence by sentence, with its proof; null: no contract. */
  contract: ContractState | null
  /** Likely test command of the project; null: not found, or not searched for. */
  tests: NonNullable<EventOf<'session-created'>['tests']> | null
  /** Answers that were refused the last time, by name: the reason, and how often in a row; the last 100. */
  refusedAnswers: RefusedAnswers
  /** Outputs of its steps, the last 100. */
  outputs: readonly Output[]
  /** Tree that protected files are compared with; null: the tree at the start. */
  protectFrom: string | null
  /** Protected files that rounds have changed, the last 50. */
  protectedChanged: readonly string[]
  /**
   * Gate configuration that differs from the start. `programs`: the state of `node_modules/.bin` at the start, null: not
   * known. Null: not checked, for no gate protects anything, and none passed before round 1.
   */
  gateConfiguration:
    | (Pick<EventOf<'gate-configuration'>, 'files' | 'count' | 'digest'> & { programs: string | null })
    | null
  /** The last savepoint. `start`: the tree at the start of the session; null: not stored. */
  savepoint: { round: number; commit: string; tree: string; start: string | null } | null
  /**
   * Rounds that ended since the savepoint, with their trees and number of changed files; at most two. A savepoint may be
   * late, made while the next round works.
   */
  unkept: readonly { round: number; tree: string; files: number }[]
  /** Number of noted questions, and their keys (`questionKey`). */
  questions: number
  asked: readonly string[]
  /** Last texts of a person after the goal (steering, plan changes); at most 100 and 250,000 characters. */
  personSaid: readonly string[]
  /** True if the goal's words were changed since the last round began, and were restored. */
  goalRestored: boolean
  /** Notices for the next round; dropped once a round that got them has counted. */
  notices: readonly Notice[]
  plan: readonly PlanStep[]
  /** Tokens of the rounds that have ended. */
  tokensBefore: number
  /** Of these, the tokens of each provider that the person configured. */
  providerTokens: Readonly<Record<string, number>>
  /** Tokens of the running round's threads, its own and those of its sub-agents, as codex last reported them. */
  threadTokens: Readonly<Record<string, TokenCounts>>
  /** Model prices that the person set; cost of the session at these prices. */
  prices: readonly ModelPrice[]
  cost: Cost
  contextWindow: number | null
  contextTokens: number | null
  /** Usable part of each usage window, per cent; null: all. */
  maxUsage: number | null
  /** The current wait; `until` and `since`: Unix time, ms. Null: none. */
  waiting: { until: number; since: number; reason: WaitReason; cause: RoundOutcome } | null
  /** Time when a person asked to pause, and since when no round runs for that; Unix time, ms; null: none. */
  pausedAt: number | null
  heldSince: number | null
  /** Time of earlier pauses, ms. */
  heldMs: number
  /** Time (Unix, ms) and manner in which the pause ends by itself; null: it does not pause. */
  holdEnd: HoldEnd | null
  /** The open decision of a person; null: none. After the end: the decision that the session ended without. */
  decision: OpenDecision | null
  /** The last decision since start or resume; null: none. */
  decided: DecidedChoice | null
  /** The plan change that a person asked for and no round has made yet; null: none. */
  replan: string | null
  /** Number of plan changes that a person asked for. */
  replansAsked: number
  /** True if the session stops after this round. */
  stopAsked: boolean
  /** Time since which codex waits for the network; Unix time, ms; null: it does not. */
  offlineSince: number | null
  /** The limit that makes the running round stop safely; null: none. */
  windingDown: WindDownLimit | null
  /** The program that keeps the machine awake; null: none. */
  keptAwake: string | null
  ended: { outcome: SessionOutcome; exitCode: number; durationMs: number } | null
  /** Number of folded events. */
  events: number
  /** Unix time of the last event, ms. */
  updatedAt: number
}

/** A reader that only shows events. */
export interface View {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  live(event: LiveEvent): void
}

/** A fold per event type: returns the state after the event. `at`: Unix time, ms. Pure. */
export type FoldsOf<E extends SessionEvent> = {
  readonly [T in E['type']]: (state: SessionState, event: EventOf<T>, at: number) => SessionState
}

/** Rights of a round whose template has one kind of round, or whose kind this version does not know. */
const USUAL_PART: PartKind = {
  words: '',
  claims: true,
  free: false,
  countsForStall: true,
  delegates: true,
  keepsWords: 400,
}

/** Returns the kind of a round by its `part`; null: the template has one kind of round. Pure. */
export function partOf(kind: SessionKind | null, part: string | null): PartKind {
  const parts = kind?.parts ?? {}
  return part !== null && Object.hasOwn(parts, part) ? (parts[part] ?? USUAL_PART) : USUAL_PART
}

/** Returns true if the session uses the work directory's plan, which the next such session sets aside. Pure. */
export function sharesPlan({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.memory === 'project-plan'
}

/** Returns the provider or foreign engine of the last round; null: codex's configured provider. Pure. */
export function sourceInUse({
  providerInUse,
  login,
  replays,
}: Pick<SessionState, 'providerInUse' | 'login' | 'replays'>) {
  return providerInUse ?? (login === CODEX_LOGIN || replays ? null : login)
}

/** Returns the reported model of the last round, else the one that the person named for codex; null: not known. Pure. */
export function modelNow({ modelInUse, model, ...of }: SessionState): string | null {
  return modelInUse ?? (of.providerInUse === null && sourceInUse(of) !== null ? null : model)
}

/** Names the provider or engine of a model: `from ollama`; null: none, or it has the name of the model. Pure. */
export function fromSource(model: string | null, source: string | null): string | null {
  return source === null || source === model ? null : `from ${source}`
}

/** Returns true if the session is a call, which is never the session of its work directory. Pure. */
export function isCall({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.isCall ?? false
}

/** Returns true if this version can resume the session: it knows the template and the `part` of all rounds. Pure. */
export function isKnown({ kind, unknownPart }: Pick<SessionState, 'kind' | 'unknownPart'>): boolean {
  return kind !== null && unknownPart === null
}

const NEVER_HELD = { pausedAt: null, heldSince: null, heldMs: 0, holdEnd: null } as const
const NOTHING_SPENT = { prices: [], cost: NO_COST, maxUsage: null }
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

/** Returns the state of a session before its first event. */
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
    adopted: null,
    issue: null,
    published: null,
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
    engine: null,
    fullUntil: {},
    waivedUntil: 0,
    engineChanges: [],
    roundsOfEngines: {},
    agentsOfEngines: {},
    reachOfEngines: {},
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
    contract: null,
    tests: null,
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
    ...NO_LOGINS,
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

/** Consecutive failed rounds; a round that worked resets all counts. */
export interface Failures {
  /** Failures that did not count as a round. */
  inARow: number
  /** Start of the first of these failures: its end, or the earlier loss of the network; Unix time, ms. */
  since: number | null
  /** Consecutive crashes before the agent did anything. */
  idleCrashes: number
  /** Consecutive refusals. */
  refusals: number
  /** Consecutive rounds that ended in silence, counted as a round or not. */
  silences: number
  /** Consecutive rounds refused by the server with HTTP 403. */
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

/** Returns the failures after a round that ended at `at`. `offlineSince`: loss of the network, Unix time, ms. Pure. */
export function failuresAfter(
  before: Failures,
  { outcome, counts }: Pick<EventOf<'round-ended'>, 'outcome' | 'counts'>,
  hasWorked: boolean,
  { at, offlineSince }: { at: number } & Pick<SessionState, 'offlineSince'>,
): Failures {
  // A round that a signal or a person stopped did not fail.
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

/** Returns the state after a turn of a reviewer or about the contract. It fails and retries like a round. Pure. */
export function afterOtherTurn(state: SessionState, outcome: RoundOutcome, at: number): SessionState {
  return {
    ...state,
    heldSince: state.pausedAt === null ? null : at,
    offlineSince: null,
    windingDown: null,
    tokensBefore: sessionTokens(state),
    providerTokens: tokensOfProviders(state),
    threadTokens: {},
    failures: failuresAfter(state.failures, { outcome, counts: outcome.class === 'worked' }, true, { ...state, at }),
  }
}

/** Returns the hosts that engines reach after another turn began. Pure. */
export function reachAfter(
  { reachOfEngines }: SessionState,
  { engine, reaches }: { engine?: string; reaches?: readonly string[] },
): SessionState['reachOfEngines'] {
  return engine === undefined || reaches === undefined ? reachOfEngines : { ...reachOfEngines, [engine]: reaches }
}

/** Returns true if the turn ended without an answer, and nothing else prevented one. Pure. */
export function gaveNoAnswer(outcome: RoundOutcome): boolean {
  return GAVE_NONE.has(outcome.class)
}

const GAVE_NONE = new Set<string>(['worked', 'context-full', 'refused', 'silent'])

/**
 * Status of a session now. `cut-off`: not ended, and no process works on it. `unknown`: not ended, and its process cannot be
 * determined.
 */
export type SessionStatus = 'running' | 'cut-off' | 'ended' | 'unknown'

/**
 * Returns the status, given the process that runs in the directory (`at`: its start, ISO 8601; null: none). That process
 * runs the session that has an event since then. Pure.
 */
export function sessionStatusOf(session: SessionState, runner: { at: string } | null | 'unknown'): SessionStatus {
  if (session.ended) return 'ended'
  if (runner === 'unknown') return 'unknown'
  return runner !== null && session.updatedAt >= Date.parse(runner.at) ? 'running' : 'cut-off'
}

/** Returns the session's duration, ms: to its end, to now if it runs, to its last event if it was cut off. */
export function elapsedMs(session: SessionState, standing: SessionStatus, now: number): number {
  if (session.ended) return session.ended.durationMs
  const until = standing === 'running' ? now : session.updatedAt
  return session.workedMs + Math.max(0, until - session.beganAt)
}

/** Returns the tokens of the whole session so far, all threads. */
export function sessionTokens(state: SessionState): number {
  return state.tokensBefore + (roundTokens(state)?.total ?? 0)
}

/** Returns the tokens so far of each provider that the person configured; the rest belongs to codex's own. */
export function tokensOfProviders(state: SessionState): Readonly<Record<string, number>> {
  const { providerInUse: name, providerTokens } = state
  const tokens = roundTokens(state)?.total ?? 0
  if (name === null || tokens === 0) return providerTokens
  return { ...providerTokens, [name]: (Object.hasOwn(providerTokens, name) ? (providerTokens[name] ?? 0) : 0) + tokens }
}

/** Returns the tokens of the running round with its sub-agents; null: none reported. */
export function roundTokens(state: SessionState): TokenCounts | null {
  const threads = Object.values(state.threadTokens)
  return threads.length === 0 ? null : threads.reduce(addTokens)
}

/** Returns the session after a person asked at `at` (Unix time, ms) to start no further round. Pure. */
export function hold(state: SessionState, at: number): SessionState {
  const { running, waiting, checking, step, decision } = state
  const isIdle = running === null && waiting === null && checking === null && step === null && decision === null
  return { ...state, pausedAt: state.pausedAt ?? at, heldSince: state.heldSince ?? (isIdle ? at : null) }
}

/** Returns the session when work or a wait resumes; the time of the pause does not count as failing. Pure. */
export function releaseHold(state: SessionState, at: number): SessionState {
  if (state.heldSince === null) return state
  const ms = Math.max(0, at - state.heldSince)
  const failures = failuresLater(state.failures, ms)
  return { ...state, failures, heldMs: state.heldMs + ms, heldSince: null, holdEnd: null }
}

function failuresLater(failures: Failures, ms: number): Failures {
  return failures.since === null ? failures : { ...failures, since: failures.since + ms }
}

/** Returns the session after a person asked to end the running round early. Pure. */
export function interruptRound(state: SessionState): SessionState {
  return state.running === null ? state : { ...state, running: { ...state.running, isInterrupted: true } }
}

/** Returns the session after the machine slept for `ms`. Sleep is not work time; up to a minute is ignored. Pure. */
export function discountSleep(state: SessionState, ms: number): SessionState {
  if (ms <= 60_000) return state
  return { ...state, beganAt: state.beganAt + ms, failures: failuresLater(state.failures, ms) }
}
