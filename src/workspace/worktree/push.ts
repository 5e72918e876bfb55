import { Interrupted, UserError } from '../../base/errors.ts'
import { fromLatin1, GitStopped, withVariables } from '../git/git.ts'
import { readGitLine, treeOfUncommitted } from './land.ts'
import { type Checkout, gitErrorLine, listUncommitted, runGitIn, runGitOrUserError } from './worktree.ts'

/** A remote of a repository, by its name; `url`: where git pushes to. */
export interface Remote {
  name: string
  url: string
}

/** How long a remote may take to answer, ms. */
const REMOTE_MS = 5 * 60_000
const MOST_REMOTES = 50
/** What of the person's environment says how git reaches a remote. */
const REACHES = /^GIT_(?:SSH|SSL|PROXY|HTTP|ASKPASS|ALLOW_PROTOCOL)/
/** Transports of git that run no command of the repository's configuration, as `ext::` does. */
const SAFE_PROTOCOLS = 'https:http:ssh:git:file'

/**
 * The same checkout, for commands that ask a remote: with what the person's environment says of the way there, a bound, and
 * nobody who is asked.
 */
export function reaching(checkout: Checkout, env: NodeJS.ProcessEnv, signal: AbortSignal): Checkout {
  const kept = Object.fromEntries(Object.entries(env).filter(([name]) => REACHES.test(name)))
  const alone = { GCM_INTERACTIVE: 'never', SSH_ASKPASS_REQUIRE: 'never', GIT_ALLOW_PROTOCOL: SAFE_PROTOCOLS }
  const setting = withVariables(checkout.setting, { ...alone, ...kept, GIT_TERMINAL_PROMPT: '0' })
  return { ...checkout, setting: { ...setting, signal: AbortSignal.any([signal, AbortSignal.timeout(REMOTE_MS)]) } }
}

/** The remotes of a repository, by name; at most 50. */
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

/** The remote that a branch is pushed to by the person's configuration; null: it names none. */
export async function remoteOfBranch(checkout: Checkout, branch: string | null): Promise<string | null> {
  const ofBranch = branch === null ? [] : [`branch.${branch}.pushRemote`, `branch.${branch}.remote`]
  for (const key of [ofBranch[0], 'remote.pushDefault', ofBranch[1]]) {
    if (key === undefined) continue
    const { ok, stdout } = await runGitIn(checkout, ['config', '--get', key])
    if (ok) return fromLatin1(stdout).trim()
  }
  return null
}

/** What a remote has. `main`: the name and commit of its default branch; `tips`: the commits of other branches. */
export interface RemoteBranches {
  main: { branch: string; commit: string }
  tips: ReadonlyMap<string, string>
}

/** Asks a remote for its default branch, and for those of these branches that it has. A `UserError` if it has none, or cannot be asked. */
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
      `The remote ${remote.name} has no default branch yet, so there is nothing to compare with; push that branch first.`,
    )
  const tips = branches.flatMap(branch => {
    const tip = commitOf(`refs/heads/${branch}`)
    return tip === undefined ? [] : [[branch, tip] as const]
  })
  return { main: { branch: main, commit }, tips: new Map(tips) }
}

/** Pushes a commit as a branch, or a ref of notes; never by force. A `UserError` if the remote does not take it. */
export async function pushCommit(checkout: Checkout, remote: Remote, commit: string, ref: string): Promise<void> {
  const flags = ['--no-verify', '--no-follow-tags', '--recurse-submodules=no']
  await ask(checkout, remote, ['push', ...flags, '--', remote.name, `${commit}:${ref}`])
}

/** What a commit for a remote's branch is made of. */
interface ResultOptions {
  /** The top folder of the work tree. */
  top: string
  message: string
  /** The remote and its branch, and the commit of that there; null: it does not have it. */
  remote: Remote
  branch: string
  tip: string | null
  /** Whether a commit is one that was published from here, so that nobody's work is lost behind a later one. */
  isOurs(commit: string): Promise<boolean>
}

/**
 * A commit of all that a work tree holds, on top of its HEAD and of what its branch at a remote has: HEAD itself if that is
 * all. Neither branch nor index nor files change. A `UserError` if the remote's branch has work of somebody else.
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
  return await readGitLine(checkout, args, `commit what is in ${top}`)
}

/** Whether a commit comes before another one, or is it; false if one of them is not here. */
export async function isAncestor(checkout: Checkout, before: string, after: string): Promise<boolean> {
  return (await runGitIn(checkout, ['merge-base', '--is-ancestor', before, after])).ok
}

async function hasCommit(checkout: Checkout, commit: string): Promise<boolean> {
  return (await runGitIn(checkout, ['cat-file', '-e', `${commit}^{commit}`])).ok
}

function hasOthers({ name }: Remote, branch: string): UserError {
  return new UserError('CM1203', `The branch ${branch} of ${name} has commits that are not here; merge them first.`, {
    hint: branch.startsWith('refs/notes/')
      ? `git fetch ${name} ${branch}:${branch}-there, and git notes --ref=${branch} merge ${branch}-there`
      : `git fetch ${name} ${branch}, and git merge FETCH_HEAD`,
  })
}

/** Runs a git command that reaches a remote, and answers what it prints. */
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
    return new UserError('CM1203', `The remote ${name} wants a login that git does not have: ${why}.`, {
      hint: 'Set up an ssh key or a credential helper: git push has to work without a question.',
    })
  const [, reason = why] = REJECTED.exec(stderr) ?? []
  const branch = args.at(-1)?.split(':').at(-1)?.replace('refs/heads/', '') ?? ''
  if (/^(?:fetch first|non-fast-forward)$/.test(reason)) return hasOthers(remote, branch)
  const said = stderr.split('\n').flatMap(line => /^remote: +(.*\S)/.exec(line)?.[1] ?? [])
  const words = gitErrorLine({ ok: false, stdout: '', stderr: [reason, said[0] ?? ''].join('\n') })
  return new UserError('CM1203', `The remote ${name} refuses it: ${words}.`)
}
