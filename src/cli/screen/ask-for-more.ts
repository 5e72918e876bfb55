import { unreachable } from '../../base/errors.ts'
import { foldJournal } from '../../session/fold-journal.ts'
import { limitReached } from '../../session/limits.ts'
import type { Records } from '../../session/records.ts'
import { sessionTokens } from '../../session/session-tokens.ts'
import { elapsedMs } from '../../session/standing.ts'
import type { SessionState } from '../../session/state.ts'
import { formatCount } from '../../ui/format-count.ts'
import type { Screen } from '../../ui/screen/screen.tsx'
import { countAsTyped, durationAsTyped } from '../as-typed.ts'
import type { RunFlags } from '../flags.ts'

/** What a session may take from now on, in all. */
export type MoreFlags = Pick<RunFlags, 'rounds' | 'maxTime' | 'maxTokens'>

/**
 * Asks how much a session may take that has used up what it was allowed, and is to go on. Empty if it has not; null if
 * the person thinks better of it.
 */
export async function askForMore(screen: Screen, records: Records, id: string): Promise<MoreFlags | null> {
  const state = await foldJournal(records.journal(id), id)
  const lacking = state && whatItLacks(state)
  if (lacking === null) return {}
  const { flag, had, twice } = lacking
  const answer = await screen.choose({
    title: `It has used up its ${had}. How much may it take in all?`,
    options: [{ id: twice, label: twice, hint: `as --${NAMES[flag]} ${twice}` }],
    freeText: 'Something else …',
  })
  if (answer.kind === 'chosen') return { [flag]: answer.id }
  return answer.kind === 'text' ? { [flag]: answer.text.trim() } : null
}

const NAMES: Record<keyof MoreFlags, string> = { rounds: 'rounds', maxTime: 'max-time', maxTokens: 'max-tokens' }

/** Null if there is room for more. */
function whatItLacks(state: SessionState): { flag: keyof MoreFlags; had: string; twice: string } | null {
  const { limits } = state
  const used = { rounds: state.roundsUsed, timeMs: elapsedMs(state, 'cut-off', 0), tokens: sessionTokens(state) }
  const reached = limitReached(limits, used)
  switch (reached) {
    case null:
      return null
    case 'rounds':
      return { flag: 'rounds', had: formatCount(used.rounds, 'round'), twice: String(2 * used.rounds) }
    case 'time':
      return { flag: 'maxTime', had: 'time', twice: durationAsTyped(2 * used.timeMs) }
    case 'tokens':
      return { flag: 'maxTokens', had: 'tokens', twice: countAsTyped(2 * used.tokens) }
    default:
      return unreachable(reached)
  }
}
