import { realpathSync } from 'node:fs'
import { basename, delimiter, dirname, isAbsolute, join } from 'node:path'
import { isWithin } from './path-within.ts'

/**
 * A PATH without its relative folders, and without those that lie, by name or by real path, inside of one of `folders`.
 * Never empty: an empty PATH means the current directory.
 */
export function searchPathOutside(path: string, folders: readonly string[]): string {
  const closed = folders.flatMap(folder => [folder, realPathOf(folder)])
  const isClosed = (entry: string) => closed.some(folder => isWithin(folder, entry))
  const open = path
    .split(delimiter)
    .filter(entry => isAbsolute(entry) && !isClosed(entry) && !isClosed(realPathOf(entry)))
  return open.length === 0 ? NOWHERE : open.join(delimiter)
}

/** Of a folder that is not there yet too: then that of what is there, with the rest of the name. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return dirname(path) === path ? path : join(realPathOf(dirname(path)), basename(path))
  }
}

const NOWHERE = '/dev/null'
