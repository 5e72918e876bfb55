import type { Clock } from '../base/clock.ts'
import type { Engines } from '../core/engine.ts'
import type { SessionOutcome } from '../core/events/outcome.ts'
import type { FolderFiles, Memory, PersonsFiles, ScopeFiles } from '../core/shapes/memory.ts'
import type { Providers } from '../core/shapes/provider.ts'
import type { SessionState } from '../core/state/state.ts'
import type { Template } from '../core/template.ts'
import type { Redactor } from '../secrets/redactor.ts'
import type { AgentBook } from './delegation/delegation.ts'
import type { PersonAsked } from './person.ts'
import type { RepositoryGuard, WorkTree } from './proof/claim.ts'
import type { ProofEnvironment } from './proof/gates.ts'
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
  agents: AgentMeans
  /** Absolute paths that no command of an agent may read or make, as of now: where the secrets of the project are. */
  closed(): readonly string[]
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
