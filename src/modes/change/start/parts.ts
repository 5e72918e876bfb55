import type { ModeParts } from '../../../project/modes.ts'
import type { ChangeOptions } from '../work.ts'
import { optionsAtBegin } from './options.ts'

/** What changes bring to a project. */
export const changeParts: ModeParts = {
  optionsAtBegin,
  optionsForPlan: acceptsPlan => ({ review: acceptsPlan ? 'auto' : 'manual' }) satisfies Partial<ChangeOptions>,
}
