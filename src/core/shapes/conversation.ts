import type { EventOf } from '../events/events.ts'

/** The agents whose conversations a session can continue from, and what a person calls each. */
export const CONVERSATION_MAKERS = { codex: 'codex', claude: 'Claude Code', opencode: 'opencode' } as const

/** Such an agent. */
export type ConversationMaker = keyof typeof CONVERSATION_MAKERS

/** A conversation of a person with an agent. What came from the agent's files is not safe to show. */
export interface Conversation {
  maker: ConversationMaker
  id: string
  /** The directory in which it was begun, as the agent recorded it. */
  directory: string
  /** What the person asked for, in their words. */
  title: string
  /** When it was last written; Unix time, ms. */
  at: number
}

/** What was said in it, the oldest first, and the agent's plan as it stands. Both are bounded. */
export interface ConversationText {
  said: readonly { by: 'person' | 'agent'; text: string }[]
  plan: readonly PlannedStep[]
}

/** Which conversation a session continues, as its first event says. */
export type Adopted = NonNullable<EventOf<'session-created'>['adopted']>

/** A step of an agent's plan. `state`: in the agent's word, such as `in_progress`. */
export interface PlannedStep {
  text: string
  state: string
}
