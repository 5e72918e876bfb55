/**
 * What became of a command. `done`: the run does it. `kept`: no turn takes the text now; the next round is told. In each
 * other case nothing was done, and the code says why; `refused` is that of a run of an earlier version, which gave no code.
 */
export const REPLY_CODES = [
  'done',
  'kept',
  /** Between two sessions, or before the first. */
  'no-session',
  /** The session is about to end, and takes no more of this kind. */
  'ending',
  /** The text of the command cannot be a prompt. */
  'bad-text',
  /** No agent of that name is at work, or more than one. */
  'unknown-agent',
  /** The agent has ended. */
  'agent-ended',
  /** The turn of the agent takes nothing just now. */
  'not-heard',
  'not-waiting',
  /** Codex waits for the network by itself. */
  'waits-for-network',
  'already-paused',
  'not-paused',
  /** It changes its plan next, and holds after that. */
  'changing-plan',
  /** A limit of the session is reached, so that no round can change the plan. */
  'limit-reached',
  /** No decision is asked for, or not that one; the first answer has been taken, or the session has ended. */
  'not-asked',
  /** Another session runs. */
  'other-session',
  /** Another version of the plan waits. */
  'other-version',
  'unknown-choice',
  /** The choice needs a text, or takes none. */
  'text-missing',
  'text-not-wanted',
  /** The run is of a version that does not know the command. */
  'unknown-command',
  /** The run did not take the command in time. */
  'not-taken',
  /** The run took the command, and did not say in time what became of it. */
  'no-answer',
  /** The command was meant for a run that has ended. */
  'run-ended',
  /** An error of ours; `message` is that of the error. */
  'failed',
  'refused',
] as const

export type ReplyCode = (typeof REPLY_CODES)[number]

/** The answer to a command. `message` is a sentence for the person; decide by `code`. */
export interface Reply {
  code: ReplyCode
  message: string
}

/** Whether the run does what it was asked, now or with the next round. */
export function isTaken({ code }: Reply): boolean {
  return code === 'done' || code === 'kept'
}
