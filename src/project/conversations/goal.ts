import { cleanText, clipEnd } from '../../base/text.ts'
import { withMaterials } from '../../core/rules/outputs.ts'
import { CONVERSATION_MAKERS, type Conversation, type ConversationText } from '../../core/shapes/conversation.ts'
import type { Redactor } from '../../secrets/redactor.ts'

/** Longest request of the person, other material together, single message, and step of the plan, in characters. */
const REQUEST_CHARS = 100_000
const MATERIAL_CHARS = 8_000
const MESSAGE_CHARS = 1_200
const STEP_CHARS = 200

/**
 * Returns the goal that continues a conversation: the person's own request, then the messages and the plan, marked as no
 * instruction. It removes secrets and control characters. Null if the person asked for nothing. Pure but for `redactor`.
 * @param request replaces the person's last request; left out: that one counts
 */
export function goalFrom(
  { maker, id, said, plan }: Conversation & ConversationText,
  redactor: Redactor,
  request?: string,
): string | null {
  const clean = (text: string) => cleanText(redactor.text(text))
  const last = said.findLast(({ by }) => by === 'person')
  const asked = request ?? (last === undefined ? '' : clipEnd(clean(last.text), REQUEST_CHARS))
  if (asked.trim() === '') return null
  const messages = said
    .filter(each => request !== undefined || each !== last)
    .map(({ by, text }) => `${by === 'person' ? 'Person' : 'Agent'}: ${clipEnd(clean(text), MESSAGE_CHARS)}`)
  const steps = plan.map(({ text, state }) => `- [${clean(state).slice(0, 20)}] ${clipEnd(clean(text), STEP_CHARS)}`)
  const name = CONVERSATION_MAKERS[maker]
  const about = `This continues a conversation with ${name} in this directory (${id}). Its changes are in the files.`
  const parts = [
    ...(steps.length === 0 ? [] : [`The agent's plan:\n${steps.join('\n')}`]),
    // Newest first: if space runs out, the oldest are cut.
    ...(messages.length === 0 ? [] : [`The last messages, the newest first:\n\n${messages.toReversed().join('\n\n')}`]),
  ]
  const input = `${asked}\n\n${about}`
  if (parts.length === 0) return input
  const material = { name: `the conversation with ${name}`, text: parts.join('\n\n') }
  return withMaterials(input, [material], { most: input.length + MATERIAL_CHARS })
}
