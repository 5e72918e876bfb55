import { access, constants, realpath } from 'node:fs/promises'
import { type Checked, ok, problem } from './finding.ts'
import { nearestExisting } from './nearest-existing.ts'

/** Looks at the work directory; the value is its real path, if one can work in it. */
export async function checkDirectory(path: string): Promise<Checked<string>> {
  const found = await nearestExisting(path)
  const refused = (message: string, mend: string) => ({ findings: [problem('directory', message, mend)], value: null })
  if (found.path !== path) return refused(`There is no ${path}.`, 'Make it, or name another one with -C.')
  if (!found.isDirectory) return refused(`${path} is not a directory.`, 'Name one with -C.')
  const directory = await realpath(path)
  if (!(await isWritable(directory))) {
    return refused(
      `${path} cannot be written to.`,
      'Give yourself the right to write there, or name another one with -C.',
    )
  }
  return { findings: [ok('directory', directory)], value: directory }
}

/** Whether files can be made in a directory. */
export async function isWritable(directory: string): Promise<boolean> {
  return await access(directory, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
}
