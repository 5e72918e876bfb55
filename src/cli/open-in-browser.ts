import { messageOf } from '../base/errors.ts'
import type { CliContext } from './context.ts'

/** Opens a page of ours in the person's browser; where there is no desktop, or it fails, says so on stderr. */
export async function openInBrowser(
  { env, platform, stderr }: Pick<CliContext, 'env' | 'platform' | 'stderr'>,
  path: string,
) {
  if (!hasDesktop(env, platform)) {
    stderr.write('There is no desktop here to open it on; it is the file above.\n')
    return
  }
  const { default: open } = await import('open')
  await open(path).catch((error: unknown) => {
    stderr.write(`codemachine: it could not be opened (${messageOf(error)}); it is the file above.\n`)
  })
}

function hasDesktop(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  if (platform === 'darwin' || platform === 'win32') return !env.SSH_CONNECTION
  return Boolean(env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME)
}
