import { realpath } from 'node:fs/promises'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { parsedOrNull } from '../../base/json.ts'
import type { Conversation, ConversationText } from '../../core/shapes/conversation.ts'
import { isWithin } from '../../platform/files.ts'
import { readEnds } from '../../workspace/files/inside-directory.ts'

/** How many conversations of an agent are listed at most. */
export const MOST_LISTED = 20
/** How many messages of a conversation are read at most, the last ones. */
export const MOST_SAID = 20
/** How many steps of a plan are read at most. */
export const MOST_STEPS = 50

/** Where the conversations with one agent are read. Nothing there is ever written. Both throw a `UserError` for what cannot be read. */
export interface ConversationSource {
  /** The newest ones of the directory, at most `MOST_LISTED`. */
  list(): Promise<Conversation[]>
  /** The one with that whole id, of whatever directory; null if there is none. */
  read(id: string): Promise<(Conversation & ConversationText) | null>
}

/** Why a conversation cannot be read; `what` begins the sentence, `why` goes on after it. */
export function unreadable(what: string, why: string): UserError {
  return new UserError('CM0624', `${what} ${why}`)
}

/** The JSON objects on the whole lines of a text, one a line; a line that has none is passed over. */
function objectsIn(text: string): object[] {
  return text.split('\n').flatMap(line => {
    const value = line.startsWith('{') ? parsedOrNull(line) : null
    return typeof value === 'object' && value !== null ? [value] : []
  })
}

/** How much of the beginning of a file is read, and of its end, in bytes. */
export interface Ends {
  first: number
  last: number
}

/**
 * The objects at both ends of a file of JSON lines, however long it is. Throws a `UserError` if it is no file that can be read, or
 * a link leads to it out of `root`.
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
    // What is not there is said by who reads it.
    return true
  }
}
