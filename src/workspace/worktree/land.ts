import type { Dirent } from 'node:fs'
import {
  constants,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  opendir,
  readdir,
  readlink,
  realpath,
  rm,
  symlink,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { systemErrorCode, UserError } from '../../base/errors.ts'
import { findObstacle, makeFolderInside, readTextFile } from '../files/inside-directory.ts'
import { copyIndex, findRepository, fromLatin1, runGit, withVariables } from '../git/git.ts'
import type { PrivateGit } from '../git/private-git.ts'
import { projectFolders } from '../memory/memory-paths.ts'
import { makeProjectFolders, specificationFile, specificationGuide } from '../memory/plan-files.ts'
import {
  BRANCH_PREFIX,
  type Checkout,
  gitErrorLine,
  isWorktreeName,
  type ListedWorktree,
  listUncommitted,
  listWorktrees,
  refuseForgedWorktree,
  runGitIn,
  runGitOrUserError,
  worktreeLocation,
} from './worktree.ts'

/** A branch made by codemachine, and its worktree. */
export interface LandableBranch {
  name: string
  branch: string
  /** The top folder of its worktree; `null` if that no longer exists. */
  top: string | null
  /** How many commits it has that the checkout does not have. */
  ahead: number
  /** Uncommitted files in the worktree. */
  uncommitted: readonly string[]
}

/** The result of a landing. Only `landed` has changed anything. */
export type LandingResult =
  | { kind: 'landed'; commit: string; into: string; files: number }
  | { kind: 'nothing-new'; into: string }
  /** `files`: changed on both sides. */
  | { kind: 'conflict'; into: string; files: readonly string[] }
  /** `files`: uncommitted in the checkout, and the merge would overwrite them. */
  | { kind: 'in-the-way'; into: string; files: readonly string[] }

/** The branches made by codemachine, compared to a checkout, by name. `wanted`: only the branch of this name. */
export async function listLandableBranches(checkout: Checkout, wanted: string | null): Promise<LandableBranch[]> {
  const format = '--format=%(refname:lstrip=2)'
  const args = ['for-each-ref', format, `refs/heads/${BRANCH_PREFIX}`]
  const text = await runGitOrUserError(checkout, args, 'list the branches')
  const worktrees = await listWorktrees(checkout.setting)
  const found: LandableBranch[] = []
  for (const branch of text.split('\n')) {
    const name = branch.slice(BRANCH_PREFIX.length)
    if (!isWorktreeName(name) || (wanted !== null && name !== wanted)) continue
    const range = `HEAD..refs/heads/${branch}`
    const count = await runGitOrUserError(checkout, ['rev-list', '--count', range, '--'], 'count commits')
    const top = await findWorktreeTop(checkout, name, worktrees)
    const uncommitted = top === null ? [] : await listUncommitted(await openUntrustedWorktree(checkout, top))
    found.push({ name, branch, top, ahead: Number(count), uncommitted })
  }
  return found
}

/**
 * The branch that is checked out. Throws a `UserError` if there is none, or if it is a worktree branch of codemachine.
 */
export async function readTargetBranch(checkout: Checkout): Promise<string> {
  const { ok, stdout } = await runGitIn(checkout, ['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const branch = fromLatin1(stdout).trim()
  const { root } = checkout.repository
  if (!ok)
    throw new UserError('CM0514', `No branch is checked out in ${root}, so there is none to merge into; switch to one.`)
  if (!branch.startsWith(BRANCH_PREFIX)) return branch
  throw new UserError('CM0514', `${root} is a worktree on ${branch} itself; run this in ${checkout.main}.`)
}

/**
 * Commits all uncommitted changes of a worktree on top of its branch and returns the commit. Branch, index and files
 * stay unchanged until `advanceWorktreeBranch`. Throws a `UserError` in the middle of a merge.
 */
export async function commitUncommitted(checkout: Checkout, top: string, message: string): Promise<string> {
  const worktree = await openUntrustedWorktree(checkout, top)
  const unmerged = await runGitOrUserError(worktree, ['ls-files', '--unmerged', '-z'], `look at the index of ${top}`)
  if (unmerged !== '' || (await runGitIn(worktree, ['rev-parse', '--verify', '--quiet', 'MERGE_HEAD'])).ok) {
    throw new UserError(
      'CM0514',
      `In ${top} a merge was begun and not finished; finish it there, or give it up, and land again.`,
    )
  }
  const whereIndexIs = ['rev-parse', '--path-format=absolute', '--git-path', 'index']
  const index = await runGitOrUserError(worktree, whereIndexIs, 'find the index')
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-land-'))
  try {
    // A copy of the index saves reading unchanged files.
    await copyIndex(index.trimEnd(), join(folder, 'index')).catch(() => {})
    const there = { setting: withVariables(worktree.setting, { GIT_INDEX_FILE: join(folder, 'index') }) }
    await runGitOrUserError(there, ['add', '--all'], `add what is changed in ${top}`)
    const tree = await readGitLine(there, ['write-tree'], `write what is changed in ${top}`)
    const args = ['commit-tree', '--no-gpg-sign', '-p', 'HEAD', '-m', message.trim(), tree]
    return await readGitLine(there, args, `commit in ${top}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Moves the branch and the index of a worktree to a commit of `commitUncommitted`. The files have that content already.
 */
export async function advanceWorktreeBranch(checkout: Checkout, top: string, commit: string): Promise<void> {
  const { setting } = await openUntrustedWorktree(checkout, top)
  const named = { setting: withVariables(setting, { GIT_REFLOG_ACTION: 'codemachine land' }) }
  const what = `take the branch of ${top} forward to ${commit}, which is merged now`
  await runGitOrUserError(named, ['reset', '-q', commit], what)
}

/**
 * Merges a branch into the checked-out one by a merge commit. `aside`: merges this commit of `commitUncommitted`
 * instead of the branch. The merge commit is made first, and the checkout then fast-forwarded to it, which git does
 * wholly or not at all. Throws a `UserError` with git's reason if that fails.
 */
export async function landBranch(
  checkout: Checkout,
  { branch, aside, message }: { branch: string; aside: string | null; message: string },
): Promise<LandingResult> {
  const into = await readTargetBranch(checkout)
  const ours = await readGitLine(checkout, ['rev-parse', '--verify', 'HEAD^{commit}'], 'find the last commit')
  const ref = `${aside ?? `refs/heads/${branch}`}^{commit}`
  const theirs = await readGitLine(checkout, ['rev-parse', '--verify', ref], `find ${branch}`)
  if ((await runGitIn(checkout, ['merge-base', '--is-ancestor', theirs, ours])).ok) return { kind: 'nothing-new', into }

  const flags = ['--write-tree', '--name-only', '--no-messages', '-z']
  const merged = await runGitIn(checkout, ['merge-tree', ...flags, ours, theirs])
  const [tree = '', ...files] = fromLatin1(merged.stdout)
    .split('\0')
    .filter(part => part !== '')
  if (!/^[0-9a-f]{40,64}$/.test(tree)) throw mergeFailure(merged.stderr, branch, gitErrorLine(merged))
  if (!merged.ok) return { kind: 'conflict', into, files: [...new Set(files)] }

  const parents = ['-p', ours, '-p', theirs]
  const commit = await readGitLine(checkout, ['commit-tree', tree, ...parents, '-m', message], 'make the merge')
  const changed = await runGitOrUserError(checkout, ['diff-tree', '-r', '--name-only', '-z', ours, commit], 'compare')
  const inTheWay = await fastForward(checkout, { commit, from: ours, branch, into })
  if (inTheWay.length > 0) return { kind: 'in-the-way', into, files: inTheWay }
  return { kind: 'landed', commit, into, files: changed.split('\0').length - 1 }
}

/** As `runGitOrUserError`, for a command that prints one line. */
async function readGitLine(...command: Parameters<typeof runGitOrUserError>): Promise<string> {
  return (await runGitOrUserError(...command)).trim()
}

/** The top folder of the worktree of a name; `null` if it no longer exists. */
async function findWorktreeTop(
  { main }: Checkout,
  name: string,
  worktrees: readonly ListedWorktree[],
): Promise<string | null> {
  const listed = worktrees.find(({ branch }) => branch === `${BRANCH_PREFIX}${name}`)
  if (listed !== undefined) return await realpath(listed.directory).catch(() => null)
  const { branch, top } = worktreeLocation(main, name)
  if (!worktrees.some(({ directory }) => directory === top)) return null
  throw new UserError(
    'CM0507',
    `${top} has left ${branch}, so landing would miss the newer work. Switch it back to that branch, or merge its current branch by hand.`,
  )
}

/**
 * Opens a worktree that agents have worked in, with explicit paths of its git directory, so that a pointer forged there
 * cannot lead git elsewhere.
 */
export async function openUntrustedWorktree(checkout: Checkout, top: string): Promise<Pick<Checkout, 'setting'>> {
  await refuseForgedWorktree(checkout, top)
  const { gitDir, commonDir } = (await findRepository(top)) ?? checkout.repository
  const variables = { GIT_DIR: gitDir, GIT_COMMON_DIR: commonDir, GIT_WORK_TREE: top }
  return { setting: { ...withVariables(checkout.setting, variables), directory: top } }
}

function mergeFailure(stderr: string, branch: string, why: string): UserError {
  if (!stderr.includes('usage: git merge-tree'))
    return new UserError('CM0504', `git could not merge ${branch}: ${why}.`)
  return new UserError(
    'CM0514',
    `This git is too old to find a conflict before it touches anything (2.38 can); update it, or merge ${branch} by hand.`,
    { hint: `By hand: git merge --no-ff ${branch}` },
  )
}

/** Fast-forwards the checkout. Returns the files in the way, and has then changed nothing. */
async function fastForward(
  checkout: Checkout,
  { commit, from, branch, into }: { commit: string; from: string; branch: string; into: string },
): Promise<string[]> {
  const { setting, repository } = checkout
  const named = { setting: withVariables(setting, { GIT_REFLOG_ACTION: `merge ${branch}` }) }
  const flags = ['--ff-only', '--no-autostash', '--no-verify-signatures', '--no-overwrite-ignore', '-q']
  const result = await runGitIn(named, ['merge', ...flags, commit])
  if (result.ok) return []
  const now = await runGitIn(checkout, ['rev-parse', '--verify', 'HEAD^{commit}'])
  if (now.stdout.trim() !== from || /index\.lock|cannot lock ref/.test(result.stderr)) {
    throw new UserError(
      'CM0514',
      `Something else changes ${into} in ${repository.root} just now, so nothing was merged; land again.`,
    )
  }
  const files = [...fromLatin1(result.stderr).matchAll(/^\t(.+)$/gm)].map(([, path = '']) => path)
  if (files.length > 0) return files
  throw new UserError('CM0504', `git could not fast-forward ${repository.root} to the merge: ${gitErrorLine(result)}.`)
}

/**
 * Names of ignored files and folders that a project needs to run: installed dependencies and local settings. Build
 * results are not among them, as they must be built anew.
 */
const DEPENDENCIES = new Set([
  'node_modules',
  'bower_components',
  'jspm_packages',
  '.yarn',
  '.pnp.cjs',
  '.pnp.loader.mjs',
  '.npmrc',
  '.venv',
  'venv',
  'vendor',
  '.bundle',
  'Pods',
  'deps',
  'elm-stuff',
  '.cargo',
  '.gradle',
  '.m2',
  '.env',
  '.env.local',
  '.env.test',
  '.env.test.local',
])

/** Folders that tools write into `node_modules` while they run. */
const CACHES = new Set(['.cache', '.vite', '.vite-temp', '.tmp', '.vitest'])

/** Links ignored dependencies and local settings from the person's files into `top`, wherever nothing else is. */
export async function linkIgnoredDependencies({ setting }: PrivateGit, top: string): Promise<void> {
  const args = ['ls-files', '-o', '-i', '-z', '--exclude-standard', '--directory']
  const { ok, stdout } = await runGit(setting, args)
  if (!ok) return
  const found = stdout.split('\0').map(entry => dependenciesAround(fromLatin1(entry).replace(/\/$/, '')))
  for (const path of new Set(found)) if (path !== null) await link(join(setting.directory, path), top, path)
}

/** The outermost dependencies that a path is or lies in, for one with a file that is not ignored is listed by its parts; null: it does not. */
function dependenciesAround(path: string): string | null {
  const parts = path.split('/')
  const at = parts.findIndex(part => DEPENDENCIES.has(part))
  return at === -1 ? null : parts.slice(0, at + 1).join('/')
}

/** Does not write through a committed link, which may lead anywhere. */
async function link(from: string, top: string, path: string): Promise<void> {
  const folder = dirname(path)
  if (folder !== '.' && (await findObstacle(top, folder)) !== null) return
  const to = join(top, path)
  const isModules = basename(path) === 'node_modules' && (await lstat(from)).isDirectory()
  const there = await lstat(to).catch(() => null)
  // A program in there that a gate runs is a part of the tree, and stays as that has it.
  if (there !== null && !(isModules && there.isDirectory())) return
  if (isModules) await linkEach(from, to, isScopeFolder)
  else await symlink(from, to)
}

/**
 * Fills a folder with a link to each entry of another that is not there yet. Links among the entries are copied: in a workspace they lead to
 * a neighbouring package, which must be the one checked out and not the person's.
 */
async function linkEach(from: string, to: string, goesInto: (entry: Dirent) => boolean): Promise<void> {
  await mkdir(to, { recursive: true })
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    if (CACHES.has(entry.name)) continue
    const there = await lstat(target).catch(() => null)
    if (there?.isDirectory() && entry.isDirectory()) await linkEach(source, target, () => false)
    if (there !== null) continue
    if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (goesInto(entry)) await linkEach(source, target, () => false)
    // A package manager's list, which tools rewrite.
    else if (entry.isFile()) await copyFile(source, target)
    else await symlink(source, target)
  }
}

/** Whether a folder is an npm scope (`@scope`), which contains packages. */
function isScopeFolder(entry: Dirent): boolean {
  return entry.isDirectory() && entry.name.startsWith('@')
}

/**
 * Copies the inputs folder of a work directory, with its specification, into another one that has no specification yet.
 * Returns false, and copies nothing, if it has one. Overwrites nothing; leaves out links and names that begin with a
 * dot. Throws a `UserError` if the copy cannot be written.
 */
export async function copySpecification(from: string, to: string): Promise<boolean> {
  const [source, target] = [await realpath(from), await realpath(to)]
  await makeProjectFolders(target)
  if (await hasSpecification(target)) return false
  await rm(join(target, specificationFile), { force: true })
  try {
    await copyFolder(source, target, projectFolders.inputs)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === null) throw error
    throw new UserError('CM0510', `The specification cannot be copied to ${target} (${code}).`, { cause: error })
  }
  return true
}

/** Whether there is a specification, and not only the guide. */
async function hasSpecification(root: string): Promise<boolean> {
  const read = await readTextFile(join(root, specificationFile), MOST_GUIDE_BYTES)
  return read.kind === 'broken' || (read.kind === 'text' && read.text.trim() !== specificationGuide().trim())
}

/** A larger file cannot be the guide. */
const MOST_GUIDE_BYTES = 64 * 1024

async function copyFolder(from: string, to: string, folder: string): Promise<void> {
  // An agent could have replaced it by a link.
  if ((await findObstacle(from, folder)) !== null || (await makeFolderInside(to, folder)) !== null) return
  for await (const entry of await opendir(join(from, folder))) {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) await copyFolder(from, to, path)
    if (entry.isFile()) await copyNew(join(from, path), join(to, path))
  }
}

/** Follows no link in the place of the copy. */
async function copyNew(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error
  })
}
