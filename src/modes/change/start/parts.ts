import type { ModeParts } from '../../../project/modes.ts'
import type { ChangeOptions } from '../work.ts'
import { optionsAtBegin } from './options.ts'

/** Parts of the change mode for a project. */
export const changeParts: ModeParts = {
  optionsAtBegin,
  optionsForPlan: acceptsPlan => ({ review: acceptsPlan ? 'auto' : 'manual' }) satisfies Partial<ChangeOptions>,
}
