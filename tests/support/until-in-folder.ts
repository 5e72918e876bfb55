import { watch } from 'node:fs'

const WAIT_MS = 60_000

/**
 * Resolves with what `look` finds, null being nothing: now, or after a change in the folder, which has to be there.
 * Rejects after 60 s, naming what was waited for.
 */
export async function untilInFolder<T>(
  folder: string,
  what: string,
  look: () => T | null | Promise<T | null>,
): Promise<T> {
  const late = Promise.withResolvers<never>()
  const bound = setTimeout(() => late.reject(new Error(`Not within ${WAIT_MS} ms in ${folder}: ${what}.`)), WAIT_MS)
  let changed = Promise.withResolvers<void>()
  const watcher = watch(folder, () => changed.resolve())
  try {
    for (;;) {
      // Before the look, so that what comes during it is looked at too.
      changed = Promise.withResolvers<void>()
      const found = await look()
      if (found !== null) return found
      await Promise.race([changed.promise, late.promise])
    }
  } finally {
    clearTimeout(bound)
    watcher.close()
  }
}
