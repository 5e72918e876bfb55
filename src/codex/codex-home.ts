import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { UserError } from '../base/errors.ts'
import { isFile } from './native-codex.ts'

/** The directory in which codex keeps its login, its configuration and its threads. */
export interface CodexHome {
  /** Absolute. */
  path: string
  /** `codemachine`: the one of a login made for codemachine alone. `person`: codex's own, which is used just as it is. */
  owner: 'person' | 'codemachine'
  /** The environment that makes codex use it. */
  env: NodeJS.ProcessEnv
}

export interface CodexHomeChoice {
  /** `auto`: codemachine's if there is a login in it, else the person's. */
  setting: 'auto' | 'own' | 'codemachine'
  env: Readonly<NodeJS.ProcessEnv>
  /** The person's home directory. */
  home: string
  /** Where codemachine keeps its records. */
  codemachineHome: string
  /** What a relative `CODEX_HOME` is relative to. Default: where the process runs. */
  directory?: string
}

/** Chooses codex's home and changes nothing in it; a UserError says what is missing. */
export async function chooseCodexHome(choice: CodexHomeChoice): Promise<CodexHome> {
  const { setting, env, codemachineHome } = choice
  const own = join(codemachineHome, 'codex')
  if (setting === 'own') return personsHome(choice)
  if (setting === 'auto' && !(await isFile(join(own, 'auth.json')))) return personsHome(choice)
  if (!(await isDirectory(own))) {
    throw new UserError(
      `The setting codexHome is "codemachine", and there is no ${own}; log in, or set it to "auto".`,
      {
        hint: 'Log in: codemachine login',
        exitCode: 4,
      },
    )
  }
  return { path: own, owner: 'codemachine', env: { ...env, CODEX_HOME: own } }
}

async function personsHome({ env, home, directory }: CodexHomeChoice): Promise<CodexHome> {
  const { CODEX_HOME: named, ...rest } = env
  // Codex makes a missing ~/.codex by itself, but only where CODEX_HOME is not set; an empty one counts as not set.
  if (!named) return { path: join(home, '.codex'), owner: 'person', env: rest }
  const path = resolve(directory ?? '', named)
  if (await isDirectory(path)) return { path, owner: 'person', env: { ...env, CODEX_HOME: path } }
  throw new UserError(`CODEX_HOME is ${path}, which is not a directory; make it, or unset CODEX_HOME.`)
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null)
  return found?.isDirectory() ?? false
}
