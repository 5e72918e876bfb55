import type { GateResult, GateTime } from './gate.ts'
import type { RoundOutcome } from './outcome.ts'
import type { Finding, ReviewAnswer, ReviewCause } from './review.ts'
import type { TokenCounts } from './token-counts.ts'

/** Why a done claim was not believed. */
export type RefusalReason =
  | 'tasks-left'
  | 'progress-left'
  | 'tree-changed'
  | 'memory-broken'
  | 'round-not-completed'
  | 'gate-failed'
  | 'review-findings'
  | 'person-said-more'

/** What happens to a claim that the goal is reached: gates, reviews, and what is decided. */
export type ClaimEvent =
  /** `round`: the one that ended last. */
  | { type: 'gate-started'; round: number; when: GateTime; gate: string }
  /** `treeAfter`: fingerprint of what it left; left out: it is not known. */
  | ({ type: 'gate-ended'; round: number; when: GateTime; treeAfter?: string } & GateResult)
  | { type: 'done-nominated'; round: number; by: readonly ('MAIN.md' | 'tasks.json')[]; tree?: string }
  | {
      type: 'review-started'
      round: number
      /** From 1, in the session. */
      review: number
      causes: readonly ReviewCause[]
      model: string | null
      effort: string | null
    }
  | {
      type: 'review-ended'
      round: number
      review: number
      /** How its turn ended; anything but `worked` gives no answer. */
      outcome: RoundOutcome
      /** Null if it gave none that can be read. */
      answer: ReviewAnswer | null
      /** Those of the findings that a review before this one had, too. */
      repeated: readonly Finding[]
      /** Fingerprint of what was reviewed. */
      tree: string
      durationMs: number
      tokens: TokenCounts | null
    }
  | { type: 'done-refused'; round: number; reason: RefusalReason; detail: string }
  /** `verified`: gates were there, and every one that is required passed. */
  | { type: 'done-accepted'; round: number; tree: string; verified?: boolean }
