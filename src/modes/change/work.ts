import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionEvent } from '../../core/events/events.ts'
import type { SessionOutcome } from '../../core/events/outcome.ts'
import type { Output } from '../../core/rules/outputs.ts'
import type { ContextFacts } from '../../core/shapes/context.ts'
import type { SessionState } from '../../core/state/state.ts'
import type { Step } from '../../core/template.ts'
import type { Plan } from './plan.ts'
import type { TaskSpec } from './tasks.ts'

/** What a change is told beside its request, frozen when its session begins. */
export interface ChangeOptions {
  /** `auto`: the plan is taken as it comes; `manual`: a person accepts it first. */
  review: 'manual' | 'auto'
  /** Whether the session ends once a plan is accepted. */
  planOnly: boolean
  /** How often one verification may be mended. */
  fixAttempts: number
  /**
   * Who carries out tasks; null: the default model. `contextWindow`: tokens, null if it is not known. `isLocal`: whether its
   * server is on this machine; left out: that is not known.
   */
  executor: { provider: string; model: string | null; contextWindow: number | null; isLocal?: boolean } | null
  /** The engine that carries out tasks, with its own model; left out: as `executor` says. */
  executorEngine?: string
  /** Who plans, decomposes and sums up; null: the default model, and its own effort. `engine` left out: that of the rounds. */
  planner: { model: string | null; effort: string | null; engine?: string }
}

/** What a change keeps of what has happened. */
export interface ChangeWork {
  options: ChangeOptions
  request: string
  state: StateName
  /** What was gathered; null: nothing yet. */
  context: { output: Output; facts: ContextFacts } | null
  planning: PlanningWork
  execution: ExecutionWork
  /** The planner's words at the end; null: none yet. */
  summary: Output | null
  /** The same as text, at most 15,000 characters; null: none yet. */
  words: string | null
  /** How it ends, once it waits for input again; null before. */
  outcome: SessionOutcome | null
}

/** A plan that was shown, or can be. */
export interface PlanVersion {
  /** From 1. */
  version: number
  author: 'planner' | 'person'
  /** What the planner was told for it, or that a person edited it; null: nothing but the request. */
  feedback: string | null
  plan: Plan
  /** `hashOfPlan`. */
  sha256: string
  /** Hashes of the files that it names, as they were when it was made; null: not there. */
  files: FileHashes
}

/** SHA-256 of files by their paths, hex; null: not there, or nothing that can be read. */
export type FileHashes = Readonly<Record<string, string | null>>

/** What is known of the plan. */
export interface PlanningWork {
  /** At most ten. */
  versions: readonly PlanVersion[]
  /** How many of the versions lie in their files. */
  filed: number
  /**
   * A plan that can be used and is no version yet, for the files that it names were not looked at; null: none. `isUnjudged`: the
   * journal does not say that it was judged, so that it is asked for, or read, again.
   */
  draft: (Pick<PlanVersion, 'plan' | 'author'> & { isUnjudged: boolean }) | null
  /** Why the last answer, or what a person edited, is no plan that can be used; null: it is one. */
  problem: string | null
  /** How many answers in a row were no such plan; and how many in all. */
  refusals: number
  tries: number
  /** Whether the last answer was no such plan, and the state is not entered again yet. */
  isRefused: boolean
  /** The checks of plans that have run before the work; `told`: it passed, and the planner knows. */
  checked: readonly { run: string; came: 'passed' | 'failed' | 'told' }[]
  /** What the next planning round is told; null: nothing. */
  feedback: string | null
  /** What a person wants changed who has broken in; null: nothing, or it is worked on already. `isGo`: without being shown again. */
  wanted: { text: string; isGo: boolean } | null
  /** Whether the next version is accepted without being shown: a person has said so. */
  isGo: boolean
  /** `edited`: the file that a person edited is read next. */
  reading: 'edited' | null
  /** The file of a version that a person edited, which was not taken for another plan was asked for; null: none, or that was said. */
  unread: string | null
  /** What a person decided about the version that is shown, whose files are looked at next; null: nothing yet. */
  accepting: { remark: string | null; isSame: boolean } | null
  /** The files of the version shown that were changed since it was made, and what they were like when a person was told; null: none. */
  changedFiles: readonly string[] | null
  toldFiles: FileHashes | null
  accepted: AcceptedPlan | null
  /** Whether commands of a plan are gates of the session. */
  addsGates: boolean
  /** Whether a person has said that it stops here. */
  isStopped: boolean
}

/** The version that is carried out. */
export interface AcceptedPlan {
  version: number
  sha256: string
  /** `auto`: nobody was asked; `go`: a person had it changed, and carried out as it came. */
  by: 'person' | 'auto' | 'go'
  remark: string | null
  /** Whether the commands of its verification are gates of the session, where that is due. */
  hasGates: boolean
}

/** How far a task is. */
export type TaskStatus = 'PENDING' | 'IN_PROGRESS' | 'COMPLETED' | 'FAILED'

/** What rounds have come to that work on the same: on a task, or on what the claim was refused for. */
export interface Worked {
  /** Who did it: the models, the last one last, each with its provider where that is not codex's; null: nobody yet. */
  who: string | null
  /** Rounds that counted; and how long all of them took, ms, and their tokens. */
  rounds: number
  ms: number
  tokens: number
  /** The trees before its first round and after its last; null: none yet. */
  treeBefore: string | null
  treeAfter: string | null
  /** Files that its rounds changed, at most 200. */
  changed: readonly string[]
  /** Lines between the two trees, file by file; null in it: it is no text. Null: not counted. */
  lines: readonly { path: string; added: number | null; removed: number | null }[] | null
}

/** What is known of a task. */
export interface TaskRecord extends Worked {
  spec: TaskSpec
  status: TaskStatus
  /** Why it failed, or waits, or its last answer could not be used; null: nothing of that. */
  why: string | null
  /** How often it was mended, of a verification; and how many answers in a row could not be used, of others. */
  attempts: number
  refusals: number
  /** Its answer; null: none yet. */
  outputs: Output | null
  /** How its command came out, the last six times; `flaky`: it failed, and passed when it was run again. */
  results: readonly { status: string; exitCode: number | null; tree: string; tail: string }[]
}

/** An attempt at mending a verification, or what the claim was refused for. */
export interface FixingWork {
  /** Which attempt it is, from 1. */
  attempt: number
  by: 'executor' | 'planner'
  /** What the attempts before it did, and what came of this one; a text each. */
  earlier: readonly string[]
  /** How many attempts in a row have left the same failure, or changed nothing. */
  sameFailures: number
  /** By what the failure is known that it is to mend. */
  failure: string
  /** Whether it has changed files. */
  hasChanged: boolean
}

/** What is known of the tasks. */
export interface ExecutionWork {
  /** Of the plan that the tasks are of; 0: there are none. */
  version: number
  tasks: readonly TaskRecord[]
  /** How many tasks were ever made, at most 50. */
  made: number
  /** Index of the task in hand; null: none, or the claim at the end is. */
  at: number | null
  /** Why the last answer is no list of tasks that can be used, and how often in a row; null: it is one. */
  problem: string | null
  refusals: number
  /** Whether that list has more tasks than may still be made. */
  lacksRoom: boolean
  /** How commands came out before the tasks that they are of were worked on, and how long that took, ms. */
  before: readonly { run: string; status: 'passed' | 'failed' | 'unknown' }[]
  beforeMs: number
  /** What is being mended; null: nothing. */
  fixing: FixingWork | null
  /** Why the planner's model does the task in hand, the end of a sentence; null: the executor does. */
  byPlanner: string | null
  /** The limit that ended the execution; null: none. */
  limit: 'tasks' | 'rounds' | null
  /** The claim that all is done: how often it was mended, why it was refused last, and what mended it. */
  claim: { attempts: number; refused: string | null; work: Worked }
  /** Rounds of tasks and of mending that counted, since the session began or went on after its end. */
  rounds: number
  /** Whether `tasks.json` says what is known of the tasks. */
  isWritten: boolean
  /** Whether the tasks are of an answer that the journal does not say was judged: they are asked for again, if nothing was done with them yet. */
  isUnjudged: boolean
  /** What is done already in the present state: a word each. */
  done: readonly string[]
}

/** The states of a change; what comes after a dot is within the state before it. */
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

/** What a round of a change is for. */
export type ChangePart = 'plan' | 'decompose' | 'gather' | 'act' | 'fix' | 'summary'

/** Who does what in a change: its prompt, and whether it may write. */
export type ChangeRole = 'planner' | 'decomposer' | 'gatherer' | 'executor' | 'fixer' | 'summary'

/** Whose model and provider do it. */
export type Responsible = 'planner' | 'executor'

/** What a change is carried out with. */
export interface ChangeParts {
  thread(role: ChangeRole, by: Responsible): ThreadSpec
  /** The session's folder, relative to the work directory, with `/`. */
  folder: string
}

/** What comes next in a state: a step, or another state and why it is next, a sentence for a person. */
export type Process = { step: Step } | { to: StateName; why: string }

/** One state of a change. All of it is pure. */
export interface ChangeState {
  /** The memory of the change when it is entered, and when it is left; left out: as it was. */
  enter?(own: ChangeWork, session: SessionState): ChangeWork
  exit?(own: ChangeWork, session: SessionState): ChangeWork
  /** That memory after an event that happened in it; `session`: before the event. Left out: as it was. */
  fold?(own: ChangeWork, event: SessionEvent, session: SessionState): ChangeWork
  /** What is done in it next, or which state is next. */
  process(own: ChangeWork, session: SessionState, parts: ChangeParts): Process
  /** The thread of the next round, as far as it is known; left out: it is not. */
  ahead?(own: ChangeWork, session: SessionState, parts: ChangeParts): ThreadSpec | null
}

/** Of a session of this template. */
export function workOf({ work }: Pick<SessionState, 'work'>): ChangeWork {
  return work as ChangeWork
}
