import { Argument, type Command, Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import { FILES_WITH_SCHEMA } from '../../../base/schemas.ts'
import { nearestName } from '../../../base/text.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import {
  codexBinOption,
  contractOnlyOption,
  type DirectoryFlags,
  type Does,
  followUpOption,
  issueOption,
  type LookFlags,
  roundsUnless,
  verifyOption,
  withDirectory,
  withLook,
  withRunFlags,
  worktreeOption,
} from '../flags.ts'
import { sentenceOfUnknown } from '../help.ts'

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
  const [word] = words
  if (word === undefined || word === '-' || /\s/.test(word)) return
  const meant = nearestName(
    word,
    command.commands.map(each => each.name()),
  )
  if (meant === null && (words.length > 1 || !/^[a-z][a-z-]+$/.test(word))) return
  throw new UserError('CM0101', sentenceOfUnknown(command, word), {
    hint:
      words.length > 1
        ? 'If it is a goal, put it in quotes.'
        : `If "${word}" is a goal, describe it in more than one word.`,
  })
}

/** The commands of what goes on after a restart of the machine. */
export function addService(program: Command, does: Does): void {
  const load = () => import('../commands/runner/service.ts')
  const service = program
    .command('service')
    .description('after a restart of the machine, resume sessions that were cut off, and run the queues')
  service
    .command('install')
    .description('write a systemd user unit or launchd agent, show it, and start it')
    .option('-n, --dry-run', 'only show it, and what it would start first')
    .option('--web', 'also serve the page (codemachine web)')
    .action(does(async () => (await load()).serviceInstall))
  service
    .command('status')
    .description('show whether it is installed and running, and its pending work')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).serviceStatus))
  service
    .command('uninstall')
    .description('stop and remove it; its sessions can be resumed')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).serviceUninstall))
  service
    .command('run')
    .description('do its work in this terminal')
    .option('--web', 'and the page')
    .action(does(async () => (await load()).serviceRun))
}

/** The commands of prompts that are queued again and again. */
export function addSchedule(program: Command, does: Does): void {
  const load = () => import('../commands/schedule.ts')
  const list = does(async () => (await load()).scheduleList)
  const schedule = withLook(program.command('schedule'))
    .description('list the prompts that the service queues at set times, such as each night')
    .action(list)
  withTerms(withLook(schedule.command('add')))
    .argument('<cron>', 'minute, hour, day, month and weekday in local time, such as "0 1 * * 1-5"')
    .argument('[prompt...]', 'the prompt; - reads it from standard input; with --template alone: the specification')
    .description('queue a prompt at set times; a time that was missed counts once')
    .action(does(async () => (await load()).scheduleAdd))
  withLook(schedule.command('list'))
    .description('the same as without a command')
    .action((flags: LookFlags, command) => list({ ...schedule.opts(), ...flags }, command))
  withLook(schedule.command('rm'))
    .argument('<schedule>', 'the number that `schedule list` shows')
    .description('remove a schedule; what it has queued stays')
    .action(does(async () => (await load()).scheduleRemove))
}

/** The command that takes away what codemachine has left. */
export function addUninstall(program: Command, does: Does): void {
  program
    .command('uninstall')
    .description('list what codemachine left on this machine, and ask before removing each kind of file')
    .addOption(new Option('-n, --dry-run', 'only list it').conflicts(['yes', 'keep']))
    .option('-y, --yes', 'remove all of it without asking; work that is not landed stays')
    .option('--keep <kind...>', 'keep: services, worktrees, memory, settings, login, history or sessions')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/runner/uninstall.ts')).uninstall))
}

/** The commands that show the agents of a build. */
export function addAgents(program: Command, does: Does): void {
  const agents = program.command('agents').description('the agents of a build and their prompts')
  const load = () => import('../commands/agent.ts')
  withLook(agents.command('list'))
    .description('all agents, with their models and the source of their prompts')
    .action(does(async () => (await load()).agentsList))
  withDirectory(agents.command('show'))
    .argument('<name>', 'the agent, as `agents list` shows it')
    .description('the prompt of an agent, as it would get it here')
    .action(does(async () => (await load()).agentsShow))
  withLook(agents.command('validate'))
    .description("check the agents' configuration and all their prompts")
    .action(does(async () => (await load()).agentsValidate))
}

/** The commands of settings files. */
export function addSettings(program: Command, does: Does): void {
  program
    .command('settings')
    .description('JSON Schemas with which your editor checks settings and other files')
    .command('schema')
    .description('list the files that an editor can check and complete, or print the JSON Schema (draft-07) of one')
    .addArgument(new Argument('[file]', 'print the schema of this file').choices(Object.keys(FILES_WITH_SCHEMA)))
    // As it was typed first.
    .addOption(new Option('--file <file>').choices(Object.keys(FILES_WITH_SCHEMA)).hideHelp())
    .addOption(new Option('--json', 'the list as JSON').conflicts('file'))
    .action(does(async () => (await import('../commands/settings.ts')).settingsSchema))
}

/** The login that is made for codemachine. */
export function addLogin(program: Command, does: Does): void {
  const load = () => import('../commands/login.ts')
  const logIn = does(async () => (await load()).login)
  const login = program
    .command('login')
    .description("log in to codex for codemachine's rounds; your own codex login does not change")
    .option('--device-auth', 'with a code to type in a browser on any machine')
    .addOption(new Option('--with-api-key', 'with an API key, read from standard input').conflicts('deviceAuth'))
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
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
    .option('--json', 'as JSON')
    .action((flags: object, command) => status({ ...login.opts(), ...flags }, command))
  program
    .command('logout')
    .description("remove codemachine's own login; then rounds use your own codex login")
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).logout))
}

const NO_ARGUMENT =
  'login accepts status, --device-auth or --with-api-key. The key comes from standard input, never from an argument.'

/** The commands of the morning: what was done, whether it is true, and how to take it over or undo it. */
export function addProof(program: Command, does: Does): void {
  addReport(program, does)
  addQuestions(program, does)
  addVerify(program, does)
  addCertificate(program, does)
  addContract(program, does)
  addReview(program, does)
  addSavepoints(program, does)
  addLand(program, does)
  addPublish(program, does)
}

function addReport(program: Command, does: Does): void {
  withDirectory(program.command('report'))
    .description('report of a session: the outcome and its proof, changes, rounds, and what is left')
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
    .option('--output <file>', 'output file; - is stdout')
    .action(does(async () => (await import('../commands/report.ts')).report))
}

function addQuestions(program: Command, does: Does): void {
  const load = () => import('../commands/questions.ts')
  const questions = withDirectory(program.command('questions'))
    .argument('[session]', 'the session; without it, the newest ones')
    .description('questions of the agent, and what it assumed instead')
    .option('--all', 'also answered questions, of all sessions')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).questions))
  const answer = does(async () => (await load()).answerQuestion)
  withLook(questions.command('answer'))
    .argument('<id>', 'the question, as `questions` shows it; Q1 for that of the newest session')
    .argument('<answer...>', 'the answer, or the number of an option; - reads it from standard input')
    .description('answer a question; a running session is told, else the answer becomes a queued prompt')
    .option('--again', 'answer again')
    .action((id: string, words: string[], flags: object, command) =>
      answer(id, words, { ...questions.opts(), ...flags }, command),
    )
  const accept = does(async () => (await load()).acceptAssumption)
  withLook(questions.command('accept'))
    .argument('<id>', 'the question, as `questions` shows it; Q1 for that of the newest session')
    .description('accept what the agent assumed; a running session is told')
    .option('--again', 'answer again')
    .action((id: string, flags: object, command) => accept(id, { ...questions.opts(), ...flags }, command))
}

function addVerify(program: Command, does: Does): void {
  withDirectory(program.command('verify'))
    .argument('[session]', 'the session; without it, the newest that is done')
    .description('run the gates of a done session again: still true, broken since which commit, or cannot tell')
    .addOption(codexBinOption())
    .addOption(new Option('--certificate <file>', 'verify a bundle of `certificate` instead, also of another machine'))
    .addOption(new Option('--note', 'verify the bundle in the git note on HEAD, or before it').conflicts('certificate'))
    .option('--signers <file>', 'the accepted signers: an allowed_signers file of ssh, or anybody')
    .addOption(
      new Option('--require <what>', 'what the bundle has to show of these files').choices(['proved', 'gates']),
    )
    .option('--summary <file>', 'add a summary in Markdown to this file')
    .option('--no-run', 'do not run the commands of the bundle')
    .option('-y, --yes', 'run them without asking')
    .option('--network', 'let them use the network, where the session could')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/verify.ts')).verify))
}

function addCertificate(program: Command, does: Does): void {
  withLook(program.command('certificate'))
    .argument('[session]', 'the session; without it, the newest that is done')
    .description('what was proved of a done session, as an in-toto bundle that others can check')
    .option('--out <file>', 'where it goes; without it, or with -, stdout')
    .option('--sign <key>', 'a public ssh key file, or key::KEY, whose private half is in ssh-agent')
    .option('--note', 'put it on the commit, as a git note in refs/notes/codemachine')
    .action(does(async () => (await import('../commands/certificate.ts')).certificate))
}

function addContract(program: Command, does: Does): void {
  withDirectory(program.command('contract'))
    .argument('[session...]', 'the session; without it, the newest. edit before it: change it in your editor')
    .description('the sentences of the goal, and the state of each (--prove)')
    .option('--export <dir>', 'write the files of the checks there')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/contract.ts')).contract))
}

function addReview(program: Command, does: Does): void {
  withDirectory(program.command('review'))
    .argument('[session]', 'the session whose work is reviewed; without it, the newest')
    .description('have a reviewer look at the work of a session; changes nothing')
    .option('--goal <text>', 'review uncommitted changes by this goal; - reads it from standard input')
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
    .description('saved states of the files: at the start of each session and after each round')
    .action(does(async () => (await load()).savepoints))
  withDirectory(program.command('diff'))
    .argument('[from]', 'a savepoint, such as 3, 20261121_1/3 or start; without it, start')
    .argument('[to]', 'a savepoint; without it, now')
    .description('changes since the newest session started, or between two savepoints')
    .option('--stat', 'only which files, and how many lines')
    .option('--no-pager', 'print it, in a terminal too, instead of opening it file by file')
    .option('--json', 'the same as JSON')
    .action(does(async () => (await load()).diff))
  withLook(program.command('rewind'))
    .argument('<savepoint>', 'a savepoint, such as 3 (after round 3), 20261121_1/3 or start')
    .description('restore the files of a savepoint; only files change, and it can be undone')
    .option('-n, --dry-run', 'only show what would change')
    .action(does(async () => (await load()).rewind))
  withLook(program.command('prune [session]'))
    .description('delete old savepoints, or those of a session, to free disk space; the newest session keeps its own')
    .option('--older-than <duration>', 'those of sessions that are older (30d)')
    .option('--larger-than <size>', 'the oldest, until the rest fit into this size, such as 2G')
    .option('--all', 'all, also those of the newest session')
    .option('-n, --dry-run', 'only show what would be deleted')
    .action(does(async () => (await load()).pruneSavepoints))
}

function addLand(program: Command, does: Does): void {
  withDirectory(program.command('land'))
    .argument('[name...]', 'the worktree; without it, the only one with something to land')
    .description('merge the work of a worktree into the branch that is checked out here, if the merge passes all gates')
    .option('--queue', 'land several, one after the other; without names, all whose session is done')
    .option('--onto <branch>', 'merge into this branch; if it is not checked out, no file changes')
    .option('--message <text>', 'the message of the merge')
    .option('--commit <text>', 'first commit uncommitted changes of the worktree, with this message')
    .option('--no-verify', 'do not run the gates on the merge')
    .option('-y, --yes', 'with --queue, land them without asking')
    .addOption(codexBinOption())
    .option('--json', 'as JSON')
    .action(does(async () => (await import('../commands/land.ts')).land))
}

function addPublish(program: Command, does: Does): void {
  withLook(program.command('publish'))
    .argument('[session]', 'the session; without it, the newest')
    .description('push the result of a session, and open its pull or merge request with gh or glab')
    .addOption(new Option('--draft', 'as a draft, even if it is done').conflicts('ready'))
    .option('--ready', 'ready for review; only if it is done')
    .option('--remote <name>', 'the git remote (publish_remote, else that of the branch)')
    .option('--title <text>', 'the title of a new request (the issue, else the goal)')
    .option('--note', 'push the certificate, too, as a git note')
    .option('-y, --yes', 'ask nothing: remote and title are right')
    .action(does(async () => (await import('../commands/publish.ts')).publishSession))
}

/** The templates by their names, for they are loaded once a command has been read: those that `start` takes, and those of prompts. */
const STARTED = ['build', 'goal']
const PROMPTED = [...STARTED, 'change']
const QUEUED = [...PROMPTED, 'flow']
/** They are for the help and for completion: a wrong one is refused in words that name the nearest. */
const asTyped = (name: string) => name

/** Adds the flags of what the session of a queued prompt begins with. */
export function withTerms(command: Command): Command {
  return command
    .addOption(templateOption('goal', QUEUED))
    .option('--rounds <n>', 'most rounds')
    .option('--max-time <duration>', 'most time, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'most tokens, such as 5M or 500k')
    .option('--max-cost <amount>', 'most cost, by the prices in your config.toml, such as 10')
    .addOption(verifyOption())
    .option('--prove', 'prove each sentence of the goal, by checks written before the work')
    .addOption(followUpOption())
    .addOption(issueOption())
    .option('-y, --yes', 'with --issue: ask nothing')
}

/** `--template`; `usual`: which one it is if none is named; `templates`: those that may be typed. */
export function templateOption(usual: string, templates: readonly string[] = PROMPTED): Option {
  return new Option('--template <name>', `the kind of work; codemachine templates explains each (${usual})`)
    .choices(templates)
    .argParser(asTyped)
}

/** The commands that build a project from its specification. */
export function addStart(program: Command, does: Does): void {
  const start = does(async context => (await withSmallHeap(context, () => import('../commands/run.ts'))).start)
  const dryStart = does(async () => (await import('../commands/dry-start.ts')).dryStart)
  withRunFlags(program.command('start'), roundsUnless(50))
    .description('build what .codemachine/inputs/specifications.md asks for; at most 50 rounds by default')
    .option('-y, --yes', 'ask nothing: the specification is complete, and the plan is accepted')
    .addOption(templateOption('the mode of the settings', STARTED))
    .addOption(worktreeOption())
    .option('-n, --dry-run', 'only print the prompts and commands; starts and spends nothing')
    .action((flags: { dryRun?: true }, command) => (flags.dryRun ? dryStart : start)(flags, command))
  addTemplates(program, does)
}

/** The command that continues a conversation with an agent. */
export function addAdopt(program: Command, does: Does): void {
  withRunFlags(program.command('adopt'))
    .argument('[conversation]', 'its id, or how that begins; without it, you choose one of this directory')
    .description('continue a conversation that you had with codex, Claude Code or opencode, for the night')
    .option('--goal <text>', 'what to work on, in place of your last request there; - reads it from standard input')
    .option('-y, --yes', 'ask nothing: the proposed goal is right')
    .addOption(
      new Option('--list', 'only list the conversations of this directory').conflicts(['goal', 'yes', 'dryRun']),
    )
    .option('-n, --dry-run', 'only print the proposed goal; starts and spends nothing')
    .addOption(worktreeOption())
    .addOption(contractOnlyOption())
    .action(does(async context => (await withSmallHeap(context, () => import('../commands/adopt.ts'))).adopt))
}

function addTemplates(program: Command, does: Does): void {
  const load = () => import('../commands/dry-start.ts')
  const list = does(async () => (await load()).listTemplates)
  const select = does(async () => (await load()).selectTemplate)
  const templates = program
    .command('templates')
    .description('the kinds of work, how to start each, and which one start uses')
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
    .description('list them, and show which is chosen')
    .action((flags: LookFlags, command) => list({ ...templates.opts(), ...flags }, command))
  withLook(templates.command('select'))
    .addArgument(new Argument('<name>', 'which one').choices(STARTED).argParser(asTyped))
    .description('choose one for this project, in its codemachine.toml')
    .action((name: string, flags: DirectoryFlags, command) => select(name, { ...templates.opts(), ...flags }, command))
}
