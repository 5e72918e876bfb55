/**
 * Result of a command. `done`: the run does it. `kept`: no turn accepts the text now, so the next round gets it. All other
 * codes: nothing was done, for that reason; `refused`: from an earlier version, which gave no code.
 */
export const REPLY_CODES = [
  'done',
  'kept',
  /** No session runs: between two, or before the first. */
  'no-session',
  /** The session is ending, and accepts no more of these commands. */
  'ending',
  /** The text of the command cannot be a prompt. */
  'bad-text',
  /** No agent of that name works, or more than one. */
  'unknown-agent',
  /** The agent has ended. */
  'agent-ended',
  /** The agent's turn accepts no text now. */
  'not-heard',
  'not-waiting',
  /** Codex waits for the network by itself. */
  'waits-for-network',
  'already-paused',
  'not-paused',
  /** The session changes its plan next, and pauses after that. */
  'changing-plan',
  /** The session reached a limit, so no round can change the plan. */
  'limit-reached',
  /** No decision or another one is open: it was already answered, or the session has ended. */
  'not-asked',
  /** Another session runs. */
  'other-session',
  /** Another version of the plan waits. */
  'other-version',
  'unknown-choice',
  /** The choice needs a text, or (next code) accepts none. */
  'text-missing',
  'text-not-wanted',
  /** The run's version does not know the command. */
  'unknown-command',
  /** The run did not accept the command in time. */
  'not-taken',
  /** The run accepted the command, but did not report a result in time. */
  'no-answer',
  /** The command was meant for a run that has ended. */
  'run-ended',
  /** A bug of codemachine; `message`: the error's message. */
  'failed',
  'refused',
] as const

export type ReplyCode = (typeof REPLY_CODES)[number]

/** The answer to a command. `message` is a sentence for the person; decide by `code`. */
export interface Reply {
  code: ReplyCode
  message: string
}

/** Returns true if the run obeys, now or with the next round. */
export function isTaken({ code }: Reply): boolean {
  return code === 'done' || code === 'kept'
}
