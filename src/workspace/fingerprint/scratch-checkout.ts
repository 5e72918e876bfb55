import { chmod, copyFile, lstat, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findObstacle } from '../files/inside-directory.ts'
import {
  fromLatin1,
  GitError,
  type GitSetting,
  type PersonRepository,
  runGit,
  runGitOrThrow,
  UNSPLIT_INDEX,
  withVariables,
  writeToPrivateGit,
} from '../git/git.ts'
import { type CarriedChanges, carriedChanges, type TreeEntry } from '../git/objects.ts'
import type { PrivateGit } from '../git/private-git.ts'
import { linkIgnoredDependencies } from '../worktree/land.ts'

interface ScratchOptions {
  git: PrivateGit
  /** Identifies the folders of earlier runs that were killed, so that they can be removed. */
  key: string
  /** Checked-out commit when the session was done. */
  from: string
  /** Fingerprint of all files at that time. */
  tree: string
  /** Commits after `from`, oldest first. */
  commits: readonly string[]
}

/** Files written to the scratch folder: the work directory in it and its fingerprint; or a sentence on why that failed. */
export type CheckoutResult = { directory: string; tree: string } | { problem: string }

/** Opens the checkouts of a scratch folder. The caller holds the run lock. */
export async function openScratchCheckouts(options: ScratchOptions): Promise<ScratchCheckouts> {
  const carried = await carriedChanges(options.git, options)
  return new ScratchCheckouts(options, carried, await openScratchFolder(options))
}

/** Checks out one state after another in the same folder; each replaces the one before. */
export class ScratchCheckouts implements AsyncDisposable {
  readonly #options: ScratchOptions
  readonly #carried: CarriedChanges
  readonly #folder: ScratchFolder

  constructor(options: ScratchOptions, carried: CarriedChanges, folder: ScratchFolder) {
    this.#options = options
    this.#carried = carried
    this.#folder = folder
  }

  /** Checks out the files of the moment when the session was done, committed or not. */
  async layCertified(): Promise<CheckoutResult> {
    return await this.#folder.lay(this.#options.from, '', this.#carried.at(-1))
  }

  /** Checks out commit `index` (from 0), with the then uncommitted files that no commit has changed since. */
  async layCommit(index: number): Promise<CheckoutResult> {
    const commit = this.#options.commits[index]
    if (commit === undefined) throw new RangeError(`There is no commit ${index}.`)
    const submodule = this.#carried.submoduleChanged(index)
    if (submodule !== null) return { problem: `the submodule ${fromLatin1(submodule)} changed on the way` }
    return await this.#folder.lay(commit, '', this.#carried.at(index))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]()
  }
}

/**
 * Creates a temporary folder for checkouts through the private git directory. Uses no checkout, worktree, hook or filter of
 * the person's repository. Disposal removes the folder.
 * @param options.key identifies the folders of earlier runs that were killed; they are removed first
 */
export async function openScratchFolder({ git, key }: Pick<ScratchOptions, 'git' | 'key'>): Promise<ScratchFolder> {
  const temporary = await realpath(tmpdir())
  await removeScratchLeft(key)
  return new ScratchFolder(git, await mkdtemp(join(temporary, nameFor(key))))
}

/** Removes the folders of a killed run. The caller holds the run lock. */
export async function removeScratchLeft(key: string): Promise<void> {
  const temporary = await realpath(tmpdir())
  const left = (await readdir(temporary)).filter(each => each.startsWith(nameFor(key)))
  for (const each of left) await removeFolder(join(temporary, each))
}

function nameFor(key: string): string {
  return `codemachine-verify-${key}-`
}

/** Checks out one set of files after another; each replaces the one before. */
export class ScratchFolder implements AsyncDisposable {
  readonly #git: PrivateGit
  readonly #folder: string

  constructor(git: PrivateGit, folder: string) {
    this.#git = git
    this.#folder = folder
  }

  /**
   * Checks out a commit or a tree with some changes. Links the ignored dependencies of the work directory.
   * @param at where a tree belongs: relative to git's top, ending in `/`; empty for the top itself
   */
  async lay(what: string, at: string, changes: readonly TreeEntry[]): Promise<CheckoutResult> {
    const git = this.#git
    const top = join(this.#folder, 'files')
    await removeFolder(top)
    await mkdir(top)
    const setting = this.#settingAt(top)
    try {
      return await writeToPrivateGit(git.gitDir, async () => {
        const tree = await this.#fillIndex(setting, { what, at, changes })
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

  /**
   * Checks out a commit like `lay`, as a branch of a separate repository that borrows the person's objects: programs there
   * can use git and change nothing elsewhere. It has the person's ignore rules. `gitDir`: of this repository.
   */
  async layRepository(
    commit: string,
    branch: string,
    { commonDir }: Pick<PersonRepository, 'commonDir'>,
  ): Promise<{ directory: string; top: string; gitDir: string } | { problem: string }> {
    const laid = await this.lay(commit, '', [])
    if ('problem' in laid) return laid
    const top = join(this.#folder, 'files')
    const gitDir = join(top, '.git')
    const { GIT_DIR: _, GIT_WORK_TREE: __, ...env } = this.#git.setting.env
    const run = (args: readonly string[]) => runGitOrThrow({ ...this.#git.setting, directory: top, env }, args)
    await run(['init', '-q', '--template=', '-b', branch, `--object-format=${this.#git.objectFormat}`])
    await writeFile(join(gitDir, 'objects', 'info', 'alternates'), `${join(commonDir, 'objects')}\n`)
    await mkdir(join(gitDir, 'info'), { recursive: true })
    await copyFile(join(this.#git.gitDir, 'info', 'exclude'), join(gitDir, 'info', 'exclude'))
    await run(['update-ref', 'HEAD', commit])
    await run(['read-tree', 'HEAD'])
    await run(['update-index', '-q', '--refresh']).catch(() => {})
    return { directory: laid.directory, top, gitDir }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await removeFolder(this.#folder)
  }

  /** Fills an index, and returns the tree of the work directory in it. */
  async #fillIndex(
    setting: GitSetting,
    { what, at, changes }: { what: string; at: string; changes: readonly TreeEntry[] },
  ): Promise<string> {
    const { prefix } = this.#git
    const run = (args: readonly string[], input?: string) => runGitOrThrow(setting, [...UNSPLIT_INDEX, ...args], input)
    // With a prefix, git adds to the index instead of replacing it.
    if (at !== '') await run(['read-tree', '--empty'])
    await run(['read-tree', ...(at === '' ? [] : [`--prefix=${at}`]), what])
    const input = changes.map(({ mode, hash, path }) => `${mode} ${hash}\t${path}\0`).join('')
    if (input !== '') await run(['update-index', '-z', '--index-info'], input)
    const whole = (await run(['write-tree'])).trim()
    if (prefix === '') return whole
    const part = await runGit(setting, ['rev-parse', '--verify', '--quiet', `${whole}:${prefix.slice(0, -1)}`])
    return part.ok ? part.stdout.trim() : whole
  }

  #settingAt(top: string): GitSetting {
    const variables = { GIT_WORK_TREE: top, GIT_INDEX_FILE: join(this.#folder, 'index') }
    return { ...withVariables(this.#git.setting, variables), directory: top }
  }
}

async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    await makeFoldersWritable(path)
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** Gives the owner all rights on an existing folder and its subfolders: a gate may have removed them. */
async function makeFoldersWritable(path: string): Promise<void> {
  const found = await lstat(path).catch(() => null)
  if (!found?.isDirectory()) return
  await chmod(path, 0o700)
  for (const name of await readdir(path)) await makeFoldersWritable(join(path, name))
}
