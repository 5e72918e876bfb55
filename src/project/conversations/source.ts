import { realpath } from 'node:fs/promises'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import type { Conversation, ConversationText } from '../../core/shapes/conversation.ts'
import { isWithin } from '../../platform/files.ts'
import { readEnds } from '../../workspace/files/inside-directory.ts'

/** Most listed conversations of an agent. */
export const MOST_LISTED = 20
/** Most messages that are read of a conversation, from its end. */
export const MOST_SAID = 20
/** Most steps that are read of a plan. */
export const MOST_STEPS = 50

/** Reads the conversations with one agent, and never writes there. Both methods throw a `UserError` for unreadable ones. */
export interface ConversationSource {
  /** Returns the newest ones of the directory, at most `MOST_LISTED`. */
  list(): Promise<Conversation[]>
  /** Returns the one with exactly that id, of any directory; null: none. */
  read(id: string): Promise<(Conversation & ConversationText) | null>
}

/** Returns the error for an unreadable conversation; `what` begins the sentence, `why` ends it. */
export function unreadable(what: string, why: string): UserError {
  return new UserError('CM0624', `${what} ${why}`)
}

/** Returns the JSON objects of a text with one object a line; it skips all other lines. */
function objectsIn(text: string): object[] {
  return text.split('\n').flatMap(line => {
    const value = line.startsWith('{') ? parsedOrNull(line) : null
    return typeof value === 'object' && value !== null ? [value] : []
  })
}

/** Bytes to read at the beginning and the end of a file. */
export interface Ends {
  first: number
  last: number
}

/**
 * Reads the objects at both ends of a file of JSON lines of any length. Throws a `UserError` if the file is unreadable, or a
 * link leads out of `root`.
 */
export async function objectsAtEnds(
  path: string,
  root: string,
  ends: Ends,
): Promise<{ first: object[]; last: object[] }> {
  if (!(await liesWithin(root, path))) throw unreadable(path, `is not read: a link leads out of ${root}.`)
  const read = await readEnds(path, ends)
  if (read.kind === 'gone') throw unreadable(path, 'is no longer there.')
  if (read.kind === 'broken') throw unreadable(path, `is not read: ${read.problem}`)
  return { first: objectsIn(read.first.toString('utf8')), last: objectsIn(read.last.toString('utf8')) }
}

async function liesWithin(root: string, path: string): Promise<boolean> {
  try {
    const [folder, file] = await Promise.all([realpath(root), realpath(path)])
    return isWithin(folder, file)
  } catch (error) {
    if (systemErrorCode(error) === null) throw error
    // The reader reports a missing file.
    return true
  }
}
