import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `pause`: the run in the directory starts no further round until `unpause`. */
export async function pause(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'pause', at }),
    verb: 'pause',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}
