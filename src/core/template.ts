import { messageOf, TemplateError, UserError } from '../base/errors.ts'
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
   * The user input of the turn; of parts: they stand one behind the other, with nothing between them. The runner puts before it
   * the goal in the words of the person (in a scope that of the scope), and what they have said later.
   */
  input: string | readonly InputPart[]
  /** Whether the input itself has the goal, or what stands in its place, so that the runner puts only what they said later before it; left out: it has not. */
  tellsGoal?: true
  /** A text that it works on and that its input leaves out: pictures that it names are sent too. Left out: those of the input alone. */
  goalText?: string
  /** What it is for: a word of the template's `parts`; left out: the template has but one kind of round. */
  part?: string
  /**
   * What its last message has to be, which comes as `answer-given` or `answer-refused`, before the end of the round; by more
   * than its schema it is judged by `Template.answerProblem`. The
   * next round that asks for an answer of this name is told why it was refused; the session ends when that was three times in a row.
   */
  answer?: AskedAnswer
  /** Outputs of the session that it is given below its input. */
  materials?: readonly { name: string; output: Output }[]
  /** The characters of all materials together, where there is room in the turn; the first are given first. Left out: 100,000 for each. */
  materialsMost?: number
  /** The name under which its last message is kept as an output; left out: it is not. */
  keep?: string
  /**
   * How long it may take, ms. Then its agent is told to come to a safe stop, as at a limit of the session. If it does
   * not, it is interrupted. The round then ends as `interrupted`, with a message that says so. Left out: as long as the
   * session may.
   */
  timeoutMs?: number
  /**
   * Whether its agent works without tools. Each of its messages is a JSON object that names a command. Codemachine runs
   * it and answers in the same thread, until a message says that it is done, or after so many commands. Left out: one turn.
   */
  stepwise?: { mostCommands: number }
  /** The scope that it works in, which the first such round enters; left out: it works on the goal of the session. */
  scope?: RoundScope
}

/**
 * A part of the session with a done rule of its own: its rounds work on a goal, memory files and gates of their own. A
 * proved claim of theirs ends the scope, not the session. Those of the session are set aside meanwhile.
 */
export interface RoundScope {
  /**
   * Tells it apart, and names its folder: letters and digits of any script, and dashes, at most 60. One that is entered
   * again continues with the memory files that it left.
   */
  name: string
  /** What its `MAIN.md` begins with, as the input of a round is given. */
  goal: RoundSpec['input']
  /** The commands that have to pass before a claim of it is accepted, all of them, at most 50; none: it is accepted unverified. */
  gates: readonly ScopeGate[]
}

/** A command that proves what is claimed in a scope, run in the sandbox of the rounds. */
export interface ScopeGate {
  /** One of its own among those of the scope. */
  name: string
  /** A line for a shell. */
  run: string
  timeoutMs: number
  /** Whether it reaches the network; left out: it does not. */
  network?: boolean
}

/**
 * A part of the input of a round: a text as it is, or the whole kept text of an output. `member`: the output is JSON, and the
 * value at this path stands here, a text as it is and anything else as JSON; empty if there is none. Nothing in it is expanded.
 */
export type InputPart = string | { output: Output; member?: readonly string[] }

/**
 * A round that is to be run. `replan`: one that makes the change of plan which a person has asked for; it runs while the
 * session holds, and does not count.
 */
export interface RoundStep {
  kind: 'round' | 'replan'
  round: RoundSpec
}

/**
 * What codemachine does by itself, without a round, and journals before and after. One that was cut off is done again: the
 * template is asked once more, and says the same, for its state is the fold of the journal.
 */
export type OwnStep =
  /**
   * Calls one of `Template.looks`. What that finds comes as `looked`. `keep`: it finds `{ text, … }`; the text is kept as an
   * output by the name of the look and in this file of the session's folder, as by `keep`, and the rest is what was found.
   */
  | { kind: 'look'; what: string; keep?: { file: string } }
  /**
   * Runs a line for a shell, in the work directory and the sandbox of the rounds, as gates are run. How it ended comes as
   * `command-ran`; what was broken off does not reach the template's `fold`, and is asked for again. `readOnly`: it may write
   * nothing at all, whatever the rounds may, and has no network.
   */
  | { kind: 'command'; name: string; run: string; timeoutMs: number; network: boolean; readOnly?: true }
  /**
   * Writes text files of the work directory, all or none. What became of it comes as `wrote`. A file that has that content
   * already is left as it is.
   */
  | { kind: 'write'; files: readonly StepFile[] }
  /**
   * Says something in the journal, on the screen and in the report, in at most 1,000 characters: a text that is understood by
   * itself; `name`: what it is about, for programs. Comes as `noted`.
   */
  | { kind: 'note'; name: string; text: string }
  /** Claims that the goal is reached, with the files as they are now; it is proved as every claim is. Not in a scope. */
  | { kind: 'claim' }
  /** Leaves the scope that the session is in, without its being done; `why`: a sentence. That comes as `scope-left`. */
  | { kind: 'leave-scope'; why: string }
  /** Goes over into another state of the template's own; `why`: a sentence. Comes as `state-entered`. */
  | { kind: 'enter'; state: string; why: string }
  /**
   * Keeps a text for people: in a file of the session's folder in the work directory, and with `name` as an output, too, each
   * without its secrets. `file`: relative to that folder, with `/`; never `MAIN.md`. `output`: the whole kept text of it. What
   * became of it comes as `kept`; a file with that content already is left as it is.
   */
  | ({ kind: 'keep'; file: string; name?: string } & ({ text: string } | { output: Output }))
  /**
   * Makes these commands gates of the session: all that templates add, so that one of an earlier such step that is not among
   * them is none any more. They have to pass before done, and protect what their commands run, against what the session began
   * with; each that is new runs once before the next round. One with the `run` of another gate adds nothing. At most 50; `why`:
   * a sentence. Comes as `gates-added`. Only of a kind with `addsGates`, and not in a scope.
   */
  | { kind: 'gates'; gates: readonly ScopeGate[]; why: string }
  /**
   * Looks whether the secret of this name is there, and its check passes, if it has one. Comes as `secret-confirmed`. Only of
   * a kind with `usesShell`.
   */
  | { kind: 'confirm-secret'; key: string }

/**
 * A text file that a step writes; `path`: relative to the work directory, with `/`. `output`: the whole kept text of it.
 * `append`: at the end of the file, which was `behind` when the template looked at it (null: it was not there). If it is
 * another by now, nothing is written, and `wrote` says why; if it has the text at its end already, it is left as it is.
 */
export type StepFile = { path: string; append?: { behind: { bytes: number; sha256: string } | null } } & (
  | { text: string }
  | { output: Output }
)

/**
 * What a session does next. `check`: codemachine's own look at the plan, or at the tasks in it. `decide`: a person decides;
 * the template is asked again once they have, or the default was taken.
 */
export type Step =
  | RoundStep
  | OwnStep
  | { kind: 'check'; check: 'plan' | 'tasks' }
  | { kind: 'decide'; decision: Decision }
  | { kind: 'end'; outcome: SessionOutcome }

/** A kind of session, and where a session of it is carried out. */
export interface TemplateKind<S = unknown> extends SessionKind<S> {
  /** Makes ready to carry out a session. Throws a `UserError` if a prompt cannot be used. */
  open(setup: TemplateSetup): Promise<Template>
}

/** A template as a program of one's own writes it, for `openProject`: the same, and checked by the compiler. */
export function defineTemplate<S>(kind: TemplateKind<S>): TemplateKind<S> {
  return kind
}

/** The templates that there are, by name. */
export type TemplateKinds = ReadonlyMap<string, TemplateKind>

/** Where memory files lie; absolute paths. `kb` is that of all sessions of the work directory. */
interface MemoryPaths {
  main: string
  tasks: string
  kb: string
}

/** What a template is given for one session. */
export interface TemplateSetup {
  /** The work directory, a real path. */
  directory: string
  /** Where the session's memory lies; absolute paths. */
  memory: MemoryPaths
  /** Where that of a scope of this name lies. */
  scopeFolder(name: string): MemoryPaths
  agents: AgentRoster
  /** Whether the session has a plan that was taken already. */
  isPlanReady: boolean
  /** Told what a person should know, a sentence. */
  tell(remark: string): void
  /** The texts that the session began with. */
  kept: KeptTexts
  /**
   * The files in which two work trees differ, by their fingerprints, at most 500. Each has the number of lines added and
   * removed; null: it is not text. None if one of them is no longer kept. Left out: nothing is kept.
   */
  linesChanged?(
    before: string,
    after: string,
    signal: AbortSignal,
  ): Promise<readonly { path: string; added: number | null; removed: number | null }[]>
  /**
   * What its looks run git with: a private git directory of theirs, where agents cannot write and which need not exist
   * yet, and the environment. Also what removes secrets from a text before it is shortened. Left out: they run none.
   */
  looks?: { gitDir: string; env: Readonly<Record<string, string | undefined>>; redact(text: string): string }
  /** Whether commands of the session reach the network; left out: they do not. */
  network?: true
  /** Of a call: the agent that is asked, and for what, and what its profile has it told beside its prompt; left out otherwise. */
  call?: { agent: string; task: string; instructions?: string }
}

/** Texts that a session began with (`session-created.kept`), by name. */
interface KeptTexts {
  /** Resolves with the text as it was then. Rejects with a `UserError` that names the file if it is gone or is not that text any more. */
  read(name: string): Promise<string>
  /** Whether the session began with a text of that name. */
  has(name: string): boolean
  /** The absolute path of its file, for what reads it as one. */
  path(name: string): string
}

/** `TemplateSetup.kept` of a session that began with none. */
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
  return new UserError('CM0611', `No text "${name}" is kept.`)
}

/** What was found of a plan; `agents`: those that have a prompt of this project's own; `problems`: at most ten, a sentence each. */
type PlanProblems =
  | { ok: true; tasks: readonly { id: string; name: string; phase: string }[]; agents: readonly string[] }
  | { ok: false; problems: readonly string[] }

/** Why an answer cannot be used; `kind`: a word for the template's own `fold`, which is journaled with it. */
export type AnswerProblem = string | { problem: string; kind: string }

/** A template that carries out one session. Decides what comes next, and touches nothing for that. */
export interface Template {
  /**
   * What its rounds are started with, those that work first; `part` null: it has but one kind of round, or the plan is
   * changed. What any round of it may not read stands with one of them, for reviewers may not read it either.
   */
  threads: readonly { part: string | null; thread: ThreadSpec }[]
  /** What comes next, given what has happened and what the memory files say now. Pure. */
  next(session: SessionState, memory: MemorySnapshot): Step
  /** The thread of the next round, as far as it is known before `next` is asked: it is started ahead. Pure. */
  ahead(session: SessionState): ThreadSpec | null
  /**
   * What it can look at, by the word in `look`: functions that read what they like and change nothing; `session`: as it is
   * then. What they resolve with is data (JSON). Left out: it never looks.
   */
  readonly looks?: Readonly<Record<string, (signal: AbortSignal, session: SessionState) => Promise<unknown>>>
  /**
   * Why an answer that fits its schema cannot be used all the same, for the one who has to fix it: a sentence, or a line for
   * each mistake; null if it can. Asked once, when the answer comes, and journaled (`answer-refused`, or `answer-given` with
   * `judged`): a `fold` judges nothing, for later versions with other rules read the same journal. `session`: as it is then.
   * Pure. Left out: what fits is used.
   */
  answerProblem?(round: RoundSpec, value: unknown, session: SessionState): AnswerProblem | null
  /**
   * The files of the person that none of its rounds may change, relative to the work directory, at most ten of up to 1
   * MiB. If a round changes one, its version is kept beside, the file is restored, and a claim of that round is refused.
   * Pure. Left out: there are none.
   */
  personsFiles?(session: SessionState): readonly string[]
  /**
   * Why no command of an agent may have a secret now, a sentence for the agent; null: they may. Asked for each command and
   * each question for a secret. Pure. Left out: they may.
   */
  refusesSecrets?(session: SessionState): string | null
  /** Keeps what a round has come to that worked and made no claim; `session`: after it. A sentence if that failed. */
  afterRound?(session: SessionState): Promise<string | null>
  /** Keeps what the session has come to; `session`: as it will have ended. A sentence if that failed. */
  beforeEnd?(session: SessionState): Promise<string | null>
  /** Looks at the plan that an agent has written. Left out: the template has none. */
  checkPlan?(): Promise<PlanProblems>
  /** Tools of its own that its agents may call, and it answers; those of codemachine itself cannot be replaced. */
  readonly tools?: readonly AnsweredTool[]
  /** The prompt of an agent that is given work. Left out: as it is at that moment. */
  promptOf?(agent: Agent): Promise<AgentPrompt>
  /**
   * The agents that can be given work though only a prompt in `.codemachine/agents` says that there are any. Left out: those
   * of the setup.
   */
  ownAgents?(): readonly Agent[]
}

/**
 * Calls something of a template. Throws a `TemplateError` that names it for whatever it throws but a `UserError`.
 * @param name that of the template
 * @param where what was called, such as `next`
 */
export function inTemplate<T>(name: string, where: string, call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw templateError(name, where, error)
  }
}

/** The same of a call that takes time. */
export async function inEffect<T>(name: string, where: string, call: () => T): Promise<Awaited<T>> {
  try {
    return await call()
  } catch (error) {
    throw templateError(name, where, error)
  }
}

/** What is thrown for what a template has thrown. */
export function templateError(name: string, where: string, error: unknown): Error {
  if (error instanceof UserError) return error
  return new TemplateError(`the template "${name}" failed in \`${where}\`: ${messageOf(error)}`, { cause: error })
}
