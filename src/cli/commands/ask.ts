import { OpenProject } from '../../app/open-project.ts'
import { UserError } from '../../base/errors.ts'
import { isTaken } from '../../core/contracts/reply.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { oneLine } from '../../words/cells.ts'
import { readText } from '../flags.ts'
import type { RunningCommand } from '../running.ts'

/**
 * Asks something of the codemachine that runs in the directory, and prints its answer; resolves with the exit code. A
 * `UserError` if nobody runs there, or it does not take it.
 */
export async function askRunning(
  context: CliContext,
  directory: string,
  { ask, text, verb, withoutRun, refused }: RunningCommand,
  said: { text: string; now: boolean },
): Promise<number> {
  const typed = text === undefined ? '' : await readText(context, said.text)
  await using project = await OpenProject.open(context, { directory })
  const answer = await project.ask(ask({ ...said, text: typed }))
  if (answer === null) {
    throw new UserError(`No codemachine runs in ${project.directory}, so there is nothing to ${verb}.`, {
      hint: withoutRun,
    })
  }
  if (!isTaken(answer)) throw new UserError(answer.message, { hint: refused })
  context.stdout.write(`${answer.message}\n`)
  return 0
}

/** `queue add`. */
export async function queueAdd(context: CliContext, directory: string, prompt: string): Promise<number> {
  const text = await readText(context, prompt)
  const { queue } = await OpenProject.open(context, { directory })
  const { id } = await queue.add(text)
  context.stdout.write(`Queued as ${id}: ${oneLine(text, 80)}\n`)
  return 0
}

/** `queue list`. */
export async function queueList(context: CliContext, directory: string, json: boolean): Promise<number> {
  const { queue } = await OpenProject.open(context, { directory })
  const { prompts, problems } = await queue.list()
  for (const problem of problems) context.stderr.write(`codemachine: ${problem}\n`)
  if (json) context.stdout.write(`${JSON.stringify(prompts)}\n`)
  else if (prompts.length === 0) context.stdout.write('Nothing waits. Add a prompt with: codemachine queue add "…"\n')
  else for (const { id, prompt } of prompts) context.stdout.write(`${id}  ${oneLine(prompt, 100)}\n`)
  return 0
}

/** `queue edit`. */
export async function queueEdit(context: CliContext, directory: string, id: string, prompt: string): Promise<number> {
  const text = await readText(context, prompt)
  const { queue } = await OpenProject.open(context, { directory })
  await queue.edit(id, text)
  context.stdout.write(`${id.padStart(6, '0')} is now: ${oneLine(text, 80)}\n`)
  return 0
}

/** `queue rm`. */
export async function queueRemove(context: CliContext, directory: string, id: string): Promise<number> {
  const { queue } = await OpenProject.open(context, { directory })
  await queue.remove(id)
  context.stdout.write(`Took ${id.padStart(6, '0')} out of the queue.\n`)
  return 0
}
