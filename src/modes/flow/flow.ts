import type { PartKind } from '../../core/state/state.ts'
import type { TemplateKind } from '../../core/template.ts'
import { type FlowOptions, MOST_ITEMS } from './file/plan.ts'
import { flowView } from './view.ts'
import { type FlowWork, firstWork, foldFlow } from './work.ts'

/** A person sees an agent's last words. */
const WORDS_CHARACTERS = 15_000

const STEP: PartKind = {
  words: 'step',
  claims: false,
  free: false,
  // A step may succeed without changing a file.
  countsForStall: false,
  delegates: false,
  keepsWords: WORDS_CHARACTERS,
}

/** Purpose of a round: one step, or part of a step that is worked on until it is done. */
const PARTS = {
  step: STEP,
  work: { ...STEP, words: 'working on a step', claims: true, countsForStall: true, delegates: true },
} satisfies Record<string, PartKind>

/** Interruptions and refused answers also use rounds, so this limit only stops endless repetition. */
const ROUNDS_OF_A_TRY = 10

/** The `flow` template: the steps of a workflow file. */
export const flowKind: TemplateKind<FlowWork> = {
  name: 'flow',
  description: 'the steps of a workflow file',
  command: 'codemachine flow run <file>',
  defaultRounds: options =>
    ((options as Partial<FlowOptions> | undefined)?.steps ?? []).reduce(
      (sum, { retries, rounds, loop }) => sum + (1 + retries) * rounds * ROUNDS_OF_A_TRY * (loop ? MOST_ITEMS : 1),
      ROUNDS_OF_A_TRY,
    ),
  parts: PARTS,
  hasPlan: false,
  memory: 'session',
  hasOwnCommand: true,
  promptNames: 'a workflow',
  hasPlainState: true,
  first: firstWork,
  fold: foldFlow,
  view: flowView,
  open: async setup => await (await import('./effects.ts')).openFlow(setup),
}
