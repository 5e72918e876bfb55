import { join } from 'node:path'
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
import type { AgentBook } from './delegation/agent-request.ts'
import type { PersonAsked } from './person.ts'
import { type Outputs, openOutputs } from './records/outputs.ts'
import { openPlanBefore, type PlanBefore } from './records/plan-before.ts'
import type { Records } from './records/records.ts'
import type { SessionLog } from './session-log.ts'
import type { ShellMeans } from './shell/session-shell.ts'

/** Limits at which a session stops, waits or switches to another engine. */
export interface RunnerPolicy {
  /** Time for an agent's safe stop at a limit, ms. */
  graceMs: number
  /** Longest wait, and longest time of failures in a row, ms. */
  maxWaitMs: number
  /** Time without a watcher after which the default of a hold or a decision applies, ms. */
  decideAfterMs: number
  /** Usable percentage of the account's usage window, 0 to 100; null: all. */
  maxUsage: number | null
  /** Rounds without progress before the first remedy. */
  stallRounds: number
  /** Engines to use when the usage window of its engine is full. */
  fallback: FallbackTerms
}

/** Means for agents that work for the agents of rounds. */
interface AgentMeans {
  book: AgentBook
  /** Real path of the work directory. */
  directory: string
  platform: NodeJS.Platform
  /** Most agents that work at the same time. */
  atOnce: number
}

/** How one run of a shell line ended. */
export type LineEnd = (
  | { kind: 'exited'; exitCode: number }
  | { kind: 'timed-out' }
  | { kind: 'broken-off' }
  | { kind: 'not-started'; problem: string }
) & {
  /** The last lines of its output, preceded by earlier lines that name a failure. */
  output: string
  durationMs: number
}

/** The hooks of a session, and what runs them. */
export interface HookMeans {
  /** Hooks in the order in which they run. */
  hooks: readonly Hook[]
  /** Runs a hook. Each end of the hook is a value; an end never rejects. */
  run(
    hook: Hook,
    on: { variables: Readonly<Record<string, string>>; signal: AbortSignal; timeoutMs: number },
  ): Promise<LineEnd>
}

/** Watchers of a waiting session: on its own screen, or from another process. */
export interface Audience {
  /** True if that does not change during the run. */
  readonly isForGood: boolean
  /** Resolves with true if somebody watches now. */
  isAttached(): Promise<boolean>
  /** Aborted when a watcher attaches; then replaced by a new signal. */
  readonly changed: AbortSignal
}

/** Everything that a session needs to run. */
export interface RunnerOptions {
  log: SessionLog
  template: Template
  engines: Engines
  providers: Providers
  memory: Memory
  /** Memory files of its scopes; null: the session has no scopes. */
  scopes: ScopeFiles | null
  /** Files for people in its folder in the work directory; null: it has none. */
  folder: FolderFiles | null
  /** Files of the person that its rounds may not change; undefined: not checked. */
  personsFiles?: PersonsFiles
  workTree: WorkTree
  /** Resolves with true if the disk of the work directory is full. */
  lacksRoom(): Promise<boolean>
  guard: RepositoryGuard
  /** Effects for proofs; null: the session keeps and proves nothing, and no round may claim *done*. */
  means: ProofEnvironment | null
  /** Hooks of the session; undefined: none. */
  hooks?: HookMeans
  agents: AgentMeans
  /** Returns the absolute paths that no agent's command may read or create now: the project's secrets. */
  deniedPaths(): readonly string[]
  /** Runs commands with secrets for its agents; null: none can ask for one. */
  shell: ShellMeans | null
  /** The current policy. */
  policy: RunnerPolicy
  /** Journals changed settings. The session calls it before each step, so it is cheap without a change. */
  takeSettings(log: SessionLog): Promise<void>
  /** Root of codemachine's records, where no step may write. */
  recordsRoot: string
  /** Path of the note on a set of files that is being written; undefined: none. */
  writing?: string
  /** Directory of the records `001.ndjson`, …. */
  roundsDirectory: string
  /**
   * Called with each line for the record of its own rounds, and of the work beside them (`beside`: its name), not of a review
   * or of another agent. Undefined: not called.
   */
  onRecord?(round: number, line: string, beside?: string): void
  /** Outputs of its steps. */
  outputs: Outputs
  /** Keeps the plan from before its last change. */
  planBefore: PlanBefore
  /** Removes secrets from everything that is kept. */
  redactor: Redactor
  clock: Clock
  /** Returns a random number from 0 to 1. */
  random(): number
  /** Returns true for a codex warning that codemachine itself caused; nobody has to see it. */
  isUsual(warning: string): boolean
  /** Returns new remarks for a person, one sentence each, each only once. */
  takeRemarks(): readonly string[]
  /** Returns command lines of leftover processes that were ended since the last call; undefined: none are ended. */
  takeEnded?(): readonly string[]
  /** True if a person can be asked to decide; otherwise the default applies at once. */
  canAsk: boolean
  audience: Audience
  /** Requests of a person to the running session. */
  asked: PersonAsked
  /**
   * Called once with the state after the end, before the end is journaled. Resolves with another outcome if, for example,
   * the certificate cannot be written; null: no change.
   */
  beforeEnd(ended: SessionState): Promise<SessionOutcome | null>
}

/** Returns the options of a session that follow from its records. */
export function optionsOfRecords(
  { root, sessionFolder }: Pick<Records, 'root' | 'sessionFolder'>,
  id: string,
): Pick<RunnerOptions, 'recordsRoot' | 'roundsDirectory' | 'outputs' | 'planBefore'> {
  const folder = sessionFolder(id)
  return {
    recordsRoot: root,
    roundsDirectory: join(folder, 'rounds'),
    outputs: openOutputs(folder),
    planBefore: openPlanBefore(folder),
  }
}

/** Options of a session that has only rounds: it keeps no files, looks at none, and proves nothing. */
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

/** Detects if a round changed the work tree. */
export interface WorkTree {
  /**
   * Returns the fingerprint of the work tree: a git tree hash. Throws `GitStopped` once the signal is aborted.
   * @param how `anew`: with nothing taken for granted that was known of the last one, as for a claim; left out: by that
   */
  take(signal?: AbortSignal, how?: 'anew'): Promise<string>
  changed(before: string, after: string): Promise<{ paths: readonly string[]; count: number }>
}

/** Restores the repository's own settings if a round changed them. */
export interface RepositoryGuard {
  check(): Promise<{
    restored: readonly string[]
    setAside: string | null
    /** A sentence for each problem that could not be repaired. */
    problems: readonly string[]
  } | null>
}

/** Input of a gate's counter-proof. */
export interface ToCounterProve extends Pick<CounterSearch<WorkChange>, 'failedBefore' | 'ofGates' | 'mostMs'> {
  /** Tree at the start of the work; null if it is not kept. */
  start: string | null
  /** The claimed tree. */
  tree: string
  /** Reported number of tests: now, and the highest earlier number; null: not reported. */
  tests: { now: number | null; most: number | null; failed?: number }
  signal: AbortSignal
}

/** The place in which a gate runs. */
interface ProofPlace {
  /** Takes the fingerprint before and after, no longer than the session may take. */
  workTree: WorkTree
  /** The current fingerprint. */
  tree: string
  /** Aborted when the gate must be interrupted. */
  signal: AbortSignal
}

/** The effects that proving a claim needs: running gates, keeping savepoints, comparing trees, preparing a review. */
export interface ProofEnvironment {
  /**
   * Runs a gate on this work tree, in the sandbox of the rounds. `start`: tree at the start of the work, null if not kept.
   * `hasFailedHere`: on these very files. Each end of the gate is a result; an end never rejects.
   */
  runGate(
    gate: Gate,
    on: ProofPlace & { when: GateTime; start: string | null; hasFailedHere: boolean; hasPassedAtStart: boolean },
  ): Promise<RanGate>
  /** Runs a template's command once, like a gate; an end never rejects. `output`: up to 16,000 characters. */
  runCommand(
    command: Pick<Gate, 'name' | 'run' | 'timeoutMs' | 'network'> & { readOnly?: true },
    on: ProofPlace,
  ): Promise<Omit<RanGate, 'gate'>>
  /** Stores a work tree as a savepoint; null if that failed, after a warning. */
  keepSavepoint(of: {
    session: string
    round: number
    tree: string
    /** Aborts it with `GitStopped`. */
    signal?: AbortSignal
  }): Promise<Pick<
    EventOf<'savepoint'>,
    'commit' | 'tree' | 'changes' | 'head' | 'commits' | 'uncommitted' | 'notLookedAt'
  > | null>
  /** Returns the files of a tree that another tree changes or deletes; null: unknown. */
  lost(before: string, after: string): Promise<readonly string[] | null>
  /** Returns the protected files that differ between two trees. */
  changedProtected(
    gates: readonly Gate[],
    before: string,
    after: string,
  ): Promise<Pick<EventOf<'protected-changed'>, 'files' | 'count'>>
  /** Returns the gates' configuration that differs between two trees; `programs`: the earlier programs, null: unknown. */
  configuration(
    gates: readonly Gate[],
    before: string,
    after: string,
    programs: string | null,
  ): Promise<Pick<EventOf<'gate-configuration'>, 'files' | 'count' | 'digest'>>
  /** Runs a passing gate on a tree without the work, in a separate checkout. An end never rejects; null: interrupted. */
  counterProof(gate: Gate, of: ToCounterProve): Promise<CounterProof | null>
  /** Returns a hash of the programs that scripts in the work directory find first. */
  programs(): Promise<string>
  /** Returns the thread and the input of a review of this tree. */
  reviewer(state: SessionState, tree: string): Promise<{ thread: ThreadSpec; input: string }>
  /** Returns the thread of the contract's author, or of the agent that writes wrong versions. */
  contractThread(role: 'author' | 'control', terms: ProveTerms): ThreadSpec
  /**
   * Runs a check of the contract on a copy of a tree outside of the work directory. Each end is a result. A check that fails
   * before the work is tested for whether it can run at all. `failedHere`: its failure on this very tree before; null: none.
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
   * Applies a wrong version to a copy of a tree, and runs the checks of its sentence until one fails. Then runs checks of
   * other sentences until one passes. Null if interrupted.
   */
  tryControl(
    sentence: Sentence,
    control: Control,
    on: { tree: string; bystanders: readonly CheckOfSentence[]; mostMs: number; signal: AbortSignal },
  ): Promise<Pick<EventOf<'control-tried'>, 'result' | 'check' | 'diff' | 'problem'> | null>
}

/** The result of a check of the contract. */
export type CheckCame = Pick<CheckRun, 'status' | 'exitCode' | 'durationMs' | 'output' | 'problem' | 'cannotRun'>

/** The result of a gate, and the fingerprint after its end. */
export type RanGate = GateResult & { treeAfter: string }
