import type { RoundOutcome } from '../events/outcome.ts'

/** For what another engine may run the rounds. */
export const FALLBACK_CAUSES = ['window', 'quota', 'login', 'credit'] as const
type FallbackCause = (typeof FALLBACK_CAUSES)[number]

/** On what a session goes on where its engine cannot. */
export interface FallbackTerms {
  /** The names of the engines, the first choice first; none: it waits. */
  engines: readonly string[]
  /** It waits where the window resets within this time, ms. */
  afterMs: number
  /** For what it does so, beside a full window. */
  on: readonly FallbackCause[]
}

/** When an engine has room again whose fault a person has to fix: not in this run of the session. Unix time, ms. */
export const NOT_IN_THIS_RUN = 8.64e15

/** For what another engine may go on after a round that ended so; null: for nothing. Pure. */
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
 * The engine whose turn it is: the first that has room, or null if the windows of all are full. Pure.
 * @param usual that of the session, which comes first
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
