import { lstat, rmdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Empty folders that codex's sandbox lays into the directory of a command, and leaves there if it is cut off (docs/codex.md). */
const TRACES = ['.agents', '.aws', '.codex', '.git']

/**
 * Looks which of them are not there now; the function that it resolves with removes those that have come since and are
 * empty. What has anything in it is never touched.
 */
export async function watchSandboxTraces(directory: string): Promise<() => Promise<void>> {
  const paths = TRACES.map(name => join(directory, name))
  const there = await Promise.all(
    paths.map(path =>
      lstat(path).then(
        () => true,
        () => false,
      ),
    ),
  )
  const absent = paths.filter((_, i) => !there[i])
  return async () => {
    // A folder that is not empty, or none, stays as it is.
    await Promise.all(absent.map(path => rmdir(path).catch(() => {})))
  }
}
