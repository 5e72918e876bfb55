import * as v from 'valibot'
import { problemOfPrompt } from '../../base/text.ts'

const at = v.pipe(v.string(), v.isoTimestamp())
const text = v.pipe(
  v.string(),
  v.check(value => problemOfPrompt(value) === null),
)

export const commandSchema = v.variant('type', [
  v.object({ type: v.literal('steer'), text, at }),
  v.object({ type: v.literal('stop'), now: v.boolean(), at }),
  v.object({ type: v.literal('pause'), at }),
  v.object({ type: v.literal('unpause'), at }),
  v.object({ type: v.literal('retry'), at }),
  v.object({ type: v.literal('watch'), at }),
  v.object({ type: v.literal('interrupt'), at }),
  v.object({ type: v.literal('skip'), at }),
  v.object({ type: v.literal('replan'), text, at }),
])

/**
 * What a person may ask of a run, from its own screen or from another terminal: to tell the agent something; to stop,
 * after this round or `now`; to start no round until told to, with or without the one that runs; to end a wait early; to
 * leave this session for the next one; to have the plan changed as the text says; to share for a minute what it does
 * just now, for somebody watches. `at`: when it was asked, ISO 8601 in UTC.
 */
export type Command = v.InferOutput<typeof commandSchema>

/**
 * What became of a command. `done`: the run does it. `kept`: no turn takes the text now; the next round is told. In each
 * other case nothing was done, and the code says why; `refused` is that of a run of an earlier version, which gave no code.
 */
const REPLY_CODES = [
  'done',
  'kept',
  /** Between two sessions, or before the first. */
  'no-session',
  /** The session is about to end, and takes no more of this kind. */
  'ending',
  /** The text of the command cannot be a prompt. */
  'bad-text',
  'not-waiting',
  /** Codex waits for the network by itself. */
  'waits-for-network',
  'already-paused',
  'not-paused',
  /** It changes its plan next, and holds after that. */
  'changing-plan',
  /** A limit of the session is reached, so that no round can change the plan. */
  'limit-reached',
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

/** What a run says of a command that it does not know, as one of an older version may: this text stays as it is. */
export const NOT_KNOWN = 'This is not a command that the run knows.'

/** A reply as its file holds it: `delivered` and `kept` are what versions without a code decide by. */
export function replyToJson({ code, message }: Reply): string {
  return JSON.stringify({ code, delivered: code === 'done', ...(code === 'kept' ? { kept: true } : {}), message })
}

/** The reply in a file of any version. A code that this version does not know says no more than the older fields. */
export const replySchema = v.pipe(
  v.object({
    code: v.optional(v.string()),
    delivered: v.boolean(),
    kept: v.exactOptional(v.boolean()),
    message: v.string(),
  }),
  v.transform(
    ({ code, delivered, kept, message }): Reply => ({
      code: REPLY_CODES.find(each => each === code) ?? codeWithout(delivered, kept ?? false, message),
      message,
    }),
  ),
)

function codeWithout(delivered: boolean, kept: boolean, message: string): ReplyCode {
  if (delivered) return 'done'
  if (kept) return 'kept'
  return message === NOT_KNOWN ? 'unknown-command' : 'refused'
}
