import { isAbsolute, relative } from 'node:path'
import { oneLine } from './safe-text.ts'

const PATH_CHARS = 300

/** A path as it is shown: relative to the work directory if it is inside. */
export function shownPath(path: string, directory: string): string {
  const way = relative(directory, path)
  const inside = isAbsolute(path) && way !== '' && !way.startsWith('..') && !isAbsolute(way)
  return oneLine(inside ? way : path, PATH_CHARS)
}
