import { rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathExists } from '../../platform/files.ts'
import { recordsAround } from '../../records/records.ts'
import { shellWord } from '../../words/commands.ts'
import { formatCount } from '../../words/numbers.ts'
import { memoryRoot } from '../../workspace/memory/session-memory.ts'
import { copySpecification } from '../../workspace/worktree/land.ts'
import { openWorktree, removeUnusedWorktree, type Worktree } from '../../workspace/worktree/worktree.ts'
import type { RunFlags } from '../run-flags.ts'
import type { CliContext } from '../world.ts'

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
    const wasThere = await pathExists(join(there, memoryRoot))
    try {
      const said = (await copySpecification(directory, there))
        ? 'The specification and the files beside it were copied there.'
        : 'What is built is what the specification there asks for.'
      context.stderr.write(`${said}\n`)
      return await begin(inside)
    } finally {
      // So that a worktree in which nothing could begin can be taken away again.
      if (!wasThere && !(await holdsSession(context, there))) {
        await rm(join(there, memoryRoot), { recursive: true, force: true })
      }
    }
  })
}

/**
 * Has something run in a worktree of its own, as `--worktree` asks, and tells a person where that is and how to land it.
 * A worktree that was made for what could not begin is taken away again.
 */
export async function inWorktree(
  context: CliContext,
  { worktree: wanted, ...flags }: RunFlags,
  work: (flags: RunFlags) => Promise<number>,
): Promise<number> {
  const { env, cwd, clock, stderr } = context
  const worktree = await openWorktree({
    directory: resolve(cwd, flags.cd ?? '.'),
    name: typeof wanted === 'string' ? wanted : null,
    env,
    now: new Date(clock.now()),
  })
  stderr.write(`${whereItWorks(worktree)}\n`)
  try {
    return await work({ ...flags, cd: worktree.directory })
  } finally {
    // Also where a night has been cut short, by a disk that was full for one.
    if (await holdsSession(context, worktree.directory)) stderr.write(`${howToLand(worktree)}\n`)
    else if (worktree.isNew) await removeUnusedWorktree(worktree, env)
  }
}

/** Whether a session has ever begun in a directory. */
async function holdsSession(context: CliContext, directory: string): Promise<boolean> {
  const [records] = await recordsAround({ ...context, directory })
  const sessions = (await records?.sessions().catch(() => [])) ?? []
  return sessions.length > 0
}

function whereItWorks({ directory, branch, isNew, uncommitted, main }: Worktree): string {
  const where = `This works in ${directory}, on the ${isNew ? 'new ' : ''}branch ${branch}.`
  if (uncommitted.length === 0) return where
  const settings = uncommitted.includes('codemachine.toml') ? ' (codemachine.toml is among them)' : ''
  const what = formatCount(uncommitted.length, 'change')
  return `${where}\nWhat is not committed in ${main} is not in there: ${what}${settings}.`
}

function howToLand({ name, branch, main, directory }: Worktree): string {
  return `The work lies on the branch ${branch}, in ${directory}. To merge it: codemachine land ${name} -C ${shellWord(main)}`
}
