import * as v from 'valibot'
import { problemOfPrompt } from '../../base/text.ts'
import { REPLY_CODES, type Reply, type ReplyCode } from './reply.ts'

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
