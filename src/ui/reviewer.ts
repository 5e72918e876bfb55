import type { SessionState } from '../session/state.ts'

/** Whether what codex does is the work of a reviewer, and not of a round. */
export function isReviewing({ running, checking }: Pick<SessionState, 'running' | 'checking'>): boolean {
  return running === null && checking?.kind === 'review'
}

/** Whether a reviewer's message is its answer, or the beginning of it: JSON, which is told in words when the review ends. */
export function isReviewAnswer(text: string): boolean {
  return text.trimStart().startsWith('{')
}
