import { messageOf, refusedBySystem, TemplateError, UserError } from '../base/errors.ts'
import type { ThreadSpec } from './engine.ts'
import type { SessionOutcome } from './events/outcome.ts'
import type { AskedAnswer } from './rules/answer.ts'
import type { Decision } from './rules/decision.ts'
import type { Output } from './rules/outputs.ts'
import type { Agent, AgentPrompt, AgentRoster } from './shapes/agent.ts'
import type { MemorySnapshot } from './shapes/memory.ts'
import type { AnsweredTool } from './shapes/tools.ts'
import type { SessionKind, SessionState } from './state/state.ts'

export interface RoundSpec {
  thread: ThreadSpec
  /**
   * The user input of the turn; parts are joined without a separator. The runner puts the person's goal (in a scope, its
   * goal) and later messages before it.
   */
  input: string | readonly InputPart[]
  /** True: the input contains the goal, so the runner adds only the person's later messages. */
  tellsGoal?: true
  /** A text outside of the input; its pictures are sent, too. Left out: only pictures of the input. */
  goalText?: string
  /** A word of the template's `parts`; left out: the template has one kind of round. */
  part?: string
  /**
   * The required form of the last message. It arrives as `answer-given` or `answer-refused` before the end of the round.
   * `Template.answerProblem` checks more than the schema. The next round that asks for this answer learns why it was
   * refused. After three refusals in a row, the session ends.
   */
  answer?: AskedAnswer
  /** Outputs of the session to add below the input. */
  materials?: readonly { name: string; output: Output }[]
  /**
   * The most characters of all materials, if there is room in the turn; the first ones come first. Left out: 100,000 for
   * each.
   */
  materialsMost?: number
  /** The name of the output that stores the last message; left out: none. */
  keep?: string
  /**
   * The longest time, ms. Then codemachine asks the agent for a safe stop, and later interrupts it. The round then ends as
   * `interrupted`, with a message. Left out: no limit of its own.
   */
  timeoutMs?: number
  /**
   * The agent works without tools: each message is a JSON object with a command. Codemachine runs it and answers in the same
   * thread, until a message says done, or after `mostCommands`. Left out: one turn.
   */
  stepwise?: { mostCommands: number }
  /** The scope of the round; the first such round enters it. Left out: the round works on the goal of the session. */
  scope?: RoundScope
  /**
   * More work, each with a thread of its own, at the same time. It begins and ends with `agent-started` and `agent-ended`,
   * whose `instance` is its name. Only for parts that do not delegate. Left out: none.
   */
  beside?: readonly BesideSpec[]
}

/** Work beside a round. `name`: unique in the session; letters and digits of any script, and dashes. */
export interface BesideSpec
  extends Omit<RoundSpec, 'beside' | 'part' | 'goalText' | 'timeoutMs' | 'stepwise' | 'scope'> {
  name: string
}

/**
 * A part of the session with its own goal, memory files, gates and done rule. A proved claim ends the scope, not the
 * session.
 */
export interface RoundScope {
  /**
   * Its name and that of its folder: letters and digits of any script, and dashes, at most 60. A scope that is entered again
   * keeps its memory files.
   */
  name: string
  /** The beginning of its `MAIN.md`, in the form of a round's input. */
  goal: RoundSpec['input']
  /** The commands that must pass before a claim of the scope is accepted, at most 50; none: it is accepted unverified. */
  gates: readonly ScopeGate[]
}

/** A command that proves a claim of a scope, run in the rounds' sandbox. */
export interface ScopeGate {
  /** Unique among the gates of the scope. */
  name: string
  /** A shell command line. */
  run: string
  timeoutMs: number
  /** True if it may use the network; left out: it may not. */
  network?: boolean
}

/**
 * A part of a round's input: a text, or the stored text of an output. `member`: a path in an output that is JSON; texts are
 * inserted as they are, other values as JSON. If the value is missing, the part is empty. Nothing in it is expanded.
 */
export type InputPart = string | { output: Output; member?: readonly string[] }

/**
 * A round. `replan`: the round makes the change of plan that a person asked for; it runs during the pause, and does not
 * count.
 */
export interface RoundStep {
  kind: 'round' | 'replan'
  round: RoundSpec
}

/**
 * A step without a round, journaled before and after. After a crash, the template gets the same state and asks for it again.
 */
export type OwnStep =
  /**
   * Calls one of `Template.looks`; the result comes as `looked`. With `keep`, the look returns `{ text, … }`: codemachine
   * stores the text as an output and in this file, as `keep` does. The rest is the result.
   */
  | { kind: 'look'; what: string; keep?: { file: string } }
  /**
   * Runs a shell line in the work directory and the sandbox of the rounds, as gates run. The result comes as `command-ran`.
   * If it is interrupted, the template is asked again. `readOnly`: it can write nothing and has no network.
   */
  | { kind: 'command'; name: string; run: string; timeoutMs: number; network: boolean; readOnly?: true }
  /**
   * Writes text files of the work directory, all or none. The result comes as `wrote`. A file with the same content is not
   * touched.
   */
  | { kind: 'write'; files: readonly StepFile[] }
  /**
   * Writes a text of at most 1,000 characters into journal, screen and report. `name`: its subject, for programs. Comes as
   * `noted`.
   */
  | { kind: 'note'; name: string; text: string }
  /** Claims that the goal is reached, with the files as they are now; it is proved like every claim. Not in a scope. */
  | { kind: 'claim' }
  /** Leaves the scope before it is done; `why`: a sentence. Comes as `scope-left`. */
  | { kind: 'leave-scope'; why: string }
  /** Enters another state of the template; `why`: a sentence. Comes as `state-entered`. */
  | { kind: 'enter'; state: string; why: string }
  /**
   * Stores a text for people, without secrets, in a file of the session's folder. With `name`, it is also an output. `file`:
   * relative to that folder, with `/`; never `MAIN.md`. `output`: the stored text of an output. The result comes as `kept`.
   * A file with the same content is not touched.
   */
  | ({ kind: 'keep'; file: string; name?: string } & ({ text: string } | { output: Output }))
  /**
   * Makes these commands gates of the session, instead of those of earlier such steps. They must pass before done, and
   * protect what they run. Each new one runs once before the next round. A command that is already a gate adds nothing. At
   * most 50; `why`: a sentence. Comes as `gates-added`. Only for kinds with `addsGates`, and not in a scope.
   */
  | { kind: 'gates'; gates: readonly ScopeGate[]; why: string }
  /** Checks that this secret exists and passes its check. Comes as `secret-confirmed`. Only for kinds with `usesShell`. */
  | { kind: 'confirm-secret'; key: string }

/**
 * A text file of a step; `path`: relative to the work directory, with `/`. `output`, `member`: as in `InputPart`. `append`:
 * adds to the end of the file; `behind` describes the file as the template saw it (null: missing). If the file has changed
 * since, nothing is written, and `wrote` says why. If the text is already there, nothing changes.
 */
export type StepFile = { path: string; append?: { behind: { bytes: number; sha256: string } | null } } & (
  | { text: string }
  | Exclude<InputPart, string>
)

/**
 * The next step of a session. `check`: codemachine checks the plan or its tasks. `decide`: a person decides; then the
 * template is asked again.
 */
export type Step =
  | RoundStep
  | OwnStep
  | { kind: 'check'; check: 'plan' | 'tasks' }
  | { kind: 'decide'; decision: Decision }
  | { kind: 'end'; outcome: SessionOutcome }

/** A kind of session, and the function that opens one of its sessions. */
export interface TemplateKind<S = unknown> extends SessionKind<S> {
  /** Prepares to run a session. Throws a `UserError` if a prompt cannot be used. */
  open(setup: TemplateSetup): Promise<Template>
}

/** Defines a template for `openProject`, checked by the compiler. */
export function defineTemplate<S>(kind: TemplateKind<S>): TemplateKind<S> {
  return kind
}

/** All templates, by name. */
export type TemplateKinds = ReadonlyMap<string, TemplateKind>

/** Absolute paths of memory files. All sessions of the work directory share `kb`. */
interface MemoryPaths {
  main: string
  tasks: string
  kb: string
}

/** The input of a template for one session. */
export interface TemplateSetup {
  /** The work directory, a real path. */
  directory: string
  /** The session's memory files; absolute paths. */
  memory: MemoryPaths
  /** Returns the memory files of the scope of this name. */
  scopeFolder(name: string): MemoryPaths
  agents: AgentRoster
  /** True if the session already has an accepted plan. */
  isPlanReady: boolean
  /** Shows a remark to a person, a sentence. */
  tell(remark: string): void
  /** The texts stored at the start of the session. */
  kept: KeptTexts
  /** Returns the text of an output of the session; null: no longer stored. Left out: none is read. */
  readOutput?(output: Output): Promise<string | null>
  /**
   * The files that differ between two work trees (fingerprints), at most 500, with the lines added and removed (null: not
   * text). Empty if a tree is no longer stored. Left out: no trees are stored.
   */
  linesChanged?(
    before: string,
    after: string,
    signal: AbortSignal,
  ): Promise<readonly { path: string; added: number | null; removed: number | null }[]>
  /**
   * Git settings for looks: a private git directory that agents cannot write (it may not exist yet), and the environment.
   * `redact` removes secrets from a text before it is shortened. Left out: looks do not run git.
   */
  looks?: { gitDir: string; env: Readonly<Record<string, string | undefined>>; redact(text: string): string }
  /** True if commands of the session may use the network; left out: they may not. */
  network?: true
  /** For a call: the agent, its task, and the instructions of its profile; left out otherwise. */
  call?: { agent: string; task: string; instructions?: string }
}

/** Texts stored at the start of a session (`session-created.kept`), by name. */
interface KeptTexts {
  /** Resolves with that text. Rejects with a `UserError` that names a missing or changed file. */
  read(name: string): Promise<string>
  /** Returns true if a text of that name was stored. */
  has(name: string): boolean
  /** Returns the absolute path of its file, for programs that need a file. */
  path(name: string): string
}

/** `TemplateSetup.kept` of a session without stored texts. */
export const NO_KEPT_TEXTS: KeptTexts = {
  read: async name => {
    throw noKeptText(name)
  },
  has: () => false,
  path: name => {
    throw noKeptText(name)
  },
}

function noKeptText(name: string): UserError {
  return new UserError('CM0611', `The session has no stored text "${name}".`)
}

/** The checked plan. `agents`: those with a prompt of this project; `problems`: at most ten sentences. */
type PlanProblems =
  | { ok: true; tasks: readonly { id: string; name: string; phase: string }[]; agents: readonly string[] }
  | { ok: false; problems: readonly string[] }

/** Why an answer cannot be used; `kind`: a word for the template's own `fold`, which is journaled with it. */
export type AnswerProblem = string | { problem: string; kind: string }

/** A template for one session. It decides the next step, and has no effects while it decides. */
export interface Template {
  /**
   * The threads of its rounds, the first ones first; `part` null: the only kind of round, or a change of plan. Reviewers
   * cannot read the files that one of these threads denies.
   */
  threads: readonly { part: string | null; thread: ThreadSpec }[]
  /** Returns the next step, given the session and the memory files now. Pure. */
  next(session: SessionState, memory: MemorySnapshot): Step
  /** Returns the likely thread of the next round before `next` is asked, to start it early. Null: not known. Pure. */
  ahead(session: SessionState): ThreadSpec | null
  /**
   * Its looks by name: functions that read and change nothing; `session`: the state at that time. They resolve with JSON
   * data. Left out: none.
   */
  readonly looks?: Readonly<Record<string, (signal: AbortSignal, session: SessionState) => Promise<unknown>>>
  /**
   * Returns why an answer that fits its schema is unusable: a sentence, or a line per mistake; null: it is usable. Called
   * once when the answer comes; the verdict is journaled, so a `fold` must not judge. `session`: the state at that time.
   * Pure. Left out: each answer that fits is used.
   */
  answerProblem?(round: RoundSpec, value: unknown, session: SessionState): AnswerProblem | null
  /**
   * Returns the person's files that no round may change: paths in the work directory, at most ten of up to 1 MiB. If a round
   * changes one, codemachine saves that version, restores the file, and refuses a claim of that round. Pure. Left out: none.
   */
  personsFiles?(session: SessionState): readonly string[]
  /**
   * Returns why agents' commands get no secrets now, a sentence for the agent; null: they do. Asked for each command and
   * each question for a secret. Pure. Left out: they do.
   */
  refusesSecrets?(session: SessionState): string | null
  /** Stores the result of a round that worked without a claim; `session`: after it. Resolves with an error text or null. */
  afterRound?(session: SessionState): Promise<string | null>
  /** Stores the session's result; `session`: its final state. Resolves with why it failed, a sentence; null: it did not. */
  beforeEnd?(session: SessionState): Promise<string | null>
  /** Checks the plan that an agent wrote. Left out: the template has none. */
  checkPlan?(): Promise<PlanProblems>
  /** Its own tools for agents, which it answers; it cannot replace tools of codemachine. */
  readonly tools?: readonly AnsweredTool[]
  /** The prompt of an agent that gets a task. Left out: the current one. */
  promptOf?(agent: Agent): Promise<AgentPrompt>
  /** Agents that exist only by a prompt in `.codemachine/agents`. Left out: those of the setup. */
  ownAgents?(): readonly Agent[]
}

/**
 * Calls a function of a template. Any error but a `UserError` is rethrown as a `TemplateError` that names the template.
 * @param name the template's name
 * @param where the called function: `next`
 */
export function inTemplate<T>(name: string, where: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw templateError(name, where, error)
  }
}

/** Like `inTemplate`, for an async call. */
export async function inEffect<T>(name: string, where: string, call: () => T): Promise<Awaited<T>> {
  try {
    return await call()
  } catch (error) {
    throw templateError(name, where, error)
  }
}

/** Returns the error to throw for an error of a template: a `UserError` as it is, and also if the machine is at fault. */
export function templateError(name: string, where: string, error: unknown): Error {
  if (error instanceof UserError) return error
  return (
    refusedBySystem(error) ??
    new TemplateError(`the template "${name}" failed in \`${where}\`: ${messageOf(error)}`, { cause: error })
  )
}
