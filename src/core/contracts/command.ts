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

export const replySchema = v.object({ delivered: v.boolean(), kept: v.exactOptional(v.boolean()), message: v.string() })

/** What became of a command; `message` is a sentence for the person. `kept`: the next round will be told. */
export type Reply = v.InferOutput<typeof replySchema>
