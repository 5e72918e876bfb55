import { type Adopted, CONVERSATION_MAKERS } from '../../core/shapes/conversation.ts'
import { formatMoment } from './numbers.ts'
import { oneLine } from './safe-text.ts'

/**
 * Names the conversation that a session continues, such as `the codex conversation 0199a0b0… of 17:40`.
 * @param from the moment from which its time is seen: with its day, if that is another one; Unix time, ms
 */
export function wordsForAdopted({ maker, id, at }: Adopted, from: number): string {
  const name = Object.hasOwn(CONVERSATION_MAKERS, maker) ? Reflect.get(CONVERSATION_MAKERS, maker) : oneLine(maker, 40)
  return `the ${name} conversation ${oneLine(id, SHOWN_ID)} of ${formatMoment(Date.parse(at), from)}`
}

const SHOWN_ID = 20
