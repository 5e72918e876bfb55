import type { EventOf, Recorded, SessionEvent } from '../../src/core/events/events.ts'
import { countsAsRound, type RoundOutcome } from '../../src/core/events/outcome.ts'
import { fold as foldWith } from '../../src/core/state/fold.ts'
import { emptyState, type SessionState } from '../../src/core/state/state.ts'
import { OWN_TEMPLATES } from '../../src/modes/registry.ts'
import type { Records } from '../../src/session/records/records.ts'

export const SESSION = '20261120_1'
/** When the first of `recorded` events happened; each comes a second after the one before. */
export const FIRST_AT = 1_795_000_000_000

/** Events as the journal holds them, one second apart. */
export function recorded(events: readonly SessionEvent[]): Recorded[] {
  return events.map((event, i) => ({
    v: 1,
    at: new Date(FIRST_AT + i * 1000).toISOString(),
    session: SESSION,
    ...event,
  }))
}

/** The fold as codemachine itself uses it, with its own templates; can be given to `reduce`. */
export function fold(state: SessionState, event: Recorded): SessionState {
  return foldWith(state, event, OWN_TEMPLATES)
}

/** The records of which the journal of every session is the file at this path. */
export function recordsWith(journal: string): Pick<Records, 'journal' | 'templates' | 'answer'> {
  return {
    journal: () => journal,
    answer: (session, question) => `${journal}-${session}-${question}.json`,
    templates: OWN_TEMPLATES,
  }
}

export function foldAll(events: readonly SessionEvent[]): SessionState {
  return recorded(events).reduce(fold, emptyState(SESSION))
}

export const worked: RoundOutcome = { class: 'worked', message: null }

export function created(
  limits: Partial<EventOf<'session-created'>['limits']> = { rounds: 3 },
): EventOf<'session-created'> {
  return {
    type: 'session-created',
    goal: 'build X',
    template: 'goal',
    directory: '/work',
    limits: { rounds: null, timeMs: null, tokens: null, ...limits },
    sandbox: 'workspace-write',
    network: false,
    overrides: [],
    said: {},
    model: null,
    effort: null,
    queued: null,
    host: 'here',
    codemachine: '0.1.0',
  }
}

export function resumed(rounds: number | null = 9): EventOf<'session-resumed'> {
  const limits = { rounds, timeMs: null, tokens: null }
  return { type: 'session-resumed', limits, said: {}, host: 'here', codemachine: '0.1.0' }
}

export function started(round: number): EventOf<'round-started'> {
  return {
    type: 'round-started',
    round,
    agent: 'goal-worker',
    engine: 'codex',
    codex: '0.169.0',
    model: null,
    input: 'Go on.',
  }
}

export function turn(round: number, thread: string): SessionEvent {
  return { type: 'turn-started', round, thread, turn: `${thread}-turn` }
}

/** An agent message. */
export function says(round: number, text: string): SessionEvent {
  return { type: 'item-completed', round, item: { kind: 'agent-message', id: 'm', text, phase: null } }
}

/** A command that has taken so long, ms. */
export function ran(round: number, durationMs: number): SessionEvent {
  const item = { kind: 'command', id: 'c', command: 'make', directory: '/work', exitCode: 0, output: '' } as const
  return { type: 'item-completed', round, item: { ...item, status: 'completed', durationMs } }
}

export function usage(round: number, thread: string, total: number): EventOf<'usage'> {
  const counts = { input: total, cachedInput: 0, output: 0, reasoning: 0, total }
  return { type: 'usage', round, thread, total: counts, last: counts, contextWindow: 258_400 }
}

/** The end of a round; what is not said is that of one that changed a file. */
export function ended(
  round: number,
  outcome: RoundOutcome,
  rest: Partial<Omit<EventOf<'round-ended'>, 'type' | 'round' | 'outcome'>> = {},
): SessionEvent {
  return {
    type: 'round-ended',
    round,
    outcome,
    counts: countsAsRound(outcome.class, false),
    durationMs: 1000,
    tokens: null,
    treeBefore: 'a',
    treeAfter: 'b',
    changed: ['x'],
    changedCount: 1,
    memory: 'm',
    ...rest,
  }
}

export function refused(round: number, detail: string): SessionEvent {
  return { type: 'done-refused', round, reason: 'tree-changed', detail }
}
