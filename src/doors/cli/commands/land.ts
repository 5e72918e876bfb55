import { UserError } from '../../../base/errors.ts'
import { landWorktree } from '../../../project/worktrees/land.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf } from '../flags.ts'

interface LandFlags extends DirectoryFlags {
  /** Of the merge; left out: one that names the branch. */
  message?: string
  /** With what message what is not committed in the worktree is committed first; left out: it is not. */
  commit?: string
}

/**
 * `codemachine land`: merges what was done in a worktree into the branch that is checked out.
 * @param name left out: the only one that has something to land
 */
export async function land(context: CliContext, name: string | undefined, flags: LandFlags): Promise<number> {
  const { message, commit } = flags
  for (const flag of ['message', 'commit'] as const) {
    if (flags[flag]?.trim() === '') throw new UserError('CM0103', `--${flag} is blank; use a message for git.`)
  }
  const lines = await landWorktree(context, directoryOf(context, flags), { name, message, commit })
  context.stdout.write(lines.map(line => `${line}\n`).join(''))
  return 0
}
