import { UserError } from '../../base/errors.ts'
import { pathExists } from '../../platform/path-exists.ts'
import { runProcess } from '../../platform/run-process.ts'
import { type LoginPlace, loginFile, ownHome } from './login-place.ts'

/** Runs codex's own logout in codemachine's own codex home; whether there was a login. A `UserError` if it is still there. */
export async function logOut({ context, codex, ...place }: LoginPlace): Promise<boolean> {
  const home = ownHome(place)
  if (!(await pathExists(home))) return false
  const wasIn = await pathExists(loginFile(home))
  const { exitCode, stdout, stderr, failure } = await runProcess(codex.path, ['logout'], {
    directory: home,
    env: { ...context.env, CODEX_HOME: home },
    encoding: 'utf8',
    outputLimit: MOST_BYTES,
    timeoutMs: LOGOUT_MS,
  })
  if (exitCode === 0 && !(await pathExists(loginFile(home)))) return wasIn || /logged out/i.test(stdout + stderr)
  const said = stderr.trim().split('\n').at(-1) || (failure ?? `it ended with exit code ${exitCode}`)
  throw new UserError(`codex has not logged out in ${home}: ${said.slice(0, MOST_CHARS)}`, {
    hint: `The login is in ${loginFile(home)}; try again, or take that file away.`,
    exitCode: 4,
  })
}

/** Codex tells the account's server, which may be slow to answer. */
const LOGOUT_MS = 30_000
const MOST_BYTES = 64 * 1024
const MOST_CHARS = 500
