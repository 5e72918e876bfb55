import { stripVTControlCharacters } from 'node:util'
import { findGit, type GitSetting, runGit } from '../../workspace/git-command.ts'
import { findRepository } from '../../workspace/person-repository.ts'
import type { Bench } from './bench.ts'
import { type Finding, ok, problem, warning } from './finding.ts'

/** Git, the repository around the work directory, and whether commits can be made in it. Changes nothing. */
export async function checkGit({ env }: Bench, directory: string): Promise<Finding[]> {
  const repository = await findRepository(directory)
  const setting: GitSetting = { program: await findGit(env, repository?.root ?? directory), directory, env }
  const version = await runGit(setting, ['--version'])
  if (!version.ok) {
    const mend = 'Install git (https://git-scm.com), or put a git that works first on the PATH.'
    return [problem('git', `${setting.program} does not work: ${words(version.stderr)}`, mend)]
  }
  const git = ok('git', `${words(version.stdout)} (${setting.program})`)
  if (repository === null) {
    const mend =
      'Run `git init` and commit what is there, so that all that the agent does can be looked at and taken back.'
    return [git, warning('git', `${directory} is not in a git repository.`, mend)]
  }
  return [git, await repositoryFinding(setting, repository.root)]
}

/** Git itself says whether it works on the repository and whom it would name: in files, or in the environment. */
async function repositoryFinding(setting: GitSetting, root: string): Promise<Finding> {
  const opened = await runGit(setting, ['rev-parse', '--git-dir'])
  if (!opened.ok) {
    const mend = `Mend what git says; if ${root} belongs to another user, \`git config --global --add safe.directory ${root}\` allows it.`
    return problem('git', `git does not open the repository ${root}: ${words(opened.stderr)}`, mend)
  }
  const identity = await runGit(setting, ['var', 'GIT_COMMITTER_IDENT'])
  if (!identity.ok) {
    const mend = 'Run `git config --global user.name "…"` and `git config --global user.email "…"`.'
    return warning('git', `Nobody is named in git's configuration, so that no commit can be made in ${root}.`, mend)
  }
  const person = Buffer.from(identity.stdout, 'latin1')
    .toString('utf8')
    .replace(/ \d+ [+-]\d+\s*$/, '')
  return ok('git', `repository ${root}, commits by ${person}`)
}

function words(text: string): string {
  return stripVTControlCharacters(text).trim().split('\n')[0] ?? ''
}
