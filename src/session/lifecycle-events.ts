import type { Gate } from './gate.ts'
import type { SessionLimits } from './limits.ts'
import type { RoundOutcome, SessionOutcome, StallReason } from './outcome.ts'
import type { ReviewTerms } from './review.ts'
import type { Said } from './said.ts'

/** What is done about rounds that do not get on. */
export type StallRemedy = 'another-way' | 'more-effort'

/** What happens to a session as a whole: it begins, waits, is held, goes on, ends. */
export type LifecycleEvent =
  | {
      type: 'session-created'
      goal: string
      template: string
      directory: string
      limits: SessionLimits
      sandbox: string
      network: boolean
      model: string | null
      effort: string | null
      /** `key=value` pairs handed to codex. */
      overrides: readonly string[]
      said: Said
      /** What has to pass before done; left out: nothing. */
      gates?: readonly Gate[]
      /** Whether a review has to agree before done, and with what; left out or null: only where a protected file was changed. */
      review?: ReviewTerms | null
      /**
       * Fingerprint that the files which gates protect are compared with: that of a session before it which changed some and
       * was not done; left out: what this one begins with.
       */
      protectFrom?: string
      /** Of a build: whether a person wants to see the plan before it is carried out; left out: no. */
      asksPlan?: boolean
      /** Id of the queued prompt that this session came from; null if it was given on the command line. */
      queued: string | null
      /** Name of the machine. */
      host: string
      codemachine: string
    }
  | {
      type: 'session-resumed'
      limits: SessionLimits
      said: Said
      /** Left out: as before. */
      gates?: readonly Gate[]
      review?: ReviewTerms | null
      host: string
      codemachine: string
    }
  | { type: 'keep-awake'; by: string | null; problem: string | null }
  | {
      type: 'waiting'
      /** The round that starts when the wait is over. */
      round: number
      /** What is waited out: a round that failed, or a usage limit that was seen in time. */
      cause: RoundOutcome
      /** ISO 8601. */
      until: string
    }
  | { type: 'wait-ended'; round: number; reason: 'over' | 'retry' | 'stopped' }
  | { type: 'stop-asked'; now: boolean }
  | { type: 'paused' }
  | { type: 'held' }
  | { type: 'unpaused' }
  | { type: 'interrupt-asked' }
  | { type: 'skip-asked' }
  | { type: 'replan-asked'; text: string }
  | {
      type: 'replanned'
      round: number
      /** Those that changed, as unified diffs. */
      files: readonly { file: 'MAIN.md' | 'tasks.json'; diff: string }[]
    }
  | { type: 'stuck'; round: number; rounds: number; why: StallReason; remedy: StallRemedy }
  | {
      type: 'session-ended'
      outcome: SessionOutcome
      exitCode: number
      rounds: number
      tokens: number
      durationMs: number
    }
