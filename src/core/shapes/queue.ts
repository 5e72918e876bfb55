import type { IssueRef } from './published.ts'

/** What the session of a prompt begins with. What is left out is as the run says that takes it. */
export interface PromptTerms {
  /** Name of a template (`codemachine templates`); left out: one agent works on it, round after round. */
  template?: string | undefined
  /** Commands that have to pass before done, on top of those of the run. */
  gates?: readonly string[] | undefined
  /** Whether what it asks for is proved sentence by sentence; left out: as the run says. */
  prove?: true | undefined
  /** What it may take: whole numbers, at least 1; `cost`: more than 0. */
  limits?:
    | {
        rounds?: number | undefined
        timeMs?: number | undefined
        tokens?: number | undefined
        cost?: number | undefined
      }
    | undefined
  /** What the template is told beside the goal. */
  options?: unknown
  /** The id that its session gets, which no other has; left out: the next one of the day. */
  session?: string | undefined
  /** Id of a session that it goes on from: what that came to is given to its agents. */
  follows?: string | undefined
  /** The issue that it works on. */
  issue?: IssueRef | undefined
}

/** A prompt that waits to become a session. */
export interface QueuedPrompt extends PromptTerms {
  /** Six digits or more, never given twice in one queue: `000001`. */
  id: string
  prompt: string
  /** When it was added; ISO 8601 in UTC. */
  at: string
}
