import { UserError, unreachable } from '../base/errors.ts'
import type { SessionLimits } from '../session/limits.ts'
import { limitReached } from '../session/limits.ts'
import { sessionTokens } from '../session/session-tokens.ts'
import { elapsedMs } from '../session/standing.ts'
import type { SessionState } from '../session/state.ts'
import type { Settings } from '../settings/schema.ts'
import { formatSpan } from '../ui/format-span.ts'
import { formatTokens } from '../ui/format-tokens.ts'
import { countAsTyped, durationAsTyped } from './as-typed.ts'
import type { RunFlags } from './flags.ts'

/**
 * What a session that nobody runs may take from now on, for the whole of it: what a flag says, else what its journal
 * does. `settings` are those of the flags. A `UserError` if that is used up.
 */
export function limitsAtResume(
  state: SessionState,
  flags: Pick<RunFlags, 'rounds' | 'maxTime' | 'maxTokens'>,
  settings: Pick<Settings, 'rounds' | 'maxTime' | 'maxTokens'>,
): SessionLimits {
  const limits: SessionLimits = {
    rounds: flags.rounds === undefined ? state.limits.rounds : settings.rounds,
    timeMs: flags.maxTime === undefined ? state.limits.timeMs : settings.maxTime,
    tokens: flags.maxTokens === undefined ? state.limits.tokens : settings.maxTokens,
  }
  // All that it lacks is its end.
  if (state.claim.state === 'accepted' && state.ended === null) return limits
  const used = { rounds: state.roundsUsed, timeMs: elapsedMs(state, 'cut-off', 0), tokens: sessionTokens(state) }
  const reached = limitReached(limits, used)
  switch (reached) {
    case null:
      return limits
    case 'rounds':
      throw new UserError(
        `${state.id} has used ${used.rounds} of its ${limits.rounds} rounds; give it more with --rounds.`,
      )
    case 'time':
      throw new UserError(
        `${state.id} has worked for ${formatSpan(used.timeMs)}, which is all of its --max-time ${durationAsTyped(limits.timeMs ?? 0)}; give it more with --max-time.`,
      )
    case 'tokens':
      throw new UserError(
        `${state.id} has used ${formatTokens(used.tokens)}, which is all of its --max-tokens ${countAsTyped(limits.tokens ?? 0)}; give it more with --max-tokens.`,
      )
    default:
      return unreachable(reached)
  }
}
