import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `skip`: the run in the directory ends its session, and goes on with the next prompt that waits. */
export async function skip(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'skip', at }),
    verb: 'skip',
    withoutRun: 'What waits: codemachine queue list',
    refused: 'What it is doing: codemachine status',
  })
}
