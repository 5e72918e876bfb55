import { resolve } from 'node:path'
import { Command } from 'commander'
import { version } from '../base/version.ts'
import type { CliContext } from './context.ts'
import { codexBinOption, type DirectoryFlags, type RunFlags, withDirectory, withRunFlags } from './flags.ts'
import { refuseMistypedCommand } from './mistyped-command.ts'

const EXAMPLES = `
Examples:
  codemachine "add a dark mode, with tests"    work on it until it is done, in at most 10 rounds
  codemachine --rounds 40 - < goal.md          a longer goal, from a file
  codemachine queue add "then update the docs" the next session, from another terminal
  codemachine steer "leave the API as it is"   tell the running agent something
  codemachine status                           what it is doing; codemachine logs -f follows it
  codemachine demo                             see it work, without an account or a network

Exit codes:
  0 done    2 wrong usage    3 a limit was reached    4 needs a person    6 another codemachine runs here
  130, 143 interrupted: codemachine resume goes on from there
`

type Ended = (exitCode: number) => void

/** The whole command line. What a command imports is loaded when it is called. */
export function buildProgram(context: CliContext, ended: Ended): Command {
  const program = new Command('codemachine')
    .description('Leave a coding agent to work overnight; find the work done, and proven, in the morning.')
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .argument('[goal...]', 'what to work on; - reads it from standard input')
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: text => context.stdout.write(text),
      writeErr: text => context.stderr.write(text.replace(/^error: /, 'codemachine: ')),
    })
    .addHelpText('after', EXAMPLES)
  withRunFlags(program).action(async (words: string[], flags: RunFlags) => {
    refuseMistypedCommand(
      words,
      program.commands.map(command => command.name()),
    )
    const { run } = await loadRun()
    ended(await run(context, words.length === 0 ? null : words.join(' '), flags))
  })
  addResume(program, context, ended)
  addLooking(program, context, ended)
  addQueue(program, context, ended)
  addSteer(program, context, ended)
  addDemo(program, context, ended)
  addDoctor(program, context, ended)
  return program
}

async function loadRun(): Promise<typeof import('./commands/run.ts')> {
  const { keepHeapSmall } = await import('./small-heap.ts')
  keepHeapSmall()
  return await import('./commands/run.ts')
}

function directoryOf(context: CliContext, flags: DirectoryFlags): string {
  return resolve(context.cwd, flags.cd ?? '.')
}

function addResume(program: Command, context: CliContext, ended: Ended): void {
  withRunFlags(program.command('resume'))
    .argument('[session]', 'the session; without it, the newest that is not done')
    .description('go on with a session that was interrupted, cut off or stopped by its limit')
    .action(async (session: string | undefined, flags: RunFlags) => {
      const { resume } = await loadRun()
      ended(await resume(context, session ?? null, flags))
    })
}

function addLooking(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('list'))
    .description('all sessions of this directory')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      const { list } = await import('./commands/list.ts')
      ended(await list(context, { directory: directoryOf(context, flags), json: flags.json ?? false }))
    })
  withDirectory(program.command('status'))
    .description('what runs here, and how far it is')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      const { status } = await import('./commands/status.ts')
      ended(await status(context, { directory: directoryOf(context, flags), json: flags.json ?? false }))
    })
  withDirectory(program.command('logs'))
    .description('what happened in a session')
    .argument('[session]', 'the session; without it, the newest')
    .option('-f, --follow', 'go on as it happens')
    .option('--json', 'events as JSON lines')
    .action(async (session: string | undefined, flags: DirectoryFlags & { follow?: true; json?: true }) => {
      const { logs } = await import('./commands/logs.ts')
      const { follow = false, json = false } = flags
      ended(await logs(context, { directory: directoryOf(context, flags), session: session ?? null, follow, json }))
    })
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

function addSteer(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('steer'))
    .argument('<text...>', 'what to tell it; - reads it from standard input')
    .description('tell the running agent something, from another terminal')
    .action(async (words: string[], flags: DirectoryFlags) => {
      const { steer } = await import('./commands/steer.ts')
      ended(await steer(context, directoryOf(context, flags), words.join(' ')))
    })
}

function addDemo(program: Command, context: CliContext, ended: Ended): void {
  program
    .command('demo')
    .description('build a small project with the real codex and a scripted model: no account, no network')
    .addOption(codexBinOption())
    .option('--fast', 'do not slow the model down to a pace that can be read')
    .option('--plain', 'plain lines')
    .option('--json', 'events as JSON lines')
    .action(async (flags: { codexBin?: string; fast?: true; plain?: true; json?: true }) => {
      const { demo } = await import('./commands/demo.ts')
      ended(await demo(context, flags))
    })
}

function addDoctor(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('doctor'))
    .description('look whether all that codemachine needs is there, and say how to mend what is not')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { codexBin?: string; json?: true }) => {
      const { doctor } = await import('./commands/doctor.ts')
      ended(await doctor(context, { ...flags, directory: directoryOf(context, flags) }))
    })
}
