import type { TokenCounts, TreeChanges } from '../../core/events/events.ts'
import type { GateResult, GateTime, RoundClass, SessionLimits, SessionOutcome } from '../../core/events/outcome.ts'
import type { ContractState, SentenceNow } from '../../core/rules/contract.ts'
import type { Cost } from '../../core/rules/cost.ts'
import type { CounterProof } from '../../core/rules/proof/counter-proof.ts'
import type { Finding } from '../../core/rules/review.ts'
import type { Adopted } from '../../core/shapes/conversation.ts'
import type { EnginesAtWork } from '../../core/shapes/external-engine.ts'
import type { IssueRef, Published } from '../../core/shapes/published.ts'
import type { SessionStatus } from '../../core/state/state.ts'
import type { BoardRow, CardFact, ReportSection } from '../../core/view.ts'

/**
 * What a person is told of a session in the morning: the content of `report.json`, documented in docs/reference/report.md. Its
 * size is bounded, however long the session was. Moments are ISO 8601 in UTC, lengths of time ms. Texts are bounded,
 * and as they came from outside.
 */
export interface ReportData {
  format: 'codemachine-report'
  v: 1
  session: string
  goal: string
  /** The conversation with an agent that it continues; null: none. */
  adopted: Adopted | null
  /** The issue that it works on; left out: none. */
  issue?: IssueRef | undefined
  /** Where its result was published last; left out: nowhere. */
  published?: Published | undefined
  template: string
  directory: string
  host: string
  /** The version that began it, and that of codex, null if no round has started. */
  codemachine: string
  codex: string | null
  model: string | null
  effort: string | null
  sandbox: string
  network: boolean
  limits: SessionLimits
  standing: SessionStatus
  /** Null if it has not come to an end. */
  outcome: SessionOutcome | null
  exitCode: number | null
  createdAt: string
  /** When something was written last. */
  updatedAt: string
  totals: ReportTotals
  /** Which engines worked; left out: codex alone. */
  engines?: EnginesAtWork | undefined
  /** How many more rounds would fit into the usage window, about, and when it is renewed; null if that cannot be said. */
  forecast: { rounds: number; until: string } | null
  proof: ReportProof
  /** What was asked for, sentence by sentence; left out: the session has no contract. */
  contract?: ReportContract
  changes: ReportChanges
  tasks: { done: number; total: number; left: readonly string[] } | null
  /** Null if its template has no plan of tasks. */
  build: ReportBuild | null
  work: ReportWork
  /** The plan of the last round that had one, at most 50 steps. */
  plan: readonly { step: string; status: 'pending' | 'in-progress' | 'completed' }[]
  rounds: Shortened<ReportRound> & { leftOutSums: { durationMs: number; tokens: number; failed: number } }
  /** The rounds for a chart: at most 120 points, each of `rounds` rounds in a row. */
  series: readonly ReportPoint[]
  trouble: Shortened<ReportTrouble>
  /** Each time that a gate ran to its end, also for a part of the session. */
  gateRuns: Shortened<ReportGateRun>
  refusals: Shortened<ReportRefusal>
  questions: Shortened<ReportQuestion>
  /** What its steps came to and is kept whole, in `outputs/` of the session's records; the last 100. `bytes`: the size of the file. */
  outputs: Shortened<{ name: string; file: string; bytes: number }>
  /** What the template had to say, such as a part of the work that was passed over, and why. */
  notes: Shortened<{ at: string; name: string; text: string }>
  /** What codemachine noticed and a person should know, each once. */
  remarks: Shortened<string>
  /** What the agent said last, in its own words: a claim, and no proof. */
  lastWords: string | null
}

interface ReportTotals {
  /** Rounds that count, and all attempts. */
  rounds: number
  attempts: number
  /** Time that it was worked on; of that, how long was waited. */
  durationMs: number
  waitedMs: number
  /** All tokens; the kinds of them as far as rounds reported them. */
  tokens: number
  tokensByKind: TokenCounts
  /** Of all tokens those of each provider of the person's; the rest is of what codex is configured with. */
  providerTokens: Readonly<Record<string, number>>
  /** What it has cost, in the currency of the prices, and the tokens of models without a price; null if there are no prices. */
  cost: Cost | null
  commands: number
}

/** What was asked for, and how each sentence of it stands. */
export interface ReportContract {
  words: string
  /** How many of the sentences that a program can check hold, and are proved. */
  holding: number
  proved: number
  checkable: number
  /** Who accepted it; null: nobody has yet. */
  acceptedBy: ContractState['acceptedBy']
  /** What of the goal is in no sentence. */
  uncovered: readonly string[]
  sentences: readonly (Pick<SentenceNow, 'id' | 'quote' | 'kind' | 'state'> & {
    /** Why no program can tell, or its checks cannot be used; null: they can. */
    reason: string | null
    /** Wrong versions that count, and how many of them were noticed. */
    controls: { made: number; caught: number }
    /** Before the work and now; null: it did not run. */
    checks: readonly {
      run: string
      before: GateResult['status'] | null
      now: GateResult['status'] | null
      /** Whether it failed at any time, and passed when it ran again on the same files. */
      isFlaky: boolean
      /** The end of what it printed now. */
      output: string
    }[]
    /** The wrong versions that count, as diffs. */
    versions: readonly { summary: string; diff: string; isCaught: boolean }[]
    /** A wrong version that no check notices, as a diff; null: there is none. */
    weakness: string | null
  })[]
}

export interface ReportProof {
  claim: 'none' | 'nominated' | 'refused' | 'accepted'
  verified: boolean
  /** The tree that was accepted as done. */
  tree: string | null
  gates: readonly ReportGate[]
  reviews: Shortened<ReportReview>
  /** What the last review found, unless a later one agreed; those that came again are left to the person. */
  findings: readonly (Finding & { repeated: boolean })[]
  findingsCount: number
  /** Whether a review agreed to the tree that was accepted. */
  reviewed: boolean
  /** What would have proved more: whether `--prove` does for its template, and the project's own test command, if one was found. */
  would: { prove: boolean; tests: string | null }
  /** Whether there is a gate that protects files. */
  protected: boolean
  /** The first round that changed `codemachine.toml`; null if none did. */
  settingsChangedIn: number | null
  /** Of a session that is done without any work: why nothing was needed, in the agent's words; null of any other. */
  whyNothing: string | null
  /** Configuration that gates run through and that is not what the session began with; at most 50 of `count`. */
  configuration: { files: readonly { path: string; how: 'added' | 'changed' | 'deleted' }[]; count: number }
  /** What came of running each required gate without the work, the last time. `doubts`: why a review had to agree, a sentence each. */
  counterProofs: readonly (Pick<CounterProof, 'gate' | 'result' | 'problem' | 'made' | 'madeCount' | 'isSmallest'> & {
    doubts: readonly string[]
  })[]
  /** `putBack`: the session's last savepoint, with which nothing is missing, holds it as it was at the start. */
  protectedFiles: readonly (ProtectedFile & { putBack: boolean })[]
  protectedCount: number
}

/** A file that a gate protects and that `round` was the last to change; `skipped`: its tests are marked to be skipped. */
export interface ProtectedFile {
  path: string
  how: 'changed' | 'deleted' | 'skipped'
  round: number
}

export interface ReportGate {
  name: string
  run: string | null
  required: boolean
  network: boolean
  protect: readonly string[]
  /** The template has added it; `before` is then how it came out when it was added. */
  added?: true
  /** Before round 1, and the last time; null if it did not run. */
  before: GateFacts | null
  last: (GateFacts & { when: GateTime; round: number; output: string }) | null
  runs: number
  flaky: number
  failed: number
  /** Paths that it changed itself, at most 50. */
  changed: readonly string[]
  changedCount: number
}

/** How a gate came out once. */
type GateFacts = Pick<GateResult, 'status' | 'exitCode' | 'durationMs' | 'problem'>

/** One run of a gate. */
export interface ReportGateRun {
  gate: string
  when: GateTime
  round: number
  from: string
  to: string
  status: GateResult['status']
}

export interface ReportReview {
  review: number
  round: number
  at: string
  causes: readonly string[]
  /** Null if it gave no answer. */
  verdict: 'agreed' | 'findings' | null
  summary: string
  findings: number
  repeated: number
  durationMs: number
  tokens: number
}

export interface ReportChanges extends TreeChanges {
  /**
   * `rounds`: no savepoint holds what it began with, and the paths are what rounds said that they changed. `none`: a call,
   * in which nobody looks at the files.
   */
  from: 'savepoints' | 'rounds' | 'none'
  /** Trees and commits at the start and now; null where there is no savepoint. */
  start: { tree: string; commit: string; head: string | null } | null
  now: { tree: string; commit: string; head: string | null; round: number } | null
  /** Those of `paths` that gates changed themselves, and no round as far as rounds named what they changed. */
  byGates: readonly string[]
  savepoints: number
  /**
   * The rounds that left something and have no savepoint yet, nor has a later one, with how many files they changed: at most
   * two. Empty where `from` is not `savepoints`.
   */
  unkept: readonly { round: number; files: number }[]
  /** How many files steps have changed that no savepoint has yet; left out: none. */
  unkeptSteps?: number
  /** What the session has changed and `now.head` does not hold, once rounds have committed, at most 50 paths. */
  uncommitted: { paths: readonly string[]; count: number }
  /** What lay in the work directory and the last savepoint does not hold, at most 50 paths: a folder ends in `/`. */
  notLookedAt: { paths: readonly string[]; count: number }
  /** On the person's branch, the oldest first. */
  commits: Shortened<{ commit: string; subject: string }>
}

export interface ReportRound {
  round: number
  startedAt: string
  agent: string
  /** What ran it, the provider of its model, null if that is what codex is configured with, and the model as asked for. */
  engine: string
  provider: string | null
  model: string | null
  /** What it was for, by a word of its template; null where that has but one kind of round. */
  part: string | null
  /** The same in words. */
  purpose: string | null
  /** Whether it uses up none of the rounds. */
  isFree: boolean
  /** Whether it was to change the plan as a person had asked. */
  changesPlan: boolean
  durationMs: number
  tokens: number | null
  files: number
  /** Null: it did not come to its end. */
  outcome: RoundClass | null
  /** Of the class `network`: 403 where the server refused access; left out otherwise. */
  status?: number
  message: string | null
  /** Whether it used up one of the person's rounds. */
  counts: boolean
  claim: 'refused' | 'accepted' | null
  tasks: { done: number; total: number } | null
}

export interface ReportPoint {
  /** Whether none of its rounds has a number of its own: the next one has it (summaries, plan changes). */
  isFree: boolean
  /** Numbers of the first round and the last. */
  from: number
  to: number
  rounds: number
  /** Sums. */
  durationMs: number
  tokens: number
  files: number
  /** How many of the rounds failed, and how many a limit or the network ended; the sums of these. */
  failed: number
  limited: number
  ofFailed: PointSums
  ofLimited: PointSums
  /** As they were after the last; null if it is not known. */
  tasks: { done: number; total: number } | null
  changed: { files: number; added: number; removed: number } | null
}

/** Sums of some of the rounds of a point. */
export interface PointSums {
  durationMs: number
  tokens: number
  files: number
}

/** A wait, a failure, or something else in which no work was done. `to`: null if it goes on, or has no length. */
export interface ReportTrouble {
  kind: 'wait' | 'failure' | 'cut-off' | 'held' | 'slept' | 'stopped' | 'stuck' | 'limit'
  round: number | null
  from: string
  to: string | null
  cause: string
}

export interface ReportRefusal {
  at: string
  round: number
  reason: string
  detail: string
}

export interface ReportQuestion {
  id: string
  round: number
  at: string
  text: string
  options: readonly string[]
  /** What the agent went on with until it was answered. */
  assumption: string
  /** Whether a person's answer has reached it; left out: no. */
  answered?: true
}

/** What its template says of a session. */
export interface ReportWork {
  /** The command of the template that goes on from the session, `codemachine change --follow-up … "…"`; null: it has none of its own. */
  follow: string | null
  /** How far it is, in a few words. */
  status: string | null
  /** What the card says first; at most four. */
  card: readonly CardFact[]
  section: ReportSection | null
  /** The board of the template's own; null if it has none, and `tasks` and `build` say it. `count`: of all rows; at most 200 are kept. */
  board: { count: number; rows: readonly Omit<BoardRow, 'since'>[] } | null
}

/** What is told of a plan: its tasks as codemachine believes them to stand, and who worked on them. */
export interface ReportBuild {
  /** What the template's own section says: in a build the last summary, how it is run, and what is left. A claim, and no proof. */
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

/** A list of which the middle is left out if it is long. */
export interface Shortened<T> {
  entries: readonly T[]
  /** How many there were in all. */
  count: number
  /** How many are left out, and after how many of `entries` they would stand. */
  leftOut: number
  leftOutAfter: number
}
