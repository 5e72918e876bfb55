import type { Clock } from '../base/clock.ts'
import type { Engines, PreparedRound } from '../core/contracts/engine.ts'
import type { Item } from '../core/events/items.ts'
import type { RoundOutcome } from '../core/events/outcome.ts'
import { WIND_DOWN_REVIEW } from '../core/rules/notices.ts'
import { REVIEW_SCHEMA, type ReviewCause, readReview, splitFindings } from '../core/rules/review.ts'
import { roundTokens } from '../core/state/state.ts'
import { pathInside } from '../platform/files.ts'
import type { ProofEnvironment } from './gates.ts'
import { playRound, type RoundPlayOptions } from './play-round.ts'
import type { SessionLog } from './session-log.ts'

export interface ReviewClaimOptions {
  log: SessionLog
  engines: Engines
  clock: Clock
  means: Pick<ProofEnvironment, 'reviewer'>
  play: RoundPlayOptions
}

/** Has the tree that is claimed to be done reviewed, and journals what came of it. Answers how the review's turn ended. */
export async function reviewClaim(
  causes: readonly ReviewCause[],
  tree: string,
  { log, engines, clock, means, play }: ReviewClaimOptions,
): Promise<RoundOutcome> {
  const round = log.state.last?.round ?? 0
  const review = log.state.reviews.answered + 1
  const startedAt = clock.monotonic()
  const { thread, input } = await means.reviewer(log.state, tree)
  const prepared = engines.prepare(thread)
  log.emit({ type: 'review-started', round, review, causes, model: thread.model, effort: thread.effort })
  const { outcome, text } = await playReview(prepared, { round, review, input }, play)
  const read = outcome.class === 'worked' ? readReview(text, path => pathInside(log.state.directory, path)) : null
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

/** A review to be played: of the session's how many-th, after which round, and the input of its turn. */
interface ReviewToPlay {
  round: number
  /** From 1. */
  review: number
  input: string
}

/** How a review's turn ended, and what the reviewer said last; null unless it came to its end and said something. */
interface PlayedReview {
  outcome: RoundOutcome
  text: string | null
}

/**
 * Plays one review, on a thread that was prepared `readOnly`, as a round is played: what the reviewer does is journaled
 * and shown, and recorded as `review-001.ndjson`.
 */
export async function playReview(
  prepared: PreparedRound,
  { round, review, input }: ReviewToPlay,
  options: Omit<RoundPlayOptions, 'windDown' | 'onToolCall'>,
): Promise<PlayedReview> {
  const said: Extract<Item, { kind: 'agent-message' }>[] = []
  const outcome = await playRound(
    prepared,
    { round, input, record: `review-${String(review).padStart(3, '0')}`, outputSchema: REVIEW_SCHEMA },
    {
      ...options,
      windDown: WIND_DOWN_REVIEW,
      onToolCall: async () => ({ text: 'Nobody answers a reviewer: decide for yourself.', success: false }),
      onEvent(event) {
        if (event.type === 'item-completed' && event.item.kind === 'agent-message') said.push(event.item)
        options.onEvent(event)
      },
    },
  )
  if (outcome.class !== 'worked') return { outcome, text: null }
  const last = said.findLast(({ phase }) => phase === 'final-answer') ?? said.at(-1)
  return { outcome, text: last?.text ?? null }
}
