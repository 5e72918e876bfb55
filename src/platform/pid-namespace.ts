import { readlink } from 'node:fs/promises'

/**
 * What names the set of processes that this one can see by pid, as in `pid:[4026531836]`: each container has its own.
 * Null where there are none, or it cannot be told; always but on Linux.
 */
export async function pidNamespace(platform: NodeJS.Platform): Promise<string | null> {
  return platform === 'linux' ? await readlink('/proc/self/ns/pid').catch(() => null) : null
}
