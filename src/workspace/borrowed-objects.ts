import { delimiter, join } from 'node:path'
import type { GitSetting } from './git-command.ts'
import type { PersonRepository } from './person-repository.ts'

/** What in git's environment has it find the objects of the person's repository, too; nothing where there is none. */
export function borrowing(repository: PersonRepository | null): NodeJS.ProcessEnv {
  return repository === null ? {} : { [VARIABLE]: quoted(join(repository.commonDir, 'objects')) }
}

/** The same setting, where nothing is borrowed. */
export function withoutBorrowed(setting: GitSetting): GitSetting {
  const { [VARIABLE]: _, ...env } = setting.env
  return { ...setting, env }
}

/** As the variable wants it: quoted where it could be taken for more than one path. */
function quoted(path: string): string {
  return path.includes(delimiter) ? `"${path.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"` : path
}

const VARIABLE = 'GIT_ALTERNATE_OBJECT_DIRECTORIES'
