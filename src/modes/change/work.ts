import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionEvent } from '../../core/events/events.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import type { Output } from '../../core/rules/outputs.ts'
import type { ContextFacts } from '../../core/shapes/context.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Step } from '../../core/template.ts'
import type { Plan } from './plan.ts'
import type { TaskSpec } from './tasks.ts'

/** Options of a change, frozen at its session's start. */
export interface ChangeOptions {
  /** `auto`: the plan is accepted without a question; `manual`: a person accepts it first. */
  review: 'manual' | 'auto'
  /** Whether the session ends once a plan is accepted. */
  planOnly: boolean
  /** Attempts to fix one verification. */
  fixAttempts: number
  /**
   * Model for the tasks; null: the default. `contextWindow`: tokens, null: unknown. `isLocal`: whether its server is on this
   * machine; left out: unknown.
   */
  executor: { provider: string; model: string | null; contextWindow: number | null; isLocal?: boolean } | null
  /** Engine for the tasks, with its own model; left out: as `executor` says. */
  executorEngine?: string
  /** Planner, decomposer and summary; null: default model, own effort. `engine` left out: that of the rounds. */
  planner: { model: string | null; effort: string | null; engine?: string }
}

/** Memory of a change. */
export interface ChangeWork {
  options: ChangeOptions
  request: string
  state: StateName
  /** Gathered context; null: none yet. */
  context: { output: Output; facts: ContextFacts } | null
  planning: PlanningWork
  execution: ExecutionWork
  /** The planner's last words; null: none yet. */
  summary: Output | null
  /** The same as text, at most 15,000 characters; null: none yet. */
  words: string | null
  /** Its outcome, once it waits for input again; null before. */
  outcome: SessionOutcome | null
}

/** A version of the plan to show. */
export interface PlanVersion {
  /** From 1. */
  version: number
  author: 'planner' | 'person'
  /** Feedback to the planner for it, or that a person edited it; null: only the request. */
  feedback: string | null
  plan: Plan
  /** `hashOfPlan`. */
  sha256: string
  /** Hashes of its files at that time; null: missing. */
  files: FileHashes
}

/** SHA-256 (hex) by path; null: missing, or unreadable. */
export type FileHashes = Readonly<Record<string, string | null>>

/** State of the planning. */
export interface PlanningWork {
  /** At most ten. */
  versions: readonly PlanVersion[]
  /** Number of versions written to their files. */
  filed: number
  /**
   * A usable plan that is no version yet, because its files were not looked at; null: none. `isUnjudged`: the journal does
   * not say that it was judged, so it is requested or read again.
   */
  draft: (Pick<PlanVersion, 'plan' | 'author'> & { isUnjudged: boolean }) | null
  /** Why the last answer, or a person's edit, is no usable plan; null: it is one. */
  problem: string | null
  /** Number of unusable answers in a row, and of all tries. */
  refusals: number
  tries: number
  /** Whether the last answer was unusable, and the state was not entered again yet. */
  isRefused: boolean
  /** Checks of plans that ran before the work; `told`: it passed, and the planner knows. */
  checked: readonly { run: string; came: 'passed' | 'failed' | 'told' }[]
  /** Input for the next planning round; null: none. */
  feedback: string | null
  /** Request of an interrupting person; null: none, or already in work. `isGo`: accept the result without showing it. */
  wanted: { text: string; isGo: boolean } | null
  /** Whether the person accepted the next version in advance. */
  isGo: boolean
  /** `edited`: read the person's edited file next. */
  reading: 'edited' | null
  /** A person's edited file that was not read, because another plan was requested; null: none, or reported. */
  unread: string | null
  /** A person's decision on the shown version, whose files are checked next; null: none yet. */
  accepting: { remark: string | null; isSame: boolean } | null
  /** Files of the shown version that changed since, and their hashes when a person heard of it; null: none. */
  changedFiles: readonly string[] | null
  toldFiles: FileHashes | null
  accepted: AcceptedPlan | null
  /** Whether commands of a plan are gates of the session. */
  addsGates: boolean
  /** Whether a person has decided to stop here. */
  isStopped: boolean
}

/** The accepted version. */
export interface AcceptedPlan {
  version: number
  sha256: string
  /** `auto`: nobody was asked; `go`: a person requested a change, and accepted it in advance. */
  by: 'person' | 'auto' | 'go'
  remark: string | null
  /** Whether its verification commands are gates of the session yet, if they should be. */
  hasGates: boolean
}

/** State of a task. */
export type TaskStatus = 'PENDING' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED'

/** Results of rounds with the same purpose: a task, or a fix of the claim. */
export interface Worked {
  /** Its models, the last one last, each with a provider other than codex's; null: none yet. */
  who: string | null
  /** Rounds that counted; time of all, ms; their tokens. */
  rounds: number
  ms: number
  tokens: number
  /** Trees before its first round and after its last; null: none yet. */
  treeBefore: string | null
  treeAfter: string | null
  /** Files that its rounds changed, at most 200. */
  changed: readonly string[]
  /** Changed lines between the two trees by file; null in it: no text. Null: not counted. */
  lines: readonly { path: string; added: number | null; removed: number | null }[] | null
}

/** State of a task with its results. */
export interface TaskRecord extends Worked {
  spec: TaskSpec
  status: TaskStatus
  /** Why it failed, waits, or had an unusable answer; null: none of these. */
  why: string | null
  /** Number of fixes of a verification; for others, unusable answers in a row. */
  attempts: number
  refusals: number
  /** Its answer; null: none yet. */
  outputs: Output | null
  /** Last six results of its command; `flaky`: failed, then passed. */
  results: readonly { status: string; exitCode: number | null; tree: string; tail: string }[]
}

/** An attempt to fix a verification or the claim. */
export interface FixingWork {
  /** Number of the attempt, from 1. */
  attempt: number
  by: 'executor' | 'planner'
  /** What earlier attempts did, and the result of this one; a text each. */
  earlier: readonly string[]
  /** Number of attempts in a row that left the same failure, or changed nothing. */
  sameFailures: number
  /** Key of the failure that it must fix. */
  failure: string
  /** Whether it has changed files. */
  hasChanged: boolean
}

/** State of the tasks. */
export interface ExecutionWork {
  /** Version of their plan; 0: there are none. */
  version: number
  tasks: readonly TaskRecord[]
  /** Number of tasks ever made, at most 50. */
  made: number
  /** Index of the current task; null: none, or the claim is current. */
  at: number | null
  /** Why the last answer is no usable list of tasks, and how often in a row; null: it is one. */
  problem: string | null
  refusals: number
  /** Whether that list has more tasks than are left. */
  lacksRoom: boolean
  /** Results of the tasks' commands before the work, and their time, ms. */
  before: readonly { run: string; status: 'passed' | 'failed' | 'unknown' }[]
  beforeMs: number
  /** Current fix; null: none. */
  fixing: FixingWork | null
  /** Why the planner's model does the current task, the end of a sentence; null: the executor does it. */
  byPlanner: string | null
  /** The limit that ended the execution; null: none. */
  limit: 'tasks' | 'rounds' | null
  /** The final claim: number of fixes, last refusal, and the fixing work. */
  claim: { attempts: number; refused: string | null; work: Worked }
  /** Counted rounds of tasks and fixes, since the session began or was resumed after its end. */
  rounds: number
  /** Whether `tasks.json` is up to date. */
  isWritten: boolean
  /** Whether the journal does not say that the tasks were judged: they are requested again, unless work has begun. */
  isUnjudged: boolean
  /** Things already done in the current state: a word each. */
  done: readonly string[]
}

/** States of a change; the part after a dot is a substate. */
export type StateName =
  | 'WAITING_FOR_INPUT'
  | 'GATHERING_CONTEXT'
  | 'GENERATING_PLAN'
  | 'REVIEWING_PLAN.user-review'
  | 'REVIEWING_PLAN.auto-accepted'
  | 'REVIEWING_PLAN.manual-review'
  | 'REVIEWING_PLAN.accepted'
  | 'REVIEWING_PLAN.rejected'
  | 'REVIEWING_PLAN.refinement'
  | 'EXECUTING_TASKS.decomposition'
  | 'EXECUTING_TASKS.queue'
  | 'EXECUTING_TASKS.info-gathering'
  | 'EXECUTING_TASKS.action'
  | 'EXECUTING_TASKS.verification'
  | 'EXECUTING_TASKS.result'
  | 'EXECUTING_TASKS.fixing'
  | 'EXECUTING_TASKS.failure'
  | 'GENERATING_SUMMARY'

/** Purposes of a change's rounds. */
export type ChangePart = 'plan' | 'decompose' | 'gather' | 'act' | 'fix' | 'summary'

/** Roles in a change: each has its prompt, and may write or not. */
export type ChangeRole = 'planner' | 'decomposer' | 'gatherer' | 'executor' | 'fixer' | 'summary'

/** Whose model and provider to use. */
export type Responsible = 'planner' | 'executor'

/** Means of a change. */
export interface ChangeParts {
  thread(role: ChangeRole, by: Responsible): ThreadSpec
  /** The session's folder, relative to the work directory, with `/`. */
  folder: string
}

/** Next in a state: a step, or another state and a sentence why. */
export type Process = { step: Step } | { to: StateName; why: string }

/** One state of a change. All of it is pure. */
export interface ChangeState {
  /** Return the memory on entry and on exit; left out: unchanged. */
  enter?(own: ChangeWork, session: SessionState): ChangeWork
  exit?(own: ChangeWork, session: SessionState): ChangeWork
  /** Returns the memory after an event in this state; `session`: before the event. Left out: unchanged. */
  fold?(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork
  /** Returns the next step, or the next state. */
  process(own: ChangeWork, session: SessionState, parts: ChangeParts): Process
  /** Returns the next round's thread, if known; left out: unknown. */
  ahead?(own: ChangeWork, session: SessionState, parts: ChangeParts): ThreadSpec | null
}

/** Returns the memory of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): ChangeWork {
  return work as ChangeWork
}
