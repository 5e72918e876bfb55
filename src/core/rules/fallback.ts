import type { RoundOutcome } from '../events/outcome.ts'

/** Reasons to run rounds on another engine. */
export const FALLBACK_CAUSES = ['window', 'quota', 'login', 'credit'] as const
type FallbackCause = (typeof FALLBACK_CAUSES)[number]

/** Settings for a session whose engine cannot continue. */
export interface FallbackTerms {
  /** Names of fallback engines, first choice first; empty: it waits. */
  engines: readonly string[]
  /** It waits if the window resets within this time, ms. */
  afterMs: number
  /** Reasons for a fallback in addition to a full window. */
  on: readonly FallbackCause[]
}

/** Reset time of an engine that a person must repair: never in this run. Unix time, ms. */
export const NOT_IN_THIS_RUN = 8.64e15

/** Returns the reason to use another engine after this outcome; null: none. Pure. */
export function fallbackCause({ class: end, message }: RoundOutcome): FallbackCause | null {
  switch (end) {
    case 'window':
      return 'window'
    case 'auth':
      return 'login'
    case 'quota':
      return /quota/i.test(message ?? '') ? 'quota' : 'credit'
    default:
      return null
  }
}

/**
 * Returns the first engine with room; null: all windows are full. Pure.
 * @param usual the session's engine, which comes first
 * @param fullUntil when full windows reset, by engine; Unix time, ms
 */
export function engineWithRoom(
  usual: string,
  { engines }: Pick<FallbackTerms, 'engines'>,
  fullUntil: Readonly<Record<string, number>>,
  now: number,
): string | null {
  return [usual, ...engines].find(name => (fullUntil[name] ?? 0) <= now) ?? null
}
