import { open, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { type GitSetting, runGit, withoutGitVariables } from './git-command.ts'
import type { PersonRepository } from './person-repository.ts'

/**
 * What the person's own git leaves out beside `.gitignore` files: their global excludes file, then the repository's
 * `info/exclude`. Latin1 text of at most 2 MiB.
 */
export async function readPersonExcludes(
  program: string,
  directory: string,
  repository: PersonRepository | null,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const root = repository?.root ?? directory
  const files = [await globalExcludesFile({ program, directory: root, env: personEnvironment(env) })]
  if (repository !== null) files.push(join(repository.commonDir, 'info', 'exclude'))
  const texts = await Promise.all(files.map(file => readExcludes(resolve(root, file))))
  return texts.filter(text => text !== '').join('\n')
}

/** Reading configuration runs nothing that it names. */
async function globalExcludesFile(setting: GitSetting): Promise<string> {
  const { ok, stdout } = await runGit(setting, ['config', '--null', '--type=path', '--get', 'core.excludesFile'])
  if (ok) return Buffer.from(stdout, 'latin1').toString('utf8').replace(/\0$/, '')
  const { XDG_CONFIG_HOME, HOME } = setting.env
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'git', 'ignore')
}

/** Which files hold a person's configuration is the person's to say; where the repository lies is not. */
function personEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = ['GIT_CONFIG_GLOBAL', 'GIT_CONFIG_SYSTEM', 'GIT_CONFIG_NOSYSTEM']
  const configuration = Object.entries(env).filter(([name]) => kept.includes(name))
  return { ...withoutGitVariables(env), ...Object.fromEntries(configuration) }
}

/** Follows links (dotfiles often are), but reads regular files only, up to 1 MiB; anything else excludes nothing. */
async function readExcludes(path: string): Promise<string> {
  try {
    await using file = await open(await realpath(path), 'r')
    const stat = await file.stat()
    return stat.isFile() && stat.size <= excludesLimit ? await file.readFile('latin1') : ''
  } catch {
    return ''
  }
}

const excludesLimit = 1024 * 1024
