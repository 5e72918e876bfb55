import { openScratchFolder, type ScratchFolder } from './fingerprint/scratch-checkout.ts'
import { unreadThen } from './gate-paths.ts'
import { runGitOrThrow } from './git/git.ts'
import type { PrivateGit } from './git/private-git.ts'

interface CounterCheckoutOptions {
  git: PrivateGit
  /** Key as of `openScratchFolder`. */
  key: string
  /** Trees at the start and at the end of the work. */
  start: string
  tree: string
}

/** Most files and bytes of a checkout. */
const MOST_FILES = 50_000
const MOST_BYTES = 2 * 1024 * 1024 * 1024

/**
 * Opens a folder outside of the work directory. Files of the start of the work can be checked out there with its changes. A
 * problem is a clause: too large, or the earlier files are gone. `byWork`: the work made it too large.
 */
export async function openCounterCheckout(
  options: CounterCheckoutOptions,
): Promise<ScratchFolder | { problem: string; byWork: boolean }> {
  const { git, start, tree } = options
  try {
    for (const each of new Set([start, tree])) {
      const { files, bytes } = await sizeOf(git, each)
      if (files > MOST_FILES || bytes > MOST_BYTES)
        return {
          problem: `a checkout of its own is too large (${files} files, ${Math.ceil(bytes / 1024 / 1024)} MB)`,
          byWork: each !== start,
        }
    }
    return await openScratchFolder(options)
  } catch (error) {
    return { problem: unreadThen(error), byWork: false }
  }
}

async function sizeOf(git: PrivateGit, tree: string): Promise<{ files: number; bytes: number }> {
  const listed = await runGitOrThrow(git.setting, ['ls-tree', '-r', '-l', '-z', '--full-tree', tree])
  let files = 0
  let bytes = 0
  for (const [, size] of listed.matchAll(/(?:^|\0)\d{6} \w+ [0-9a-f]+ +(\d+|-)\t/g)) {
    files += 1
    bytes += size === '-' ? 0 : Number(size)
  }
  return { files, bytes }
}
