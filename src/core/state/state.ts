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

/** The rights of the rounds that a template has for one thing, and what they are called. */
export interface PartKind {
  /** Such as `team building`. */
  words: string
  /** Whether what the memory files say after it is a claim that all is done. */
  claims: boolean
  /** Whether it uses up none of the person's rounds; such a round only looks, and changes no plan. */
  free: boolean
  /** Whether it counts as a round without progress if it worked and left everything as it was. */
  countsForStall: boolean
  /** Whether it may give work to other agents. */
  delegates: boolean
  /** How many characters of the agent's last message are kept in the state. */
  keepsWords: number
  /** Whether its answer (JSON) is told in words by the template, so that the message itself is only in the whole log; left out: it is shown. */
  tellsAnswer?: true
}

/**
 * Where a session keeps its tasks: in its own folder, or in `.codemachine/plan/`, which all sessions of a project share.
 * `none`: it has no memory files at all.
 */
export type MemoryLayout = 'session' | 'project-plan' | 'none'

/**
 * A kind of session, by the name that its journal has: what its rounds are for, and what of its own it keeps of what has
 * happened. `S` is that state. Pure.
 */
export interface SessionKind<S = unknown> {
  readonly name: string
  /** One line for a list. */
  readonly description: string
  /** What a person types to start one. */
  readonly command: string
  /** The most rounds of a session with these options for which nobody has named a limit; null: what the setting `rounds` says. Pure. */
  defaultRounds(options: unknown): number | null
  /** Its kinds of rounds, by the word in `part` of `round-started`; none: it has but one. */
  readonly parts: Readonly<Record<string, PartKind>>
  /** Whether its sessions have a plan of tasks, which codemachine looks at and judges. */
  readonly hasPlan: boolean
  readonly memory: MemoryLayout
  /**
   * Whether each session of it is a call: somebody waits for its answer, and any number of them work side by side, beside
   * the session of the work directory. None of them holds the directory's lock, counts as its newest session, or can be resumed.
   */
  readonly isCall?: true
  /** Whether its sessions are begun by its own `command` alone, and by no prompt, typed or queued; left out: prompts begin them. */
  readonly hasOwnCommand?: true
  /** Whether its sessions are begun by what a person says alone, and never from the specification, by `start`; left out: that begins them, too. */
  readonly needsRequest?: true
  /**
   * Whether it changes its plan itself when a person asks for that: `replan-asked` breaks off the round, command, look or
   * decision that goes on, and holds nothing; its `fold` is told the text, and `next` says what comes. Of what was broken off
   * only the end comes after that (`round-ended` as `interrupted`); `wrote` and `kept` may come of files that were written
   * just then. A claim that was made or accepted is none any more. Left out: `next` is asked for a round `replan`.
   */
  readonly replansItself?: true
  /**
   * Of one that does: why it does not change its plan any more, a sentence; null: it does. Asked before anything is broken off
   * for it. Pure. Left out: it always does.
   */
  refusesReplan?(own: S, session: SessionState): string | null
  /**
   * Whether only what sums it up comes any more, so that no round is told what a person says. Pure. Left out: rounds are told
   * until a claim is accepted.
   */
  isSummedUp?(own: S, session: SessionState): boolean
  /** Whether it adds gates while a session runs (`gates`): then what these may run through is looked at before its first round. */
  readonly addsGates?: true
  /** Whether what its sessions are asked for can be proved sentence by sentence (`--prove`); left out: it cannot. */
  readonly proves?: true
  /**
   * Whether its rounds have commands run by codemachine (`run_shell`), with secrets of the project if they need them: then its
   * agents cannot read these, nor the records. Left out: they have none.
   */
  readonly usesShell?: true
  /** The state of its own that a session begins in, which the first `enter` leaves; left out: none. */
  readonly firstState?: string
  /** What it can be told beside the goal, in `options` of `session-created`; left out: nothing, or what its own command makes. */
  readonly options?: v.GenericSchema
  /**
   * Whether the template itself says how often a refused claim of its own is fixed: such refusals do not end a session as
   * stalled. Left out: they do.
   */
  readonly mendsClaims?: true
  /**
   * Of the templates of codemachine itself: their state is data that comes back from JSON as it was, and their `first` and
   * `fold` change with codemachine alone. So what a long session has come to is kept beside its journal. Left out: its journal
   * is folded from the beginning each time.
   */
  readonly hasPlainState?: true
  /** The template's own state when a session of it begins. */
  first(created: EventOf<'session-created'>): S
  /** That state after one more event; `session`: as it was before the event. Pure, and bounded. */
  fold(own: S, event: SessionEvent, session: SessionState): S
  /** How its sessions are told. Left out: as any session with its kinds of rounds and its tasks is. */
  readonly view?: TemplateView<S>
}

/**
 * How a session of a template is told: on the screen, on plain lines, by `status`, in notifications and in the report.
 * Functions of its own state, pure; `session` is the whole of it. All may be left out. A text may hold anything and be of
 * any length: it is bounded where it is kept, and made safe where it is drawn. What one of them throws is told in its place.
 */
export interface TemplateView<S = unknown> {
  /** What a step between two rounds is called while it is carried out: `checking the links`; null: as codemachine calls it. An empty text: what a look has found, a state that is entered (`enter`) or a file that is kept for people (`keep`) is not told. Of a state it may have more lines, which are told below the first where it is entered. */
  step?(step: StepName, own: S, session: SessionState): string | null
  /** What the round that runs, or the next one, is called in the place of its number, such as `Step 2/4: lint`; null: as codemachine calls it. */
  round?(own: S, session: SessionState): RoundTitle | null
  /** How far the work is, in a few words for one line: `step 3 of 8`; null: nothing. Left out: how many rows are done. */
  status?(own: S, session: SessionState): string | null
  /** The work, row by row, of which the first 500 are shown. Left out: the tasks of its plan, or of `tasks.json`. */
  board?(own: S, session: SessionState): readonly BoardRow[]
  /** What the card at the end says first: at most six facts. */
  card?(own: S, session: SessionState): readonly CardFact[]
  /** A section of its own in the report; null: none. */
  report?(own: S, session: SessionState): ReportSection | null
  /** What `work` of `status --json` has beside its own fields, for programs: JSON of at most 512 KiB. Left out: nothing. */
  data?(own: S, session: SessionState): Readonly<Record<string, unknown>>
  /**
   * What a session that continues from it is told of its work, in Markdown, at most 64 KiB. Its goal, its end and its
   * changed files are told anyway; null, or left out: its agent's last words.
   */
  followUp?(own: S, session: SessionState): string | null
  /** The versions of the plan that a person accepts or has changed, the oldest first, at most 50. Left out: there are none. */
  plans?(own: S, session: SessionState): readonly ShownPlan[]
}

/**
 * The scope that a session is in: a part of it with a done rule of its own. Meanwhile the fields of `SET_ASIDE` of the state
 * are those of the scope, so that its claims are proved as those of a session are.
 */
export interface Scope {
  name: string
  /** What its rounds work on. */
  goal: string
  /** How many rounds have counted in it since it was entered. */
  rounds: number
  /** Fingerprint of the work tree that it was entered with. */
  tree: string
  /** Fingerprint that the files which its gates protect are compared with. */
  since: string
  /** Whether one of its rounds was replayed from a recording: then nothing in it can be done. */
  replayed: boolean
  /** Those fields of the session itself, and what its next round is to be told of its own claims and gates. */
  session: SetAside & { notices: readonly Notice[] }
}

/**
 * What a scope was compared with that changed what its gates protect, or run through, and was given up: nobody has agreed to
 * that. `programs`: as in `gateConfiguration`.
 */
export interface GivenUpScope {
  name: string
  tree: string
  programs: string | null
}

/** What of a session is set aside while it is in a scope: how its own claims are proved, and what came of that. */
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
  /** `heard`: `personSaid` when the review began; `configuration`: the digest of what gates run through. */
  | { kind: 'review'; review: number; since: number; heard: readonly string[]; configuration: string | null }
  | { kind: 'check'; sentence: string; when: EventOf<'check-started'>['when']; since: number }
  | { kind: 'hook'; hook: HookMoment; since: number }
  /** Somebody writes the contract, or wrong versions of the work; `sentence` null: all of it. */
  | { kind: 'contract'; role: EventOf<'contract-turn-started'>['role']; sentence: string | null; since: number }

/** A failed run of a gate: which command, on which tree. Of a flaky gate, the run that failed. */
export interface GateFailure {
  gate: string
  run: string
  tree: string
  exitCode: number | null
}

/** The state of a session: the pure fold of its journal. Its size does not grow with the number of events. */
export interface SessionState extends UsedLogins {
  id: string
  goal: string
  template: string
  /** That template; null before the first event, and where this version does not know it. */
  kind: SessionKind | null
  /** The state of the template itself, of which only it knows the shape. */
  work: unknown
  directory: string
  queued: string | null
  /** Id of the session that it goes on from; null if it is none. */
  follows: string | null
  /** The conversation with an agent that it goes on from; null if it is none. */
  adopted: Adopted | null
  /** The issue that it works on; null if it is none. */
  issue: IssueRef | null
  /** Where its result was published last; null if it was not. */
  published: Published | null
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
  /** The engine that the rounds fell back on; null: that of the session. */
  engine: string | null
  /** When the usage windows that were full reset, by engine; Unix time, ms. */
  fullUntil: Readonly<Record<string, number>>
  /** The last changes of the engine of the rounds, each with the round that began with it. */
  engineChanges: readonly Pick<EventOf<'engine-changed'>, 'round' | 'from' | 'to'>[]
  /** Rounds that have started, by engine; without those before that was kept. */
  roundsOfEngines: Readonly<Record<string, number>>
  /** Calls of agents that have an engine of their own, by engine. */
  agentsOfEngines: Readonly<Record<string, number>>
  /** What events say that engines reach, by engine. */
  reachOfEngines: Readonly<Record<string, readonly string[]>>
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
  /** Rounds that counted (docs/inside/design.md, "What ends a round"). */
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
  /** What was asked for, sentence by sentence, and how it is proved; null: the session has no contract. */
  contract: ContractState | null
  /** The command that seems to run the project's own tests; null: none was found, or none was looked for. */
  tests: NonNullable<EventOf<'session-created'>['tests']> | null
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
  /** The per cent of each window that may be used; null: all. */
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

/** A reader that shows events, and decides nothing. */
export interface View {
  /** @param state the session after the event */
  event(event: Recorded, state: SessionState): void
  live(event: LiveEvent): void
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
export function partOf(kind: SessionKind | null, part: string | null): PartKind {
  const parts = kind?.parts ?? {}
  return part !== null && Object.hasOwn(parts, part) ? (parts[part] ?? USUAL_PART) : USUAL_PART
}

/** Whether the plan of a session is that of the work directory, which the next such session sets aside. Pure. */
export function sharesPlan({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.memory === 'project-plan'
}

/** Whose models the last round used: a provider, or an engine of another maker; null: what codex is configured with. Pure. */
export function sourceInUse({
  providerInUse,
  login,
  replays,
}: Pick<SessionState, 'providerInUse' | 'login' | 'replays'>) {
  return providerInUse ?? (login === CODEX_LOGIN || replays ? null : login)
}

/** The model of the last round as far as it is known: reported, else as the person named it for codex. Pure. */
export function modelNow({ modelInUse, model, ...of }: SessionState): string | null {
  return modelInUse ?? (of.providerInUse === null && sourceInUse(of) !== null ? null : model)
}

/** Whether a session is a call, which is never the session of its work directory. Pure. */
export function isCall({ kind }: Pick<SessionState, 'kind'>): boolean {
  return kind?.isCall ?? false
}

/** Whether this version could resume a session: it knows its template and what all of its rounds were for. Pure. */
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

/** The state after a turn of a reviewer, or about the contract: it fails and is tried again as that of a round is. Pure. */
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

/** The hosts that engines reach, once another turn has begun. Pure. */
export function reachAfter(
  { reachOfEngines }: SessionState,
  { engine, reaches }: { engine?: string; reaches?: readonly string[] },
): SessionState['reachOfEngines'] {
  return engine === undefined || reaches === undefined ? reachOfEngines : { ...reachOfEngines, [engine]: reaches }
}

/** Whether such a turn that ended so does not come to an answer, and nothing else was in its way. Pure. */
export function gaveNoAnswer(outcome: RoundOutcome): boolean {
  return GAVE_NONE.has(outcome.class)
}

const GAVE_NONE = new Set<string>(['worked', 'context-full', 'refused', 'silent'])

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
