import type * as v from 'valibot'
import { messageOf, TemplateError, UserError } from '../base/errors.ts'
import type { EventOf, SessionEvent } from './events/events.ts'
import type { SessionOutcome } from './events/outcome.ts'
import type { AskedAnswer } from './rules/answer.ts'
import type { Decision } from './rules/decision.ts'
import type { Output } from './rules/outputs.ts'
import type { Agent, AgentPrompt, AgentRoster } from './shapes/agent.ts'
import type { MemorySnapshot } from './shapes/memory.ts'
import type { AnsweredTool } from './shapes/tools.ts'
import type { SessionState } from './state/state.ts'
import type { TemplateView } from './view.ts'

/** What a round's thread is started with: all that can be known before the round before it has ended. */
export interface ThreadSpec {
  /** Name of the agent, as in `config/*.agents.js`. */
  agent: string
  developerInstructions: string
  model: string | null
  effort: string | null
  /** Whether its thread may write nothing at all, whatever the rounds may; left out: what the rounds may. */
  readOnly?: true
  /** The folders that it may write in, relative to the work directory, and nothing else; left out: what the rounds may. */
  writable?: readonly string[]
  /** Name of the engine that it runs on; left out: the usual one of the run (`Engines.usual`). */
  engine?: string
  /** Arguments for the engine `exec`, in addition to its own; other engines ignore them. Left out: none. */
  args?: readonly string[]
  /** What it may not read, in the sandbox `workspace-write`: absolute paths, and globs (`/work/**\/*.pem`); left out: nothing. */
  unreadable?: readonly string[]
  /** What an engine that replays plays; left out: nothing, which such an engine refuses. */
  recording?: Recording
  /** The provider of its model: of the settings, or `codex` for what codex is configured with; left out: the session's. */
  provider?: string
  /** Whether its agent has neither codex's own shell nor its way to write files; left out: it has both. */
  noShell?: true
  /** What it may call in codemachine. */
  tools?: readonly HostTool[]
}

/** A recording of a round: what codex sent, a line each (`rounds/001.ndjson` of a session, `codex exec --json`). */
export interface Recording {
  /** Relative to the work directory, or absolute. */
  path: string
  /** What a person is told that it is called; left out: its path. */
  name?: string
  /** As fast as it was recorded, where its lines say when that was; one event a second, or in so many; or all at once. */
  pace: 'recorded' | 'second' | { seconds: number } | 'at-once'
}

/** A tool that codemachine offers to an agent, and answers itself. */
export interface HostTool {
  name: string
  description: string
  /** JSON Schema of its arguments. */
  inputSchema: object
}

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
  beside?: string
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
   * How long it may take, ms. Then its agent is told to come to a safe stop, as at a limit of the session, and is interrupted
   * when it does not: the round ends as `interrupted`, with a message that says so. Left out: as long as the session may.
   */
  timeoutMs?: number
  /**
   * Whether its agent works without tools: each message is a JSON object that names a command, which codemachine runs and
   * answers in the same thread, until one says that it is done, or after so many commands. Left out: one turn.
   */
  stepwise?: { mostCommands: number }
  /** The scope that it works in, which the first such round enters; left out: it works on the goal of the session. */
  scope?: RoundScope
}

/**
 * A part of the session with a done rule of its own: its rounds work on a goal, memory files and gates of their own, and
 * a claim that they make, once it is proved, ends the scope and not the session. Those of the session are set aside meanwhile.
 */
export interface RoundScope {
  /**
   * Tells it apart, and names its folder: letters and digits of any script, and dashes, at most 60. One that is entered
   * again goes on with the memory files that it left.
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
 * happened. `S` is that state. Pure; `open` is where a session of it is carried out.
 */
export interface TemplateKind<S = unknown> {
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
   * the session of the work directory. None of them holds the directory's lock, counts as its newest session, or can be
   * gone on with.
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
   * Whether the template itself says how often a refused claim of its own is mended: such refusals do not end a session as
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
   * The files in which two work trees differ, by their fingerprints, with how many lines were added and removed (null: it is no
   * text), the first 500; none if one of them is not kept any more. Left out: nothing is kept.
   */
  linesChanged?(
    before: string,
    after: string,
    signal: AbortSignal,
  ): Promise<readonly { path: string; added: number | null; removed: number | null }[]>
  /**
   * What its looks run git with: a private git directory of theirs, where agents cannot write and which need not be there
   * yet, and the environment; and what takes the secrets out of a text before it is shortened. Left out: they run none.
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
  return new UserError(`No text "${name}" is kept.`)
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
   * Why an answer that fits its schema cannot be used all the same, for the one who has to mend it: a sentence, or a line for
   * each mistake; null if it can. Asked once, when the answer comes, and journaled (`answer-refused`, or `answer-given` with
   * `judged`): a `fold` judges nothing, for later versions with other rules read the same journal. `session`: as it is then.
   * Pure. Left out: what fits is used.
   */
  answerProblem?(round: RoundSpec, value: unknown, session: SessionState): AnswerProblem | null
  /**
   * The files of the person that none of its rounds may change, relative to the work directory, at most ten of up to 1 MiB: what
   * one makes of them is kept beside, they are put back, and a claim of that round is refused. Pure. Left out: there are none.
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
