import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { messageOf, systemErrorCode } from '../../base/errors.ts'
import type { Conversation, ConversationText } from '../../core/shapes/conversation.ts'
import { type ConversationSource, MOST_LISTED, MOST_SAID, MOST_STEPS, unreadable } from './source.ts'

/** How long to wait for a database that opencode is writing, in ms. */
const WAIT_MS = 2_000
/** Most characters that are read of a message. */
const TEXT_CHARS = 100_000

/**
 * Reads the sessions of opencode from its SQLite database, where they are since 1.2.
 * @param directories the names of the work directory
 * @param home opencode's folder, such as `~/.local/share/opencode`
 */
export function opencodeConversations(directories: readonly string[], home: string): ConversationSource {
  const path = join(home, 'opencode.db')
  return {
    list: () =>
      inDatabase(path, [], database => {
        const here = directories.map(() => '?').join(', ')
        const sql = `${SESSION} WHERE directory IN (${here}) AND parent_id IS NULL ORDER BY time_updated DESC LIMIT ${MOST_LISTED}`
        return database
          .prepare(sql)
          .all(...directories)
          .map(conversationOf)
      }),
    read: id =>
      inDatabase(path, null, database => {
        const row = database.prepare(`${SESSION} WHERE id = ?`).get(id)
        return row === undefined ? null : { ...conversationOf(row), ...textOf(database, id) }
      }),
  }
}

const SESSION = 'SELECT id, directory, title, time_updated AS at FROM session'
const SAID = `SELECT json_extract(message.data, '$.role') AS role, substr(json_extract(part.data, '$.text'), 1, ${TEXT_CHARS}) AS text
  FROM part JOIN message ON message.id = part.message_id
  WHERE part.session_id = ? AND json_valid(part.data) AND json_valid(message.data)
    AND json_extract(part.data, '$.type') = 'text' AND json_extract(part.data, '$.synthetic') IS NOT 1
  ORDER BY part.time_created DESC, part.id DESC LIMIT ${MOST_SAID}`
const PLAN = `SELECT content, status FROM todo WHERE session_id = ? ORDER BY position LIMIT ${MOST_STEPS}`

type Row = Record<string, unknown>

function conversationOf({ id, directory, title, at }: Row): Conversation {
  return { maker: 'opencode', id: String(id), directory: String(directory), title: String(title), at: Number(at) }
}

function textOf(database: DatabaseSync, id: string): ConversationText {
  const said = database.prepare(SAID).all(id).toReversed()
  return {
    said: said
      .map(({ role, text }) => ({ by: role === 'user' ? ('person' as const) : ('agent' as const), text: String(text) }))
      .filter(({ text }) => text.trim() !== ''),
    plan: database
      .prepare(PLAN)
      .all(id)
      .map(({ content, status }) => ({ text: String(content), state: String(status) })),
  }
}

/** Returns what `look` finds in the database; `none` if there is no database. */
async function inDatabase<T>(path: string, none: T, look: (database: DatabaseSync) => T): Promise<T> {
  try {
    if (!(await lstat(path)).isFile()) throw unreadable(path, 'is not read: it is a link, or no file.')
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT' || systemErrorCode(error) === 'ENOTDIR') return none
    throw error
  }
  try {
    // Node has it since 22.13. Load it only if there is a database to read.
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(path, { readOnly: true, timeout: WAIT_MS })
    try {
      return look(database)
    } finally {
      database.close()
    }
  } catch (error) {
    throw unreadable(path, `cannot be read: ${messageOf(error)}`)
  }
}
