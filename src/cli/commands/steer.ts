import { askRun } from '../ask-run.ts'
import type { CliContext } from '../context.ts'
import { readText } from '../read-text.ts'

/** `steer`: hands the text to the codemachine that runs in the directory, and says what became of it. */
export async function steer(context: CliContext, directory: string, typed: string): Promise<number> {
  const text = await readText(context, typed)
  return await askRun(context, directory, {
    command: at => ({ type: 'steer', text, at }),
    verb: 'steer',
    withoutRun: 'To have it done as a session of its own: codemachine queue add "…"',
    refused: 'If the session goes on, say it again; else: codemachine queue add "…"',
  })
}
