import { readlink } from 'node:fs/promises'
import { isAbsolute } from 'node:path'

/**
 * The files that this process's stdout and stderr were redirected to; absolute paths. Known on Linux alone: elsewhere a
 * process cannot easily tell, and none are given.
 */
export async function outputFiles(platform: NodeJS.Platform): Promise<string[]> {
  if (platform !== 'linux') return []
  const targets = await Promise.all([1, 2].map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
  return [...new Set(targets.filter(target => isAbsolute(target) && !target.startsWith('/dev/')))]
}
