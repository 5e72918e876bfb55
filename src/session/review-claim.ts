import type { Clock } from '../base/clock.ts'
import type { Engine } from './engine.ts'
import type { RoundOutcome } from './outcome.ts'
import { playReview } from './play-review.ts'
import type { ProofMeans } from './proof.ts'
import { readReview } from './read-review.ts'
import { type ReviewCause, splitFindings } from './review.ts'
import type { RoundPlayOptions } from './round-play.ts'
import type { SessionLog } from './session-log.ts'
import { roundTokens } from './session-tokens.ts'

export interface ReviewClaimOptions {
  log: SessionLog
  engine: Engine
  clock: Clock
  means: Pick<ProofMeans, 'reviewer'>
  play: RoundPlayOptions
}

/** Has the tree that is claimed to be done reviewed, and journals what came of it. Answers how the review's turn ended. */
export async function reviewClaim(
  causes: readonly ReviewCause[],
  tree: string,
  { log, engine, clock, means, play }: ReviewClaimOptions,
): Promise<RoundOutcome> {
  const round = log.state.last?.round ?? 0
  const review = log.state.reviews.answered + 1
  const startedAt = clock.monotonic()
  const { thread, input } = await means.reviewer(log.state, tree)
  const prepared = engine.prepare(thread)
  log.emit({ type: 'review-started', round, review, causes, model: thread.model, effort: thread.effort })
  const { outcome, text } = await playReview(prepared, { round, review, input }, play)
  const read = outcome.class === 'worked' ? readReview(text, log.state.directory) : null
  const answer = read === null || 'problem' in read ? null : read
  if (read !== null && 'problem' in read) log.emit({ type: 'warning', round, message: read.problem })
  log.emit({
    type: 'review-ended',
    round,
    review,
    outcome,
    answer,
    repeated: answer === null ? [] : splitFindings(log.state.reviews, answer).repeated,
    tree,
    durationMs: Math.round(clock.monotonic() - startedAt),
    tokens: roundTokens(log.state),
  })
  return outcome
}
