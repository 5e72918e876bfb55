import { realpath } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { reachOf, recordsInReach } from '../agents-reach.ts'
import type { CliContext } from '../context.ts'
import { isWritable } from './check-directory.ts'
import { type Finding, ok, problem, warning } from './finding.ts'
import { nearestExisting } from './nearest-existing.ts'

const ELSEWHERE = 'Set CODEMACHINE_HOME to a directory that you can write to.'

/** Where the records are kept, or will be: `$CODEMACHINE_HOME` or `~/.codemachine`. Makes nothing. */
export function recordsRoot({ env, home }: Pick<CliContext, 'env' | 'home'>): string {
  return env.CODEMACHINE_HOME || join(home, '.codemachine')
}

/** Looks at the place of the records, as it is: it is made, and closed to others, by the first run. */
export async function checkRecords(context: CliContext, directory: string | null): Promise<Finding[]> {
  const root = recordsRoot(context)
  if (!isAbsolute(root)) {
    return [problem('records', `CODEMACHINE_HOME is "${root}".`, 'Set it to an absolute path.')]
  }
  const found = await nearestExisting(join(root, 'state'))
  if (!found.isDirectory) {
    return [problem('records', `codemachine cannot keep its records in ${root}: ${found.path} is a file.`, ELSEWHERE)]
  }
  if (!(await isWritable(found.path))) {
    return [
      problem(
        'records',
        `codemachine cannot keep its records in ${root}: ${found.path} cannot be written to.`,
        ELSEWHERE,
      ),
    ]
  }
  return [isMadeAndOpen(context, root, found) ?? (await boundaryOf(context.env, root, found.path, directory))]
}

function isMadeAndOpen({ platform }: CliContext, root: string, found: { path: string; mode: number }): Finding | null {
  if (found.path !== join(root, 'state') || platform === 'win32' || (found.mode & 0o077) === 0) return null
  return warning(
    'records',
    `Other users of this machine can look into ${found.path}.`,
    `Close it: chmod 700 ${found.path}`,
  )
}

async function boundaryOf(
  env: NodeJS.ProcessEnv,
  root: string,
  existing: string,
  directory: string | null,
): Promise<Finding> {
  const reach = directory === null ? null : await reachOf(await realpath(existing), directory, env)
  const inReach = recordsInReach(root, reach)
  if (inReach === null)
    return ok('records', existing === join(root, 'state') ? root : `${root} (made by the first run)`)
  return warning('records', inReach, 'Set CODEMACHINE_HOME to a directory outside of both the work directory and /tmp.')
}
