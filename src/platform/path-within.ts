import { sep } from 'node:path'

/** Whether a path is a folder itself or lies in it, by name. Both absolute and normalized. */
export function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}
