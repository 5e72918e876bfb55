import { unreachable } from '../base/errors.ts'
import type { RoundOutcome, SessionOutcome } from './outcome.ts'

/** What the runner does after a round has ended, before the template is asked. */
export type AfterRound =
  | { kind: 'ask-template' }
  | { kind: 'again'; afterMs: number }
  | { kind: 'end'; outcome: SessionOutcome }

const MAX_FAILURES_IN_A_ROW = 3
const FIRST_BACKOFF_MS = 2_000

/**
 * The action for each class of docs/design.md, "What ends a round".
 * @param failuresInARow rounds in a row, this one included, that used up no round
 */
export function afterRound(outcome: RoundOutcome, failuresInARow: number): AfterRound {
  switch (outcome.class) {
    case 'worked':
    case 'interrupted':
    case 'context-full':
    case 'refused':
    case 'silent':
      return { kind: 'ask-template' }
    case 'window':
    case 'throttle':
    case 'network':
    case 'crashed':
      return failuresInARow < MAX_FAILURES_IN_A_ROW
        ? { kind: 'again', afterMs: FIRST_BACKOFF_MS * 2 ** (failuresInARow - 1) }
        : needsPerson(outcome, 'It failed three times in a row. Run codemachine again when the cause is mended.')
    case 'quota':
      return needsPerson(outcome, 'Add credit, or use another account, then run codemachine again.')
    case 'auth':
      return needsPerson(outcome, 'Log in with `codex login`, then run codemachine again.')
    case 'config':
      return needsPerson(outcome, 'Mend the codex configuration (`codemachine doctor` looks at it), then run again.')
    default:
      return unreachable(outcome.class)
  }
}

function needsPerson(outcome: RoundOutcome, hint: string): AfterRound {
  return {
    kind: 'end',
    outcome: { kind: 'needs-person', reason: outcome.message ?? `The round ended: ${outcome.class}.`, hint },
  }
}
