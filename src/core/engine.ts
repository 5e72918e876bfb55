import type { Clock } from '../base/clock.ts'
import { UserError } from '../base/errors.ts'
import { nearestName } from '../base/text.ts'
import type { EventOf, LiveEvent, SessionEvent } from './events/events.ts'
import type { RoundOutcome } from './events/outcome.ts'
import type { ProvidersByName } from './shapes/provider.ts'
import type { SandboxChoice } from './shapes/sandbox.ts'
import { loginOfEngine } from './state/usage.ts'

/** Events that an engine reports during a round. */
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

/** Why a sandbox starts nothing (a sentence), and the remedy (a sentence). */
export interface SandboxProblem {
  problem: string
  mend: string
}

/** Settings of a round's thread: all that is known before the previous round has ended. */
export interface ThreadSpec {
  /** Name of the agent, as in `config/*.agents.js`. */
  agent: string
  developerInstructions: string
  model: string | null
  effort: string | null
  /** True: the thread may write nothing, even if rounds may. Left out: the rights of the rounds. */
  readOnly?: true
  /** True: the engine stores nothing of the thread on disk. Left out: it may. */
  ephemeral?: true
  /** The only folders that it may write in, relative to the work directory. Left out: the rights of the rounds. */
  writable?: readonly string[]
  /** Name of its engine; left out: the run's default (`Engines.usual`). */
  engine?: string
  /** Arguments for the engine `exec`, in addition to its own; other engines ignore them. Left out: none. */
  args?: readonly string[]
  /** Absolute paths and globs (`/work/**\/*.pem`) that it may not read in the sandbox `workspace-write`. Left out: none. */
  unreadable?: readonly string[]
  /** The recording for a replay engine; left out: none, and a replay engine refuses that. */
  recording?: Recording
  /** Provider of its model: one of the settings, or `codex` for codex's configured one. Left out: the session's. */
  provider?: string
  /** True: the agent has no codex shell and no codex file editing. Left out: it has both. */
  noShell?: true
  /** Codemachine tools that it may call. */
  tools?: readonly HostTool[]
}

/** A recording of a round: codex's messages, one per line (`rounds/001.ndjson` of a session, `codex exec --json`). */
export interface Recording {
  /** Relative to the work directory, or absolute. */
  path: string
  /** Its name for people; left out: its path. */
  name?: string
  /** `recorded`: recorded times, if known; `second`, `seconds`: one event per that time; `at-once`: all at once. */
  pace: 'recorded' | 'second' | { seconds: number } | 'at-once'
}

/** A tool that codemachine offers to an agent and answers. */
export interface HostTool {
  name: string
  description: string
  /** JSON Schema of its arguments. */
  inputSchema: object
}

/** Runs rounds: the real codex, a recording, or a program's own engine. */
export interface Engine {
  readonly name: string
  /** The engine's version, as shown and journaled. */
  readonly version: string
  /** True if its agents cannot read the `unreadable` paths of a thread. */
  readonly hidesFiles: boolean
  /** True if a round may end without a usage report; left out: it always reports. */
  readonly mayHideUsage?: true
  /** Returns why it cannot run a thread, a sentence; null: it can. Left out: it runs each thread. */
  refuses?(thread: Partial<ThreadSpec>): string | null
  /** Hosts that its agent and commands reach, as in codex's profiles; `*`: all. Left out: the session's network. */
  readonly reaches?: readonly string[]
  /** True: it only replays. It asks no model and runs nothing, so its rounds prove nothing. */
  readonly replays?: true
  /**
   * Starts the process, handshake and thread of a round in advance. Never throws: `run` returns any failure as its outcome.
   */
  prepare(thread: ThreadSpec): PreparedRound
  /** Starts what the next prepared round needs with any thread. Never throws. Left out: nothing to start. */
  warm?(): void
  /** Ends what `warm` started, unless a round uses it. */
  cool?(): void
  /**
   * Tests if its sandbox can start a command in the work directory; null: it can, or not known. Never rejects. Left out: it
   * has no sandbox of its own.
   */
  trySandbox?(signal: AbortSignal): Promise<SandboxProblem | null>
  /**
   * Resolves when no findable process of ended rounds runs any more. Never rejects. Leaves prepared rounds and running turns
   * alone.
   */
  settle(): Promise<void>
  /** Ends all that remains in the background; resolves when no process is left. */
  close(): Promise<void>
}

/** Abilities of an engine's rounds. A missing ability is declared, and refused with a readable sentence. */
interface EngineAbilities {
  /** A running turn accepts text; else `steer` returns false. */
  steer: boolean
  /** Agents get the tools of their thread; else the round reports that they do not. */
  tools: boolean
  /** Another turn can follow one that the network broke, or that worked (`keepsThread`); else `carryOn` returns null. */
  carryOn: boolean
}

/** Facts about a kind of engine before it is opened. */
export interface EngineInfo {
  /** Its name in threads: small letters, digits and dashes. */
  readonly name: string
  /** `own`: it runs its agents' commands in the sandbox that the person chose. `none`: no sandbox. */
  readonly sandbox: 'own' | 'none'
  readonly can: EngineAbilities
}

/** Settings to open an engine for a run. */
export interface EngineSetup {
  /** The work directory, a real path. */
  directory: string
  /** The sandbox of the rounds. */
  sandbox: SandboxChoice
  /** The person's environment with `CODEX_HOME`; commands of agents get it. */
  env: NodeJS.ProcessEnv
  /** The native codex binary of the run, and its version. */
  binary: { path: string; version: string }
  /** `key=value` pairs that the person passes to codex with `-c`. */
  overrides: readonly string[]
  /** Providers that a thread may name in addition to codex's configured one; left out: none. */
  providers?: ProvidersByName
  /** A folder that codex, but not its commands, searches first for programs; left out or null: none. */
  firstOnPath?: string | null
  /** Key of the records, and this process; both identify its leftover processes. */
  key: string
  owner: { pid: number; startTime: string | null }
  /** Finds orphaned processes of agents that lost their mark; left out or null: not found. */
  controlGroup?: StrayFinder | null
  platform: NodeJS.Platform
  clock: Clock
  codemachineVersion: string
  /** Deadline of a request to codex, ms. */
  requestMs: number
  /** Grace time of a process to end by itself, and then of its leftovers, ms. */
  endMs: number
  /** An engine counts as hung after so long without a message, or with only one command running. Ms. */
  silenceMs: number
  commandMs: number
  /** Longest wait for the network before a turn ends as `network`, ms; left out: no limit. */
  networkMs?: number
  /** Logs a message for debugging. */
  log(message: string): void
  /** Shows a person a sentence; left out: it is logged. */
  onWarning?: ((sentence: string) => void) | undefined
  /** Gets the command lines of a round's leftover processes that were ended; left out: they are logged. */
  onEnded?: ((commands: readonly string[]) => void) | undefined
}

/** Finds and ends processes of agents that carry no mark in their environment. */
export interface StrayFinder {
  /** Reports that agents' commands run from now until the returned function is called. */
  works(): () => void
  /** Ends the found processes, in bounded time; does nothing while any command works. */
  endStrays(): Promise<Record<'ended' | 'left', readonly { pid: number; command: string }[]>>
}

/** A kind of engine that a run can open. */
export interface EngineKind extends EngineInfo {
  /** Called once a run, before any thread needs it; starts nothing. */
  open(setup: EngineSetup): Promise<Engine> | Engine
}

/** Defines an engine for `engines` of `processWorld`. Throws a `UserError` for an invalid name. */
export function defineEngine(kind: EngineKind): EngineKind {
  if (/^[a-z][a-z0-9-]{0,40}$/.test(kind.name)) return kind
  throw new UserError(
    'CM1012',
    `"${kind.name}" cannot be the name of an engine; use lower-case letters, digits and dashes.`,
  )
}

/** All kinds of engine, by name. */
export type EngineKinds = ReadonlyMap<string, EngineKind>

/** The engines of the rounds, by name; settled and closed together. */
export class Engines {
  /** Name of the default engine. */
  readonly usual: string
  readonly #engines: ReadonlyMap<string, Engine>

  constructor(engines: Readonly<Record<string, Engine>>, usual = 'codex') {
    this.#engines = new Map(Object.entries(engines))
    this.usual = usual
  }

  /** Returns the engine of a thread. For an unknown name: an engine whose rounds end with the class `config`. */
  of({ engine: name = this.usual }: Pick<ThreadSpec, 'engine'>): Engine {
    return this.#engines.get(name) ?? missingEngine(name, [...this.#engines.keys()])
  }

  /** The names of all engines. */
  get names(): readonly string[] {
    return [...this.#engines.keys()]
  }

  /** Throws a `UserError` that starts with `place` if the engine is unknown or refuses the thread. */
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

  /** Returns the login whose usage windows a thread uses; null: a provider's, which are not known. */
  loginOf({ engine = this.usual, provider }: Pick<ThreadSpec, 'engine' | 'provider'>): string | null {
    return provider === undefined ? loginOfEngine(engine) : null
  }

  /** Returns the event of a thread for the journal; usage windows get the engine's name. */
  reported(event: EngineEvent, { engine = this.usual }: Pick<ThreadSpec, 'engine'>): EngineEvent {
    return event.type === 'limits' ? { engine, ...event } : event
  }

  /** Returns the engine and hosts of a turn other than a round, for the journal; empty: its thread names none. */
  named({ engine }: Pick<ThreadSpec, 'engine'>): { engine?: string; reaches?: readonly string[] } {
    if (engine === undefined) return {}
    const { reaches } = this.of({ engine })
    return { engine, ...(reaches && { reaches: [...reaches] }) }
  }

  /** Prepares a thread on its engine, see `Engine.prepare`. */
  prepare(thread: ThreadSpec): PreparedRound {
    return this.of(thread).prepare(thread)
  }

  /** See `Engine.warm`, for the default engine. */
  warm(): void {
    this.of({}).warm?.()
  }

  /** See `Engine.trySandbox`, for the default engine. */
  async trySandbox(signal: AbortSignal): Promise<SandboxProblem | null> {
    return (await this.of({}).trySandbox?.(signal)) ?? null
  }

  /** See `Engine.cool`, for all engines. */
  cool(): void {
    for (const engine of this.#engines.values()) engine.cool?.()
  }

  /** See `Engine.settle`, for all engines. */
  async settle(): Promise<void> {
    await Promise.all([...this.#engines.values()].map(engine => engine.settle()))
  }

  /** See `Engine.close`, for all engines, used or not. */
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

/** Returns a round that ends with this outcome as soon as it runs. */
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
  /** Absolute paths of pictures to send with the input, if the engine can; left out: none. */
  images?: readonly string[]
  onEvent(event: EngineEvent): void
  onLive(event: LiveEvent): void
  /** Gets each message of codex as a JSON line, without deltas. */
  onRecord(line: string): void
  /**
   * Answers a call of a thread's tool, or of `ask_person` if codex asks; several may run at once. `over` is aborted when
   * nobody waits for the answer any more. Left out: no answers.
   */
  onToolCall?(call: ToolCall, over: AbortSignal): Promise<ToolAnswer>
  /** JSON Schema of the turn's last message, a request to the model; codemachine checks the answer later. Left out: free text. */
  outputSchema?: object
  /** True: the thread stays after a turn that worked, for `carryOn`. Left out: it does not. */
  keepsThread?: true
  /** Gets the full text of an agent message over 64 Ki characters, before its event. */
  onLongMessage?(item: string, text: string): void
}

/** An agent's call of a host tool. `arguments` come from the model, unchecked. */
export interface ToolCall {
  tool: string
  arguments: unknown
}

export interface ToolAnswer {
  text: string
  /** False: the call was wrong, and the text says why. */
  success: boolean
}

/** The account's usage limits. */
export type UsageLimits = Pick<EventOf<'limits'>, 'primary' | 'secondary' | 'credits'>

/** Model and effort of a thread, as reported by codex. */
export type ModelInUse = Pick<EventOf<'turn-started'>, 'model' | 'effort'>

/** A prepared thread. Its one owner runs it at most once, and finally discards it. */
export interface PreparedRound {
  readonly thread: ThreadSpec
  /** True: no turn can follow, so nothing can be continued. Left out: `carryOn` tells. */
  readonly isOver?: boolean
  /** Resolves with the account's usage now; null: not known. Never rejects. */
  limits(): Promise<UsageLimits | null>
  /** Runs the turn; resolves with its outcome, even after a failure. */
  run(run: RoundRun): Promise<RoundOutcome>
  /**
   * Runs another turn in the thread after one that ended as `network`: codex has its work. With `RoundRun.keepsThread`, also
   * after `worked`. Null: the thread is gone. After any other class the thread is discarded.
   */
  carryOn(input: string): Promise<RoundOutcome | null>
  /** Adds text, and pictures (see `RoundRun.images`), to the running turn; false: no turn accepts it. */
  steer(text: string, images?: readonly string[]): Promise<boolean>
  /** Ends the running turn early; `run` resolves with `interrupted`. */
  interrupt(): Promise<void>
  /** Ends a prepared or kept thread. May be called again. */
  discard(): void
}
