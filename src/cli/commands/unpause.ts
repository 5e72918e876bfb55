import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `unpause`: the run in the directory goes on after `pause`. */
export async function unpause(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'unpause', at }),
    verb: 'unpause',
    withoutRun: 'To go on with a session: codemachine resume',
    refused: 'What it is doing: codemachine status',
  })
}
