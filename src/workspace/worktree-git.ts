import { realpath } from 'node:fs/promises'
import { UserError } from '../base/errors.ts'
import { findGit, type GitResult, type GitSetting, runGit, withoutGitVariables } from './git-command.ts'
import { findRepository, type PersonRepository } from './person-repository.ts'

/** A work tree of the person's repository, and how their git is run in it. */
export interface Checkout {
  repository: PersonRepository
  /** The first work tree of the repository, beside which the others are made. */
  main: string
  setting: GitSetting
}

/**
 * Opens the checkout around a directory, to change the repository as its owner would: with their configuration, but
 * without hooks, prompts, signatures or housekeeping. A `UserError` if there is none.
 */
export async function openCheckout(directory: string, env: NodeJS.ProcessEnv): Promise<Checkout> {
  const real = await realpath(directory).catch(() => null)
  if (real === null) throw new UserError(`${directory} is not a directory.`)
  const repository = await findRepository(real)
  const setting = await personGit(repository?.root ?? real, env)
  if (repository === null) {
    const bare = await ask(setting, ['rev-parse', '--is-bare-repository'])
    throw new UserError(
      bare === 'true'
        ? `${real} is a bare repository, which has no files to work on; run it in a clone of it.`
        : `${real} is not in a git repository; make one with git init and a first commit.`,
    )
  }
  const [first] = await listWorktrees(setting)
  if (first === undefined || first.isBare) {
    throw new UserError(
      `${repository.commonDir} is a bare repository, and a worktree is made beside the files of one; use a clone of it.`,
    )
  }
  return { repository, main: first.directory, setting }
}

/** Runs git in a checkout. Texts are latin1, as of `runGit`. */
export function gitIn({ setting }: Pick<Checkout, 'setting'>, args: readonly string[]): Promise<GitResult> {
  return runGit(setting, [...PLAIN, ...args])
}

/** As `gitIn`: answers what it said, a `UserError` with git's own words if it fails. `what`: as in `git could not …`. */
export async function mustGit(
  checkout: Pick<Checkout, 'setting'>,
  args: readonly string[],
  what: string,
): Promise<string> {
  const result = await gitIn(checkout, args)
  if (!result.ok) throw new UserError(`git could not ${what}: ${whyOf(result)}.`)
  return decoded(result.stdout)
}

/** What stood in the way of git, on one line. */
export function whyOf({ stderr }: GitResult): string {
  const lines = decoded(stderr)
    .split('\n')
    .map(line => line.trim().replace(/^(?:fatal|error): /, ''))
  const said = lines.filter(line => line !== '' && !/^(?:hint|warning):/.test(line))
  const why = said.slice(0, 2).join(' ').replace(/\.$/, '').slice(0, 500)
  // It may name what an agent has named.
  return why.replace(/\p{Cc}|\p{Bidi_Control}/gu, '?') || 'it does not say why'
}

/** The text that git wrote, whose bytes `runGit` answers one a character. */
export function decoded(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

/** One work tree of a repository. */
export interface ListedWorktree {
  directory: string
  /** Null if none is checked out. */
  branch: string | null
  isBare: boolean
}

/** All work trees of a repository, the first one first. */
export async function listWorktrees(setting: GitSetting): Promise<ListedWorktree[]> {
  // Not with -z, which git before 2.36 does not know.
  const text = await mustGit({ setting }, ['worktree', 'list', '--porcelain'], 'list the worktrees')
  return text.split('\n\n').flatMap(block => {
    const lines = block.split('\n')
    const of = (name: string) => lines.find(line => line.startsWith(`${name} `))?.slice(name.length + 1) ?? null
    const directory = of('worktree')
    if (directory === null) return []
    const branch = of('branch')?.replace(/^refs\/heads\//, '') ?? null
    return [{ directory, branch, isBare: lines.includes('bare') }]
  })
}

/** The files of a work tree that are not as they were committed, those that are not known to git too. */
export async function uncommittedIn(checkout: Pick<Checkout, 'setting'>): Promise<string[]> {
  const args = ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=normal', '--ignore-submodules=dirty']
  const text = await mustGit(checkout, args, 'look at the changes')
  return text.split('\0').flatMap(entry => (entry === '' ? [] : [entry.slice(3)]))
}

/** Whatever the person has configured for what they type themselves. */
const PLAIN = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.editor=:',
  'commit.gpgSign=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'submodule.recurse=false',
].flatMap(pair => ['-c', pair])

const KEPT = /^GIT_(?:CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL))$/

async function personGit(top: string, env: NodeJS.ProcessEnv): Promise<GitSetting> {
  const kept = Object.entries(env).filter(([name]) => KEPT.test(name))
  return {
    program: await findGit(env, top),
    directory: top,
    env: {
      ...withoutGitVariables(env),
      ...Object.fromEntries(kept),
      GIT_TERMINAL_PROMPT: '0',
      // What only looks writes no index.
      GIT_OPTIONAL_LOCKS: '0',
      LC_ALL: 'C',
    },
  }
}

async function ask(setting: GitSetting, args: readonly string[]): Promise<string> {
  const { stdout } = await gitIn({ setting }, args)
  return stdout.trim()
}
