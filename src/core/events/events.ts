import type * as v from 'valibot'
import type { claimEvent } from './claim.ts'
import type { contractEvent } from './contract.ts'
import type { fileEvent } from './files.ts'
import type { Item } from './items.ts'
import type { lifecycleEvent } from './lifecycle.ts'
import type { planEvent } from './plan.ts'
import type { roundEvent } from './round.ts'
import type { shellEvent, stepEvent } from './step.ts'

/**
 * Everything that can happen in a session and is kept: the journal is a list of these. Each is written once, as a schema:
 * its type, its check (`checks.ts`) and its rows in docs/reference/events.md, which has the tree of their order, follow from it.
 */
export type SessionEvent =
  | LifecycleEvent
  | RoundEvent
  | StepEvent
  | ShellEvent
  | FileEvent
  | PlanEvent
  | ClaimEvent
  | ContractEvent

/** The event of one type; of several, a union. */
export type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** Events of the session as a whole: it begins, waits, is held, goes on, ends. */
export type LifecycleEvent = v.InferOutput<typeof lifecycleEvent>
/** Events of a round, from its start to its end. */
export type RoundEvent = v.InferOutput<typeof roundEvent>
/** Events of the steps of a template that are no rounds. */
export type StepEvent = v.InferOutput<typeof stepEvent>
/** Events of the commands that codemachine runs for agents, and of the secrets that these need. */
export type ShellEvent = v.InferOutput<typeof shellEvent>
/** Events of the files: of the memory, the repository, the work tree. */
export type FileEvent = v.InferOutput<typeof fileEvent>
/** Events of a plan: whether it can be used, its tasks, and the agents that are given work. */
export type PlanEvent = v.InferOutput<typeof planEvent>
/** Events of a claim that the goal is reached: gates, reviews, and the decision. */
export type ClaimEvent = v.InferOutput<typeof claimEvent>
/** Events of the contract: its author, its checks, and the wrong versions that these have to catch. */
export type ContractEvent = v.InferOutput<typeof contractEvent>

/** Settings given by flag or environment. They outlive the process: `resume` applies them again. */
export type RunOverrides = EventOf<'session-created'>['said']
/** A text that a session began with, which its records keep. */
export type KeptText = NonNullable<EventOf<'session-created'>['kept']>[number]
/** What is tried when rounds make no progress. */
export type StallRemedy = EventOf<'stuck'>['remedy']
/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export type TokenCounts = EventOf<'usage'>['total']
/** How one work tree differs from another. */
export type TreeChanges = EventOf<'savepoint'>['changes']
/** Why a done claim was refused. */
export type RefusalReason = EventOf<'done-refused'>['reason']

/** One line of the journal and of `--json`. `at` is ISO 8601 in UTC with ms. */
export type Recorded<E extends SessionEvent = SessionEvent> = E extends SessionEvent
  ? { v: 1; at: string; session: string } & E
  : never

/** The line of one type of event; of several, a union. */
export type RecordedOf<T extends Recorded['type']> = Extract<Recorded, { type: T }>

/** Events for views while a session runs: never journaled, never in `--json`. */
export type LiveEvent =
  /** Comes once a minute while something is waited for. */
  | { type: 'still-waiting'; leftMs: number }
  /** `instance`: the agent whose it is, if that is not the round's own. */
  | { type: 'item-started'; round: number; item: Item; instance?: string }
  | {
      type: 'text-delta'
      round: number
      item: string
      source: 'agent-message' | 'reasoning' | 'plan'
      text: string
      instance?: string
    }
  | { type: 'output-delta'; round: number; item: string; text: string; instance?: string }
