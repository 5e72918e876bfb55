import type { PickerQuestion, PickerResult } from '../composer/picker.ts'

/**
 * An answer to a question on the screen; `withdrawn`: there is nothing to answer any more, or something else is done;
 * `left`: closed by Ctrl+C.
 */
export type Answer = PickerResult | { kind: 'withdrawn' | 'left' }

/**
 * A question. `yieldsToTyping`: whoever types goes on in the composer; `whileHeld`: it is over when the session goes on;
 * `escGoesOn`: that is what closing it comes to; `leavesOnInterrupt`: Ctrl+C, which has opened it, leaves;
 * `takesCommands`: a slash command is run in place of an answer.
 */
export type Question = PickerQuestion & {
  yieldsToTyping?: true
  whileHeld?: true
  escGoesOn?: true
  leavesOnInterrupt?: true
  takesCommands?: true
}
