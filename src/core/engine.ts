import type { Clock } from '../base/clock.ts'
import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/text.ts'
import type { EventOf, LiveEvent, SessionEvent } from './events/events.ts'
import type { RoundOutcome } from './events/outcome.ts'
import type { ProvidersByName } from './shapes/provider.ts'
import type { SandboxChoice } from './shapes/sandbox.ts'
import { loginOfEngine } from './state/usage.ts'

/** What an engine reports of a running round. */
export type EngineEvent = Extract<
  SessionEvent,
  {
    type:
      | 'turn-started'
      | 'item-completed'
      | 'plan-updated'
      | 'usage'
      | 'limits'
      | 'model-rerouted'
      | 'request-answered'
      | 'warning'
      | 'error'
      | 'machine-slept'
  }
>

/** Why a sandbox starts nothing, a sentence, and what a person can do about it, another one. */
export interface SandboxProblem {
  problem: string
  mend: string
}

/** What a round's thread is started with: all that can be known before the round before it has ended. */
export interface ThreadSpec {
  /** Name of the agent, as in `config/*.agents.js`. */
  agent: string
  developerInstructions: string
  model: string | null
  effort: string | null
  /** Whether its thread may write nothing at all, whatever the rounds may; left out: what the rounds may. */
  readOnly?: true
  /** Whether the engine keeps nothing of its thread on the disk; left out: it may. */
  ephemeral?: true
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

/** What runs rounds: the real codex, a recording of it, or what a program brings. */
export interface Engine {
  readonly name: string
  /** The version of what runs the rounds, as shown and journaled. */
  readonly version: string
  /** Whether its agents cannot read what a thread names as `unreadable`. */
  readonly hidesFiles: boolean
  /** Whether a round of it may end without a word of what it used; left out: it tells. */
  readonly mayHideUsage?: true
  /** Why it cannot have a thread, a sentence; null: it can. Left out: it can have each. */
  refuses?(thread: Partial<ThreadSpec>): string | null
  /** Hosts that its agent reaches, and with it its commands, as codex's profiles write them; `*`: all. Left out: its commands have the network of the session. */
  readonly reaches?: readonly string[]
  /** Whether it only shows what happened once: no model is asked and nothing runs, so its rounds prove nothing. */
  readonly replays?: true
  /**
   * Starts what a round needs before it is its turn: process, handshake, thread. Never throws: what went wrong is the
   * outcome of `run`.
   */
  prepare(thread: ThreadSpec): PreparedRound
  /** Starts what the round that is prepared next needs whatever its thread is. Never throws. Left out: there is no such thing. */
  warm?(): void
  /** Ends what `warm` has started, if no round has taken it. */
  cool?(): void
  /**
   * Tries whether its sandbox starts anything in the work directory; null: it does, or that could not be found out. Never
   * rejects. Left out: it has no sandbox of its own.
   */
  trySandbox?(signal: AbortSignal): Promise<SandboxProblem | null>
  /**
   * Resolves when nothing runs any more that rounds which have ended had started, as far as it can be found; never
   * rejects. What is prepared, and a turn that runs, are left alone.
   */
  settle(): Promise<void>
  /** Ends what is still ending in the background; resolves when no process is left. */
  close(): Promise<void>
}

/** What rounds of an engine can do. What one cannot do it declares, and refuses in words that can be read. */
interface EngineAbilities {
  /** A turn that runs takes text; else `steer` answers false. */
  steer: boolean
  /** Agents are offered the tools of their thread; else the round says that they are not. */
  tools: boolean
  /** Another turn in the thread can follow one that the network broke off, or that worked (`keepsThread`); else `carryOn` answers null. */
  carryOn: boolean
}

/** What is known of a kind of engine before it is opened. */
export interface EngineInfo {
  /** By which threads name it: small letters, digits and dashes. */
  readonly name: string
  /** `own`: it keeps what its agents run in the sandbox that the person chose. `none`: nothing does. */
  readonly sandbox: 'own' | 'none'
  readonly can: EngineAbilities
}

/** With what an engine is opened for a run. */
export interface EngineSetup {
  /** The work directory, a real path. */
  directory: string
  /** That of the rounds. */
  sandbox: SandboxChoice
  /** The person's environment, `CODEX_HOME` included: what commands of agents have. */
  env: NodeJS.ProcessEnv
  /** The native codex binary of the run, and its version. */
  binary: { path: string; version: string }
  /** `key=value` pairs that the person hands to codex with `-c`. */
  overrides: readonly string[]
  /** Those that a thread may name, beside what codex is configured with; left out: none. */
  providers?: ProvidersByName
  /** A folder that codex itself searches first for programs, and commands do not; left out or null: none. */
  firstOnPath?: string | null
  /** Key of the records, and this process: by what is left running of it is found. */
  key: string
  owner: { pid: number; startTime: string | null }
  /** Finds what agents have orphaned without the mark that says so; left out or null: it is not found. */
  controlGroup?: StrayFinder | null
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** What a process gets to end by itself, and what it left running then, ms. */
  endMs: number
  /** When an engine counts as hung: nothing came for so long; a command ran, and nothing else was done, for so long. Ms. */
  silenceMs: number
  commandMs: number
  /** How long a turn may wait for the network before it ends as `network`, ms; left out: for ever. */
  networkMs?: number
  /** Told what is of use to debug. */
  log(message: string): void
  /** Told a sentence that a person should know; left out: it is logged. */
  onWarning?: ((sentence: string) => void) | undefined
  /** Told the command lines of what a round had left running and was ended; left out: it is logged. */
  onEnded?: ((commands: readonly string[]) => void) | undefined
}

/** What finds and ends processes that agents have started and that nothing in their environment tells of. */
export interface StrayFinder {
  /** Says that commands of agents run from now on, until the returned function is called. */
  works(): () => void
  /** Ends what is found, in bounded time; nothing while anything works. */
  endStrays(): Promise<Record<'ended' | 'left', readonly { pid: number; command: string }[]>>
}

/** A kind of engine, by which a run opens it. */
export interface EngineKind extends EngineInfo {
  /** Called once for a run, before it is known whether a thread names it; starts nothing. */
  open(setup: EngineSetup): Promise<Engine> | Engine
}

/** A kind of engine as a program brings it along: hand it to `processWorld` as one of `engines`. A `UserError` for a name that no thread can have. */
export function defineEngine(kind: EngineKind): EngineKind {
  if (/^[a-z][a-z0-9-]{0,40}$/.test(kind.name)) return kind
  throw new UserError('CM1012', `No engine can be named "${kind.name}"; use small letters, digits and dashes.`)
}

/** The kinds of engine that there are, by name. */
export type EngineKinds = ReadonlyMap<string, EngineKind>

/** The engines that rounds may run on, by name; they are settled and closed together. */
export class Engines {
  /** The name of the engine of a thread that names none. */
  readonly usual: string
  readonly #engines: ReadonlyMap<string, Engine>

  constructor(engines: Readonly<Record<string, Engine>>, usual = 'codex') {
    this.#engines = new Map(Object.entries(engines))
    this.usual = usual
  }

  /** The engine that a thread runs on. Where there is none of that name, one whose rounds end with the class `config`. */
  of({ engine: name = this.usual }: Pick<ThreadSpec, 'engine'>): Engine {
    return this.#engines.get(name) ?? missingEngine(name, [...this.#engines.keys()])
  }

  /** The names of all. */
  get names(): readonly string[] {
    return [...this.#engines.keys()]
  }

  /** Throws a `UserError` that begins with this place if there is no such engine, or it cannot have such a thread. */
  check(name: string, place: string, thread: Partial<ThreadSpec> = {}): void {
    const engine = this.#engines.get(name)
    const refused =
      engine === undefined ? `there is no engine "${name}"; ${this.#nearest(name)}` : engine.refuses?.(thread)
    if (refused != null) throw new UserError('CM0312', `${place}: ${refused}`)
  }

  #nearest(name: string): string {
    const near = nearestName(name, this.names)
    if (near !== null) return `did you mean "${near}"?`
    return `there are ${this.names.join(', ')}, and the tables [engines.NAME] of your own config.toml.`
  }

  /** The login whose usage windows a thread uses; null: that of a provider, of which nothing is known. */
  loginOf({ engine = this.usual, provider }: Pick<ThreadSpec, 'engine' | 'provider'>): string | null {
    return provider === undefined ? loginOfEngine(engine) : null
  }

  /** What its engine reports of a thread, as it is journaled: usage windows name whose they are. */
  reported(event: EngineEvent, { engine = this.usual }: Pick<ThreadSpec, 'engine'>): EngineEvent {
    return event.type === 'limits' ? { engine, ...event } : event
  }

  /** The engine of a turn that is no round, as it is journaled, with the hosts that it reaches; nothing if its thread names none. */
  named({ engine }: Pick<ThreadSpec, 'engine'>): { engine?: string; reaches?: readonly string[] } {
    if (engine === undefined) return {}
    const { reaches } = this.of({ engine })
    return { engine, ...(reaches && { reaches: [...reaches] }) }
  }

  /** Has the engine of a thread prepare it, as `Engine.prepare`. */
  prepare(thread: ThreadSpec): PreparedRound {
    return this.of(thread).prepare(thread)
  }

  /** As `Engine.warm`, of the engine of a thread that names none. */
  warm(): void {
    this.of({}).warm?.()
  }

  /** As `Engine.trySandbox`, of the engine of a thread that names none. */
  async trySandbox(signal: AbortSignal): Promise<SandboxProblem | null> {
    return (await this.of({}).trySandbox?.(signal)) ?? null
  }

  /** As `Engine.cool`, of all. */
  cool(): void {
    for (const engine of this.#engines.values()) engine.cool?.()
  }

  /** As `Engine.settle`, of all. */
  async settle(): Promise<void> {
    await Promise.all([...this.#engines.values()].map(engine => engine.settle()))
  }

  /** As `Engine.close`, of all: also of those that no thread has named. */
  async close(): Promise<void> {
    await Promise.all([...this.#engines.values()].map(engine => engine.close()))
  }
}

function missingEngine(name: string, known: readonly string[]): Engine {
  const outcome: RoundOutcome = {
    class: 'config',
    message: `There is no engine "${name}"; use ${known.join(', ')}.`,
  }
  return {
    name,
    version: 'none',
    hidesFiles: true,
    prepare: thread => unusableRound(thread, outcome),
    settle: async () => {},
    close: async () => {},
  }
}

/** A round that ends so as soon as it is run. */
export function unusableRound(thread: ThreadSpec, outcome: RoundOutcome): PreparedRound {
  return {
    thread,
    limits: async () => null,
    run: async () => outcome,
    carryOn: async () => null,
    steer: async () => false,
    interrupt: async () => {},
    discard() {},
  }
}

export interface RoundRun {
  round: number
  input: string
  /** Absolute paths of pictures that go with the input, of an engine that can send some; left out: none. */
  images?: readonly string[]
  onEvent(event: EngineEvent): void
  onLive(event: LiveEvent): void
  /** What codex sent, one JSON line each, deltas left out. */
  onRecord(line: string): void
  /**
   * Answers a call of one of the thread's own tools, and of `ask_person` where codex itself asks; several may run at
   * once. `over` is aborted when nobody waits for the answer any more. Left out: nobody answers.
   */
  onToolCall?(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** JSON Schema that the model is asked to fit the last message of the turn to; nothing checks it. Left out: any text. */
  outputSchema?: object
  /** Whether the thread stays after a turn that worked, so that `carryOn` plays another one; left out: it does not. */
  keepsThread?: true
  /** Told, before its event, of a message of the round's own agent that has no room in one (64 Ki characters): all of it. */
  onLongMessage?(item: string, text: string): void
}

/** What an agent calls a host tool with. `arguments` is what the model wrote: not checked. */
export interface ToolCall {
  tool: string
  arguments: unknown
}

export interface ToolAnswer {
  text: string
  /** False: the call was wrong, and the text says how. */
  success: boolean
}

/** The account's usage limits. */
export type UsageLimits = Pick<EventOf<'limits'>, 'primary' | 'secondary' | 'credits'>

/** What a thread works with, as far as codex says it. */
export type ModelInUse = Pick<EventOf<'turn-started'>, 'model' | 'effort'>

/** A thread that waits for its turn. One owner, who runs it once or not at all, and discards it in the end. */
export interface PreparedRound {
  readonly thread: ThreadSpec
  /** Whether no turn of it can follow, so that there is nothing to carry on; left out: `carryOn` tells. */
  readonly isOver?: boolean
  /** What codex says of the account's usage now; null if it cannot say. Never rejects. */
  limits(): Promise<UsageLimits | null>
  /** Runs the one turn; resolves when it has ended, however it ended. */
  run(run: RoundRun): Promise<RoundOutcome>
  /**
   * Another turn in the same thread, after one that ended with the class `network`: codex kept what it had done; or, with
   * `RoundRun.keepsThread`, as `worked`. Null if the thread has gone. After any other class the thread is given up by itself.
   */
  carryOn(input: string): Promise<RoundOutcome | null>
  /** Adds text, and pictures as in `RoundRun.images`, to the running turn; false if there is none that takes it. */
  steer(text: string, images?: readonly string[]): Promise<boolean>
  /** Ends the running turn early; `run` resolves with `interrupted`. */
  interrupt(): Promise<void>
  /** Ends what was prepared, or is kept to be carried on. May be called again. */
  discard(): void
}
