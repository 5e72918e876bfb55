import { type Records, recordsAround } from '../../session/records/records.ts'
import { type LockHolder, readRunner } from '../../session/records/run-lock.ts'
import type { CliContext } from '../screen/cli-context.ts'
import { type DirectoryFlags, directoryOf } from './flags.ts'

/**
 * `codemachine status --line`: the session that runs in a directory, or in the nearest above it in which one does;
 * nothing if none does. A status bar asks every few seconds, wherever a person happens to be: so it makes no records,
 * and where nobody runs it loads next to nothing.
 */
export async function statusInOneLine(context: CliContext, flags: DirectoryFlags): Promise<number> {
  for (const records of await recordsAround({ ...context, directory: directoryOf(context, flags) })) {
    const runner = await readRunner(records.lock, context.platform)
    const line = runner && (await lineOf(records, runner, context))
    if (line === null) continue
    context.stdout.write(`${line}\n`)
    break
  }
  return 0
}

async function lineOf(records: Records, runner: LockHolder, context: CliContext): Promise<string | null> {
  const { runningInOneLine } = await import('../../project/watch/task-watch.ts')
  return await runningInOneLine(records, runner, context)
}
