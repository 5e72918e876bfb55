import { Interrupted, UserError } from '../../base/errors.ts'
import { fromLatin1, GitStopped, withVariables } from '../git/git.ts'
import { readGitLine, treeOfUncommitted } from './land.ts'
import { type Checkout, gitErrorLine, listUncommitted, runGitIn, runGitOrUserError } from './worktree.ts'

/** A remote of a repository, by its name; `url`: push address. */
export interface Remote {
  name: string
  url: string
}

/** Longest time for an answer of a remote, ms. */
const REMOTE_MS = 5 * 60_000
const MOST_REMOTES = 50
/** Matches the person's variables that configure git's access to a remote. */
const REACHES = /^GIT_(?:SSH|SSL|PROXY|HTTP|ASKPASS|ALLOW_PROTOCOL)/
/** Transports of git that run no command of the repository's configuration, as `ext::` does. */
const SAFE_PROTOCOLS = 'https:http:ssh:git:file'

/** Returns a checkout for commands to a remote: with the person's access variables, a time limit, and no prompts. */
export function reaching(checkout: Checkout, env: NodeJS.ProcessEnv, signal: AbortSignal): Checkout {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => REACHES.test(name)))
  const alone = { GCM_INTERACTIVE: 'never', SSH_ASKPASS_REQUIRE: 'never', GIT_ALLOW_PROTOCOL: SAFE_PROTOCOLS }
  const setting = withVariables(checkout.setting, { ...alone, ...kept, GIT_TERMINAL_PROMPT: '0' })
  return { ...checkout, setting: { ...setting, signal: AbortSignal.any([signal, AbortSignal.timeout(REMOTE_MS)]) } }
}

/** Returns the remotes of a repository, by name; at most 50. */
export async function listRemotes(checkout: Checkout): Promise<Remote[]> {
  const names = (await runGitOrUserError(checkout, ['remote'], 'list the remotes'))
    .split('\n')
    .filter(name => name !== '')
  const found: Remote[] = []
  for (const name of names.slice(0, MOST_REMOTES)) {
    const { ok, stdout } = await runGitIn(checkout, ['remote', 'get-url', '--push', '--', name])
    if (ok) found.push({ name, url: fromLatin1(stdout).split('\n')[0] ?? '' })
  }
  return found
}

/** Returns the push remote of a branch in the person's configuration; null: none. */
export async function remoteOfBranch(checkout: Checkout, branch: string | null): Promise<string | null> {
  const ofBranch = branch === null ? [] : [`branch.${branch}.pushRemote`, `branch.${branch}.remote`]
  for (const key of [ofBranch[0], 'remote.pushDefault', ofBranch[1]]) {
    if (key === undefined) continue
    const { ok, stdout } = await runGitIn(checkout, ['config', '--get', key])
    if (ok) return fromLatin1(stdout).trim()
  }
  return null
}

/** The branches of a remote. `main`: name and commit of its default branch; `tips`: commits of other branches. */
export interface RemoteBranches {
  main: { branch: string; commit: string }
  tips: ReadonlyMap<string, string>
}

/** Asks a remote for these and its default branch. A `UserError` without a default branch or an answer. */
export async function lookAtRemote(
  checkout: Checkout,
  remote: Remote,
  branches: readonly string[],
): Promise<RemoteBranches> {
  const refs = branches.map(branch => `refs/heads/${branch}`)
  const text = await ask(checkout, remote, ['ls-remote', '--symref', '--', remote.name, 'HEAD', ...refs])
  const lines = text.split('\n').map(line => line.split('\t'))
  const [, main] = lines.flatMap(([what = '', name]) =>
    name === 'HEAD' ? (/^ref: refs\/heads\/(.+)$/.exec(what) ?? []) : [],
  )
  const commitOf = (ref: string) => lines.find(([what = '', name]) => name === ref && !what.startsWith('ref:'))?.[0]
  const commit = commitOf('HEAD')
  if (main === undefined || commit === undefined)
    throw new UserError(
      'CM1203',
      `The remote ${remote.name} has no default branch, so codemachine cannot compare the work with it. Push the default branch first.`,
    )
  const tips = branches.flatMap(branch => {
    const tip = commitOf(`refs/heads/${branch}`)
    return tip === undefined ? [] : [[branch, tip] as const]
  })
  return { main: { branch: main, commit }, tips: new Map(tips) }
}

/** Pushes a commit as a branch or a notes ref; never by force. Throws a `UserError` if the remote refuses it. */
export async function pushCommit(checkout: Checkout, remote: Remote, commit: string, ref: string): Promise<void> {
  const flags = ['--no-verify', '--no-follow-tags', '--recurse-submodules=no']
  await ask(checkout, remote, ['push', ...flags, '--', remote.name, `${commit}:${ref}`])
}

/** Input of a commit for a remote's branch. */
interface ResultOptions {
  /** Top folder of the work tree. */
  top: string
  message: string
  /** Remote and branch, and the branch's commit there; null: it has none. */
  remote: Remote
  branch: string
  tip: string | null
  /** Resolves with true for a commit published from here, so that nobody's work is lost behind a later one. */
  isOurs(commit: string): Promise<boolean>
}

/**
 * Returns a commit of all files of a work tree, on top of its HEAD and its remote branch; HEAD itself if nothing is new.
 * Changes no branch, index or file. Throws a `UserError` if the remote branch has somebody else's work.
 */
export async function commitResult(checkout: Checkout, options: ResultOptions): Promise<string> {
  const { top, message, remote, branch, tip, isOurs } = options
  const head = await readGitLine(checkout, ['rev-parse', '--verify', 'HEAD^{commit}'], 'find the last commit')
  const isClean = (await listUncommitted(checkout)).length === 0
  if (tip !== null && !(await hasCommit(checkout, tip)))
    await ask(checkout, remote, [
      'fetch',
      '--no-write-fetch-head',
      '--no-tags',
      '--',
      remote.name,
      `refs/heads/${branch}`,
    ])
  const isOnTop = tip === null || (await isAncestor(checkout, tip, head))
  if (!isOnTop && !(await isOurs(tip))) throw hasOthers(remote, branch)
  if (isClean && isOnTop) return head
  const tree = isClean
    ? await readGitLine(checkout, ['rev-parse', '--verify', `${head}^{tree}`], 'find the files of HEAD')
    : await treeOfUncommitted(checkout, top)
  const parents = isOnTop ? [head] : (await isAncestor(checkout, head, tip)) ? [tip] : [tip, head]
  const [parent = head] = parents
  const before = await readGitLine(
    checkout,
    ['rev-parse', '--verify', `${parent}^{tree}`],
    'find the files of a commit',
  )
  if (parents.length === 1 && before === tree) return parent
  const args = ['commit-tree', '--no-gpg-sign', ...parents.flatMap(each => ['-p', each]), '-m', message, tree]
  return await readGitLine(checkout, args, `commit the files in ${top}`)
}

/** True if a commit is an ancestor of another one, or equal; false if one is missing here. */
export async function isAncestor(checkout: Checkout, before: string, after: string): Promise<boolean> {
  return (await runGitIn(checkout, ['merge-base', '--is-ancestor', before, after])).ok
}

async function hasCommit(checkout: Checkout, commit: string): Promise<boolean> {
  return (await runGitIn(checkout, ['cat-file', '-e', `${commit}^{commit}`])).ok
}

function hasOthers({ name }: Remote, branch: string): UserError {
  return new UserError('CM1203', `The branch ${branch} of ${name} has commits that are not here. Merge them first.`, {
    hint: branch.startsWith('refs/notes/')
      ? `git fetch ${name} ${branch}:${branch}-there, and git notes --ref=${branch} merge ${branch}-there`
      : `git fetch ${name} ${branch}, and git merge FETCH_HEAD`,
  })
}

/** Runs a git command to a remote, and returns its output. */
async function ask(checkout: Checkout, remote: Remote, args: readonly string[]): Promise<string> {
  try {
    const result = await runGitIn(checkout, args)
    if (result.ok) return fromLatin1(result.stdout)
    throw refusal(remote, args, fromLatin1(result.stderr), gitErrorLine(result))
  } catch (error) {
    if (!(error instanceof GitStopped)) throw error
    const reason: unknown = checkout.setting.signal?.reason
    if (Object(reason).name !== 'TimeoutError') throw new Interrupted(reason)
    throw new UserError('CM1203', `The remote ${remote.name} did not answer in ${REMOTE_MS / 60_000} minutes.`)
  }
}

const WANTS_LOGIN =
  /could not read (?:Username|Password)|Authentication failed|Permission denied|terminal prompts disabled|Host key verification/
const REJECTED = /^ ! \[(?:remote )?rejected\].*\((.{1,200})\)$/m

function refusal(remote: Remote, args: readonly string[], stderr: string, why: string): UserError {
  const { name } = remote
  if (WANTS_LOGIN.test(stderr))
    return new UserError('CM1203', `The remote ${name} needs a login that git does not have: ${why}.`, {
      hint: 'Set up an ssh key or a credential helper: git push must not ask for a password.',
    })
  const [, reason = why] = REJECTED.exec(stderr) ?? []
  const branch = args.at(-1)?.split(':').at(-1)?.replace('refs/heads/', '') ?? ''
  if (/^(?:fetch first|non-fast-forward)$/.test(reason)) return hasOthers(remote, branch)
  const said = stderr.split('\n').flatMap(line => /^remote: +(.*\S)/.exec(line)?.[1] ?? [])
  const words = gitErrorLine({ ok: false, stdout: '', stderr: [reason, said[0] ?? ''].join('\n') })
  return new UserError('CM1203', `The remote ${name} refused the push: ${words}.`)
}
