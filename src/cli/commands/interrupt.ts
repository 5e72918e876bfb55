import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'

/** `interrupt`: the run in the directory ends the turn that runs, and holds until a person says what comes next. */
export async function interrupt(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'interrupt', at }),
    verb: 'interrupt',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}
