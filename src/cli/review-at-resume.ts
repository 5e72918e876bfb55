import type { ReviewTerms } from '../session/review.ts'
import type { SettingSources } from '../settings/load-settings.ts'
import type { Settings } from '../settings/schema.ts'

/** What is known of the review in a session that goes on. */
interface AtResume {
  /** With what every claim was reviewed until now; null: only one that touched what gates protect. */
  journaled: ReviewTerms | null
  /** What is said now, and where. */
  settings: Pick<Settings, 'review' | 'reviewer'>
  sources: Pick<SettingSources, 'review' | 'reviewer.model' | 'reviewer.effort'>
  /** Whether the files are to count anew (`--reread-gates`). */
  reread: boolean
}

/** With what every claim is reviewed by these settings; null: only one that touches what gates protect. */
export function reviewIn({ review, reviewer }: AtResume['settings']): ReviewTerms | null {
  return review ? reviewer : null
}

/**
 * With what every claim is reviewed from now on. A flag and the environment say it; else a file may add a review, and
 * never take it off, for the rounds could write the project's since. Nor does that file say then who reviews.
 */
export function reviewAtResume({ journaled, settings, sources, reread }: AtResume): ReviewTerms | null {
  const isSaid = ['flag', 'environment'].includes(sources.review.layer)
  const now = reviewIn(settings)
  if (reread || journaled === null || (isSaid && now === null)) return now
  const isFromPerson = (key: 'reviewer.model' | 'reviewer.effort') =>
    ['person', 'environment'].includes(sources[key].layer)
  return {
    model: isFromPerson('reviewer.model') ? settings.reviewer.model : journaled.model,
    effort: isFromPerson('reviewer.effort') ? settings.reviewer.effort : journaled.effort,
  }
}
