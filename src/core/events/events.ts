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
 * All journaled events of a session. Each is written once, as a schema. Its type, its check (`checks.ts`) and its rows in
 * docs/reference/events.md follow from that schema; that page also shows the order of events.
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

/** The event of one type. For several types: a union. */
export type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** Events of the whole session: start, waits, pauses, resumes, end. */
export type LifecycleEvent = v.InferOutput<typeof lifecycleEvent>
/** Events of a round, from its start to its end. */
export type RoundEvent = v.InferOutput<typeof roundEvent>
/** Events of template steps other than rounds. */
export type StepEvent = v.InferOutput<typeof stepEvent>
/** Events of commands that codemachine runs for agents, and of the secrets that they need. */
export type ShellEvent = v.InferOutput<typeof shellEvent>
/** Events of memory files, the repository and the work tree. */
export type FileEvent = v.InferOutput<typeof fileEvent>
/** Events of a plan: its checks, its tasks, and the agents that get them. */
export type PlanEvent = v.InferOutput<typeof planEvent>
/** Events of a claim that the goal is reached: gates, reviews, and the decision. */
export type ClaimEvent = v.InferOutput<typeof claimEvent>
/** Events of the contract: its author, its checks, and the wrong versions that the checks must catch. */
export type ContractEvent = v.InferOutput<typeof contractEvent>

/** Settings given by flag or environment. They outlive the process: `resume` applies them again. */
export type RunOverrides = EventOf<'session-created'>['said']
/** A text stored in the session's records at its start. */
export type KeptText = NonNullable<EventOf<'session-created'>['kept']>[number]
/** The remedy when rounds make no progress. */
export type StallRemedy = EventOf<'stuck'>['remedy']
/** Token counts of one thread as codex reports them: absolute, cumulative over the thread. */
export type TokenCounts = EventOf<'usage'>['total']
/** Difference between two work trees. */
export type TreeChanges = EventOf<'savepoint'>['changes']
/** Reason why a done claim was refused. */
export type RefusalReason = EventOf<'done-refused'>['reason']

/** One line of the journal and of `--json`. `at` is ISO 8601 in UTC with ms. */
export type Recorded<E extends SessionEvent = SessionEvent> = E extends SessionEvent
  ? { v: 1; at: string; session: string } & E
  : never

/** The journal line of one event type. For several types: a union. */
export type RecordedOf<T extends Recorded['type']> = Extract<Recorded, { type: T }>

/** Events for views while a session runs: never journaled, never in `--json`. */
export type LiveEvent =
  /** Sent once a minute during a wait. */
  | { type: 'still-waiting'; leftMs: number }
  /** `instance`: the agent that the item belongs to. Missing: the round's own agent. */
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
