import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { type RecordsPlaces, recordsAround } from '../session/records.ts'

/** The project that a directory belongs to; a `UserError` if there is none, or not even the directory. */
export async function projectAround(places: RecordsPlaces): Promise<string> {
  const [here] = await recordsAround(places)
  if (here === undefined) throw new UserError(`${places.directory} is not a directory; name one that is there.`)
  const found = await findProject(here.directory, here.root)
  if (found !== null) return found
  throw new UserError(
    `${places.directory} is in no project: neither it nor a directory above it has a .codemachine folder.`,
    { hint: 'Start codemachine in the project first, or name its directory with -C.' },
  )
}

/**
 * The project that a directory belongs to: the nearest one, itself or above it, with a `.codemachine` folder; null if
 * there is none. `root`: where the records are, which in a home directory have the same name and alone make no project.
 */
export async function findProject(directory: string, root: string): Promise<string | null> {
  const folder = join(directory, '.codemachine')
  if ((await isFolder(folder)) && (!(await isSame(folder, root)) || (await isFolder(join(folder, 'inputs')))))
    return directory
  const above = dirname(directory)
  return above === directory ? null : await findProject(above, root)
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isDirectory() ?? false
}

async function isSame(a: string, b: string): Promise<boolean> {
  const [one, other] = await Promise.all([a, b].map(path => stat(path).catch(() => null)))
  return one?.ino === other?.ino && one?.dev === other?.dev
}
