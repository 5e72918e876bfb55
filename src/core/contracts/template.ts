import type { SessionOutcome } from '../events/outcome.ts'
import type { RoundPart } from '../state/plan.ts'
import type { SessionState } from '../state/state.ts'
import type { MemorySnapshot } from './memory.ts'

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
  /** What it may call in codemachine. */
  tools?: readonly HostTool[]
}

/** A tool that codemachine offers to an agent, and answers itself. */
export interface HostTool {
  name: string
  description: string
  /** JSON Schema of its arguments. */
  inputSchema: object
}

interface RoundSpec {
  thread: ThreadSpec
  /** The user input of the turn. */
  input: string
  /** What it is for, where a template has rounds for several things. */
  part?: RoundPart
  /** Whether what the memory files say after it is a claim that all is done; left out: yes. */
  claims?: false
  /** Whether it uses up one of the person's rounds, if it works; left out: yes. */
  isFree?: true
}

/**
 * A round that is to be run. `replan`: one that makes the change of plan which a person has asked for; it runs while the
 * session holds, and does not count.
 */
export interface RoundStep {
  kind: 'round' | 'replan'
  round: RoundSpec
}

/** What a session does next. `check`: codemachine's own look at the plan, or at the tasks in it. */
type Step = RoundStep | { kind: 'check'; check: 'plan' | 'tasks' } | { kind: 'end'; outcome: SessionOutcome }

/** Decides what a session does next; touches nothing. */
export interface Template {
  readonly name: string
  /** What comes next, given what has happened and what the memory files say now. Pure. */
  next(session: SessionState, memory: MemorySnapshot): Step
  /** The thread of the next round, as far as it is known before `next` is asked: it is started ahead. Pure. */
  ahead(session: SessionState): ThreadSpec | null
}
