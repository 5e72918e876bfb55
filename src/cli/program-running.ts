import type { Command } from 'commander'
import type { CliContext, Ended } from './context.ts'
import { type DirectoryFlags, directoryOf, withDirectory } from './flags.ts'

/** The commands that ask a running codemachine for something, from another terminal. */
export function addRunning(program: Command, context: CliContext, ended: Ended): void {
  addQueue(program, context, ended)
  addAsking(program, context, ended)
  addHolding(program, context, ended)
}

function addQueue(program: Command, context: CliContext, ended: Ended): void {
  const queue = program.command('queue').description('the prompts that wait; each becomes a session of its own')
  const load = () => import('./commands/queue.ts')
  withDirectory(queue.command('add'))
    .argument('<prompt...>', 'the prompt; - reads it from standard input')
    .description('add a prompt at the end')
    .action(async (words: string[], flags: DirectoryFlags) => {
      ended(await (await load()).queueAdd(context, directoryOf(context, flags), words.join(' ')))
    })
  withDirectory(queue.command('list'))
    .description('show the prompts that wait')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      ended(await (await load()).queueList(context, directoryOf(context, flags), flags.json ?? false))
    })
  withDirectory(queue.command('edit'))
    .argument('<id>', 'the number that `queue list` shows')
    .argument('<prompt...>', 'the new prompt; - reads it from standard input')
    .description('replace a prompt')
    .action(async (id: string, words: string[], flags: DirectoryFlags) => {
      ended(await (await load()).queueEdit(context, directoryOf(context, flags), id, words.join(' ')))
    })
  withDirectory(queue.command('rm'))
    .argument('<id>', 'the number that `queue list` shows')
    .description('take a prompt out')
    .action(async (id: string, flags: DirectoryFlags) => {
      ended(await (await load()).queueRemove(context, directoryOf(context, flags), id))
    })
}

function addAsking(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('steer'))
    .argument('<text...>', 'what to tell it; - reads it from standard input')
    .description('tell the running agent something, from another terminal')
    .action(async (words: string[], flags: DirectoryFlags) => {
      const { steer } = await import('./commands/steer.ts')
      ended(await steer(context, directoryOf(context, flags), words.join(' ')))
    })
  withDirectory(program.command('stop'))
    .description('end the run after this round, from another terminal; resume goes on from there')
    .option('--now', 'interrupt the round')
    .action(async (flags: DirectoryFlags & { now?: true }) => {
      const { stop } = await import('./commands/stop.ts')
      ended(await stop(context, directoryOf(context, flags), flags.now ?? false))
    })
  withDirectory(program.command('pause'))
    .description('start no further round until unpause, from another terminal')
    .action(async (flags: DirectoryFlags) => {
      const { pause } = await import('./commands/pause.ts')
      ended(await pause(context, directoryOf(context, flags)))
    })
  withDirectory(program.command('unpause'))
    .description('go on after pause')
    .action(async (flags: DirectoryFlags) => {
      const { unpause } = await import('./commands/unpause.ts')
      ended(await unpause(context, directoryOf(context, flags)))
    })
  withDirectory(program.command('retry'))
    .description('end what it waits for now, from another terminal: it tries again at once')
    .action(async (flags: DirectoryFlags) => {
      const { retry } = await import('./commands/retry.ts')
      ended(await retry(context, directoryOf(context, flags)))
    })
}

function addHolding(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('interrupt'))
    .description('interrupt the round and hold, from another terminal: unpause goes on')
    .action(async (flags: DirectoryFlags) => {
      const { interrupt } = await import('./commands/interrupt.ts')
      ended(await interrupt(context, directoryOf(context, flags)))
    })
  withDirectory(program.command('skip'))
    .description('end this session and go on with the next in the queue, from another terminal')
    .action(async (flags: DirectoryFlags) => {
      const { skip } = await import('./commands/skip.ts')
      ended(await skip(context, directoryOf(context, flags)))
    })
  withDirectory(program.command('replan'))
    .argument('<text...>', 'what to change; - reads it from standard input')
    .description('have the plan changed, from another terminal; then it holds until unpause')
    .action(async (words: string[], flags: DirectoryFlags) => {
      const { replan } = await import('./commands/replan.ts')
      ended(await replan(context, directoryOf(context, flags), words.join(' ')))
    })
}
