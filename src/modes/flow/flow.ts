import type { PartKind } from '../../core/state/state.ts'
import type { TemplateKind } from '../../core/template.ts'
import type { FlowOptions } from './file/plan.ts'
import { flowView } from './view.ts'
import { type FlowWork, firstWork, foldFlow } from './work.ts'

/** A person looks at what an agent said last. */
const WORDS_CHARACTERS = 15_000

const STEP: PartKind = {
  words: 'step',
  claims: false,
  free: false,
  // A step may do all that it has to without changing a file.
  countsForStall: false,
  delegates: false,
  keepsWords: WORDS_CHARACTERS,
}

/** What a round is for: one step, or one of the rounds in which a step is worked on until it is done. */
const PARTS = {
  step: STEP,
  work: { ...STEP, words: 'working on a step', claims: true, countsForStall: true, delegates: true },
} satisfies Record<string, PartKind>

/** Rounds may be broken off, and answers refused, so that this is no bound of the work but one of the time without sense. */
const ROUNDS_OF_A_TRY = 10

/** The `flow` template: the steps of a workflow file, one after the other. */
export const flowKind: TemplateKind<FlowWork> = {
  name: 'flow',
  description: 'the steps of a workflow file, one after the other',
  command: 'codemachine flow run <file>',
  defaultRounds: options =>
    ((options as Partial<FlowOptions> | undefined)?.steps ?? []).reduce(
      (sum, { retries, rounds }) => sum + (1 + retries) * rounds * ROUNDS_OF_A_TRY,
      ROUNDS_OF_A_TRY,
    ),
  parts: PARTS,
  hasPlan: false,
  memory: 'session',
  hasOwnCommand: true,
  hasPlainState: true,
  first: firstWork,
  fold: foldFlow,
  view: flowView,
  open: async setup => await (await import('./effects.ts')).openFlow(setup),
}
