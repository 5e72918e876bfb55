import type { WindDownLimit } from '../../core/events/outcome.ts'
import type { TemplateKind } from '../../core/template.ts'

/**
 * The `agent` template: one agent does one thing in one round, and its last message is the answer. It stores the limit that
 * interrupted the round.
 */
export const agentKind: TemplateKind<{ stoppedFor: WindDownLimit | null }> = {
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
