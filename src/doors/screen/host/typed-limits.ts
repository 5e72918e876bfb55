import { unreachable } from '../../../base/errors.ts'
import { limitReached } from '../../../core/events/outcome.ts'
import { usedBy } from '../../../core/rules/run-limits.ts'
import type { SessionState } from '../../../core/state/state.ts'
import type { RunOptions } from '../../../project/library.ts'
import { flagValue } from '../../../project/settings/load.ts'
import { foldJournal } from '../../../session/records/journal.ts'
import type { Records } from '../../../session/records/records.ts'
import { costAsTyped, countAsTyped, durationAsTyped } from '../../../tell/words/commands.ts'
import { formatCount } from '../../../tell/words/numbers.ts'
import type { Screen } from '../screen/screen.tsx'

/** What a session may take from now on, in all, as it was typed. */
export interface TypedLimits {
  rounds?: string
  maxTime?: string
  maxTokens?: string
  maxCost?: string
}

/** The same in values; a `UserError` if one cannot be read. */
export function limitsTyped({ rounds, maxTime, maxTokens, maxCost }: TypedLimits): RunOptions {
  return {
    ...(rounds === undefined ? {} : { rounds: flagValue('rounds', rounds) }),
    ...(maxTime === undefined ? {} : { maxTimeMs: flagValue('maxTime', maxTime) }),
    ...(maxTokens === undefined ? {} : { maxTokens: flagValue('maxTokens', maxTokens) }),
    ...(maxCost === undefined ? {} : { maxCost: flagValue('maxCost', maxCost) }),
  }
}

/**
 * Asks how much a session may take that has used up what it was allowed, and is to go on. Empty if it has not; null if
 * the person thinks better of it.
 */
export async function askForMore(screen: Screen, records: Records, id: string): Promise<TypedLimits | null> {
  const state = await foldJournal(records, id, 'ends')
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

const NAMES: Record<keyof TypedLimits, string> = {
  rounds: 'rounds',
  maxTime: 'max-time',
  maxTokens: 'max-tokens',
  maxCost: 'max-cost',
}

/** Null if there is room for more. */
function whatItLacks(state: SessionState): { flag: keyof TypedLimits; had: string; twice: string } | null {
  const { limits } = state
  const used = usedBy(state)
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
    case 'cost':
      return { flag: 'maxCost', had: 'money', twice: costAsTyped(2 * (used.cost ?? 0)) }
    default:
      return unreachable(reached)
  }
}
