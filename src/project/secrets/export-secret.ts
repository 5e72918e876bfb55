import { dirname, join, sep } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { pathInside } from '../../platform/files.ts'
import { openSecrets } from '../../secrets/store.ts'
import type { Records } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { findObstacle, readTextFile, whatIsThere, writeFileInside } from '../../workspace/files/inside-directory.ts'
import { isIgnoredBy } from '../hold-files.ts'
import type { World } from '../world.ts'

const MOST_BYTES = 1024 * 1024

/** Where a secret was written, with sentences for the person. */
interface ExportedSecret {
  /** Absolute. */
  path: string
  words: string[]
}

/**
 * Writes a project's secret into a variables file there (mode 0600). It replaces each line that sets it, or adds one. From
 * then on the file is hidden from agents, savepoints and diffs. Throws a `UserError` if git would track the file, for a path
 * outside of the project or through a link, and while a session runs there (exit code 6).
 * @param to relative to the work directory, or absolute
 */
export async function exportSecret(
  world: Pick<World, 'env' | 'platform'>,
  records: Records,
  key: string,
  to: string,
): Promise<ExportedSecret> {
  const { directory } = records
  const store = openSecrets(records.secrets)
  const secret = await store.get(key)
  if (secret === null)
    throw new UserError('CM0902', `There is no secret ${key} here.`, {
      hint: `codemachine secret set ${key} stores one.`,
    })
  const path = pathInside(directory, to)
  if (path === null)
    throw new UserError(
      'CM0906',
      `${to} is not in ${directory}, but a secret can only be exported into its own project.`,
    )
  if (/^(?:\.git|\.codemachine)(?:\/|$)/.test(path))
    throw new UserError('CM0906', `${path} is not a file that may receive a secret; name another file.`)
  if ((await readRunner(records.lock, world.platform)) !== null)
    throw new UserError(
      'CM0906',
      'A session runs here, and its agents could read the file; export the secret after its end.',
      {
        exitCode: 6,
      },
    )
  const obstacle = await findObstacle(directory, dirname(path).split('/').join(sep))
  if (obstacle !== null)
    throw new UserError(
      'CM0906',
      `${path} cannot be written: ${obstacle.path} ${obstacle.kind === 'missing' ? 'is not there' : whatIsThere(obstacle)}.`,
    )
  if (!(await isIgnoredBy(directory, path, world, records.folder)))
    throw new UserError(
      'CM0906',
      `git does not ignore ${path}, so the secret could end up in the repository; nothing was written.`,
      {
        hint: `Add a line with /${path} to ${join(directory, '.gitignore')} (and take the file out with git rm --cached, if it is committed).`,
      },
    )
  const read = await readTextFile(join(directory, path), MOST_BYTES)
  if (read.kind === 'broken') throw new UserError('CM0906', `${path} cannot be written: ${read.problem}`)
  await store.hide([path])
  await writeFileInside(directory, path, withVariable(read.kind === 'text' ? read.text : '', key, secret.value), 0o600)
  const words = [
    'Everyone who can read the file can read the secret. Agents of codemachine cannot, and no savepoint, diff or report contains it.',
  ]
  return { path: join(directory, path), words }
}

/** Returns the text of a variables file with one variable set; the rest is unchanged. */
function withVariable(text: string, key: string, value: string): string {
  const line = `${key}=${quoted(value)}`
  const set = new RegExp(String.raw`^(?:export[ \t]+)?${key}=(?:'[^']*'|"(?:[^"\\]|\\[^])*"|[^\n]*)`, 'gm')
  if (text.search(set) >= 0) return text.replace(set, found => `${/^export[ \t]+/.exec(found)?.[0] ?? ''}${line}`)
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${line}\n`
}

/** Quotes a value as shells and usual readers of such files take it: literally, also over several lines. */
function quoted(value: string): string {
  if (/^[\w@%+:,./-]+$/.test(value)) return value
  if (!value.includes("'")) return `'${value}'`
  return `"${value.replace(/[\\"$`]/g, '\\$&')}"`
}
