import { type Argument, Command, Option } from 'commander'
import type { ErrorCode } from '../../base/error-codes.ts'
import { UserError } from '../../base/errors.ts'
import { version } from '../../base/package.ts'
import { shellWord } from '../../platform/shell-word.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { CliContext } from '../screen/cli-context.ts'
import { addChange } from './change/program.ts'
import {
  codexBinOption,
  contractOnlyOption,
  type Does,
  eachTyped,
  followUpOption,
  issueOption,
  type RunFlags,
  withDirectory,
  withLook,
  withRunFlags,
  worktreeOption,
} from './flags.ts'
import { addFleet } from './fleet/program.ts'
import { addFlow } from './flow/program.ts'
import { addExamples, addFlowHelp, addHelp, MOST_WORD, nameOf, sentenceOfUnknown, typedName } from './help.ts'
import {
  addAdopt,
  addAgents,
  addLogin,
  addProof,
  addSchedule,
  addService,
  addSettings,
  addStart,
  addUninstall,
  refuseMistypedCommand,
  withSmallHeap,
} from './program/parts.ts'
import { addRunning } from './program/running.ts'
import { addSecret } from './program/secret.ts'
import { addMcp, addWeb } from './program/web.ts'
import { addTeam } from './team/program.ts'

/** What a command line is read with; `templates` left out: those of codemachine itself. */
export type BareContext = Omit<CliContext, 'templates' | 'modes'> &
  Partial<Pick<CliContext, 'templates'>> & {
    /** How a help comes to stdout; left out: through the stream. */
    helpOutput?: {
      write(text: string): void
      /** How many fit in a line. */
      columns(): number
    }
  }

/**
 * The whole command line. What a command imports is loaded when it is called.
 * @param ended told with which exit code a command has ended
 * @param typed what was typed: a command that is not among its words is listed, without its options and the commands
 *   below it. Left out: nothing is known of it, and every command has all that it has
 */
export function buildProgram(
  context: BareContext,
  ended: (exitCode: number) => void,
  typed?: readonly string[],
): Command {
  const program = bareProgram(context)
  if (typed !== undefined) {
    const words = new Set(typed)
    program.createCommand = name =>
      name === undefined || words.has(name) ? new Command(name) : new ListedCommand(name)
  }
  program
    .description('Leave a coding agent to work overnight; find the work done, and proven, in the morning.')
    .argument('[goal...]', 'what to work on; - reads it from standard input')
  withRunFlags(program).addOption(worktreeOption()).addOption(followUpOption()).addOption(contractOnlyOption())
  program.addOption(issueOption()).option('-y, --yes', 'with --issue: ask nothing')
  withAgentFlags(program)
  program.action(async (words: string[], flags: RunFlags & AgentFlags) => {
    if (flags.agent !== undefined) {
      if (flags.detach)
        throw new UserError(
          'CM0102',
          '--agent waits for the answer of the agent, so it cannot run in the background; leave --detach out.',
        )
      const { agent } = await import('./commands/agent.ts')
      const { agent: name, stream = false, path: paths = [] } = flags
      return ended(
        await agent(await commandContext(context), { agent: name, task: words.join(' '), stream, paths, flags }),
      )
    }
    const [alone] = [...(flags.stream ? ['--stream'] : []), ...(flags.path ? ['--path'] : [])]
    if (alone !== undefined) throw new UserError('CM0102', `${alone} works only with --agent <name>.`)
    refuseMistypedCommand(words, program)
    if (startsRunner(context, flags)) {
      const { detach } = await import('./commands/runner/detach.ts')
      return ended(await detach(await commandContext(context), flags))
    }
    const { run } = await withSmallHeap(context, () => import('./commands/run.ts'))
    ended(await run(await commandContext(context), words.length === 0 ? null : words.join(' '), flags))
  })
  const does = doesIn(context, ended)
  for (const add of [
    addStart,
    addAdopt,
    addChange,
    addTeam,
    addSecret,
    addResume,
    addLooking,
    addRunning,
    addProof,
    addAgents,
  ])
    add(program, does)
  addFlow(program.command('flow'), does)
  for (const add of [
    addLogin,
    addSettings,
    addSchedule,
    addService,
    addDemo,
    addDoctor,
    addUninstall,
    addWeb,
    addMcp,
    addFleet,
  ])
    add(program, does)
  addHelp(program)
  addExamples(program)
  program.addHelpText('before', () => wordsForNoCommand(program))
  sayInSentences(program)
  return program
}

/** What stands above the help where that of a command was asked for that there is not. */
function wordsForNoCommand(program: Command): string {
  const [word = ''] = program.args
  return /^[a-z]/.test(word) && word !== 'help' ? `${sentenceOfUnknown(program, word)}\n` : ''
}

/** The same of `codex-flow`, which is what `codemachine flow` is. */
export function buildFlowProgram(context: BareContext, ended: (exitCode: number) => void): Command {
  const program = bareProgram(context)
  addFlow(program, doesIn(context, ended))
  addFlowHelp(program)
  addExamples(program, ['flow'])
  sayInSentences(program)
  return program
}

/** Nothing of it was typed: its line in a help, and its name where a mistyped one is like it, are all that is seen of it. */
class ListedCommand extends Command {
  override option(): this {
    return this.addOption()
  }

  /** The first stands for all: a line of a help says only whether there are any. */
  override addOption(): this {
    return this.options.length === 0 ? super.addOption(new Option('--any')) : this
  }

  override command(): never {
    return UNSEEN as never
  }
}

/** Stands for each command below one that was not typed. */
class UnseenCommand extends ListedCommand {
  override on(): this {
    return this
  }

  override addOption(): this {
    return this
  }

  override argument(): this {
    return this
  }

  override addArgument(): this {
    return this
  }
}

const UNSEEN = new UnseenCommand()

/** The program that was typed, with its help and version, and without a command. */
function bareProgram(context: BareContext): Command {
  const { program, helpOutput } = context
  return new Command(program)
    .version(version, '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .configureHelp({ minWidthToWrap: 24 })
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: text => (helpOutput ?? context.stdout).write(text),
      ...(helpOutput && { getOutHelpWidth: () => helpOutput.columns(), getOutHasColors: () => false }),
      writeErr: text => context.stderr.write(inOwnWords(text, program)),
    })
    .hook('preAction', refuseFlagsBefore)
    .hook('preAction', async (_, command) => {
      // The service has a flag of that name.
      const isRun = command.options.some(each => each.attributeName() === 'detach')
      if (!isRun || command.opts<RunFlags>().web !== true || context.own.detached !== null) return
      const { sayPage } = await import('./commands/runner/web.ts')
      await sayPage(await commandContext(context))
    })
}

function doesIn(bare: BareContext, ended: (exitCode: number) => void): Does {
  return load =>
    async (...typed) => {
      const flags = typed.at(-2) as RunFlags | undefined
      if (startsRunner(bare, flags)) {
        const { detach } = await import('./commands/runner/detach.ts')
        const command = typed.at(-1) as Command
        return ended(await detach(await commandContext(bare), flags, command.name(), command.args[0]))
      }
      const [command, context] = await Promise.all([load(bare), commandContext(bare)])
      // The last that was typed is the command itself.
      ended(await command(context, ...(typed.slice(0, -1) as never[])))
    }
}

/** Whether what was typed is done by a runner of its own, which this process only starts. */
function startsRunner({ own }: BareContext, flags: RunFlags | undefined): flags is RunFlags {
  return flags?.detach === true && own.detached === null
}

/**
 * What a command is given: the environment of our own programs, and the templates of codemachine itself where none are given.
 * Both are made once a command has been read.
 */
function commandContext(context: BareContext): Promise<CliContext> {
  const made = contexts.get(context) ?? makeContext(context)
  contexts.set(context, made)
  return made
}

/** The server of the page and the command itself are given the same one. */
const contexts = new WeakMap<BareContext, Promise<CliContext>>()

async function makeContext(context: BareContext): Promise<CliContext> {
  const [{ OWN_MODES, OWN_TEMPLATES }, { ownEnvironment }] = await Promise.all([
    import('../../modes/registry.ts'),
    import('../../project/environment/own-environment.ts'),
  ])
  const { home, platform, program, templates = OWN_TEMPLATES } = context
  const { env, dropped } = await ownEnvironment({ env: context.env, home, platform, templates })
  if (dropped.length > 0) {
    const set = `which the calling git command set: git finds the repository by the directory.`
    context.stderr.write(`${program}: Ignored ${dropped.join(', ')}, ${set}\n`)
  }
  // Not by what it has: a stream is opened when it is asked for.
  const { env: _, ...rest } = Object.getOwnPropertyDescriptors(context)
  return Object.defineProperties({ templates, modes: OWN_MODES, env } as CliContext, rest)
}

/** What the parser says of a mistake. */
function inOwnWords(text: string, program: string): string {
  return text.replace(/^error: /, `${program}: `)
}

/** Of a command line that has one agent do one thing. */
interface AgentFlags {
  agent?: string
  stream?: true
  path?: string[]
}

function withAgentFlags(program: Command): void {
  program
    .option('--agent <name>', 'have one agent do this, for the running session or alone')
    .option('--stream', 'with --agent: show its output as it comes')
    .addOption(
      new Option('--path <folder>', 'with --agent: a folder it may write in; may be repeated').argParser(eachTyped),
    )
}

function addResume(program: Command, does: Does): void {
  withRunFlags(program.command('resume'))
    .argument('[session]', 'the session; without it, the newest that is not done')
    .option('--reread-gates', 'use the current gates and review settings, not those of its start')
    .description('resume a session that was interrupted, cut off or stopped by a limit; limits count from its start')
    .action(does(async context => (await withSmallHeap(context, () => import('./commands/run.ts'))).resume))
}

function addLooking(program: Command, does: Does): void {
  const look = () => import('./commands/look.ts')
  withLook(program.command('list'))
    .description('all sessions of this directory and of its worktrees')
    .option('--all', 'the newest of every directory on this machine')
    .action(does(async () => (await look()).list))
  withLook(program.command('sessions'))
    .description('a table of sessions: find, watch, report, resume; without a terminal the same as list')
    .option('--all', 'of every directory on this machine')
    .action(does(async context => (await withSmallHeap(context, () => import('./commands/sessions.ts'))).sessions))
  const status = does(async () => (await look()).status)
  const statusInOneLine = does(async () => (await import('./status-line.ts')).statusInOneLine)
  withDirectory(program.command('status'))
    .description('what is running here and in the worktrees, and its progress')
    .addOption(new Option('--json', 'as JSON').conflicts('line'))
    .option('--line', 'one short line about the run here or in a parent folder, for the status bar of tmux')
    .action((flags: { line?: true }, command) => (flags.line ? statusInOneLine : status)(flags, command))
  withDirectory(program.command('logs'))
    .description('what happened in a session')
    .argument('[session]', 'the session; without it, the newest')
    .option('-f, --follow', 'follow the log')
    .option('--json', 'events as JSON lines')
    .action(does(async () => (await look()).logs))
  withDirectory(program.command('watch'))
    .description('watch a session that runs elsewhere')
    .argument('[session]', 'the session; without it, the one that runs, or else the newest')
    .action(does(async context => (await withSmallHeap(context, look)).watch))
  withDirectory(program.command('attach'))
    .description('show the screen, with all its keys, of a session that runs without a terminal (--detach)')
    .argument('[session]', 'the session; without it, the one that runs here, else you are asked')
    .action(does(async context => (await withSmallHeap(context, () => import('./commands/runner/attach.ts'))).attach))
}

function addDemo(program: Command, does: Does): void {
  program
    .command('demo')
    .description('build a small project with the real codex and a scripted model: no account, no network')
    .addOption(
      new Option('--template <name>', 'which demo: a goal, or a build by a team')
        .choices(['goal', 'build'])
        .default('goal'),
    )
    .addOption(codexBinOption())
    .option('--fast', 'do not slow the model down for reading')
    .option('--plain', 'plain lines')
    .option('--json', 'events as JSON lines')
    .action(does(async () => (await import('./commands/demo.ts')).demo))
}

function addDoctor(program: Command, does: Does): void {
  const load = () => import('./commands/doctor.ts')
  withDirectory(program.command('doctor'))
    .description('check the setup and show fixes')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).doctor))
  withLook(program.command('engines'))
    .description('list the agents that can run the rounds, and try each in its sandbox')
    .action(does(async () => (await load()).engines))
  withLook(program.command('notify'))
    .description('send a sample notification through every configured channel')
    .action(does(async () => (await load()).notify))
}

/**
 * Refuses flags of a run that stand before a command: it is not told of them, and would do its work in another place,
 * or in another way, than a person meant.
 */
function refuseFlagsBefore(program: Command, command: Command): void {
  if (command === program || command.name() === 'help') return
  const before = program.options.find(option => program.getOptionValueSource(option.attributeName()) === 'cli')
  if (before === undefined) return
  const flag = before.short ?? before.long ?? ''
  const name = nameOf(command)
  if (!command.options.some(({ long }) => long === before.long)) {
    throw new UserError('CM0102', `${before.long} does not apply to ${name}; leave it out.`)
  }
  const typed = wordsOf(flag, program.getOptionValue(before.attributeName()))
  throw new UserError('CM0102', `Write ${flag} after ${name}: ${program.name()} ${name} ${typed} …`)
}

function wordsOf(flag: string, value: unknown): string {
  if (Array.isArray(value)) return value.map(each => wordsOf(flag, each)).join(' ')
  return typeof value === 'string' ? `${flag} ${shellWord(value)}` : flag
}

/** A mistake as the parser says it, the code that it has, and the same in a sentence of ours; null: it has none. */
const MISTAKES: readonly {
  pattern: RegExp
  code: ErrorCode
  sentence(command: Command, found: readonly string[]): string | null
}[] = [
  {
    pattern: /^error: missing required argument '(.+)'$/,
    code: 'CM0104',
    sentence(command, [, name]) {
      const argument = command.registeredArguments.find(each => each.name() === name)
      return argument === undefined ? null : sentenceOf(command, argument)
    },
  },
  {
    pattern: /^error: unknown command '(.+?)'/s,
    code: 'CM0101',
    sentence: (command, [, word = '']) => sentenceOfUnknown(command, word),
  },
  {
    pattern: /^error: too many arguments/,
    code: 'CM0101',
    sentence: command =>
      command.commands.length > 0 && command.registeredArguments.length === 0
        ? sentenceOfUnknown(command, command.args[0] ?? '')
        : null,
  },
  {
    pattern: /^error: too many arguments/,
    code: 'CM0102',
    sentence(command) {
      const most = command.registeredArguments.length
      const extra = oneLine(command.args[most] ?? '', MOST_WORD)
      return `${nameOf(command)} takes ${most === 0 ? 'no argument' : `at most ${most}`}; leave "${extra}" out.`
    },
  },
  {
    // Without its value, which may be a key.
    pattern: /^error: unknown option '([^'=]+)=?.*?'(?:\n\(Did you mean (.+)\?\))?$/s,
    code: 'CM0102',
    sentence: (command, [, option = '', meant]) =>
      `${nameOf(command)} has no option ${oneLine(option, MOST_WORD)}${meant === undefined ? '.' : `; did you mean ${meant}?`}`,
  },
  {
    pattern: /^error: option '(?:-\w, )?(.+?)' argument missing$/,
    code: 'CM0102',
    sentence: (_, [, option = '']) => `${option.split(' ')[0]} needs a value: ${option}`,
  },
  {
    pattern: /^error: option '(?:-\w, )?(\S+).*?' cannot be used with option '(?:-\w, )?(\S+).*?'$/,
    code: 'CM0102',
    sentence: (_, [, one = '', other = '']) => `${one} and ${other} exclude each other; leave one of them out.`,
  },
  {
    pattern: /^error: option '(?:-\w, )?(\S+).*?' argument '(.*)' is invalid\. Allowed choices are (.+)\.$/s,
    code: 'CM0102',
    sentence: (_, [, option = '', value = '', choices = '']) =>
      `${option} cannot be "${oneLine(value, MOST_WORD)}"; use ${choices.replace(/, (?=[^,]*$)/, ' or ')}.`,
  },
  {
    pattern: /^error: command-argument value '(.*)' is invalid for argument '(.+?)'\. Allowed choices are (.+)\.$/s,
    code: 'CM0102',
    sentence: (_, [, value = '', argument = '', choices = '']) =>
      `<${argument}> cannot be "${oneLine(value, MOST_WORD)}"; use ${choices.replace(/, (?=[^,]*$)/, ' or ')}.`,
  },
]

/** Has a command, and each below it, say in a sentence of ours what is wrong with what was typed. */
function sayInSentences(command: Command): void {
  if (command instanceof ListedCommand) return
  for (const each of command.commands) sayInSentences(each)
  command.configureOutput({
    outputError: (text, write) => {
      const hint = text.startsWith("error: unknown option '") ? hintOfDash(command) : ''
      for (const { pattern, code, sentence } of MISTAKES) {
        const found = pattern.exec(text.trim())
        const said = found && sentence(command, found)
        if (said) return write(`${coded(`error: ${said}\n`, code)}${hint}`)
      }
      write(`${coded(text, 'CM0102')}${hint}`)
    },
  })
}

function coded(text: string, code: ErrorCode): string {
  return text.replace(/$/m, ` (${code})`)
}

/** Where a command takes a text: how it is given one that begins with a dash. */
function hintOfDash(command: Command): string {
  if (!command.registeredArguments.some(({ description }) => description.includes('- reads it from standard input')))
    return ''
  const typed = typedName(command)
  return `  Put a text that begins with a dash after --: ${typed} -- "- …", or into standard input: ${typed} -\n`
}

function sentenceOf(command: Command, argument: Argument): string {
  const shown = `<${argument.name()}${argument.variadic ? '...' : ''}>`
  return `${typedName(command)} needs ${shown}: ${argument.description}.`
}
