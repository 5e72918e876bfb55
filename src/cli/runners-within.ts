import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../base/errors.ts'
import { type Records, recordsAround } from '../session/records.ts'
import { askWhoRuns } from '../session/run-lock.ts'
import type { CliContext } from './context.ts'

/**
 * Refuses, with exit code 6, where a codemachine runs in one of these directories.
 * @param directories asked for only if one runs anywhere
 */
export async function refuseRunning(
  context: CliContext,
  top: string,
  directories: () => Promise<readonly string[]>,
): Promise<void> {
  const [records] = await recordsAround({ ...context, directory: top })
  if (records === undefined) return
  const held = await heldLocks(context, records)
  if (held.size === 0) return
  for (const directory of [top, ...(await directories())]) {
    const [{ key } = records] = await recordsAround({ ...context, directory })
    const pid = held.get(key)
    if (pid === undefined) continue
    throw new UserError(`codemachine (pid ${pid}) runs in ${directory}, whose files must not change meanwhile.`, {
      hint: 'Wait for its end, or end it with codemachine stop, and land again.',
      exitCode: 6,
    })
  }
}

/** The pid of who runs, by the key of the records of where. */
async function heldLocks({ platform }: CliContext, { root, key: own }: Records): Promise<Map<string, number>> {
  const state = join(root, 'state')
  const held = new Map<string, number>()
  for (const key of await readdir(state).catch(() => [])) {
    const runner = await askWhoRuns(join(state, key, 'lock'), platform, problem => {
      if (key === own) throw new UserError(problem, { exitCode: 6 })
    })
    if (runner !== null && runner !== 'unknown') held.set(key, runner.pid)
  }
  return held
}
