import type { MemorySnapshot } from '../workspace/memory.ts'
import type { SessionOutcome } from './outcome.ts'
import type { SessionState } from './state.ts'

/** What a round's thread is started with: all that can be known before the round before it has ended. */
export interface ThreadSpec {
  /** Name of the agent, as in `config/*.agents.js`. */
  agent: string
  developerInstructions: string
  model: string | null
  effort: string | null
}

export interface RoundSpec {
  thread: ThreadSpec
  /** The user input of the turn. */
  input: string
}

/** What a session does next. `gates` and `ask` join with the parts that carry them out. */
type Step = { kind: 'round'; round: RoundSpec } | { kind: 'end'; outcome: SessionOutcome }

/** Decides what a session does next; touches nothing. */
export interface Template {
  readonly name: string
  /** What comes next, given what has happened and what the memory files say now. Pure. */
  next(session: SessionState, memory: MemorySnapshot): Step
  /** The thread of the round after the running one, if it is known already: it is started ahead. Pure. */
  ahead(session: SessionState): ThreadSpec | null
}
