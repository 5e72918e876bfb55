import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `stop`: the run in the directory ends after its round, or `now`; what it was at can be gone on with. */
export async function stop(context: CliContext, directory: string, now: boolean): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'stop', now, at }),
    verb: 'stop',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}
