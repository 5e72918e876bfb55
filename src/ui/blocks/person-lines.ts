import type { RecordedOf } from '../../session/events.ts'
import type { SessionState } from '../../session/state.ts'
import { describeEvent } from '../describe-event.ts'
import { describe } from '../description.ts'
import { KEY_HINTS } from '../hints.ts'
import type { BlockOptions } from './block-options.ts'
import { describedLines } from './described-lines.ts'

/** What a person said to the session, in a colour of its own; in full all of it. */
export function personLines(
  event: RecordedOf<'steered' | 'replan-asked'>,
  state: SessionState,
  options: BlockOptions,
): string[] {
  if (!options.full) return describedLines(describeEvent(event, state, KEY_HINTS), options, 'person')
  const lead = describeEvent({ ...event, text: '' }, state, KEY_HINTS)?.text ?? ''
  return describedLines(describe(`${lead}${event.text.trim()}`), options, 'person')
}
