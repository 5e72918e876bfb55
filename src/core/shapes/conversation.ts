import type { EventOf } from '../events/events.ts'

/** Agents whose conversations a session can continue, and their names for people. */
export const CONVERSATION_MAKERS = { codex: 'codex', claude: 'Claude Code', opencode: 'opencode' } as const

/** The key of one of these agents. */
export type ConversationMaker = keyof typeof CONVERSATION_MAKERS

/** A person's conversation with an agent. Texts from the agent's files are not safe to show. */
export interface Conversation {
  maker: ConversationMaker
  id: string
  /** The directory where it began, as the agent recorded it. */
  directory: string
  /** The person's request, in their words. */
  title: string
  /** Time of its last change; Unix time, ms. */
  at: number
}

/** Its messages, oldest first, and the agent's current plan. Both are bounded. */
export interface ConversationText {
  said: readonly { by: 'person' | 'agent'; text: string }[]
  plan: readonly PlannedStep[]
}

/** The conversation that a session continues, from its first event. */
export type Adopted = NonNullable<EventOf<'session-created'>['adopted']>

/** A step of an agent's plan. `state`: the agent's own word, `in_progress` for example. */
export interface PlannedStep {
  text: string
  state: string
}
