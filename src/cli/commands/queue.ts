import { openQueue, type Queue } from '../../session/queue.ts'
import { openRecords } from '../../session/records.ts'
import { oneLine } from '../../ui/safe-text.ts'
import type { CliContext } from '../context.ts'
import { readText } from '../read-text.ts'

/** `queue add`. */
export async function queueAdd(context: CliContext, directory: string, prompt: string): Promise<number> {
  const text = await readText(context, prompt)
  const queue = await queueOf(context, directory)
  const { id } = await queue.add(text, new Date(context.clock.now()))
  context.stdout.write(`Queued as ${id}: ${oneLine(text, 80)}\n`)
  return 0
}

/** `queue list`. */
export async function queueList(context: CliContext, directory: string, json: boolean): Promise<number> {
  const { prompts, problems } = await (await queueOf(context, directory)).list()
  for (const problem of problems) context.stderr.write(`codemachine: ${problem}\n`)
  if (json) context.stdout.write(`${JSON.stringify(prompts)}\n`)
  else if (prompts.length === 0) context.stdout.write('Nothing waits. Add a prompt with: codemachine queue add "…"\n')
  else for (const { id, prompt } of prompts) context.stdout.write(`${id}  ${oneLine(prompt, 100)}\n`)
  return 0
}

/** `queue edit`. */
export async function queueEdit(context: CliContext, directory: string, id: string, prompt: string): Promise<number> {
  const text = await readText(context, prompt)
  const queue = await queueOf(context, directory)
  await queue.edit(id, text)
  context.stdout.write(`${id.padStart(6, '0')} is now: ${oneLine(text, 80)}\n`)
  return 0
}

/** `queue rm`. */
export async function queueRemove(context: CliContext, directory: string, id: string): Promise<number> {
  await (await queueOf(context, directory)).remove(id)
  context.stdout.write(`Took ${id.padStart(6, '0')} out of the queue.\n`)
  return 0
}

async function queueOf(context: CliContext, directory: string): Promise<Queue> {
  return openQueue((await openRecords({ ...context, directory })).queue)
}
