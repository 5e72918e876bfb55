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
 * Opens a local page in the person's browser, and does not wait for it. Null if the program that opens it was started;
 * otherwise why not. No program is taken from where agents can write, nor does one find others there.
 */
export async function openPage(path: string, search: ProgramSearch): Promise<string | null> {
  const { name, page } = await openerOf(path, search)
  const { path: program, passedOver } = await systemOrFound(name, search)
  if (program === null) return notFound(name, passedOver)
  const env = forPerson(withSearchPathOutside(search.env, search.where, search.platform))
  const { execa } = await import('execa')
  // Detached: a browser that it starts lives on when this process has ended.
  const child = execa(program, [page], { ...EXECA_OPTIONS, env, detached: true, stdio: 'ignore' })
  const { promise: started, resolve } = Promise.withResolvers<null>()
  child.nodeChildProcess.once('spawn', () => resolve(null)).unref()
  // Some openers end only with the browser, and that of Windows with exit code 1 when all is well.
  const failed = child.then(({ exitCode, signal, cause }) =>
    exitCode === undefined && signal === undefined ? messageOf(cause) : null,
  )
  return await Promise.race([started, failed])
}

/** The program that opens a page, and the page as it knows it. WSL: that of Windows, where it can be reached. */
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

/** A path in WSL as Windows knows it; null where it cannot be had. Never run on a real one yet. */
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

/** Whether a browser can be shown here: not over SSH, and on Linux only with a display, or in WSL. */
export function hasDesktop(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  if (platform === 'darwin' || platform === 'win32') return !env.SSH_CONNECTION
  return Boolean(env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME)
}
