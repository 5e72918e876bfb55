import type { TemplateKind } from '../../core/template.ts'

/** The `goal` template: one agent works on it, round after round, until it is done. */
export const goalKind: TemplateKind<null> = {
  name: 'goal',
  description: 'one agent works on it, round after round, until it is done',
  command: 'codemachine "…"',
  defaultRounds: () => null,
  parts: {},
  hasPlan: false,
  memory: 'session',
  proves: true,
  hasPlainState: true,
  first: () => null,
  fold: own => own,
  open: async setup => (await import('./effects.ts')).openGoal(setup),
}
