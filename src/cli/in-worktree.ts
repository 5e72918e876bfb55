import { resolve } from 'node:path'
import { recordsAround } from '../session/records.ts'
import { formatCount } from '../ui/format-count.ts'
import { dropUnused, openWorktree, type Worktree } from '../workspace/worktree.ts'
import { shellWord } from './as-typed.ts'
import type { CliContext } from './context.ts'
import type { RunFlags } from './flags.ts'

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
    else if (worktree.isNew) await dropUnused(worktree, env)
  }
}

/** Whether a session has ever begun in a directory. */
export async function holdsSession(context: CliContext, directory: string): Promise<boolean> {
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
