import { join } from 'node:path'
import { UserError } from '../../base/errors.ts'
import { packageRoot } from '../../base/package-root.ts'
import { type CodexHome, chooseCodexHome } from '../../codex/codex-home.ts'
import { type CodexBinary, findCodex } from '../../codex/find-codex.ts'
import { shieldEnvironment } from '../../codex/shielded-environment.ts'
import { pathExists } from '../../platform/path-exists.ts'
import { recordsAround } from '../../session/records.ts'
import type { Settings } from '../../settings/schema.ts'
import type { LoginState } from '../../ui/start/start-facts.ts'
import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'
import { askLogin } from '../screen/ask-login.ts'

/** Where a login is made, and what it is made with. */
export interface LoginPlace {
  context: CliContext
  codex: Pick<CodexBinary, 'path'>
  setting: Settings['codexHome']
  /** Where codemachine keeps its records; codex's home is in it. */
  root: string
  /** Where agents may write. */
  directory: string
  /** `key=value` pairs that rounds hand to codex. */
  overrides: readonly string[]
}

/** The place of a command line, by the settings that count where it was typed; a `UserError` if there is no codex. */
export async function openLoginPlace(context: CliContext, flags: { codexBin?: string }): Promise<LoginPlace> {
  const { cwd } = context
  const [records] = await recordsAround({ ...context, directory: cwd })
  if (records === undefined) throw new UserError(`${cwd} is not there any more; type it in another directory.`)
  const { settings, sources } = await settingsOf(context, records.directory, flags)
  const flag = sources.codexBin.layer === 'environment' ? null : settings.codexBin
  const codex = await findCodex({ ...context, flag, directory: cwd, packageRoot })
  const { root, directory } = records
  return { context, codex, setting: settings.codexHome, root, directory, overrides: [] }
}

/** Codex's home of a login that is made for codemachine. */
export function ownHome({ root }: Pick<LoginPlace, 'root'>): string {
  return join(root, 'codex')
}

/** Where it keeps the login. */
export function loginFile(home: string): string {
  return join(home, 'auth.json')
}

/** Who is logged in in one of codex's homes, as codex itself says. */
export async function loginIn({ context, codex, directory, overrides }: LoginPlace, home: string): Promise<LoginState> {
  // Codex would make it only to find no login in it.
  if (!(await pathExists(home))) return { kind: 'out' }
  const { env } = context
  const choice = { mode: 'workspace-write', network: false, writable: [] } as const
  return await askLogin(
    context,
    {
      path: codex.path,
      args: overrides.flatMap(pair => ['-c', pair]),
      env: shieldEnvironment({ ...env, CODEX_HOME: home }, directory, choice).env,
      directory: home,
    },
    context.signal,
  )
}

/** Codex's home that rounds use; `problem`: why there is none, a sentence. */
export async function homeOfRounds({ context, root, setting }: LoginPlace): Promise<CodexHome | { problem: string }> {
  const { env, home, cwd } = context
  try {
    return await chooseCodexHome({ setting, env, home, codemachineHome: root, directory: cwd })
  } catch (error) {
    if (!(error instanceof UserError)) throw error
    return { problem: error.message }
  }
}

/** The same, and who is logged in there. */
export async function loginOfRounds(
  place: LoginPlace,
): Promise<{ home: CodexHome; login: LoginState } | { problem: string }> {
  const home = await homeOfRounds(place)
  return 'problem' in home ? home : { home, login: await loginIn(place, home.path) }
}
