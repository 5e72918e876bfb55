import type { SettingSources } from './load-settings.ts'
import type { Settings } from './schema.ts'

/** The most that a session may take; null: no such limit. */
interface Limits {
  rounds: number | null
  /** Time that it is worked on, ms. */
  timeMs: number | null
  tokens: number | null
}

/**
 * The limits of a session. The default of `rounds` is one only where nobody wrote another limit.
 * @param usualRounds another default; left out: that of the settings
 */
export function limitsOf(
  { rounds, maxTime, maxTokens }: Pick<Settings, 'rounds' | 'maxTime' | 'maxTokens'>,
  sources: Pick<SettingSources, 'rounds'>,
  usualRounds = rounds,
): Limits {
  const isLimitedOtherwise = maxTime !== null || maxTokens !== null
  const isDefault = sources.rounds.layer === 'defaults'
  const usual = isLimitedOtherwise ? null : usualRounds
  return { rounds: isDefault ? usual : rounds, timeMs: maxTime, tokens: maxTokens }
}
