import { mkdir, realpath, rmdir } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { messageOf, UserError } from '../../base/errors.ts'
import { isFileName, pathExists } from '../../platform/files.ts'
import { runWithExeca, withSearchPathOutside } from '../../platform/run-process.ts'
import { findGit, writableIn } from '../git/find-git.ts'
import {
  findRepository,
  fromLatin1,
  type GitResult,
  type GitSetting,
  type PersonRepository,
  runGit,
  withoutGitVariables,
} from '../git/git.ts'

/** A git worktree made by codemachine, in which a session works on its own branch. */
export interface Worktree {
  name: string
  branch: string
  /** Top folder of the worktree. */
  top: string
  /** Work directory of the session: the folder that corresponds to the opened directory. */
  directory: string
  /** First work tree of the repository. */
  main: string
  isNew: boolean
  /** The person's uncommitted files, which a new worktree lacks; empty if it is not new. */
  uncommitted: readonly string[]
}

interface WorktreeOptions {
  /** A directory in the repository; the worktree begins with its HEAD commit. */
  directory: string
  /** Name; `null`: the day and a counter, such as `20261121-1`. */
  name: string | null
  env: NodeJS.ProcessEnv
  now: Date
}

/**
 * Opens the worktree `<repository>.worktrees/<name>` beside the main one; creates it and its branch if missing. The person's
 * index, checkout and stash stay unchanged, and no hook runs. Throws a `UserError` if that fails; then nothing has been
 * created.
 */
export async function openWorktree({ directory, name, env, now }: WorktreeOptions): Promise<Worktree> {
  const wanted = name === null ? null : checkWorktreeName(name)
  const checkout = await openCheckout(directory, env)
  const inside = relative(checkout.repository.root, await realpath(directory))
  if (wanted !== null) {
    const place = worktreeLocation(checkout.main, wanted)
    const listed = await listedAt(checkout, place.top)
    if (listed !== null) return await reopenWorktree(checkout, place, listed, inside)
  }
  await refuseWithoutBase(checkout, inside)
  const uncommitted = await listUncommitted(checkout)
  const place = await makeFirstFree(checkout, wanted === null ? dailyNames(now) : [wanted])
  return { ...place, directory: join(place.top, inside), main: checkout.main, isNew: true, uncommitted }
}

/** Removes a new worktree and its branch if it has no session and no changes. */
export async function removeUnusedWorktree(
  { top, branch, main, directory }: Worktree,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  // Git refuses to remove a worktree with changes, but would remove ignored files.
  if (await pathExists(join(directory, '.codemachine'))) return
  const checkout = await openCheckout(main, env)
  if (!(await runGitIn(checkout, ['worktree', 'remove', top])).ok) return
  await runGitIn(checkout, ['branch', '-q', '-d', branch])
  await rmdir(dirname(top)).catch(() => {})
}

interface WorktreeLocation {
  name: string
  branch: string
  top: string
}

/** Returns branch and top folder of the worktree of a name, existing or not. `main`: the repository's first work tree. */
export function worktreeLocation(main: string, name: string): WorktreeLocation {
  return { name, branch: `${BRANCH_PREFIX}${name}`, top: join(`${main}.worktrees`, name) }
}

async function listedAt(checkout: Checkout, top: string): Promise<ListedWorktree | null> {
  const real = await realpath(top).catch(() => null)
  const listed = await listWorktrees(checkout.setting)
  return real === null ? null : (listed.find(({ directory }) => directory === top || directory === real) ?? null)
}

async function reopenWorktree(
  checkout: Checkout,
  place: WorktreeLocation,
  listed: ListedWorktree,
  inside: string,
): Promise<Worktree> {
  const { top, branch } = place
  await refuseForgedWorktree(checkout, top)
  if (listed.branch !== branch) {
    throw new UserError(
      'CM0507',
      `The worktree ${top} is on ${listed.branch === null ? 'no branch' : 'another branch'}, not on ${branch}. Switch it back, or use another name.`,
    )
  }
  const directory = join(top, inside)
  const real = await realpath(directory).catch(() => null)
  // An agent there may have put a link in its place.
  if (real === null || real !== join(await realpath(top), inside)) {
    throw new UserError('CM0507', `The worktree has no folder ${directory}. Name another folder, or start at the top.`)
  }
  return { ...place, directory, main: checkout.main, isNew: false, uncommitted: [] }
}

/**
 * Throws a `UserError` if the `.git` of a worktree, which agents there can write, no longer leads to the repository.
 */
export async function refuseForgedWorktree({ repository }: Pick<Checkout, 'repository'>, top: string): Promise<void> {
  const found = await findRepository(top)
  const isOurs =
    found !== null &&
    found.root === (await realpath(top)) &&
    found.commonDir === repository.commonDir &&
    dirname(found.gitDir) === join(repository.commonDir, 'worktrees')
  if (isOurs) return
  throw new UserError(
    'CM0508',
    `${join(top, '.git')} no longer points to ${repository.commonDir}. Find out who changed it.`,
  )
}

async function refuseWithoutBase(checkout: Checkout, inside: string): Promise<void> {
  const { repository, main } = checkout
  const above = (await runGitIn(checkout, ['rev-parse', '--show-superproject-working-tree'])).stdout.trim()
  if (above !== '') {
    throw new UserError(
      'CM0505',
      `${main} is a submodule, and codemachine makes no worktrees of submodules. Run it in a separate clone.`,
    )
  }
  if (!(await runGitIn(checkout, ['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'])).ok) {
    throw new UserError(
      'CM0505',
      `${repository.root} has no commit yet, and a worktree needs one. Commit something first.`,
    )
  }
  const [folder = ''] = BRANCH_PREFIX.split('/')
  if (await hasBranch(checkout, folder)) {
    throw new UserError(
      'CM0506',
      `Because a branch ${folder} exists, git cannot make a branch ${BRANCH_PREFIX}…. Rename it: git branch -m ${folder} …`,
    )
  }
  if (inside === '') return
  // Git uses `/` on all systems.
  const path = inside.replaceAll('\\', '/')
  if ((await runGitIn(checkout, ['cat-file', '-t', `HEAD:${path}`])).stdout.trim() === 'tree') return
  throw new UserError(
    'CM0505',
    `No commit contains ${inside} yet, so the worktree would not contain it. Commit it first.`,
  )
}

/** Creates a worktree with the first free name. Two runs at once get different ones. */
async function makeFirstFree(checkout: Checkout, names: Iterable<string>): Promise<WorktreeLocation> {
  let problem: NameConflict = { why: '' }
  for (const name of names) {
    const place = worktreeLocation(checkout.main, name)
    const taken = (await findConflict(checkout, place)) ?? (await addWorktree(checkout, place))
    if (taken === null) return place
    problem = taken
  }
  const { why, ...hint } = problem
  throw new UserError('CM0506', `The worktree cannot be made: ${why}.`, hint)
}

interface NameConflict {
  why: string
  hint?: string
}

/** Returns why a name is taken; `null` if it is free. */
async function findConflict(checkout: Checkout, { name, branch, top }: WorktreeLocation): Promise<NameConflict | null> {
  const isThere = await pathExists(top)
  if (await hasBranch(checkout, branch)) {
    const why = `the branch ${branch} already exists, and ${top} is not its worktree. Use another name than ${name}, or delete that branch if you do not need it`
    const hint = `To work on that branch again: git worktree prune && git worktree add ${top} ${branch}`
    return isThere ? { why } : { why, hint }
  }
  return isThere ? { why: `${top} already exists, and is not a worktree of this repository. Use another name` } : null
}

async function hasBranch(checkout: Checkout, branch: string): Promise<boolean> {
  return (await runGitIn(checkout, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).ok
}

/** Adds the worktree. `null` on success; the conflict if another process took the name first. */
async function addWorktree(checkout: Checkout, { branch, top }: WorktreeLocation): Promise<NameConflict | null> {
  const folder = dirname(top)
  const made = await mkdir(folder, { recursive: true }).catch(error => {
    throw new UserError(
      'CM0506',
      `The worktree cannot be made in ${folder}, beside ${basename(checkout.main)}: ${messageOf(error)}.`,
    )
  })
  const result = await runGitIn(checkout, ['worktree', 'add', '--no-track', '-q', '-b', branch, top, 'HEAD'])
  if (result.ok) return null
  if (/exists/.test(result.stderr)) return { why: gitErrorLine(result) }
  // Git removes the folder itself, but not the branch.
  await runGitIn(checkout, ['branch', '-q', '-d', branch])
  if (made !== undefined) await rmdir(made).catch(() => {})
  throw new UserError('CM0506', `git could not make the worktree ${top}: ${gitErrorLine(result)}.`)
}

/** A work tree of the person's repository, and the setting to run their git in it. */
export interface Checkout {
  repository: PersonRepository
  /** First work tree of the repository; the others are created beside it. */
  main: string
  setting: GitSetting
}

/**
 * Opens the checkout around a directory, to change the repository with its owner's configuration. Runs no hooks, prompts,
 * signatures or housekeeping. Throws a `UserError` for a directory in no repository or in a bare one.
 */
export async function openCheckout(directory: string, env: NodeJS.ProcessEnv): Promise<Checkout> {
  const real = await realpath(directory).catch(() => null)
  if (real === null) throw new UserError('CM0106', `${directory} is not a directory.`)
  const repository = await findRepository(real)
  const setting = await personGit(repository?.root ?? real, env)
  if (repository === null) {
    const { stdout: bare } = await runGitIn({ setting }, ['rev-parse', '--is-bare-repository'])
    throw new UserError(
      'CM0505',
      bare.trim() === 'true'
        ? `${real} is a bare repository, which has no files to work on. Run codemachine in a clone.`
        : `${real} is not in a git repository. Make one with git init and a first commit.`,
    )
  }
  const [first] = await listWorktrees(setting)
  if (first === undefined || first.isBare) {
    throw new UserError(
      'CM0505',
      `${repository.commonDir} is a bare repository, and codemachine makes worktrees beside a checkout. Use a clone.`,
    )
  }
  return { repository, main: first.directory, setting }
}

/** Runs git in a checkout. Texts are latin1, as of `runGit`. */
export function runGitIn(
  { setting }: Pick<Checkout, 'setting'>,
  args: readonly string[],
  input?: string,
): Promise<GitResult> {
  return runGit(setting, [...NO_HOOKS_OR_PROMPTS, ...args], input)
}

/** Runs git like `runGitIn` and returns its stdout. If it fails, throws `git could not <what>: …` with git's reason. */
export async function runGitOrUserError(
  checkout: Pick<Checkout, 'setting'>,
  args: readonly string[],
  what: string,
): Promise<string> {
  const result = await runGitIn(checkout, args)
  if (!result.ok) throw new UserError('CM0504', `git could not ${what}: ${gitErrorLine(result)}.`)
  return fromLatin1(result.stdout)
}

/** Returns git's error message on one line, at most 500 characters, without control characters. */
export function gitErrorLine({ stderr }: GitResult): string {
  const lines = fromLatin1(stderr)
    .split('\n')
    .map(line => line.trim().replace(/^(?:fatal|error): /, ''))
  const said = lines.filter(line => line !== '' && !/^(?:hint|warning):/.test(line))
  const why = said.slice(0, 2).join(' ').replace(/\.$/, '').slice(0, 500)
  // It may have names by an agent.
  return why.replace(/\p{Cc}|\p{Bidi_Control}/gu, '?') || 'it does not say why'
}

/** One work tree of a repository. */
export interface ListedWorktree {
  directory: string
  /** Branch; `null`: none checked out. */
  branch: string | null
  isBare: boolean
}

/** Returns all work trees of a repository, the main one first. */
export async function listWorktrees(setting: GitSetting): Promise<ListedWorktree[]> {
  // `-z` needs git 2.36.
  const text = await runGitOrUserError({ setting }, ['worktree', 'list', '--porcelain'], 'list the worktrees')
  return text.split('\n\n').flatMap(block => {
    const lines = block.split('\n')
    const of = (name: string) => lines.find(line => line.startsWith(`${name} `))?.slice(name.length + 1) ?? null
    const directory = of('worktree')
    if (directory === null) return []
    const branch = of('branch')?.replace(/^refs\/heads\//, '') ?? null
    return [{ directory, branch, isBare: lines.includes('bare') }]
  })
}

/** Returns the changed, deleted and, unless `untracked` is `no`, untracked files of a work tree. */
export async function listUncommitted(
  checkout: Pick<Checkout, 'setting'>,
  untracked: 'normal' | 'no' = 'normal',
): Promise<string[]> {
  const flags = ['--no-renames', `--untracked-files=${untracked}`, '--ignore-submodules=dirty']
  const args = ['status', '--porcelain', '-z', ...flags]
  const text = await runGitOrUserError(checkout, args, 'look at the changes')
  return text.split('\0').flatMap(entry => (entry === '' ? [] : [entry.slice(3)]))
}

/** Overrides of the person's configuration: no hooks, editor, signatures or housekeeping. */
const NO_HOOKS_OR_PROMPTS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.editor=:',
  // Paths beyond 260 characters on Windows; no effect elsewhere.
  'core.longpaths=true',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'submodule.recurse=false',
].flatMap(pair => ['-c', pair])

const KEPT_VARIABLES = /^GIT_(?:CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL))$/

async function personGit(top: string, env: NodeJS.ProcessEnv): Promise<GitSetting> {
  const kept = Object.entries(env).filter(([name]) => KEPT_VARIABLES.test(name))
  const where = await writableIn(top, env)
  return {
    program: await findGit(env, top),
    directory: top,
    run: runWithExeca,
    env: {
      // The owner's configuration makes git start filters, such as git-lfs, by name.
      ...withoutGitVariables(withSearchPathOutside(env, where)),
      ...Object.fromEntries(kept),
      GIT_TERMINAL_PROMPT: '0',
      // Commands that only read must not write the index.
      GIT_OPTIONAL_LOCKS: '0',
      LC_ALL: 'C',
    },
  }
}

/** Prefix of all worktree branches. */
export const BRANCH_PREFIX = 'codemachine/'

/** Returns a typed worktree name. Throws a `UserError` if it cannot name a folder and a branch. */
export function checkWorktreeName(typed: string): string {
  if (isWorktreeName(typed)) return typed
  const shown = typed.length > 40 ? `${typed.slice(0, 39)}…` : typed
  throw new UserError(
    'CM0506',
    `"${shown.replace(/\p{Cc}/gu, ' ')}" is not a valid name of a worktree; use letters, digits, "-", "_" and "." only, at most 60 of them.`,
    { hint: 'If codemachine should choose the name, put the flag after the goal: codemachine "…" --worktree' },
  )
}

/** True if a name is valid for a folder and a branch, and can be typed and printed unchanged. */
export function isWorktreeName(name: string, platform?: NodeJS.Platform): boolean {
  return NAME.test(name) && !/\.\.|\.$|\.lock$/i.test(name) && isFileName(name, platform)
}

/** Yields names for a worktree without a chosen one: `20261121-1`, `20261121-2`, … */
function* dailyNames(now: Date): Generator<string> {
  const [month, day] = [now.getMonth() + 1, now.getDate()].map(part => String(part).padStart(2, '0'))
  for (let counter = 1; counter <= MOST_A_DAY; counter++) yield `${now.getFullYear()}${month}${day}-${counter}`
}

const MOST_A_DAY = 1000

const NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,59}$/u
