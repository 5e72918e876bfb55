import { access, constants } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { runProcess } from '../platform/run-process.ts'
import { isWritableByAgents, writableByAgents } from '../platform/writable-by-agents.ts'
import { findRepository } from './person-repository.ts'

/** How a git command ended. Texts are latin1, so that names in any encoding come through byte for byte. */
export interface GitResult {
  ok: boolean
  stdout: string
  stderr: string
}

/** Thrown where a git command that has to succeed did not. */
export class GitError extends Error {
  override readonly name = 'GitError'

  constructor(args: readonly string[], { stderr }: GitResult) {
    super(`git ${args.join(' ')} failed: ${stderr.trim().slice(0, 2000)}`)
  }
}

/** A git program and what it is run with. */
export interface GitSetting {
  /** Absolute path of the program. */
  program: string
  directory: string
  /** The whole environment; nothing is inherited. */
  env: NodeJS.ProcessEnv
}

/** Runs git and collects what it says (up to 256 MiB); a failing git is a value. `input` is latin1 text for stdin. */
export async function runGit(setting: GitSetting, args: readonly string[], input?: string): Promise<GitResult> {
  const { exitCode, stdout, stderr, failure } = await runProcess(setting.program, args, {
    directory: setting.directory,
    env: setting.env,
    encoding: 'latin1',
    outputLimit,
    ...(input === undefined ? {} : { input: Buffer.from(input, 'latin1') }),
  })
  return { ok: exitCode === 0, stdout, stderr: failure === null ? stderr : `git was not run to its end: ${failure}` }
}

/** As `runGit`, for a command whose failure is an error: answers its stdout. */
export async function runGitOrThrow(setting: GitSetting, args: readonly string[], input?: string): Promise<string> {
  const result = await runGit(setting, args, input)
  if (!result.ok) throw new GitError(args, result)
  return result.stdout
}

/** An environment in which git knows nothing of the person's configuration, hooks, or a repository it is called from. */
export function hardenedEnvironment(env: NodeJS.ProcessEnv, emptyFile: string): NodeJS.ProcessEnv {
  return {
    ...withoutGitVariables(env),
    GIT_CONFIG_GLOBAL: emptyFile,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    LC_ALL: 'C',
  }
}

/** The environment without `GIT_*`: another tool's, or a hook's, that codemachine was started from. */
export function withoutGitVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith('GIT_')))
}

/**
 * The absolute path of git on the PATH. Where agents that work in `workTree` can write is passed over: a program called
 * `git` there (`node_modules/.bin` is on the PATH of whatever npx starts) would run outside of the sandbox.
 */
export async function findGit(env: NodeJS.ProcessEnv, workTree: string): Promise<string> {
  const repository = await findRepository(workTree)
  const where = writableByAgents(workTree, env, repository ? [repository.gitDir, repository.commonDir] : [])
  const name = delimiter === ';' ? 'git.exe' : 'git'
  const passedOver: string[] = []
  for (const folder of (env.PATH ?? env.Path ?? '').split(delimiter)) {
    const program = join(folder, name)
    if (!isAbsolute(folder) || !(await isProgram(program))) continue
    if (!isWritableByAgents(program, where)) return program
    passedOver.push(program)
  }
  throw new UserError(
    'git was not found on the PATH; install git (https://git-scm.com), or put its folder on the PATH.',
    passedOver.length === 0
      ? {}
      : { hint: `This does not count, as the agent can write there: ${passedOver.join(', ')}. Have git elsewhere.` },
  )
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

const outputLimit = 256 * 1024 * 1024
