import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathExists } from '../../platform/path-exists.ts'
import { copyInputs } from '../../workspace/copy-inputs.ts'
import { memoryHome } from '../../workspace/memory-home.ts'
import type { CliContext } from '../context.ts'
import type { RunFlags } from '../flags.ts'
import { holdsSession, inWorktree } from '../in-worktree.ts'

/**
 * Has a session that builds by the specification of `directory` run in a worktree, as `--worktree` asks. The memory is not
 * in git, so the specification is brought there, unless that worktree has one of its own.
 */
export async function startInWorktree(
  context: CliContext,
  flags: RunFlags,
  directory: string,
  begin: (inside: RunFlags) => Promise<number>,
): Promise<number> {
  return await inWorktree(context, flags, async inside => {
    const there = inside.cd ?? directory
    const wasThere = await pathExists(join(there, memoryHome))
    try {
      const said = (await copyInputs(directory, there))
        ? 'The specification and the files beside it were copied there.'
        : 'What is built is what the specification there asks for.'
      context.stderr.write(`${said}\n`)
      return await begin(inside)
    } finally {
      // So that a worktree in which nothing could begin can be taken away again.
      if (!wasThere && !(await holdsSession(context, there))) {
        await rm(join(there, memoryHome), { recursive: true, force: true })
      }
    }
  })
}
