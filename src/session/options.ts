import type { Clock } from '../base/clock.ts'
import type { Engines, ThreadSpec } from '../core/engine.ts'
import type { EventOf } from '../core/events/events.ts'
import type { Gate, GateResult, GateTime, SessionOutcome } from '../core/events/outcome.ts'
import type { CheckOfSentence, CheckRun, Control, ProveTerms, Sentence } from '../core/rules/contract.ts'
import type { FallbackTerms } from '../core/rules/fallback.ts'
import type { CounterProof, CounterSearch, WorkChange } from '../core/rules/proof/counter-proof.ts'
import type { Hook } from '../core/shapes/hook.ts'
import { type FolderFiles, type Memory, NO_MEMORY, type PersonsFiles, type ScopeFiles } from '../core/shapes/memory.ts'
import type { Providers } from '../core/shapes/provider.ts'
import type { SessionState } from '../core/state/state.ts'
import type { Template } from '../core/template.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { AgentBook } from './delegation/delegation.ts'
import type { PersonAsked } from './person.ts'
import type { Outputs } from './records/outputs.ts'
import type { PlanBefore } from './records/plan-before.ts'
import type { SessionLog } from './session-log.ts'
import type { ShellMeans } from './shell/session-shell.ts'

/** Where a session stops, waits and turns to other means. */
export interface RunnerPolicy {
  /** What an agent gets to come to a safe stop when a limit is reached, ms. */
  graceMs: number
  /** The longest wait, and the longest time that failures in a row may take, ms. */
  maxWaitMs: number
  /** After this long without anybody who sees it the default of a hold or a decision is taken, ms. */
  decideAfterMs: number
  /** The part of the account's usage window that may be used, 0 to 100; null: all. */
  maxUsage: number | null
  /** Rounds without progress before something is done about it. */
  stallRounds: number
  /** On what it goes on where the usage window of its engine is full. */
  fallback: FallbackTerms
}

/** With what other agents work for those of the rounds. */
interface AgentMeans {
  book: AgentBook
  /** The work directory, a real path. */
  directory: string
  platform: NodeJS.Platform
  /** How many may work at once. */
  atOnce: number
}

/** How one run of a shell line ended. */
export type LineEnd = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & {
  /** The last lines of what it printed, below those before that name a failure. */
  output: string
  durationMs: number
}

/** The hooks of a session, and what runs them. */
export interface HookMeans {
  /** In the order in which they run. */
  hooks: readonly Hook[]
  /** Every end of one is a value; never rejects for one. */
  run(
    hook: Hook,
    on: { variables: Readonly<Record<string, string>>; signal: AbortSignal; timeoutMs: number },
  ): Promise<LineEnd>
}

/** Who sees a session wait for a person: on its own screen, or from another process. */
export interface Audience {
  /** Whether that does not change while the run lasts. */
  readonly isForGood: boolean
  /** Whether somebody does now. */
  isAttached(): Promise<boolean>
  /** Aborted when somebody comes; another one after that. */
  readonly changed: AbortSignal
}

/** What a session is run with. */
export interface RunnerOptions {
  log: SessionLog
  template: Template
  engines: Engines
  providers: Providers
  memory: Memory
  /** The memory files of its scopes; null for a session that can have none. */
  scopes: ScopeFiles | null
  /** What it keeps for people in its folder in the work directory; null for a session that has none. */
  folder: FolderFiles | null
  /** The files of the person that its rounds may not change; left out: nobody looks. */
  personsFiles?: PersonsFiles
  workTree: WorkTree
  /** Whether the disk of the work directory is full. */
  lacksRoom(): Promise<boolean>
  guard: RepositoryGuard
  /** Null for a session of which nothing is kept and nothing is proved: none of its rounds may claim that all is done. */
  means: ProofEnvironment | null
  /** Left out: it has none. */
  hooks?: HookMeans
  agents: AgentMeans
  /** Absolute paths that no command of an agent may read or make, as of now: where the secrets of the project are. */
  deniedPaths(): readonly string[]
  /** What runs the commands that its agents want run with secrets; null: none of them can. */
  shell: ShellMeans | null
  /** As it counts now. */
  policy: RunnerPolicy
  /** Journals what the settings say differently by now. Called before each step, so cheap where nothing has changed. */
  takeSettings(log: SessionLog): Promise<void>
  /** The records of codemachine, where no step writes. */
  recordsRoot: string
  /** Where a set of files is noted while it is written; left out: nowhere. */
  writing?: string
  /** Where `001.ndjson`, … go. */
  roundsDirectory: string
  /** Told each line that goes into the record of a round of its own, not of a review or an agent. Left out: nobody is. */
  onRecord?(round: number, line: string): void
  /** Where what its steps came to is kept. */
  outputs: Outputs
  /** The plan before its last change. */
  planBefore: PlanBefore
  /** Takes secrets out of what is kept. */
  redactor: Redactor
  clock: Clock
  /** A number from 0 to 1, another one each time. */
  random(): number
  /** Whether a warning of codex's is about what codemachine itself has brought about, and nobody has to know. */
  isUsual(warning: string): boolean
  /** What was noticed meanwhile and a person should know, a sentence each; every one is given once. */
  takeRemarks(): readonly string[]
  /** The command lines of what rounds had left running and was ended since the last call; left out: nothing is. */
  takeEnded?(): readonly string[]
  /** Whether somebody is there who can be asked to decide; else a default is taken at once. */
  canAsk: boolean
  audience: Audience
  /** What a person asks of the session meanwhile. */
  asked: PersonAsked
  /**
   * Called once, with the session as it will have ended, before that is journaled. Resolves with how it ends instead, such as a
   * session whose certificate cannot be written; null: as it was to.
   */
  beforeEnd(ended: SessionState): Promise<SessionOutcome | null>
}

/** Of a session that has nothing but its rounds: no file is kept of it or looked at, and nothing of it is proved. */
export const ROUNDS_ALONE = {
  memory: NO_MEMORY,
  scopes: null,
  folder: null,
  workTree: { take: async () => '', changed: async () => ({ paths: [], count: 0 }) },
  guard: { check: async () => null },
  means: null,
  shell: null,
  takeSettings: async () => {},
  random: Math.random,
  isUsual: () => false,
} satisfies Partial<RunnerOptions>

/** What tells whether a round changed the work tree. */
export interface WorkTree {
  /**
   * The fingerprint of the work tree now: a git tree hash. Throws `GitStopped` once the signal is aborted.
   * @param how `anew`: with nothing taken for granted that was known of the last one, as for a claim; left out: by that
   */
  take(signal?: AbortSignal, how?: 'anew'): Promise<string>
  changed(before: string, after: string): Promise<{ paths: readonly string[]; count: number }>
}

/** What puts the repository's own settings back if a round changed them. */
export interface RepositoryGuard {
  check(): Promise<{
    restored: readonly string[]
    setAside: string | null
    /** A sentence for each thing that could not be put right. */
    problems: readonly string[]
  } | null>
}

/** What the counter-proof of a gate is made with. */
export interface ToCounterProve extends Pick<CounterSearch<WorkChange>, 'failedBefore' | 'ofGates' | 'mostMs'> {
  /** The tree that the work began with; null if it is not kept. */
  start: string | null
  /** The tree that was claimed. */
  tree: string
  /** How many tests it says it ran now, and the most that it ran earlier; null: it did not say. */
  tests: { now: number | null; most: number | null; failed?: number }
  signal: AbortSignal
}

/** On what a gate is run. */
interface ProofPlace {
  /** What it is looked at with before and after, no longer than the session may take. */
  workTree: WorkTree
  /** Its fingerprint now. */
  tree: string
  /** Aborted when the gate is to be broken off. */
  signal: AbortSignal
}

/** The effects that proving a claim needs: running gates, keeping savepoints, comparing trees, preparing a review. */
export interface ProofEnvironment {
  /**
   * Runs a gate on this work tree, in the sandbox of the rounds. `start`: the tree that the work began with, null if not kept.
   * `hasFailedHere`: on these very files. Every end of the gate is a result; never rejects for one.
   */
  runGate(
    gate: Gate,
    on: ProofPlace & { when: GateTime; start: string | null; hasFailedHere: boolean; hasPassedAtStart: boolean },
  ): Promise<RanGate>
  /** Runs a command of the template as a gate is run, once; never rejects for how it ends. `output`: up to 16,000 characters. */
  runCommand(
    command: Pick<Gate, 'name' | 'run' | 'timeoutMs' | 'network'> & { readOnly?: true },
    on: ProofPlace,
  ): Promise<Omit<RanGate, 'gate'>>
  /** Keeps a work tree as a savepoint; null if that failed, after a warning. */
  keepSavepoint(of: {
    session: string
    round: number
    tree: string
    /** Ends it; `GitStopped` is thrown then. */
    signal?: AbortSignal
  }): Promise<Pick<
    EventOf<'savepoint'>,
    'commit' | 'tree' | 'changes' | 'head' | 'commits' | 'uncommitted' | 'notLookedAt'
  > | null>
  /** The files of a tree that are changed or deleted in another one; null if it cannot be known. */
  lost(before: string, after: string): Promise<readonly string[] | null>
  /** The protected files that differ between two trees. */
  changedProtected(
    gates: readonly Gate[],
    before: string,
    after: string,
  ): Promise<Pick<EventOf<'protected-changed'>, 'files' | 'count'>>
  /** The configuration that gates run through and that differs between two trees; `programs`: those of then, null if not known. */
  configuration(
    gates: readonly Gate[],
    before: string,
    after: string,
    programs: string | null,
  ): Promise<Pick<EventOf<'gate-configuration'>, 'files' | 'count' | 'digest'>>
  /**
   * Runs a gate that passes on a tree without the work, in a checkout of its own. Never rejects for how the gate ends; null
   * if it was broken off.
   */
  counterProof(gate: Gate, of: ToCounterProve): Promise<CounterProof | null>
  /** A hash of the programs that scripts in the work directory find first. */
  programs(): Promise<string>
  /** The thread and the input of a review of this tree. */
  reviewer(state: SessionState, tree: string): Promise<{ thread: ThreadSpec; input: string }>
  /** The thread of who writes the contract, or wrong versions of the work. */
  contractThread(role: 'author' | 'control', terms: ProveTerms): ThreadSpec
  /**
   * Runs a check of the contract on a copy of a tree outside of the work directory. Every end of it is a result. One that fails
   * before the work is looked at for whether it could itself run. `failedHere`: how it failed on this very tree before; null: it did not.
   */
  runCheck(
    of: CheckOfSentence,
    on: {
      tree: string
      when: EventOf<'check-ended'>['when']
      failedHere: CheckCame | null
      timeoutMs: number
      signal: AbortSignal
    },
  ): Promise<CheckCame>
  /**
   * Runs the checks of a sentence on a copy of a tree with a wrong version laid on it, until one fails; then those of others, until
   * one passes. Null if it was broken off.
   */
  tryControl(
    sentence: Sentence,
    control: Control,
    on: { tree: string; bystanders: readonly CheckOfSentence[]; mostMs: number; signal: AbortSignal },
  ): Promise<Pick<EventOf<'control-tried'>, 'result' | 'check' | 'diff' | 'problem'> | null>
}

/** How a check of the contract came out. */
export type CheckCame = Pick<CheckRun, 'status' | 'exitCode' | 'durationMs' | 'output' | 'problem' | 'cannotRun'>

/** What a gate came to, and the fingerprint that was taken when it had ended. */
export type RanGate = GateResult & { treeAfter: string }
