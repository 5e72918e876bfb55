import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathExists } from '../../platform/files.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { recordsAround } from '../../session/records/records.ts'
import { formatCount } from '../../tell/words/numbers.ts'
import { memoryRoot } from '../../workspace/memory/memory-paths.ts'
import { copySpecification, listLandableBranches } from '../../workspace/worktree/land.ts'
import { openCheckout, openWorktree, removeUnusedWorktree, type Worktree } from '../../workspace/worktree/worktree.ts'
import type { RunOptions } from '../library.ts'
import { directoryOf, type World } from '../world.ts'
import { isSetUpPending, setUpWorktree } from './set-up-worktree.ts'

/** The wanted worktree of the repository around `directory`, and the options of its run. */
export interface WantedWorktree extends RunOptions {
  /** Null: any new one. */
  name: string | null
}

/**
 * Runs a session that builds the specification of `directory` in a worktree, as `--worktree` asks. The memory is not in git,
 * so it copies the specification there, unless that worktree has its own.
 */
export async function startInWorktree(
  world: World,
  wanted: WantedWorktree,
  say: (sentence: string) => void,
  begin: (inside: string) => Promise<number>,
): Promise<number> {
  const directory = directoryOf(world, wanted)
  return await inWorktree(world, wanted, say, async there => {
    const wasThere = await pathExists(join(there, memoryRoot))
    try {
      const said = (await copySpecification(directory, there))
        ? 'The specification and the files beside it were copied there.'
        : 'codemachine builds from the specification there.'
      say(said)
      return await begin(there)
    } finally {
      // Remove it so that an unused worktree can be removed too.
      if (!wasThere && !(await holdsSession(world, there))) {
        await rm(join(there, memoryRoot), { recursive: true, force: true })
      }
    }
  })
}

/**
 * Runs work in its own worktree, as `--worktree` asks, and tells a person where it is and how to land it. Removes a new
 * worktree if nothing could begin in it.
 * @param say receives lines for the person
 * @param work receives the worktree, an absolute path
 */
export async function inWorktree(
  world: World,
  { name, ...options }: WantedWorktree,
  say: (sentence: string) => void,
  work: (inside: string) => Promise<number>,
): Promise<number> {
  const { env, clock } = world
  const worktree = await openWorktree({
    directory: directoryOf(world, options),
    name,
    env,
    now: new Date(clock.now()),
  })
  say(whereItWorks(worktree))
  const [records] = await recordsAround({ ...world, directory: worktree.directory })
  const isPending = async () => records !== undefined && (await isSetUpPending(records))
  try {
    if (worktree.isNew || (await isPending()) || !(await holdsSession(world, worktree.directory)))
      await setUpWorktree(world, worktree, options, say)
    return await work(worktree.directory)
  } finally {
    // Also after an interrupted night, for example by a full disk.
    if (await holdsSession(world, worktree.directory)) say(howToLand(worktree, await countUncommitted(worktree, env)))
    else if (worktree.isNew && !(await isPending())) await removeUnusedWorktree(worktree, env)
  }
}

/** Returns whether a session has ever begun in a directory. */
async function holdsSession(world: World, directory: string): Promise<boolean> {
  const [records] = await recordsAround({ ...world, directory })
  const sessions = (await records?.sessions().catch(() => [])) ?? []
  return sessions.length > 0
}

function whereItWorks({ directory, branch, isNew, uncommitted, main }: Worktree): string {
  const where = `This session works in ${directory}, on the ${isNew ? 'new ' : ''}branch ${branch}.`
  if (uncommitted.length === 0) return where
  const settings = uncommitted.includes('codemachine.toml') ? ' (codemachine.toml is among them)' : ''
  const what = formatCount(uncommitted.length, 'change')
  return `${where}\nUncommitted files of ${main} are not in there: ${what}${settings}.`
}

/** Returns how many files of a worktree are uncommitted; 0 if git cannot tell, which `land` then reports. */
async function countUncommitted({ name, main }: Worktree, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const [branch] = await listLandableBranches(await openCheckout(main, env), name)
    return branch?.uncommitted.length ?? 0
  } catch {
    return 0
  }
}

function howToLand({ name, branch, main, directory }: Worktree, uncommitted: number): string {
  const isCommitted = uncommitted === 0
  const left = isCommitted
    ? ''
    : `; ${formatCount(uncommitted, 'change')} of it ${uncommitted === 1 ? 'is' : 'are'} not committed`
  const commit = isCommitted ? '' : ' --commit "…"'
  return `The work lies on the branch ${branch}, in ${directory}${left}. To merge it: codemachine land ${name} -C ${shellWord(main)}${commit}`
}
