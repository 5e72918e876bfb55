import type { LiveEvent, SessionEvent } from './events.ts'
import type { RoundOutcome } from './outcome.ts'
import type { ThreadSpec } from './template.ts'

/** What an engine reports of a running round. */
export type RoundEvent = Extract<
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
  }
>

/** What runs rounds: the real codex today, a recording later. */
export interface Engine {
  readonly name: string
  /** The version of what runs the rounds, as shown and journaled. */
  readonly version: string
  /**
   * Starts what a round needs before it is its turn: process, handshake, thread. Never throws: what went wrong is the
   * outcome of `run`.
   */
  prepare(thread: ThreadSpec): PreparedRound
  /**
   * Resolves when nothing runs any more that rounds which have ended had started, as far as it can be found; never
   * rejects. What is prepared, and a turn that runs, are left alone.
   */
  settle(): Promise<void>
  /** Ends what is still ending in the background; resolves when no process is left. */
  close(): Promise<void>
}

export interface RoundRun {
  round: number
  input: string
  onEvent(event: RoundEvent): void
  onLive(event: LiveEvent): void
  /** What codex sent, one JSON line each, deltas left out. */
  onRecord(line: string): void
}

/** A thread that waits for its turn. One owner: `run` it once or `discard` it. */
export interface PreparedRound {
  readonly thread: ThreadSpec
  /** Runs the one turn; resolves when it has ended, however it ended. */
  run(run: RoundRun): Promise<RoundOutcome>
  /** Adds text to the running turn; false if there is none that takes it. */
  steer(text: string): Promise<boolean>
  /** Ends the running turn early; `run` resolves with `interrupted`. */
  interrupt(): Promise<void>
  /** Ends what was prepared and not run. */
  discard(): void
}
