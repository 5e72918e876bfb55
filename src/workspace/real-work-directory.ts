import { realpath, stat } from 'node:fs/promises'
import { messageOf, systemErrorCode, UserError } from '../base/errors.ts'

/** The real path of a directory to work in; a `UserError` if it is none, or not there. */
export async function realWorkDirectory(directory: string): Promise<string> {
  try {
    const real = await realpath(directory)
    if ((await stat(real)).isDirectory()) return real
  } catch (error) {
    throw new UserError(`${directory} cannot be worked in: ${whyNot(error)}.`, { cause: error })
  }
  throw new UserError(`${directory} is not a directory; codemachine works in one.`)
}

const WHY_NOT: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such directory',
  ENOTDIR: 'a part of its path is a file',
  EACCES: 'you may not look into a part of its path',
  ELOOP: 'its links lead in a circle',
}

function whyNot(error: unknown): string {
  return WHY_NOT[systemErrorCode(error) ?? ''] ?? messageOf(error)
}
