import { delimiter, isAbsolute } from 'node:path'
import { isWritableByAgents, type WritableByAgents } from './writable-by-agents.ts'

/**
 * A PATH without its relative folders, and without those in which an agent can write. Never empty: an empty PATH means
 * the current directory.
 */
export function searchPathOutside(path: string, where: WritableByAgents): string {
  const open = path.split(delimiter).filter(entry => isAbsolute(entry) && !isWritableByAgents(entry, where))
  return open.length === 0 ? NOWHERE : open.join(delimiter)
}

const NOWHERE = '/dev/null'
