import { askRun } from '../../app/commands.ts'
import type { CliContext } from '../../app/world.ts'
import { openQueue, type Queue } from '../../records/queue.ts'
import { openRecords } from '../../records/records.ts'
import { oneLine } from '../../words/cells.ts'
import { readText } from '../flags.ts'

/** `interrupt`: the run in the directory ends the turn that runs, and holds until a person says what comes next. */
export async function interrupt(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'interrupt', at }),
    verb: 'interrupt',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}

/** `pause`: the run in the directory starts no further round until `unpause`. */
export async function pause(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'pause', at }),
    verb: 'pause',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}

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

/** `retry`: ends what the run in the directory waits for, so that it tries again at once. */
export async function retry(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'retry', at }),
    verb: 'retry',
    withoutRun: 'To go on with a session: codemachine resume',
    refused: 'What it is doing: codemachine status',
  })
}

/** `skip`: the run in the directory ends its session, and goes on with the next prompt that waits. */
export async function skip(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'skip', at }),
    verb: 'skip',
    withoutRun: 'What waits: codemachine queue list',
    refused: 'What it is doing: codemachine status',
  })
}

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

/** `stop`: the run in the directory ends after its round, or `now`; what it was at can be gone on with. */
export async function stop(context: CliContext, directory: string, now: boolean): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'stop', now, at }),
    verb: 'stop',
    withoutRun: 'How its sessions stand: codemachine list',
    refused: 'What it is doing: codemachine status',
  })
}

/** `unpause`: the run in the directory goes on after `pause`. */
export async function unpause(context: CliContext, directory: string): Promise<number> {
  return await askRun(context, directory, {
    command: at => ({ type: 'unpause', at }),
    verb: 'unpause',
    withoutRun: 'To go on with a session: codemachine resume',
    refused: 'What it is doing: codemachine status',
  })
}

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
