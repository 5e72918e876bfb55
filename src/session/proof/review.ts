import type { Clock } from '../../base/clock.ts'
import type { Engines, PreparedRound, ThreadSpec } from '../../core/engine.ts'
import type { RoundOutcome } from '../../core/events/outcome.ts'
import { refusedAnswerNote } from '../../core/rules/answer.ts'
import { WIND_DOWN_REVIEW } from '../../core/rules/notices.ts'
import { REVIEW, REVIEW_SCHEMA, type ReviewCause, readReview, splitFindings } from '../../core/rules/review.ts'
import { inScope } from '../../core/state/scope.ts'
import { roundTokens } from '../../core/state/state.ts'
import { pathInside } from '../../platform/files.ts'
import type { Answers } from '../answers.ts'
import type { ProofEnvironment } from '../options.ts'
import { type EndedTurn, playRound, type RoundPlayOptions } from '../play-round.ts'
import type { SessionLog } from '../session-log.ts'

interface ReviewClaimOptions {
  log: SessionLog
  engines: Engines
  clock: Clock
  means: Pick<ProofEnvironment, 'reviewer'>
  answers: Answers
  /** Returns the thread as it is started, with its provider. */
  threadOf(thread: ThreadSpec): ThreadSpec
  playOf(thread: ThreadSpec): Omit<RoundPlayOptions, 'windDown'>
}

/** Has a claimed tree reviewed and journals the result. Resolves with the outcome of the review's turn. */
export async function reviewClaim(
  causes: readonly ReviewCause[],
  tree: string,
  { log, engines, clock, means, answers, threadOf, playOf }: ReviewClaimOptions,
): Promise<RoundOutcome> {
  const round = log.state.last?.round ?? 0
  const review = log.state.reviews.answered + 1
  const startedAt = clock.monotonic()
  const { thread: wanted, input: matter } = await means.reviewer(log.state, tree)
  const thread = threadOf(wanted)
  const { problem } = log.state.reviews
  const input = problem === null ? matter : `${matter}\n\n${refusedAnswerNote(problem, REVIEW)}`
  const prepared = engines.prepare(thread)
  log.emit({
    type: 'review-started',
    round,
    review,
    causes,
    ...engines.named(thread),
    ...(thread.provider === undefined ? {} : { provider: thread.provider }),
    model: thread.model,
    effort: thread.effort,
    ...inScope(log.state),
  })
  const of = log.state.scope?.name
  const { outcome, message } = await playReview(prepared, { round, review, input, of }, playOf(thread))
  const read = (value: unknown) => readReview(value, path => pathInside(log.state.directory, path))
  const answer = outcome.class === 'worked' ? await answers.takeAnswer(REVIEW, round, message, { read }) : null
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
    ...inScope(log.state),
  })
  return outcome
}

/** A review to play: its number, the round before it, and the input of its turn. */
interface ReviewToPlay {
  round: number
  /** Number of the review in the session, from 1. */
  review: number
  input: string
  /** Name of its scope; undefined: the session itself. */
  of?: string | undefined
}

/**
 * Plays one review like a round, on a thread prepared as `readOnly`. Its record is `review-001.ndjson`, of a scope
 * `review-NAME-001.ndjson`.
 */
export async function playReview(
  prepared: PreparedRound,
  { round, review, input, of }: ReviewToPlay,
  options: Omit<RoundPlayOptions, 'windDown' | 'onToolCall'>,
): Promise<EndedTurn> {
  return await playRound(
    prepared,
    {
      round,
      input,
      record: `review-${of === undefined ? '' : `${of}-`}${String(review).padStart(3, '0')}`,
      outputSchema: REVIEW_SCHEMA,
    },
    {
      ...options,
      windDown: WIND_DOWN_REVIEW,
      onToolCall: async () => ({ text: 'Nobody answers a reviewer: decide for yourself.', success: false }),
    },
  )
}
