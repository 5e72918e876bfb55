import { chmod, lstat, mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findObstacle } from './files/inside-directory.ts'
import { GitError, type GitSetting, runGit, runGitOrThrow, writeToPrivateGit } from './git/git.ts'
import { type CarriedChanges, carriedChanges, type TreeEntry } from './git/objects.ts'
import type { PrivateGit } from './git/private-git.ts'
import { linkIgnoredDependencies } from './worktree/land.ts'

export interface ScratchOptions {
  git: PrivateGit
  /** By which folders that were left behind are known again. */
  key: string
  /** The commit that was checked out when the session was done, and the fingerprint of all there was then. */
  from: string
  tree: string
  /** Those that came after it, one after the other. */
  commits: readonly string[]
}

/** Files laid out: where the work directory lies in it, and its fingerprint. Or a sentence that says why they cannot be. */
export type CheckoutResult = { directory: string; tree: string } | { problem: string }

/**
 * Opens a folder for what was committed, outside of the person's repository, which has no part in it: no checkout, no
 * worktree, no hook and no filter. Disposing of it removes the folder. The caller holds the lock of the run.
 */
export async function openScratchCheckouts(options: ScratchOptions): Promise<ScratchCheckouts> {
  const temporary = await realpath(tmpdir())
  const name = `codemachine-verify-${options.key}-`
  // What a killed one has left.
  const left = (await readdir(temporary)).filter(each => each.startsWith(name))
  for (const each of left) await removeFolder(join(temporary, each))
  const carried = await carriedChanges(options.git, options)
  return new ScratchCheckouts(options, carried, await mkdtemp(join(temporary, name)))
}

/** One at a time: each takes the place of the one before. */
export class ScratchCheckouts implements AsyncDisposable {
  readonly #options: ScratchOptions
  readonly #carried: CarriedChanges
  readonly #folder: string

  constructor(options: ScratchOptions, carried: CarriedChanges, folder: string) {
    this.#options = options
    this.#carried = carried
    this.#folder = folder
  }

  /** All that there was when the session was done, committed or not. */
  async layCertified(): Promise<CheckoutResult> {
    return await this.#lay(this.#options.from, this.#carried.at(-1))
  }

  /** The nth of the commits, from 0, with what was not committed when the session was done and not touched since. */
  async layCommit(index: number): Promise<CheckoutResult> {
    const commit = this.#options.commits[index]
    if (commit === undefined) throw new RangeError(`There is no commit ${index}.`)
    const submodule = this.#carried.submoduleChanged(index)
    if (submodule !== null) return { problem: `the submodule ${readable(submodule)} changed on the way` }
    return await this.#lay(commit, this.#carried.at(index))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeFolder(this.#folder)
  }

  async #lay(commit: string, changes: readonly TreeEntry[]): Promise<CheckoutResult> {
    const { git } = this.#options
    const top = join(this.#folder, 'files')
    await removeFolder(top)
    await mkdir(top)
    const setting = this.#settingAt(top)
    try {
      return await writeToPrivateGit(git.gitDir, async () => {
        const tree = await fillIndex(setting, git.prefix, commit, changes)
        await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'checkout-index', '--all', '--force', '--quiet'])
        const obstacle = await findObstacle(top, git.prefix)
        if (obstacle !== null && obstacle.kind !== 'missing') return { problem: `${git.prefix} is no folder there` }
        const directory = join(top, git.prefix)
        await mkdir(directory, { recursive: true })
        await linkIgnoredDependencies(git, top)
        return { directory, tree }
      })
    } catch (error) {
      if (error instanceof GitError) return { problem: `its files cannot be read (${error.message})` }
      throw error
    }
  }

  #settingAt(top: string): GitSetting {
    const { setting } = this.#options.git
    const env = { ...setting.env, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(this.#folder, 'index') }
    return { ...setting, directory: top, env }
  }
}

/** Answers the tree that the index then has for the work directory. */
async function fillIndex(
  setting: GitSetting,
  prefix: string,
  commit: string,
  changes: readonly TreeEntry[],
): Promise<string> {
  await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'read-tree', '--reset', commit])
  const input = changes.map(({ mode, hash, path }) => `${mode} ${hash}\t${path}\0`).join('')
  await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'update-index', '-z', '--index-info'], input)
  const whole = (await runGitOrThrow(setting, [...UNSPLIT_INDEX, 'write-tree'])).trim()
  if (prefix === '') return whole
  const part = await runGit(setting, ['rev-parse', '--verify', '--quiet', `${whole}:${prefix.slice(0, -1)}`])
  return part.ok ? part.stdout.trim() : whole
}

async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    await makeFoldersWritable(path)
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A gate may have left folders that are closed even to their owner. */
async function makeFoldersWritable(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return
  await chmod(path, 0o700)
  for (const name of await readdir(path)) await makeFoldersWritable(join(path, name))
}

function readable(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

// The shared part of a split index would stay in the private git directory.
const UNSPLIT_INDEX = ['-c', 'core.splitIndex=false']
