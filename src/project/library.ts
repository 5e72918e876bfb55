import type { LiveEvent, Recorded } from '../core/events/events.ts'
import type { SessionLimits, SessionOutcome, Used } from '../core/events/outcome.ts'
import type { PromptTerms, QueuedPrompt } from '../core/shapes/queue.ts'
import type { Reply } from '../core/shapes/reply.ts'
import type { SandboxMode } from '../core/shapes/sandbox.ts'
import type { SessionState, SessionStatus } from '../core/state/state.ts'
import type { TemplateKind } from '../core/template.ts'
import type { ReportData } from '../tell/report/report-data.ts'

// Declares the public types of `import … from '@codemachine/cli'`, apart from their code. The shipped types come from this
// file's imports, so none may need a library that is not shipped.

/**
 * A work directory with its sessions. `openProject` starts nothing. Disposing of it ends what it runs, and resolves when no
 * process of it remains. docs/reference/library.md lists the members.
 */
export interface Project extends AsyncDisposable {
  /** The real path of the work directory. */
  readonly directory: string
  /** The queued prompts. Each becomes a session of its own. */
  readonly queue: ProjectQueue
  /**
   * Runs one session to its end. A limit, a stall and an interruption are outcomes, not errors. Rejects with a `UserError`
   * if a person must fix something; `exitCode` is 6 while another codemachine runs here.
   */
  run(goal: string, options?: RunGoalOptions): Promise<EndedSession>
  /** Resumes the named session, or with null the newest one that is not done. Ends and rejects as `run` does. */
  resume(session: string | null, options?: RunEventsOptions): Promise<EndedSession>
  /**
   * Sends a request to the session that runs here, in any process. Null if none runs. Rejects with a `UserError` without an
   * answer in 10 s.
   */
  ask(ask: Ask): Promise<Reply | null>
  /**
   * Questions of agents, the oldest first: those of the named session, or with null of the newest 20. `all` includes
   * answered ones.
   */
  questions(session?: string | null, options?: { all?: boolean }): Promise<Question[]>
  /**
   * Answers a question by its id (`20261120_1/Q1`, or `Q1` for the newest session with one). A running session is told;
   * otherwise the answer becomes a queued prompt. `answer`: a text, or the number of an option. Rejects with a `UserError`
   * if there is no such question or option, or if it is answered and `again` is not true.
   */
  answer(question: string, answer: string, options?: { again?: boolean }): Promise<AnsweredQuestion>
  /**
   * Follows the named session, or with null the newest, in any process, from its first event. Ends when the session is over
   * and none follows, when `signal` aborts, or with the project.
   */
  watch(session?: string | null, options?: { signal?: AbortSignal }): AsyncIterable<WatchUpdate>
  /** The report of the named session, or with null of the newest, from its journal. */
  report(session?: string | null): Promise<ReportData>
}

/** The options of a run. Without a value, the settings apply. */
export interface RunOptions {
  /**
   * The work directory, absolute or relative to `World.cwd`, which is the default. Commands shown to a person use this path.
   */
  directory?: string
  /** The most rounds, at least 1. */
  rounds?: number
  /** The longest time, ms, at least 1,000. */
  maxTimeMs?: number
  maxTokens?: number
  /** The highest cost, at least 0.01, in the currency of the person's prices. */
  maxCost?: number
  /** The percentage of the account's usage window at which the run waits for the next window. */
  maxUsage?: number
  /** The longest wait, and the longest time of failures in a row, ms, at least 1,000. */
  maxWaitMs?: number
  model?: string
  /** Reasoning effort, such as `low`, `medium` or `high`. */
  effort?: string
  /** The provider: one of the person's settings, `ollama`, `lmstudio`, or `codex` (codex's own configuration). */
  provider?: string
  /** Engine of the rounds: `codex`, or another agent by its name (docs/guides/engines.md). */
  engine?: string
  /** The engines that continue while the usage window of `engine` is full. */
  fallback?: readonly string[]
  /** Write access of the agent. */
  sandbox?: SandboxMode
  /** Whether commands in the sandbox reach the network. */
  network?: boolean
  /** Whether codemachine keeps the machine awake. */
  keepAwake?: boolean
  /** What its sessions publish by themselves at their end (docs/guides/publish.md). */
  publish?: 'no' | 'draft' | 'ready'
  /** Whether a claim of done needs a reviewer who agrees. */
  review?: boolean
  /** Whether each sentence of the goal is proved (`prove`), and whether done needs that (`requireProof`). */
  prove?: boolean
  requireProof?: boolean
  /** Whether a new session ends once its contract is accepted. */
  contractOnly?: boolean
  /** Commands that must pass before done, besides those of the settings. */
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

/** Callbacks and the signal of a session. */
export interface RunEventsOptions {
  /**
   * Gets each event after it is journaled, without secrets, and the state after it. If it throws, the session ends, and
   * `run` rejects with that error.
   */
  onEvent?(event: Recorded, state: SessionState): void
  /** Gets text and output as they come; these are not journaled. If it throws, the same happens as with `onEvent`. */
  onLive?(event: LiveEvent): void
  /**
   * Whether somebody answers decisions, with `Project.ask` or from another terminal. Otherwise a decision with a default
   * takes it at once.
   */
  canAsk?: boolean
  /** Ends the session when it aborts; the session can be resumed. */
  signal?: AbortSignal
}

/** The options of `run`. */
export interface RunGoalOptions extends RunEventsOptions {
  /**
   * The template: one of `codemachine templates`, or of `OpenOptions.templates`. Left out: one agent works on the goal,
   * round after round.
   */
  template?: string
  /** The template's own options. */
  options?: unknown
  /** The id of a session to continue from; agents get its result. */
  follows?: string
}

/** An ended session: its limits, and what it used of them. */
export interface EndedSession {
  id: string
  outcome: SessionOutcome
  limits: SessionLimits
  used: Used
}

/** A request to the running session; docs/reference/events.md explains each. */
export type Ask =
  | { type: 'steer'; text: string }
  /** `agent`: an instance, as `agent-started` names it, or the name of an agent with only one instance. */
  | { type: 'steer-agent'; agent: string; text: string }
  | { type: 'stop-agent'; agent: string }
  /** `go`: the work continues with the changed plan; left out: it pauses. */
  | { type: 'replan'; text: string; go?: true }
  | { type: 'stop'; now: boolean }
  | { type: 'pause' }
  | { type: 'unpause' }
  | { type: 'retry' }
  | { type: 'interrupt' }
  | { type: 'skip' }
  /** Restores the plan from before its last change, while the session is paused. */
  | { type: 'put-plan-back' }
  /** The new limits in total, from the next round on; a missing field does not change. `timeMs`: ms, at least 1,000. */
  | { type: 'limits'; rounds?: number; timeMs?: number; tokens?: number; cost?: number }
  /** A secret of the project was stored; the session no longer waits for it. */
  | { type: 'secret'; key: string }
  /** `session`, `decision`, `version` of the plan: answers only that one; left out: the one that is asked. */
  | { type: 'decide'; choice: string; text?: string; session?: string; decision?: string; version?: number }

/** A question of an agent. Until it is answered, the agent works with its `assumption`. */
export interface Question {
  /** `20261120_1/Q1`. */
  id: string
  session: string
  round: number
  /** When it was asked; ISO 8601 in UTC. */
  at: string
  text: string
  /** The options. If the list is empty, every text is an answer. */
  options: readonly string[]
  assumption: string
  /** `at`: ISO 8601 in UTC; null: not answered. */
  answer: { text: string; at: string } | null
}

/** The effect of an answer. */
export interface AnsweredQuestion {
  /** The effect in sentences, for a person. */
  message: string
  /** The round that gets the answer: the running or the next one; null: the session does not run. */
  told: 'round' | 'next-round' | null
  /** The id of the queued prompt; null: none. */
  queued: string | null
}

/** The queued prompts, in order. Other processes may change them at any time. */
export interface ProjectQueue {
  /**
   * Adds a prompt at the end, and resolves once it is on disk. Rejects with a `UserError` if the prompt is empty or too
   * long, or if the terms are wrong.
   */
  add(prompt: string, terms?: PromptTerms): Promise<QueuedPrompt>
  /** The prompts, the next one first; `problems`: a sentence for each unreadable file. */
  list(): Promise<{ prompts: QueuedPrompt[]; problems: string[] }>
  /** Replaces the text of a prompt, not its terms. Rejects with a `UserError` if it is no longer queued. */
  edit(id: string, prompt: string): Promise<void>
  /** Moves a prompt before another one, or with null to the end. Rejects with a `UserError` if one is no longer queued. */
  move(id: string, before: string | null): Promise<void>
  /** Removes a prompt. Rejects with a `UserError` if it is no longer queued. */
  remove(id: string): Promise<void>
}

/** An update of `watch`. */
export type WatchUpdate =
  /** `state`: the session after the event. */
  | { kind: 'event'; event: Recorded; state: SessionState }
  /** `at`: Unix time, ms. */
  | { kind: 'live'; event: LiveEvent; at: number }
  /** All past events were sent; later ones come as they happen. */
  | { kind: 'attached'; state: SessionState; standing: SessionStatus }
  | { kind: 'ended' }
  /** The run continues with this session; the next updates are its events, from the first one on. */
  | { kind: 'next-session'; id: string }
  /** No process runs it any more, and it has not ended. The last update. */
  | { kind: 'gone' }
  /** The same, for a session that no process ran from the beginning. The last update. */
  | { kind: 'cut-off' }
