import { messageOf } from '../base/errors.ts'
import { forPerson } from './control-group.ts'
import {
  EXECA_OPTIONS,
  findProgram,
  type ProgramFound,
  type ProgramSearch,
  runWithExeca,
  systemProgram,
  withSearchPathOutside,
} from './run-process.ts'

/**
 * Opens a local page in the person's browser, without waiting for it. Null: the opener was started; else why not. Ignores
 * programs in folders that agents can write, also for the opener itself.
 */
export async function openPage(path: string, search: ProgramSearch): Promise<string | null> {
  const { name, page } = await openerOf(path, search)
  const { path: program, passedOver } = await systemOrFound(name, search)
  if (program === null) return notFound(name, passedOver)
  const env = forPerson(withSearchPathOutside(search.env, search.where, search.platform))
  const { execa } = await import('execa')
  // Detached: a started browser outlives this process.
  const child = execa(program, [page], { ...EXECA_OPTIONS, env, detached: true, stdio: 'ignore' })
  const { promise: started, resolve } = Promise.withResolvers<null>()
  child.nodeChildProcess.once('spawn', () => resolve(null)).unref()
  // Some openers end only with the browser; the Windows one exits with 1 on success.
  const failed = child.then(({ exitCode, signal, cause }) =>
    exitCode === undefined && signal === undefined ? messageOf(cause) : null,
  )
  return await Promise.race([started, failed])
}

/** Resolves with the opener program and its form of the page's path. In WSL: the Windows opener, if reachable. */
async function openerOf(path: string, search: ProgramSearch): Promise<{ name: string; page: string }> {
  if (search.platform === 'darwin') return { name: 'open', page: path }
  if (search.platform === 'win32') return { name: EXPLORER, page: path }
  const page = search.env.WSL_DISTRO_NAME === undefined ? null : await windowsPath(path, search)
  return page === null ? { name: 'xdg-open', page: path } : { name: EXPLORER, page }
}

const EXPLORER = 'explorer.exe'

async function systemOrFound(name: string, search: ProgramSearch): Promise<ProgramFound> {
  return search.platform === 'win32'
    ? { path: systemProgram(EXPLORER, search.env), passedOver: [] }
    : await findProgram(name, search)
}

function notFound(name: string, passedOver: readonly string[]): string {
  return passedOver.length === 0
    ? `${name} was not found on the PATH`
    : `${name} was found only where an agent can write, so codemachine does not use it: ${passedOver.join(', ')}`
}

/** Resolves with the Windows form of a WSL path; null: not available. Never run on a real WSL yet. */
async function windowsPath(path: string, search: ProgramSearch): Promise<string | null> {
  const { path: wslpath } = await findProgram('wslpath', search)
  if (wslpath === null) return null
  const { exitCode, stdout } = await runWithExeca(wslpath, ['-w', path], {
    env: withSearchPathOutside(search.env, search.where, search.platform),
    encoding: 'utf8',
    outputLimit: 64 * 1024,
    timeoutMs: 5_000,
  })
  return exitCode === 0 ? stdout.trim() : null
}

/** Returns true if a browser can be shown: not over SSH; on Linux only with a display or in WSL. */
export function hasDesktop(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  if (platform === 'darwin' || platform === 'win32') return !env.SSH_CONNECTION
  return Boolean(env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME)
}
