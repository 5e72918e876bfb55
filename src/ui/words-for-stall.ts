import { unreachable } from '../base/errors.ts'
import type { StallRemedy } from '../session/lifecycle-events.ts'
import type { StallReason } from '../session/outcome.ts'
import { formatCount } from './format-count.ts'

/** What shows that a session does not get on: `no progress in 3 rounds`. */
export function wordsForStall(why: StallReason, rounds: number): string {
  switch (why) {
    case 'nothing-changed':
      return `no progress in ${formatCount(rounds, 'round')}`
    case 'same-refusal':
      return `the same claim was refused ${formatCount(rounds, 'time')}`
    default:
      return unreachable(why)
  }
}

const REMEDIES: Readonly<Record<StallRemedy, string>> = {
  'another-way': 'asked for another way',
  'more-effort': 'given more reasoning effort',
}

/** What is done about it, said of a round: `asked for another way`. */
export function wordsForRemedy(remedy: StallRemedy): string {
  return REMEDIES[remedy]
}
