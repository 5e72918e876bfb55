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
import { quotedName } from '../../base/text.ts'
import { pathExists } from '../../platform/files.ts'
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
  /** Top folder of its worktree; `null` if that no longer exists. */
  top: string | null
  /** Number of commits that the checkout does not have. */
  ahead: number
  /** Uncommitted files in the worktree. */
  uncommitted: readonly string[]
}

/** The branch to land work on. */
export interface LandingTarget {
  branch: string
  /** Last commit of the branch. */
  commit: string
  /** True if the checkout is on it: then its files move too. */
  isCheckedOut: boolean
}

/** A merge without effect yet: nothing refers to its commit. */
export interface MergeAside {
  kind: 'merged'
  commit: string
  /** The two merged commits. */
  ours: string
  theirs: string
  /** Number of files that it changes on the target. */
  files: number
}

/** The result of a merge aside, which changes nothing visible. */
export type MergeResult =
  | MergeAside
  | { kind: 'nothing-new' }
  /** `files`: changed on both sides. */
  | { kind: 'conflict'; files: readonly string[] }
  /** `files`: uncommitted in the checkout, and the merge would overwrite them. */
  | { kind: 'in-the-way'; files: readonly string[] }

/**
 * Returns codemachine's branches, by name. `wanted`: only this branch. `onto`: commit to compare with; undefined: the
 * checkout's.
 */
export async function listLandableBranches(
  checkout: Checkout,
  wanted: string | null,
  onto = 'HEAD',
): Promise<LandableBranch[]> {
  const branches = await listBranches(checkout, BRANCH_PREFIX)
  const worktrees = await listWorktrees(checkout.setting)
  const found: LandableBranch[] = []
  for (const branch of branches) {
    const name = branch.slice(BRANCH_PREFIX.length)
    if (!isWorktreeName(name) || (wanted !== null && name !== wanted)) continue
    const range = `${onto}..refs/heads/${branch}`
    const count = await runGitOrUserError(checkout, ['rev-list', '--count', range, '--'], 'count commits')
    const top = await findWorktreeTop(checkout, name, worktrees)
    const uncommitted = top === null ? [] : await listUncommitted(await openUntrustedWorktree(checkout, top))
    found.push({ name, branch, top, ahead: Number(count), uncommitted })
  }
  return found
}

/** Returns the names of all branches that begin with `prefix`, which is empty or ends in `/`. */
export async function listBranches(checkout: Checkout, prefix = ''): Promise<string[]> {
  const args = ['for-each-ref', '--format=%(refname:lstrip=2)', `refs/heads/${prefix}`]
  const text = await runGitOrUserError(checkout, args, 'list the branches')
  return text.split('\n').filter(name => name !== '')
}

/**
 * Returns the branch `onto`; null: the checked-out one. Throws a `UserError` if it is missing, a worktree branch of
 * codemachine, or checked out in another work tree.
 */
export async function readTarget(checkout: Checkout, onto: string | null): Promise<LandingTarget> {
  const { ok, stdout } = await runGitIn(checkout, ['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const here = ok ? fromLatin1(stdout).trim() : null
  const { root } = checkout.repository
  const branch = onto ?? here
  if (branch === null) {
    throw new UserError('CM0514', `No branch is checked out in ${root}. Name the branch to merge into with --onto.`, {
      hint: 'Such as: codemachine land --onto main',
    })
  }
  if (branch === here && branch.startsWith(BRANCH_PREFIX))
    throw new UserError('CM0514', `${root} is itself the worktree of ${branch}. Run this in ${checkout.main}.`)
  const commit = await runGitIn(checkout, ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}^{commit}`])
  if (!commit.ok || branch.startsWith(BRANCH_PREFIX)) {
    throw new UserError(
      'CM0514',
      `There is no branch ${quotedName(branch)} to merge into. git branch lists the branches.`,
    )
  }
  const others = branch === here ? [] : await listWorktrees(checkout.setting)
  const other = others.find(each => each.branch === branch)
  if (other !== undefined)
    throw new UserError('CM0514', `${branch} is checked out in ${other.directory}. Run this there.`)
  return { branch, commit: commit.stdout.trim(), isCheckedOut: branch === here }
}

/**
 * Commits all uncommitted changes of a worktree on its branch and returns the commit. Branch, index and files stay unchanged
 * until `advanceWorktreeBranch`. Throws a `UserError` during a merge.
 */
export async function commitUncommitted(checkout: Checkout, top: string, message: string): Promise<string> {
  const tree = await treeOfFiles(checkout, top)
  const worktree = await openUntrustedWorktree(checkout, top)
  const args = ['commit-tree', '--no-gpg-sign', '-p', 'HEAD', '-m', message.trim(), tree]
  return await readGitLine(worktree, args, `commit in ${top}`)
}

/** Returns the tree of all files of a worktree, committed or not. */
async function treeOfFiles(checkout: Checkout, top: string): Promise<string> {
  return await treeOfUncommitted(await openUntrustedWorktree(checkout, top), top)
}

/**
 * Returns the tree of a work tree with all uncommitted files that are not ignored. Branch, index and files stay unchanged.
 * Throws a `UserError` during a merge.
 */
export async function treeOfUncommitted(worktree: Pick<Checkout, 'setting'>, top: string): Promise<string> {
  const unmerged = await runGitOrUserError(worktree, ['ls-files', '--unmerged', '-z'], `look at the index of ${top}`)
  if (unmerged !== '' || (await runGitIn(worktree, ['rev-parse', '--verify', '--quiet', 'MERGE_HEAD'])).ok) {
    throw new UserError(
      'CM0514',
      `A merge in ${top} is unfinished. Finish it there, or abort it (git merge --abort), and try again.`,
    )
  }
  const whereIndexIs = ['rev-parse', '--path-format=absolute', '--git-path', 'index']
  const index = await runGitOrUserError(worktree, whereIndexIs, 'find the index')
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-land-'))
  try {
    // A copy of the index saves reading unchanged files.
    await copyIndex(index.trimEnd(), join(folder, 'index')).catch(() => {})
    const there = { setting: withVariables(worktree.setting, { GIT_INDEX_FILE: join(folder, 'index') }) }
    await runGitOrUserError(there, ['add', '--all'], `add the changes in ${top}`)
    return await readGitLine(there, ['write-tree'], `write the changes in ${top}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Moves the branch and the index of a worktree to a commit of `commitUncommitted`. The files already have that content. */
export async function advanceWorktreeBranch(checkout: Checkout, top: string, commit: string): Promise<void> {
  const { setting } = await openUntrustedWorktree(checkout, top)
  const named = { setting: withVariables(setting, { GIT_REFLOG_ACTION: 'codemachine land' }) }
  const what = `move the branch of ${top} to ${commit}, which is now merged`
  await runGitOrUserError(named, ['reset', '-q', commit], what)
}

/**
 * Merges a branch into the target aside, and writes only new objects. `aside`: merges this commit of `commitUncommitted`
 * instead of the branch.
 */
export async function mergeAside(
  checkout: Checkout,
  { branch: into, commit: ours, isCheckedOut }: LandingTarget,
  { branch, aside, message }: { branch: string; aside: string | null; message: string },
): Promise<MergeResult> {
  const theirs = await readGitLine(checkout, ['rev-parse', '--verify', tipOf(branch, aside)], `find ${branch}`)
  if ((await runGitIn(checkout, ['merge-base', '--is-ancestor', theirs, ours])).ok) return { kind: 'nothing-new' }

  const flags = ['--write-tree', '--name-only', '--no-messages', '-z']
  const merged = await runGitIn(checkout, ['merge-tree', ...flags, ours, theirs])
  const [tree = '', ...files] = fromLatin1(merged.stdout)
    .split('\0')
    .filter(part => part !== '')
  if (!/^[0-9a-f]{40,64}$/.test(tree)) throw mergeFailure(merged.stderr, branch, gitErrorLine(merged))
  if (!merged.ok) return { kind: 'conflict', files: [...new Set(files)] }

  const parents = ['-p', ours, '-p', theirs]
  const commit = await readGitLine(checkout, ['commit-tree', tree, ...parents, '-m', message], `merge into ${into}`)
  const changes = ['diff-tree', '-r', '--no-renames', '--name-status', '-z', ours, commit]
  const fields = (await runGitOrUserError(checkout, changes, 'compare')).split('\0')
  const changed = fields.flatMap((path, at) => (at % 2 === 1 ? [{ path, isNew: fields[at - 1] === 'A' }] : []))
  const inTheWay = isCheckedOut ? await uncommittedAmong(checkout, changed) : []
  if (inTheWay.length > 0) return { kind: 'in-the-way', files: inTheWay }
  return { kind: 'merged', commit, ours, theirs, files: changed.length }
}

function tipOf(branch: string, aside: string | null): string {
  return `${aside ?? `refs/heads/${branch}`}^{commit}`
}

/** Returns the files that the person has not committed, or that git ignores. */
async function uncommittedAmong(
  checkout: Checkout,
  changed: readonly { path: string; isNew: boolean }[],
): Promise<string[]> {
  const uncommitted = new Set(await listUncommitted(checkout))
  const isThere = async ({ path, isNew }: { path: string; isNew: boolean }) =>
    uncommitted.has(path) || (isNew && (await pathExists(join(checkout.repository.root, path))))
  const found = await Promise.all(changed.map(async each => ((await isThere(each)) ? [each.path] : [])))
  return found.flat()
}

/**
 * Moves the target to a merge of `mergeAside`: a checkout by a fast-forward, which git does completely or not at all,
 * another branch alone. Returns the files in the way. Then, and if it throws a `UserError` because a side has changed,
 * nothing has moved.
 * @param of as of `mergeAside`; `top`: the worktree, null if it is gone
 */
export async function moveTarget(
  checkout: Checkout,
  target: LandingTarget,
  { commit, ours, theirs }: MergeAside,
  { branch, aside, top }: { branch: string; aside: string | null; top: string | null },
): Promise<string[]> {
  const now = await readTarget(checkout, target.branch)
  if (now.commit !== ours || now.isCheckedOut !== target.isCheckedOut) throw changedMeanwhile(target.branch)
  const tip = await runGitIn(checkout, ['rev-parse', '--verify', tipOf(branch, null)])
  const before = aside === null ? theirs : await readGitLine(checkout, ['rev-parse', `${aside}^`], `find ${branch}`)
  if (tip.stdout.trim() !== before) throw changedMeanwhile(branch)
  if (top !== null && !(await areFilesOf(checkout, top, aside))) throw changedMeanwhile(branch)
  if (target.isCheckedOut)
    return await fastForward(unbroken(checkout), { commit, from: ours, branch, into: target.branch })
  const args = ['update-ref', '-m', `merge ${branch}`, `refs/heads/${target.branch}`, commit, ours]
  if (!(await runGitIn(unbroken(checkout), args)).ok) throw changedMeanwhile(target.branch)
  return []
}

/** Returns a checkout whose git nothing aborts: for work that must not stop halfway. */
export function unbroken(checkout: Checkout): Checkout {
  const { signal: _, ...setting } = checkout.setting
  return { ...checkout, setting }
}

/** True if a worktree still has the files of a commit of `commitUncommitted`; null: of its branch. */
async function areFilesOf(checkout: Checkout, top: string, aside: string | null): Promise<boolean> {
  if (aside === null) return (await listUncommitted(await openUntrustedWorktree(checkout, top))).length === 0
  const tree = await readGitLine(checkout, ['rev-parse', `${aside}^{tree}`], `read the commit of ${top}`)
  return (await treeOfFiles(checkout, top)) === tree
}

function changedMeanwhile(branch: string): UserError {
  return new UserError(
    'CM0518',
    `${branch} changed while the gates ran on the merge, so codemachine merged nothing. Land again.`,
  )
}

/** As `runGitOrUserError`, for a command with one line of output: returns that line. */
export async function readGitLine(...command: Parameters<typeof runGitOrUserError>): Promise<string> {
  return (await runGitOrUserError(...command)).trim()
}

/** Returns the top folder of the worktree of a name; `null` if it no longer exists. */
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
    `${top} is no longer on ${branch}, so landing would miss newer work. Switch back to ${branch}, or merge the current branch by hand.`,
  )
}

/** Opens a worktree of agents with explicit paths of its git directory: a forged pointer cannot lead git elsewhere. */
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
    `This git is too old to test a merge without changing files. Install git 2.38 or newer, or merge ${branch} by hand.`,
    { hint: `By hand: git merge --no-ff ${branch}` },
  )
}

/** Fast-forwards the checkout. Returns the files in the way; then nothing has changed. */
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
      `Another process changed ${into} in ${repository.root}, so codemachine merged nothing. Land again.`,
    )
  }
  const files = [...fromLatin1(result.stderr).matchAll(/^\t(.+)$/gm)].map(([, path = '']) => path)
  if (files.length > 0) return files
  throw new UserError('CM0504', `git could not fast-forward ${repository.root} to the merge: ${gitErrorLine(result)}.`)
}

/**
 * Names of ignored files and folders that a project needs to run: installed dependencies and local settings. Not build
 * results, which must be rebuilt.
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

/** Folders that tools write into `node_modules` during a run. */
const CACHES = new Set(['.cache', '.vite', '.vite-temp', '.tmp', '.vitest'])

/** Links ignored dependencies and local settings of the person into `top`, if their place is free. */
export async function linkIgnoredDependencies({ setting }: Pick<PrivateGit, 'setting'>, top: string): Promise<void> {
  const args = ['ls-files', '-o', '-i', '-z', '--exclude-standard', '--directory']
  const { ok, stdout } = await runGit(setting, args)
  if (!ok) return
  const found = stdout.split('\0').map(entry => dependenciesAround(fromLatin1(entry).replace(/\/$/, '')))
  for (const path of new Set(found)) if (path !== null) await link(join(setting.directory, path), top, path)
}

/** Returns a path's outermost dependencies folder (git lists a partly ignored one by its parts); null: none. */
function dependenciesAround(path: string): string | null {
  const parts = path.split('/')
  const at = parts.findIndex(part => DEPENDENCIES.has(part))
  return at === -1 ? null : parts.slice(0, at + 1).join('/')
}

/** Creates a link, but not through a committed link, which may lead anywhere. */
async function link(from: string, top: string, path: string): Promise<void> {
  const folder = dirname(path)
  if (folder !== '.' && (await findObstacle(top, folder)) !== null) return
  const to = join(top, path)
  const isModules = basename(path) === 'node_modules' && (await lstat(from)).isDirectory()
  const there = await lstat(to).catch(() => null)
  // A gate's program in there is part of the tree and stays unchanged.
  if (there !== null && !(isModules && there.isDirectory())) return
  if (isModules) await linkEach(from, to, isScopeFolder)
  else await symlink(from, to)
}

/**
 * Fills a folder with a link to each missing entry of another. Copies links among the entries: in a workspace they lead to a
 * neighbouring package, which must be the checked-out one, not the person's.
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
    // This is a package manager's list, which tools rewrite.
    else if (entry.isFile()) await copyFile(source, target)
    else await symlink(source, target)
  }
}

/** True for an npm scope (`@scope`), a folder of packages. */
function isScopeFolder(entry: Dirent): boolean {
  return entry.isDirectory() && entry.name.startsWith('@')
}

/**
 * Copies the inputs folder of a work directory with its specification into another one without a specification. Returns
 * false, and copies nothing, if it has one. Overwrites nothing; omits links and names that begin with a dot. Throws a
 * `UserError` if a write fails.
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

/** True if there is a specification, not only the guide. */
async function hasSpecification(root: string): Promise<boolean> {
  const read = await readTextFile(join(root, specificationFile), MOST_GUIDE_BYTES)
  return read.kind === 'broken' || (read.kind === 'text' && read.text.trim() !== specificationGuide().trim())
}

/** Largest guide, in bytes. */
const MOST_GUIDE_BYTES = 64 * 1024

async function copyFolder(from: string, to: string, folder: string): Promise<void> {
  // An agent may have replaced it by a link.
  if ((await findObstacle(from, folder)) !== null || (await makeFolderInside(to, folder)) !== null) return
  for await (const entry of await opendir(join(from, folder))) {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) await copyFolder(from, to, path)
    if (entry.isFile()) await copyNew(join(from, path), join(to, path))
  }
}

/** Copies a file, but follows no link in the place of the copy. */
async function copyNew(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error
  })
}
