import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'
import { readText } from '../read-text.ts'

/** `replan`: the run in the directory has its plan changed as the text says, and holds until a person has seen it. */
export async function replan(context: CliContext, directory: string, typed: string): Promise<number> {
  const text = await readText(context, typed)
  return await askRun(context, directory, {
    command: at => ({ type: 'replan', text, at }),
    verb: 'change the plan of',
    withoutRun: 'MAIN.md and tasks.json of its session can be edited by hand; codemachine resume goes on.',
    refused: 'What it is doing: codemachine status',
  })
}
