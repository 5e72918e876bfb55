import { loadPrompt } from '../base/package-root.ts'
import type { ReviewTerms } from '../session/review.ts'
import type { ThreadSpec } from '../session/template.ts'
import type { Settings } from '../settings/schema.ts'
import { reviewInstructions } from '../templates/review-prompt.ts'

/** The thread of a reviewer of a work directory. What `terms` leaves open is as in the rounds. */
export function reviewThread(
  directory: string,
  terms: ReviewTerms | null,
  { model, effort }: Pick<Settings, 'model' | 'effort'>,
): ThreadSpec {
  return {
    agent: 'reviewer',
    developerInstructions: reviewInstructions(loadPrompt('review'), directory),
    model: terms?.model ?? model,
    effort: terms?.effort ?? effort,
    readOnly: true,
  }
}
