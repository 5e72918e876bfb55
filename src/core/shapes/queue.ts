import type { IssueRef } from './published.ts'

/** Settings of a queued session. Left out: as the run that starts it says. */
export interface PromptTerms {
  /** Name of a template (`codemachine templates`); left out: one agent, round after round. */
  template?: string | undefined
  /** Gates in addition to those of the run. */
  gates?: readonly string[] | undefined
  /** True: prove the request sentence by sentence; left out: as the run says. */
  prove?: true | undefined
  /** Limits: whole numbers, at least 1; `cost`: more than 0. */
  limits?:
    | {
        rounds?: number | undefined
        timeMs?: number | undefined
        tokens?: number | undefined
        cost?: number | undefined
      }
    | undefined
  /** Options of the template. */
  options?: unknown
  /** Unique id of its session; left out: the next one of the day. */
  session?: string | undefined
  /** Id of a session that it follows; its agents get that session's result. */
  follows?: string | undefined
  /** The issue that it works on. */
  issue?: IssueRef | undefined
  /** Id of the schedule that queued it. */
  schedule?: string | undefined
}

/** A prompt that waits to become a session. */
export interface QueuedPrompt extends PromptTerms {
  /** Six digits or more, unique in its queue: `000001`. */
  id: string
  prompt: string
  /** Time when it was added; ISO 8601 in UTC. */
  at: string
}
