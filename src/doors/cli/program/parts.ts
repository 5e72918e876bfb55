import { Argument, type Command, Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import { nearestName } from '../../../base/text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import {
  codexBinOption,
  type DirectoryFlags,
  type Does,
  followUpOption,
  type LookFlags,
  roundsUnless,
  verifyOption,
  withDirectory,
  withLook,
  withRunFlags,
  worktreeOption,
} from '../flags.ts'

/** Loads what runs all night, in a process that does nothing else. */
export async function withSmallHeap<Commands>(
  { ownsProcess }: Pick<CliContext, 'ownsProcess'>,
  load: () => Promise<Commands>,
): Promise<Commands> {
  const { keepHeapSmall } = await import('../../../platform/heap.ts')
  if (ownsProcess) keepHeapSmall()
  return await load()
}

/**
 * Refuses what is more likely a command than a goal, so that nothing is started for it: a single plain word, and words
 * of which the first is nearly a command's name. A goal that was quoted is one word with spaces, and is taken as it is.
 */
export function refuseMistypedCommand(words: readonly string[], command: Command): void {
  const { commands, parent } = command
  const [word] = words
  if (word === undefined || word === '-' || /\s/.test(word)) return
  const known = commands.map(each => each.name())
  const meant = nearestName(word, known)
  if (meant === null && (words.length > 1 || !/^[a-z][a-z-]+$/.test(word))) return
  const typed = parent === null ? 'codemachine' : `codemachine ${command.name()}`
  const instead = meant === null ? `${typed} --help lists them.` : `did you mean "${typed} ${meant}"?`
  throw new UserError('CM0101', `There is no command "${word}"; ${instead}`, {
    hint:
      words.length > 1 ? 'If it is a goal, put it in quotes.' : `To work on "${word}" as a goal, say more about it.`,
  })
}

/** The commands of what goes on after a restart of the machine. */
export function addService(program: Command, does: Does): void {
  const load = () => import('../commands/runner/service.ts')
  const service = program
    .command('service')
    .description('go on after a restart of the machine with what was cut off, and work the queues off')
  service
    .command('install')
    .description('write a systemd user unit, or a launchd agent, show it, and begin it')
    .option('-n, --dry-run', 'only show it, and what it would begin with')
    .option('--web', 'have it keep the page served, too (codemachine web)')
    .action(does(async () => (await load()).serviceInstall))
  service
    .command('status')
    .description('whether it is installed and runs, and what there is for it to do')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).serviceStatus))
  service
    .command('uninstall')
    .description('end it and remove it; what it ran can be resumed')
    .action(does(async () => (await load()).serviceUninstall))
  service
    .command('run')
    .description('what it does, in this terminal')
    .option('--web', 'and the page')
    .action(does(async () => (await load()).serviceRun))
}

/** The command that takes away what codemachine has left. */
export function addUninstall(program: Command, does: Does): void {
  program
    .command('uninstall')
    .description('name what codemachine has left on this machine, and remove it, each kind asked for')
    .addOption(new Option('-n, --dry-run', 'only name it').conflicts(['yes', 'keep']))
    .option('-y, --yes', 'remove all of it without being asked; work that is not landed stays')
    .option('--keep <kind...>', 'leave this alone: services, worktrees, memory, settings, login, history or sessions')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/runner/uninstall.ts')).uninstall))
}

/** The commands that show the agents of a build. */
export function addAgents(program: Command, does: Does): void {
  const agents = program.command('agents').description('the agents of a build: who they are, and their prompts')
  const load = () => import('../commands/agent.ts')
  withLook(agents.command('list'))
    .description('all agents, with their models and whose prompt they work by')
    .action(does(async () => (await load()).agentsList))
  withDirectory(agents.command('show'))
    .argument('<name>', 'the agent, as `agents list` shows it')
    .description('the prompt of an agent, as it would get it here')
    .action(does(async () => (await load()).agentsShow))
  withDirectory(agents.command('validate'))
    .description("look whether the agents' configuration and all their prompts can be used")
    .action(does(async () => (await load()).agentsValidate))
}

/** The login that is made for codemachine. */
export function addLogin(program: Command, does: Does): void {
  const load = () => import('../commands/login.ts')
  const logIn = does(async () => (await load()).login)
  const login = program
    .command('login')
    .description("log codex in for codemachine's rounds; your own codex login stays as it is")
    .option('--device-auth', 'with a code that is typed in a browser on any machine')
    .addOption(new Option('--with-api-key', 'with an API key, read from standard input').conflicts('deviceAuth'))
    .addOption(codexBinOption())
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (flags: object) => {
      // What was typed may be a key, and is not repeated.
      if (login.args.length > 0) throw new UserError('CM0102', NO_ARGUMENT)
      await logIn(flags, login)
    })
  const status = does(async () => (await load()).loginStatus)
  login
    .command('status')
    .description('which login rounds use')
    .addOption(codexBinOption())
    .action((flags: object, command) => status({ ...login.opts(), ...flags }, command))
  program
    .command('logout')
    .description("take codemachine's own login away; rounds use your own codex login then")
    .addOption(codexBinOption())
    .action(does(async () => (await load()).logout))
}

const NO_ARGUMENT =
  'Behind login may stand status, --device-auth or --with-api-key, which reads the key from standard input; a key is never an argument.'

/** The commands of the morning: what was done, whether it is true, and how to take it over or undo it. */
export function addProof(program: Command, does: Does): void {
  addReport(program, does)
  addQuestions(program, does)
  addVerify(program, does)
  addReview(program, does)
  addSavepoints(program, does)
  addLand(program, does)
}

function addReport(program: Command, does: Does): void {
  withDirectory(program.command('report'))
    .description('what a session has done: the outcome and its proof, changes, rounds, and what is left')
    .argument('[session]', 'the session; without it, the newest')
    .addOption(new Option('--html', 'as a page with charts, in one file').conflicts(['md', 'json']))
    .addOption(new Option('--md', 'as Markdown').conflicts(['json', 'open']))
    .addOption(new Option('--json', 'as JSON').conflicts('open'))
    .option('--open', 'open the page in the browser')
    .addOption(
      new Option('--png [file]', 'a picture of the page, drawn by a browser of this machine').conflicts([
        'html',
        'md',
        'json',
        'open',
        'output',
        'badge',
      ]),
    )
    .addOption(
      new Option('--badge [file]', 'a badge (SVG) of the outcome').conflicts(['html', 'md', 'json', 'open', 'output']),
    )
    .option('--output <file>', 'where it is written to; - is stdout')
    .action(does(async () => (await import('../commands/report.ts')).report))
}

function addQuestions(program: Command, does: Does): void {
  const load = () => import('../commands/questions.ts')
  const questions = withDirectory(program.command('questions'))
    .argument('[session]', 'the session; without it, the newest ones')
    .description('what the agent would have asked, and what it assumed instead')
    .option('--all', 'also what is answered, of all sessions')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).questions))
  const answer = does(async () => (await load()).answerQuestion)
  withDirectory(questions.command('answer'))
    .argument('<id>', 'the question, as `questions` shows it; Q1 for that of the newest session')
    .argument('<answer...>', 'the answer, or the number of an option; - reads it from standard input')
    .description('answer a question: its session is told while it runs, else the answer becomes a prompt in the queue')
    .option('--again', 'answer it although that was done already')
    .action((id: string, words: string[], flags: object, command) =>
      answer(id, words, { ...questions.opts(), ...flags }, command),
    )
}

function addVerify(program: Command, does: Does): void {
  withDirectory(program.command('verify'))
    .argument('[session]', 'the session; without it, the newest that is done')
    .description('run the gates of a session that is done again: still true, broken since which commit, or cannot tell')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/verify.ts')).verify))
}

function addReview(program: Command, does: Does): void {
  withDirectory(program.command('review'))
    .argument('[session]', 'the session whose work is reviewed; without it, the newest')
    .description('have a reviewer look at the work of a session with fresh eyes; it changes nothing')
    .option('--goal <text>', 'review what is not committed, by this goal; - reads it from standard input')
    .option('-m, --model <name>', "the reviewer's model (that of the settings)")
    .option('--effort <level>', 'its reasoning effort: low, medium, high, …')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/review.ts')).review))
}

function addSavepoints(program: Command, does: Does): void {
  const load = () => import('../commands/savepoints.ts')
  withLook(program.command('savepoints'))
    .argument('[session]', 'only those of this session')
    .description('the states of the files that were kept: what each session began with, and what each round left')
    .action(does(async () => (await load()).savepoints))
  withDirectory(program.command('diff'))
    .argument('[from]', 'a savepoint, such as 3, 20261121_1/3 or start; without it, start')
    .argument('[to]', 'a savepoint; without it, now')
    .description('what has changed in the files since the newest session began, or between two savepoints')
    .option('--stat', 'only which files, and how many lines')
    .option('--no-pager', 'print it in a terminal too, where it opens file by file to look through')
    .option('--json', 'the same as JSON')
    .action(does(async () => (await load()).diff))
  withDirectory(program.command('rewind'))
    .argument('<savepoint>', 'a savepoint, such as 3 (after round 3), 20261121_1/3 or start')
    .description('make the files those of a savepoint; only files change, and it can be undone')
    .option('-n, --dry-run', 'only say what would change')
    .action(does(async () => (await load()).rewind))
  withDirectory(program.command('prune [session]'))
    .description(
      'let old savepoints go, or those of a session, and give their room back; the newest session keeps its own',
    )
    .option('--older-than <duration>', 'those of sessions that are older (30d)')
    .option('--larger-than <size>', 'the oldest, until the others take no more than that, such as 2G')
    .option('--all', 'every one, those of the newest session, too')
    .option('-n, --dry-run', 'only say what would go')
    .action(does(async () => (await load()).pruneSavepoints))
}

function addLand(program: Command, does: Does): void {
  withDirectory(program.command('land'))
    .argument('[name]', 'the worktree; without it, the only one with something to land')
    .description('merge what was done in a worktree into the branch that is checked out here')
    .option('--message <text>', 'the message of the merge')
    .option('--commit <text>', 'first commit, with this message, what is not committed in the worktree')
    .action(does(async () => (await import('../commands/land.ts')).land))
}

/** The templates by their names, for they are loaded once a command has been read: those that `start` takes, and those of prompts. */
const STARTED = ['build', 'goal']
const PROMPTED = [...STARTED, 'change']
/** They are for the help and for completion: a wrong one is refused in words that name the nearest. */
const asTyped = (name: string) => name

/** Adds the flags of what the session of a queued prompt begins with. */
export function withTerms(command: Command): Command {
  return command
    .addOption(templateOption('goal'))
    .option('--rounds <n>', 'how many rounds at the most')
    .option('--max-time <duration>', 'for how long at the most, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'how many tokens at the most, such as 5M or 500k')
    .option('--max-cost <amount>', 'how much it may cost at the most, by the prices of your config.toml, such as 10')
    .addOption(verifyOption())
    .option('--prove', 'prove what was asked for, sentence by sentence, by checks written before the work')
    .addOption(followUpOption())
}

/** `--template`; `usual`: which one it is if none is named; `templates`: those that may be typed. */
export function templateOption(usual: string, templates: readonly string[] = PROMPTED): Option {
  return new Option('--template <name>', `the kind of work; codemachine templates says what each is (${usual})`)
    .choices(templates)
    .argParser(asTyped)
}

/** The commands that build a project from its specification. */
export function addStart(program: Command, does: Does): void {
  const start = does(async context => (await withSmallHeap(context, () => import('../commands/run.ts'))).start)
  const dryStart = does(async () => (await import('../commands/dry-start.ts')).dryStart)
  withRunFlags(program.command('start'), roundsUnless(50))
    .description(
      'build what .codemachine/inputs/specifications.md asks for; in at most 50 rounds, if no limit is named',
    )
    .option('-y, --yes', 'the specification is complete, and the plan is carried out as it comes')
    .addOption(templateOption('the mode of the settings', STARTED))
    .addOption(worktreeOption())
    .option('-n, --dry-run', 'only print the prompts and commands; nothing is started and nothing spent')
    .action((flags: { dryRun?: true }, command) => (flags.dryRun ? dryStart : start)(flags, command))
  addTemplates(program, does)
}

function addTemplates(program: Command, does: Does): void {
  const load = () => import('../commands/dry-start.ts')
  const list = does(async () => (await load()).listTemplates)
  const select = does(async () => (await load()).selectTemplate)
  const templates = program
    .command('templates')
    .description('the kinds of work, how each is started, and which of them start takes')
  withLook(templates)
    .allowExcessArguments()
    .action(async (flags: LookFlags) => {
      const [name] = templates.args
      if (name !== undefined) {
        const [{ templateNamed }, { OWN_TEMPLATES }] = await Promise.all([
          import('../../../project/start/templates.ts'),
          import('../../../modes/registry.ts'),
        ])
        throw new UserError(
          'CM0101',
          `To choose it: codemachine templates select ${templateNamed(OWN_TEMPLATES, name, 'start').name}`,
        )
      }
      await list(flags, templates)
    })
  withLook(templates.command('list'))
    .description('show them, and which is chosen')
    .action((flags: LookFlags, command) => list({ ...templates.opts(), ...flags }, command))
  withDirectory(templates.command('select'))
    .addArgument(new Argument('<name>', 'which one').choices(STARTED).argParser(asTyped))
    .description('choose one for this project, in its codemachine.toml')
    .action((name: string, flags: DirectoryFlags, command) => select(name, { ...templates.opts(), ...flags }, command))
}
