import { openScratchFolder, type ScratchFolder } from './fingerprint/scratch-checkout.ts'
import { unreadThen } from './gate-paths.ts'
import { runGitOrThrow } from './git/git.ts'
import type { PrivateGit } from './git/private-git.ts'

interface CounterCheckoutOptions {
  git: PrivateGit
  /** As of `openScratchFolder`. */
  key: string
  /** The tree that the work began with, and the one that it came to. */
  start: string
  tree: string
}

/** The most files, and bytes, that are checked out. */
const MOST_FILES = 50_000
const MOST_BYTES = 2 * 1024 * 1024 * 1024

/**
 * Opens a folder outside of the work directory, in which the files that the work began with can be laid out, with some of its
 * changes or all. A problem is a part of a sentence: it is too large, or the files of then are gone.
 */
export async function openCounterCheckout(
  options: CounterCheckoutOptions,
): Promise<ScratchFolder | { problem: string }> {
  const { git, start, tree } = options
  try {
    for (const each of [start, tree]) {
      const { files, bytes } = await sizeOf(git, each)
      if (files > MOST_FILES || bytes > MOST_BYTES)
        return { problem: `a checkout of its own is too large (${files} files, ${Math.ceil(bytes / 1024 / 1024)} MB)` }
    }
    return await openScratchFolder(options)
  } catch (error) {
    return { problem: unreadThen(error) }
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
