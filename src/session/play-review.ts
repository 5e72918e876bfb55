import type { PreparedRound } from './engine.ts'
import type { Item } from './items.ts'
import { WIND_DOWN_REVIEW } from './notices.ts'
import type { RoundOutcome } from './outcome.ts'
import { REVIEW_SCHEMA } from './read-review.ts'
import { playRound, type RoundPlayOptions } from './round-play.ts'

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
