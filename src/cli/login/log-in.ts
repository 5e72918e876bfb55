import { chmod, copyFile, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { isFile } from '../../codex/native-codex.ts'
import { pathVariable } from '../../platform/find-program.ts'
import { runInTerminal, type TerminalEnd } from '../../platform/run-in-terminal.ts'
import { searchPathOutside } from '../../platform/search-path.ts'
import { writableByAgents } from '../../platform/writable-by-agents.ts'
import type { LoginState } from '../../ui/start/start-facts.ts'
import { type LoginPlace, loginFile, loginIn, ownHome } from './login-place.ts'

/** How a person logs in. */
export type LoginWay = 'browser' | 'device' | 'api-key'

/**
 * What came of a login. `not`: nobody has logged in; `stays`: the login from before is as it was; `interrupted`: by
 * Ctrl+C; `why`: a sentence, where codex has not said it itself.
 */
export type LoginEnd =
  | { kind: 'in'; login: LoginState }
  | { kind: 'not'; stays: boolean; interrupted: boolean; why: string | null }

/**
 * Runs codex's own login for codemachine's own codex home, in the terminal, and asks codex what came of it. A login that
 * was there is replaced by one that is made, and by nothing else.
 *
 * @param key for `api-key`; null: codex reads it from stdin
 */
export async function logIn(place: LoginPlace, way: LoginWay, key: string | null): Promise<LoginEnd> {
  const home = ownHome(place)
  await makePrivate(home, place)
  const stays = await isFile(loginFile(home))
  // Codex throws the old login away before it asks for the new one: that one is made beside it.
  const where = stays ? await makeBeside(home, place) : home
  try {
    const end = await runLogin(place, where, way, key)
    const login = isSuccess(end) ? await loginIn(place, where) : null
    if (login === null || login.kind === 'out' || place.context.signal.aborted) {
      await rm(loginFile(where), { force: true })
      return { kind: 'not', stays, interrupted: isInterrupted(end, place), why: whyNot(end) }
    }
    if (stays) await takeOver(where, home)
    return { kind: 'in', login }
  } finally {
    if (stays) await rm(where, { recursive: true, force: true, maxRetries: 3 })
  }
}

const FLAGS: Record<LoginWay, readonly string[]> = {
  browser: [],
  device: ['--device-auth'],
  'api-key': ['--with-api-key'],
}

/** Codex waits for ever for a person who has gone away. */
const LOGIN_MS = 15 * 60_000
const TOO_LATE = 'It took longer than 15 minutes.'
const HOW_ELSE = `codemachine: Where nothing can open a browser, leave by Ctrl+C and type: codemachine login --device-auth
codemachine: (The "codex login --device-auth" that codex speaks of logs in somewhere else.)
`

/** What codex opens the browser with is not found where an agent can write. */
async function runLogin(
  { context, codex, directory }: LoginPlace,
  home: string,
  way: LoginWay,
  key: string | null,
): Promise<TerminalEnd | 'too late'> {
  const { env, clock, signal, stderr } = context
  const variable = pathVariable(env)
  if (way === 'browser') stderr.write(HOW_ELSE)
  const [late, over] = [new AbortController(), new AbortController()]
  void clock.wait(LOGIN_MS, over.signal).then(() => {
    if (!over.signal.aborted) late.abort('SIGTERM')
  })
  try {
    const end = await runInTerminal(codex.path, ['login', ...FLAGS[way]], {
      directory: home,
      env: {
        ...env,
        [variable]: searchPathOutside(env[variable] ?? '', writableByAgents(directory, env, [])),
        CODEX_HOME: home,
      },
      input: key === null ? null : `${key}\n`,
      signal: AbortSignal.any([signal, late.signal]),
      clock,
    })
    return late.signal.aborted && !signal.aborted ? 'too late' : end
  } finally {
    over.abort()
  }
}

function isSuccess(end: TerminalEnd | 'too late'): boolean {
  return end !== 'too late' && 'exitCode' in end && end.exitCode === 0
}

/** A launcher may end by the exit code that stands for the signal. */
function isInterrupted(end: TerminalEnd | 'too late', { context }: LoginPlace): boolean {
  if (context.signal.aborted) return true
  if (end === 'too late') return false
  return 'signal' in end ? end.signal === 'SIGINT' : 'exitCode' in end && end.exitCode === 130
}

function whyNot(end: TerminalEnd | 'too late'): string | null {
  if (end === 'too late') return TOO_LATE
  return 'error' in end ? `codex could not be started: ${end.error}.` : null
}

async function makePrivate(folder: string, { context }: LoginPlace): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (context.platform !== 'win32') await chmod(folder, 0o700)
  } catch (error) {
    throw new UserError(`No login can be kept in ${folder}: ${messageOf(error)}.`, {
      hint: 'Set CODEMACHINE_HOME to a directory that you can write to.',
      cause: error,
    })
  }
}

/** A home for one login, with the same configuration. What one that was cut off has left goes. */
async function makeBeside(home: string, place: LoginPlace): Promise<string> {
  const folder = join(home, 'new-login')
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  await makePrivate(folder, place)
  await copyFile(join(home, 'config.toml'), join(folder, 'config.toml')).catch(ignoreMissing)
  return folder
}

function ignoreMissing(error: unknown): void {
  if (systemErrorCode(error) !== 'ENOENT') throw error
}

async function takeOver(from: string, home: string): Promise<void> {
  if (!(await isFile(loginFile(from)))) {
    throw new UserError(`codex does not keep its login in a file, and that in ${loginFile(home)} stands before it.`, {
      hint: 'Log out first: codemachine logout',
      exitCode: 4,
    })
  }
  await rename(loginFile(from), loginFile(home))
}
