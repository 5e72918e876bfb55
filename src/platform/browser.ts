import { messageOf } from '../base/errors.ts'
import { forPerson } from './control-group.ts'
import { EXECA_OPTIONS, runWithExeca } from './run-process.ts'

/**
 * Opens a local page in the person's browser, and does not wait for it. Null if the program that opens it was started;
 * otherwise why not.
 */
export async function openPage(
  path: string,
  { env, platform }: { env: NodeJS.ProcessEnv; platform: NodeJS.Platform },
): Promise<string | null> {
  const { execa } = await import('execa')
  const { program, page } = await openerOf(path, env, platform)
  // Detached: a browser that it starts lives on when this process has ended.
  const child = execa(program, [page], { ...EXECA_OPTIONS, env: forPerson(env), detached: true, stdio: 'ignore' })
  const { promise: started, resolve } = Promise.withResolvers<null>()
  child.nodeChildProcess.once('spawn', () => resolve(null)).unref()
  // Some openers end only with the browser, and that of Windows with exit code 1 when all is well.
  const failed = child.then(({ exitCode, signal, cause }) =>
    exitCode === undefined && signal === undefined ? messageOf(cause) : null,
  )
  return await Promise.race([started, failed])
}

/** The program that opens a page, and the page as it knows it. WSL: that of Windows, where it can be reached. */
async function openerOf(
  path: string,
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform,
): Promise<{ program: string; page: string }> {
  if (platform === 'darwin') return { program: 'open', page: path }
  if (platform === 'win32') return { program: EXPLORER, page: path }
  const page = env.WSL_DISTRO_NAME === undefined ? null : await windowsPath(path, env)
  return page === null ? { program: 'xdg-open', page: path } : { program: EXPLORER, page }
}

const EXPLORER = 'explorer.exe'

/** A path in WSL as Windows knows it; null where it cannot be had. Never run on a real one yet. */
async function windowsPath(path: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const { exitCode, stdout } = await runWithExeca('wslpath', ['-w', path], {
    env,
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
