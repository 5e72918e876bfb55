import { Argument, type Command, Option } from 'commander'
import { TEMPLATES, templateNamed } from '../app/start/template-names.ts'
import { UserError } from '../base/errors.ts'
import type { CliContext } from '../tui/cli-context.ts'
import type { ReviewFlags } from './commands/review.ts'
import type { StartFlags } from './commands/run.ts'
import {
  codexBinOption,
  type DirectoryFlags,
  directoryOf,
  type Ended,
  withDirectory,
  withRunFlags,
  worktreeOption,
} from './flags.ts'
import { addRunningCommands } from './running.ts'

/** The commands that show the agents of a build. */
export function addAgents(program: Command, context: CliContext, ended: Ended): void {
  const agents = program.command('agents').description('the agents of a build: who they are, and their prompts')
  const load = () => import('./commands/agent.ts')
  withDirectory(agents.command('list'))
    .description('all agents, with their models and whose prompt they work by')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      ended(
        await (await load()).agentsList(context, { directory: directoryOf(context, flags), json: flags.json ?? false }),
      )
    })
  withDirectory(agents.command('show'))
    .argument('<name>', 'the agent, as `agents list` shows it')
    .description('the prompt of an agent, as it would get it here')
    .action(async (name: string, flags: DirectoryFlags) => {
      ended(await (await load()).agentsShow(context, { directory: directoryOf(context, flags), name }))
    })
  withDirectory(agents.command('validate'))
    .description("look whether the agents' configuration and all their prompts can be used")
    .action(async (flags: DirectoryFlags) => {
      ended(await (await load()).agentsValidate(context, { directory: directoryOf(context, flags) }))
    })
}

interface LoginFlags {
  deviceAuth?: true
  withApiKey?: true
  codexBin?: string
}

const NO_ARGUMENT =
  'Behind login may stand status, --device-auth or --with-api-key, which reads the key from standard input; a key is never an argument.'

/** The login that is made for codemachine. */
export function addLogin(program: Command, context: CliContext, ended: Ended): void {
  const load = () => import('./commands/login.ts')
  const login = program
    .command('login')
    .description("log codex in for codemachine's rounds; your own codex login stays as it is")
    .option('--device-auth', 'with a code that is typed in a browser on any machine')
    .addOption(new Option('--with-api-key', 'with an API key, read from standard input').conflicts('deviceAuth'))
    .addOption(codexBinOption())
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async ({ deviceAuth, withApiKey, codexBin }: LoginFlags) => {
      // What was typed may be a key, and is not repeated.
      if (login.args.length > 0) throw new UserError(NO_ARGUMENT)
      const way = withApiKey ? 'api-key' : deviceAuth ? 'device' : 'browser'
      ended(await (await load()).login(context, { way, ...(codexBin === undefined ? {} : { codexBin }) }))
    })
  login
    .command('status')
    .description('which login rounds use')
    .addOption(codexBinOption())
    .action(async (flags: Pick<LoginFlags, 'codexBin'>) => {
      ended(await (await load()).loginStatus(context, { ...login.opts<LoginFlags>(), ...flags }))
    })
  program
    .command('logout')
    .description("take codemachine's own login away; rounds use your own codex login then")
    .addOption(codexBinOption())
    .action(async (flags: Pick<LoginFlags, 'codexBin'>) => {
      const { logout } = await import('./commands/login.ts')
      ended(await logout(context, flags))
    })
}

/** The commands of the morning: what was done, whether it is true, and how to take it over or undo it. */
export function addProof(program: Command, context: CliContext, ended: Ended): void {
  addReport(program, context, ended)
  addQuestions(program, context, ended)
  addVerify(program, context, ended)
  addReview(program, context, ended)
  addSavepoints(program, context, ended)
  addLand(program, context, ended)
}

interface ReportFlags {
  html?: true
  md?: true
  json?: true
  open?: true
  output?: string
}

function addReport(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('report'))
    .description('what a session has done: the outcome and its proof, changes, rounds, and what is left')
    .argument('[session]', 'the session; without it, the newest')
    .addOption(new Option('--html', 'as a page with charts, in one file').conflicts(['md', 'json']))
    .addOption(new Option('--md', 'as Markdown').conflicts(['json', 'open']))
    .addOption(new Option('--json', 'as JSON').conflicts('open'))
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'where it is written to; - is stdout')
    .action(async (session: string | undefined, flags: DirectoryFlags & ReportFlags) => {
      const { report } = await import('./commands/report.ts')
      const format = flags.html ? 'html' : flags.md ? 'md' : flags.json ? 'json' : 'card'
      const { open = false, output = null } = flags
      const place = { directory: directoryOf(context, flags), named: flags.cd ?? null }
      ended(await report(context, { ...place, session: session ?? null, format, open, output }))
    })
}

function addQuestions(program: Command, context: CliContext, ended: Ended): void {
  const load = () => import('./commands/questions.ts')
  const questions = withDirectory(program.command('questions'))
    .argument('[session]', 'the session; without it, the newest ones')
    .description('what the agent would have asked, and what it assumed instead')
    .option('--all', 'also what is answered, of all sessions')
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { all?: true; json?: true }) => {
      const { all = false, json = false } = flags
      const options = { directory: directoryOf(context, flags), session: session ?? null, all, json }
      ended(await (await load()).questions(context, options))
    })
  withDirectory(questions.command('answer'))
    .argument('<id>', 'the question, as `questions` shows it; Q1 for that of the newest session')
    .argument('<answer...>', 'the answer, or the number of an option; - reads it from standard input')
    .description('answer a question: the answer becomes a prompt in the queue')
    .option('--again', 'answer it although that was done already')
    .action(async (id: string, words: string[], flags: DirectoryFlags & { again?: true }) => {
      const answer = words.join(' ')
      const directory = directoryOf(context, { ...questions.opts<DirectoryFlags>(), ...flags })
      const options = { directory, id, answer, again: flags.again ?? false }
      ended(await (await load()).answerQuestion(context, options))
    })
}

function addVerify(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('verify'))
    .argument('[session]', 'the session; without it, the newest that is done')
    .description('run the gates of a session that is done again: still true, broken since which commit, or cannot tell')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { codexBin?: string; json?: true }) => {
      const { verify } = await import('./commands/verify.ts')
      const { json = false, ...rest } = flags
      ended(await verify(context, { ...rest, directory: directoryOf(context, flags), session: session ?? null, json }))
    })
}

function addReview(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('review'))
    .argument('[session]', 'the session whose work is reviewed; without it, the newest')
    .description('have a reviewer look at the work of a session with fresh eyes; it changes nothing')
    .option('--goal <text>', 'review what is not committed, by this goal; - reads it from standard input')
    .option('-m, --model <name>', "the reviewer's model (that of the settings)")
    .option('--effort <level>', 'its reasoning effort: low, medium, high, …')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: ReviewFlags) => {
      const { review } = await import('./commands/review.ts')
      ended(await review(context, session ?? null, flags))
    })
}

type DiffFlags = DirectoryFlags & { stat?: true; json?: true }
type PruneFlags = DirectoryFlags & { olderThan?: string; largerThan?: string; all?: true; dryRun?: true }

function addSavepoints(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('savepoints'))
    .argument('[session]', 'only those of this session')
    .description('the states of the files that were kept: what each session began with, and what each round left')
    .option('--json', 'as JSON')
    .action(async (session: string | undefined, flags: DirectoryFlags & { json?: true }) => {
      const { savepoints } = await import('./commands/savepoints.ts')
      const options = { directory: directoryOf(context, flags), session: session ?? null, json: flags.json ?? false }
      ended(await savepoints(context, options))
    })
  withDirectory(program.command('diff'))
    .argument('[from]', 'a savepoint, such as 3, 20261121_1/3 or start; without it, start')
    .argument('[to]', 'a savepoint; without it, now')
    .description('what has changed in the files since the newest session began, or between two savepoints')
    .option('--stat', 'only which files, and how many lines')
    .option('--json', 'the same as JSON')
    .action(async (from: string | undefined, to: string | undefined, flags: DiffFlags) => {
      const { diff } = await import('./commands/savepoints.ts')
      const { stat = false, json = false } = flags
      ended(
        await diff(context, { directory: directoryOf(context, flags), from: from ?? null, to: to ?? null, stat, json }),
      )
    })
  withDirectory(program.command('rewind'))
    .argument('<savepoint>', 'a savepoint, such as 3 (after round 3), 20261121_1/3 or start')
    .description('make the files those of a savepoint; only files change, and it can be undone')
    .option('-n, --dry-run', 'only say what would change')
    .action(async (to: string, flags: DirectoryFlags & { dryRun?: true }) => {
      const { rewind } = await import('./commands/savepoints.ts')
      ended(await rewind(context, { directory: directoryOf(context, flags), to, dryRun: flags.dryRun ?? false }))
    })
  withDirectory(program.command('prune [session]'))
    .description(
      'let old savepoints go, or those of a session, and give their room back; the newest session keeps its own',
    )
    .option('--older-than <duration>', 'those of sessions that are older (30d)')
    .option('--larger-than <size>', 'the oldest, until the others take no more than that, such as 2G')
    .option('--all', 'every one, those of the newest session, too')
    .option('-n, --dry-run', 'only say what would go')
    .action(async (session: string | undefined, flags: PruneFlags) => {
      const { pruneSavepoints } = await import('./commands/savepoints.ts')
      const { olderThan = null, largerThan = null, all = false, dryRun = false } = flags
      const directory = directoryOf(context, flags)
      const options = { directory, session: session ?? null, olderThan, largerThan, all, dryRun }
      ended(await pruneSavepoints(context, options))
    })
}

function addLand(program: Command, context: CliContext, ended: Ended): void {
  withDirectory(program.command('land'))
    .argument('[name]', 'the worktree; without it, the only one with something to land')
    .description('merge what was done in a worktree into the branch that is checked out here')
    .option('--message <text>', 'the message of the merge')
    .option('--commit <text>', 'first commit, with this message, what is not committed in the worktree')
    .action(async (name: string | undefined, flags: DirectoryFlags & { message?: string; commit?: string }) => {
      const { land } = await import('./commands/land.ts')
      const { message = null, commit = null } = flags
      ended(await land(context, { directory: directoryOf(context, flags), name: name ?? null, message, commit }))
    })
}

/** The commands that ask a running codemachine for something, from another terminal. */
export function addRunning(program: Command, context: CliContext, ended: Ended): void {
  addQueue(program, context, ended)
  addRunningCommands(program, context, ended)
}

function addQueue(program: Command, context: CliContext, ended: Ended): void {
  const queue = program.command('queue').description('the prompts that wait; each becomes a session of its own')
  const load = () => import('./commands/ask.ts')
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

const NAMES = TEMPLATES.map(({ name }) => name)
/** They are for the help and for completion: a wrong one is refused in words that name the nearest. */
const asTyped = (name: string) => name

/** The commands that build a project from its specification. */
export function addStart(program: Command, context: CliContext, ended: Ended): void {
  withRunFlags(program.command('start'), '50, or no limit if --max-time or --max-tokens is given')
    .description(
      'build what .codemachine/inputs/specifications.md asks for; in at most 50 rounds, if no limit is named',
    )
    .option('-y, --yes', 'the specification is complete, and the plan is carried out as it comes')
    .addOption(
      new Option('--template <name>', 'build: by a team of agents; goal: by one (the mode of the settings)')
        .choices(NAMES)
        .argParser(asTyped),
    )
    .addOption(worktreeOption())
    .option('-n, --dry-run', 'only print the prompts and commands; nothing is started and nothing spent')
    .action(async ({ dryRun, ...flags }: StartFlags & { dryRun?: true }) => {
      if (dryRun) {
        const { dryStart } = await import('./commands/dry-start.ts')
        return ended(await dryStart(context, flags))
      }
      const { keepHeapSmall } = await import('../platform/heap.ts')
      keepHeapSmall()
      const { start } = await import('./commands/run.ts')
      ended(await start(context, flags))
    })
  addTemplates(program, context, ended)
}

function addTemplates(program: Command, context: CliContext, ended: Ended): void {
  const load = () => import('./commands/dry-start.ts')
  const list = async (flags: DirectoryFlags & { json?: true }) => {
    const directory = directoryOf(context, flags)
    ended(await (await load()).listTemplates(context, { directory, json: flags.json ?? false }))
  }
  const templates = program.command('templates').description('the kinds of work that start can start')
  withDirectory(templates)
    .option('--json', 'as JSON')
    .allowExcessArguments()
    .action(async (flags: DirectoryFlags & { json?: true }) => {
      const [name] = templates.args
      if (name !== undefined) {
        throw new UserError(`To choose it: codemachine templates select ${templateNamed(name)}`)
      }
      await list(flags)
    })
  withDirectory(templates.command('list'))
    .description('show them, and which is chosen')
    .option('--json', 'as JSON')
    .action(async (flags: DirectoryFlags & { json?: true }) => await list({ ...templates.opts(), ...flags }))
  withDirectory(templates.command('select'))
    .addArgument(new Argument('<name>', 'which one').choices(NAMES).argParser(asTyped))
    .description('choose one for this project, in its codemachine.toml')
    .action(async (name: string, flags: DirectoryFlags) => {
      const directory = directoryOf(context, { ...templates.opts<DirectoryFlags>(), ...flags })
      ended(await (await load()).selectTemplate(context, directory, name))
    })
}
