import type { ThreadSpec } from '../../core/engine.ts'
import type { SessionOutcome, WindDownLimit } from '../../core/events/outcome.ts'
import type { EndedRound, SessionState } from '../../core/state/state.ts'
import type { Template, TemplateKind } from '../../core/template.ts'

/** What a call keeps. */
interface CallWork {
  /** The limit for which its round had to come to a safe stop; null if it had not. */
  stoppedFor: WindDownLimit | null
}

/** The `agent` template: one agent does one thing in one round, and its last message is the answer. */
export const agentKind: TemplateKind<CallWork> = {
  name: 'agent',
  description: 'one agent does one thing, and its answer is printed',
  command: 'codemachine --agent <name> "…"',
  defaultRounds: () => 1,
  parts: {
    task: { words: 'task', claims: false, free: false, countsForStall: false, delegates: false, keepsWords: 400 },
  },
  hasPlan: false,
  memory: 'none',
  isCall: true,
  hasPlainState: true,
  first: () => ({ stoppedFor: null }),
  fold(own, event) {
    if (event.type === 'round-started') return { stoppedFor: null }
    return event.type === 'winding-down' ? { stoppedFor: event.limit } : own
  },
  open: async setup => await (await import('./effects.ts')).openAgent(setup),
}

/**
 * What comes next in a call: its round, which is tried again as long as it has used up nothing, then the end.
 * @param input the user input of the round
 */
export function nextOfCall(thread: ThreadSpec, input: string): Pick<Template, 'next' | 'ahead'> {
  return {
    next(session) {
      const { last } = session
      // One that a limit broke off is not tried again: before a round the runner finds that it is reached.
      const isDue = last === null || !last.counts || last.outcome.class === 'interrupted'
      if (isDue) return { kind: 'round', round: { thread, input, part: 'task', tellsGoal: true } }
      return { kind: 'end', outcome: outcomeOf(last, session) }
    },
    ahead: ({ last }) => (last === null ? thread : null),
  }
}

function outcomeOf({ outcome }: EndedRound, session: SessionState): SessionOutcome {
  if (outcome.class !== 'worked') {
    return { kind: 'needs-person', reason: outcome.message ?? `The round ended: ${outcome.class}.`, hint: null }
  }
  const { stoppedFor } = session.work as CallWork
  switch (stoppedFor) {
    case null:
    case 'round':
      return { kind: 'answered' }
    case 'usage':
      return { kind: 'needs-person', reason: 'The usage limit is used as far as it may be.', hint: null }
    default:
      return { kind: 'limit', limit: stoppedFor }
  }
}
