import { type Argument, Command, Option } from 'commander'
import { UserError } from '../base/errors.ts'
import { version } from '../base/package.ts'
import { nearestName } from '../base/text.ts'
import type { CliContext } from '../tui/cli-context.ts'
import { shellWord } from '../words/commands.ts'
import type { DemoFlags } from './commands/demo.ts'
import {
  codexBinOption,
  type DirectoryFlags,
  directoryOf,
  type Ended,
  type RunFlags,
  withDirectory,
  withRunFlags,
  worktreeOption,
} from './flags.ts'
import { addAgents, addLogin, addProof, addRunning, addStart } from './program-parts.ts'

const EXAMPLES = `
Examples:
  codemachine "add a dark mode, with tests"    work on it until it is done, in at most 10 rounds
  codemachine --rounds 40 - < goal.md          a longer goal, from a file
  codemachine --verify "npm test" --review "…" done only if the tests pass and a reviewer agrees
  codemachine queue add "then update the docs" the next session, from another terminal
  codemachine --max-time 8h "…"                for as long as the night is; --max-tokens 5M: for so much
  codemachine start                            build what .codemachine/inputs/specifications.md asks for
  codemachine steer "leave the API as it is"   tell the running agent something
  codemachine status                           what it is doing; codemachine logs -f follows it
  codemachine stop                             end after this round; codemachine resume goes on from there
  codemachine replan "do the docs first"       have the plan changed; codemachine unpause goes on
  codemachine retry                            do not wait any longer for a limit or the network
  codemachine report --open                    in the morning: what was done, proved, refused, asked
  codemachine diff                             what it has changed; codemachine rewind start undoes it
  codemachine demo                             see it work, without an account or a network

Exit codes:
  0 done    2 wrong usage    3 a limit was reached    5 stalled: it does not get on
  4 needs a person; of review and verify: not agreed, or not proved; of land: a conflict
  6 another codemachine runs here
  130, 143 interrupted: codemachine resume goes on from there
`

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
      writeErr: text => context.stderr.write(inOwnWords(text)),
    })
    .addHelpText('after', EXAMPLES)
    .hook('preAction', refuseFlagsBefore)
  withRunFlags(program).addOption(worktreeOption())
  withAgentFlags(program)
  program.action(async (words: string[], flags: RunFlags & AgentFlags) => {
    if (flags.agent !== undefined) {
      const { agent } = await import('./commands/agent.ts')
      const { agent: name, stream = false, path: paths = [] } = flags
      return ended(await agent(context, { agent: name, task: words.join(' '), stream, paths, flags }))
    }
    const [alone] = [...(flags.stream ? ['--stream'] : []), ...(flags.path ? ['--path'] : [])]
    if (alone !== undefined) throw new UserError(`${alone} means something only with --agent <name>.`)
    refuseMistypedCommand(
      words,
      program.commands.map(command => command.name()),
    )
    const { run } = await withSmallHeap(() => import('./commands/run.ts'))
    ended(await run(context, words.length === 0 ? null : words.join(' '), flags))
  })
  addStart(program, context, ended)
  addResume(program, context, ended)
  addLooking(program, context, ended)
  addRunning(program, context, ended)
  addProof(program, context, ended)
  addAgents(program, context, ended)
  addLogin(program, context, ended)
  addDemo(program, context, ended)
  addDoctor(program, context, ended)
  nameMissingArguments(program)
  return program
}

/** What the parser says of a mistake; without the value of an option that there is not, for it may be a key. */
function inOwnWords(text: string): string {
  return text.replace(/^error: /, 'codemachine: ').replace(/(unknown option '[^'=]+)=.*'/s, "$1'")
}

/** Of a command line that has one agent do one thing. */
interface AgentFlags {
  agent?: string
  stream?: true
  path?: string[]
}

function withAgentFlags(program: Command): void {
  program
    .option('--agent <name>', 'have one agent do this, for the session that runs here or by itself')
    .option('--stream', 'with --agent: show what it does as it comes')
    .addOption(
      new Option('--path <folder>', 'with --agent: a folder that alone it may write in; may be repeated').argParser(
        (folder: string, before: string[] | undefined) => [...(before ?? []), folder],
      ),
    )
}

/** For what runs all night. */
async function withSmallHeap<Command>(load: () => Promise<Command>): Promise<Command> {
  const { keepHeapSmall } = await import('../platform/heap.ts')
  keepHeapSmall()
  return await load()
}

function addResume(program: Command, context: CliContext, ended: Ended): void {
  withRunFlags(program.command('resume'))
    .argument('[session]', 'the session; without it, the newest that is not done')
    .option('--reread-gates', 'take gates and review from the files as they are now, not those that it began with')
    .description(
      'go on with a session that was interrupted, cut off or stopped by its limit; a limit counts from its start',
    )
    .action(async (session: string | undefined, flags: RunFlags) => {
      const { resume } = await withSmallHeap(() => import('./commands/run.ts'))
      ended(await resume(context, session ?? null, flags))
    })
}

function addLooking(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('list'))
    .description('all sessions of this directory')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      const { list } = await import('./commands/look.ts')
      ended(await list(context, { directory: directoryOf(context, flags), json: flags.json ?? false }))
    })
  withDirectory(program.command('status'))
    .description('what runs here, and how far it is')
    .addOption(new Option('--json', 'as JSON').conflicts('line'))
    .option('--line', 'one short line of what runs here or in a folder above, for the status bar of tmux')
    .action(async (flags: DirectoryFlags & { json?: true; line?: true }) => {
      if (flags.line) {
        const { statusInOneLine } = await import('./status-line.ts')
        return ended(await statusInOneLine(context, directoryOf(context, flags)))
      }
      const { status } = await import('./commands/look.ts')
      ended(await status(context, { directory: directoryOf(context, flags), json: flags.json ?? false }))
    })
  withDirectory(program.command('logs'))
    .description('what happened in a session')
    .argument('[session]', 'the session; without it, the newest')
    .option('-f, --follow', 'go on as it happens')
    .option('--json', 'events as JSON lines')
    .action(async (session: string | undefined, flags: DirectoryFlags & { follow?: true; json?: true }) => {
      const { logs } = await import('./commands/look.ts')
      const { follow = false, json = false } = flags
      ended(await logs(context, { directory: directoryOf(context, flags), session: session ?? null, follow, json }))
    })
  withDirectory(program.command('watch'))
    .description('watch a session that runs elsewhere, as it happens')
    .argument('[session]', 'the session; without it, the one that runs, or else the newest')
    .action(async (session: string | undefined, flags: DirectoryFlags) => {
      const { watch } = await withSmallHeap(() => import('./commands/look.ts'))
      ended(await watch(context, { directory: directoryOf(context, flags), session: session ?? null }))
    })
}

function addDemo(program: Command, context: CliContext, ended: Ended): void {
  program
    .command('demo')
    .description('build a small project with the real codex and a scripted model: no account, no network')
    .addOption(
      new Option('--template <name>', 'what it shows: a goal, or a build by a team')
        .choices(['goal', 'build'])
        .default('goal'),
    )
    .addOption(codexBinOption())
    .option('--fast', 'do not slow the model down to a pace that can be read')
    .option('--plain', 'plain lines')
    .option('--json', 'events as JSON lines')
    .action(async (flags: DemoFlags) => {
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
  withDirectory(program.command('notify'))
    .description('send a sample notification in every way that the settings name')
    .action(async (flags: DirectoryFlags) => {
      const { notify } = await import('./commands/doctor.ts')
      ended(await notify(context, { directory: directoryOf(context, flags) }))
    })
}

/**
 * Refuses flags of a run that stand before a command: it is not told of them, and would do its work in another place,
 * or in another way, than a person meant.
 */
function refuseFlagsBefore(program: Command, command: Command): void {
  if (command === program) return
  const before = program.options.find(option => program.getOptionValueSource(option.attributeName()) === 'cli')
  if (before === undefined) return
  const flag = before.short ?? before.long ?? ''
  const name = nameOf(command, program)
  if (!command.options.some(({ long }) => long === before.long)) {
    throw new UserError(`${before.long} means nothing to ${name}; leave it out.`)
  }
  const typed = wordsOf(flag, program.getOptionValue(before.attributeName()))
  throw new UserError(`Write ${flag} after ${name}: codemachine ${name} ${typed} …`)
}

/** `queue add`. */
function nameOf(command: Command, program: Command): string {
  const { parent } = command
  return parent === null || parent === program ? command.name() : `${nameOf(parent, program)} ${command.name()}`
}

function wordsOf(flag: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(each => wordsOf(flag, each)).join(' ')
  return typeof value === 'string' ? `${flag} ${shellWord(value)}` : flag
}

/**
 * Refuses what is more likely a command than a goal, so that no build is started for it: a single plain word, and words
 * of which the first is nearly a command's name. A goal that was quoted is one word with spaces, and is taken as it is.
 */
function refuseMistypedCommand(words: readonly string[], commands: readonly string[]): void {
  const [word] = words
  if (word === undefined || word === '-' || /\s/.test(word)) return
  const meant = nearestName(word, commands)
  if (meant === null && words.length === 1 && /^[a-z][a-z-]+$/.test(word)) {
    throw new UserError(`There is no command "${word}"; codemachine --help lists them.`, {
      hint: `To work on "${word}" as a goal, say more about it.`,
    })
  }
  if (meant === null) return
  throw new UserError(`There is no command "${word}"; did you mean "codemachine ${meant}"?`, {
    hint:
      words.length > 1 ? 'If it is a goal, put it in quotes.' : `To work on "${word}" as a goal, say more about it.`,
  })
}

const MISSING = /^error: missing required argument '(.+)'$/

/** Has each command say what an argument is that was left out, in place of its name alone. */
function nameMissingArguments(program: Command): void {
  for (const command of program.commands) {
    nameMissingArguments(command)
    command.configureOutput({
      outputError: (text, write) => {
        const [, name] = MISSING.exec(text.trim()) ?? []
        const argument = command.registeredArguments.find(each => each.name() === name)
        write(argument === undefined ? text : `codemachine: ${sentenceOf(command, argument)}\n`)
      },
    })
  }
}

function sentenceOf(command: Command, argument: Argument): string {
  const shown = `<${argument.name()}${argument.variadic ? '...' : ''}>`
  return `${fullNameOf(command)} needs ${shown}: ${argument.description}.`
}

function fullNameOf(command: Command): string {
  return command.parent === null ? command.name() : `${fullNameOf(command.parent)} ${command.name()}`
}
