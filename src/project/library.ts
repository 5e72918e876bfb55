import type { LiveEvent, Recorded } from '../core/events/events.ts'
import type { SessionLimits, SessionOutcome, Used } from '../core/events/outcome.ts'
import type { PromptTerms, QueuedPrompt } from '../core/shapes/queue.ts'
import type { Reply } from '../core/shapes/reply.ts'
import type { SandboxMode } from '../core/shapes/sandbox.ts'
import type { SessionState, SessionStatus } from '../core/state/state.ts'
import type { TemplateKind } from '../core/template.ts'
import type { ReportData } from '../tell/report/report-data.ts'

// What `import … from 'codemachine'` gives is declared here, apart from what does it: the types that are shipped come
// from what this file imports, and nothing of it may need a library that is not shipped.

/**
 * A work directory that sessions are run in, watched and reported of. Nothing is started by opening it; disposing of it
 * ends what it runs as a signal would, and resolves when every process of it has ended. docs/reference/library.md has each member.
 */
export interface Project extends AsyncDisposable {
  /** The real path of the work directory. */
  readonly directory: string
  /** The prompts that wait, each of which becomes a session of its own. */
  readonly queue: ProjectQueue
  /**
   * Runs one session from its start to its end, however it ends: a limit, a stall and an interruption are outcomes, not
   * errors. Rejects with a `UserError` for what a person has to fix, with exit code 6 while a codemachine runs here.
   */
  run(goal: string, options?: RunGoalOptions): Promise<EndedSession>
  /** Resumes a session that is not done: the one so named, or with null the newest. Ends and rejects as `run` does. */
  resume(session: string | null, options?: RunEventsOptions): Promise<EndedSession>
  /**
   * Asks something of the session that runs here, in this process or in another one. Null if none runs. A `UserError` if
   * it does not answer within 10 s.
   */
  ask(ask: Ask): Promise<Reply | null>
  /**
   * What agents have asked, the oldest first: in the session so named, or with null in the newest 20. What is answered is left out,
   * unless `all` is true.
   */
  questions(session?: string | null, options?: { all?: boolean }): Promise<Question[]>
  /**
   * Answers a question by its id (`20261120_1/Q1`, or `Q1` for that of the newest session that has one). A running
   * session is told; else the answer becomes a queued prompt. `answer`: a text, or the number of an option. A
   * `UserError` if there is no such question or option, or it is answered and `again` is not true.
   */
  answer(question: string, answer: string, options?: { again?: boolean }): Promise<AnsweredQuestion>
  /**
   * Follows a session that any process runs, from its first event on: the one so named, or with null the newest. Ends when
   * it is over and nobody goes on from there, when `signal` is aborted, or when the project is disposed of.
   */
  watch(session?: string | null, options?: { signal?: AbortSignal }): AsyncIterable<WatchUpdate>
  /** The report of a session by its journal alone: the one so named, or with null the newest. */
  report(session?: string | null): Promise<ReportData>
}

/** What a run is told, in values. What is left out is as the settings say, in files and in the environment. */
export interface RunOptions {
  /** The work directory, absolute or relative to `World.cwd`; left out: that one. A person is told commands that name it so. */
  directory?: string
  /** The most rounds, at least 1. */
  rounds?: number
  /** For how long it may work, ms, at least 1,000. */
  maxTimeMs?: number
  maxTokens?: number
  /** The most that it may cost, at least 0.01, in the currency of the prices of the person's settings. */
  maxCost?: number
  /** The percentage of the account's usage window at which it waits for the next one. */
  maxUsage?: number
  /** How long one wait, or failures in a row, may take, ms, at least 1,000. */
  maxWaitMs?: number
  model?: string
  /** Reasoning effort, such as `low`, `medium` or `high`. */
  effort?: string
  /** Name of a provider of the person's settings, `ollama`, `lmstudio`, or `codex` for what codex is configured with. */
  provider?: string
  /** What runs the rounds: `codex`, or another agent by its name (docs/guides/engines.md). */
  engine?: string
  /** The engines that go on while the usage window of that one is full. */
  fallback?: readonly string[]
  /** What the agent may write. */
  sandbox?: SandboxMode
  /** Whether commands in the sandbox reach the network. */
  network?: boolean
  /** Whether the machine is kept from going to sleep. */
  keepAwake?: boolean
  /** What its sessions publish by themselves at their end (docs/guides/publish.md). */
  publish?: 'no' | 'draft' | 'ready'
  /** Whether a claim of done needs a reviewer who agrees. */
  review?: boolean
  /** Whether what is asked for is proved sentence by sentence, and whether done needs that. */
  prove?: boolean
  requireProof?: boolean
  /** Whether a new session ends once its contract is accepted. */
  contractOnly?: boolean
  /** Commands that have to pass before done, on top of those of the settings. */
  verify?: readonly string[]
  /** `key=value` pairs that override codex's own configuration. */
  config?: readonly string[]
  /** Path of the codex program. */
  codexBin?: string
}

/** How a project is opened. */
export interface OpenOptions extends RunOptions {
  /** Templates of the program's own, beside those of codemachine. */
  templates?: readonly TemplateKind[]
}

/** Who is told of what happens in a session, and what ends it. */
export interface RunEventsOptions {
  /**
   * Told each event once it is journaled, without secrets, and the session after it. What it throws ends the session, and
   * is what the run rejects with.
   */
  onEvent?(event: Recorded, state: SessionState): void
  /** Told what is not journaled: text and output as they come. What it throws counts as of `onEvent`. */
  onLive?(event: LiveEvent): void
  /**
   * Whether somebody answers what a person has to decide, by `Project.ask` or from another terminal; left out: nobody does,
   * and where a decision has a default, that is taken at once.
   */
  canAsk?: boolean
  /** Ends the session when it is aborted, so that it can be resumed. */
  signal?: AbortSignal
}

/** How a session is run for a goal. */
export interface RunGoalOptions extends RunEventsOptions {
  /** Name of a template (`codemachine templates`, or one that the project was opened with); left out: one agent works on it, round after round. */
  template?: string
  /** What the template is told beside the goal. */
  options?: unknown
  /** Id of a session that it goes on from: what that came to is given to its agents. */
  follows?: string
}

/** A session that has come to its end; what it was allowed, and what of that it used. */
export interface EndedSession {
  id: string
  outcome: SessionOutcome
  limits: SessionLimits
  used: Used
}

/** What may be asked of the session that runs; docs/reference/events.md says what each does. */
export type Ask =
  | { type: 'steer'; text: string }
  /** `agent`: an instance at work in the round, as `agent-started` names it, or the name of its agent where it is the only one. */
  | { type: 'steer-agent'; agent: string; text: string }
  | { type: 'stop-agent'; agent: string }
  /** `go`: the work goes on once the plan is changed; left out: it holds then. */
  | { type: 'replan'; text: string; go?: true }
  | { type: 'stop'; now: boolean }
  | { type: 'pause' }
  | { type: 'unpause' }
  | { type: 'retry' }
  | { type: 'interrupt' }
  | { type: 'skip' }
  /** The plan as it was before its last change is put back, while the session holds. */
  | { type: 'put-plan-back' }
  /** What it may take in all, from its next round on; what is left out stays. `timeMs`: ms, at least 1,000. */
  | { type: 'limits'; rounds?: number; timeMs?: number; tokens?: number; cost?: number }
  /** A secret of the project was stored: it is told so, and waits no longer for it. */
  | { type: 'secret'; key: string }
  /** `session`, `decision`, `version` of the plan: which is meant; left out: the one that is asked for. */
  | { type: 'decide'; choice: string; text?: string; session?: string; decision?: string; version?: number }

/** A question that an agent has noted for a person. It continues with its `assumption` until that is answered. */
export interface Question {
  /** `20261120_1/Q1`. */
  id: string
  session: string
  round: number
  /** When it was asked; ISO 8601 in UTC. */
  at: string
  text: string
  /** Those that can be chosen from; empty: any text is an answer. */
  options: readonly string[]
  assumption: string
  /** `at`: ISO 8601 in UTC; null: nobody has answered. */
  answer: { text: string; at: string } | null
}

/** What became of an answer. */
export interface AnsweredQuestion {
  /** The same in sentences, for a person. */
  message: string
  /** Which round is told: the one that runs, or the next one; null: none, for its session does not run. */
  told: 'round' | 'next-round' | null
  /** Id of the prompt that it became; null: none. */
  queued: string | null
}

/** The prompts that wait, in order. Other processes may change them at any time. */
export interface ProjectQueue {
  /**
   * Adds a prompt behind all others; it is on the disk when this resolves. A `UserError` if it is empty or too long, or
   * nothing can begin with these terms.
   */
  add(prompt: string, terms?: PromptTerms): Promise<QueuedPrompt>
  /** Those that wait, the next one first, and a sentence for each file that cannot be read. */
  list(): Promise<{ prompts: QueuedPrompt[]; problems: string[] }>
  /** Puts another text in the place of a prompt, and leaves its terms; a `UserError` if it does not wait any more. */
  edit(id: string, prompt: string): Promise<void>
  /** Has a prompt wait just before another one, or with null behind all; a `UserError` if one of them does not wait any more. */
  move(id: string, before: string | null): Promise<void>
  /** Takes a prompt out; a `UserError` if it does not wait any more. */
  remove(id: string): Promise<void>
}

/** What is told to somebody who watches a session, whatever process runs it. */
export type WatchUpdate =
  /** `state`: the session after the event. */
  | { kind: 'event'; event: Recorded; state: SessionState }
  /** `at`: Unix time, ms. */
  | { kind: 'live'; event: LiveEvent; at: number }
  /** The past has been told; from now on it comes as it happens. */
  | { kind: 'attached'; state: SessionState; standing: SessionStatus }
  | { kind: 'ended' }
  /** The run continues with this session: what follows is of it, from its first event on. */
  | { kind: 'next-session'; id: string }
  /** Nobody runs it any more, and it has not come to its end. The last that is told. */
  | { kind: 'gone' }
  /** The same, of one that nobody ran when it was looked at first. The last that is told. */
  | { kind: 'cut-off' }
