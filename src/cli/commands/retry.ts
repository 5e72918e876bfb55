import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `retry`: ends what the run in the directory waits for, so that it tries again at once. */
export async function retry(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'retry', at }),
    verb: 'retry',
    withoutRun: 'To go on with a session: codemachine resume',
    refused: 'What it is doing: codemachine status',
  })
}
