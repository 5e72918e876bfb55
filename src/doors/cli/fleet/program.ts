import { type Command, Option } from 'commander'
import { SANDBOX_MODES } from '../../../core/shapes/sandbox.ts'
import { codexBinOption, type Does, eachTyped, verifyOption } from '../flags.ts'
import { templateOption } from '../program/parts.ts'

/** Adds `--queue`. */
function withQueue(command: Command): Command {
  return command.option(
    '--queue <url>',
    'the PostgreSQL database of the fleet, without a password (CODEMACHINE_QUEUE, then fleet.queue of your config.toml)',
  )
}

const HOW_TO_END = `
Ctrl+C gives the worker's sessions back at once. codemachine fleet drain
<worker> ends it when their rounds have ended.
`

/** The commands of a fleet: many machines that take sessions from one queue. */
export function addFleet(program: Command, does: Does): void {
  withQueue(program.command('worker'))
    .description('take sessions from the queue of a fleet, and run each in a clone of its own')
    .option('--slots <n>', 'how many at once', '2')
    .option('--name <name>', 'how the fleet calls it (the name of this machine)')
    .option('--tags <list>', 'what it has, such as gpu,linux: sessions that want that come here')
    .addOption(
      new Option(
        '--repos <pattern>',
        "which repositories, such as 'git@host:team/*' or '/srv/git/**'; may be repeated (all but those on a disk)",
      ).argParser(eachTyped),
    )
    .option('--remote <url>', 'where savepoints and results are pushed (to the repository of each session)')
    .option('--keep <n>', 'how many repositories stay here for the next session of theirs', '20')
    .option('--once', 'end once nothing waits')
    .addOption(codexBinOption())
    .option('--json', 'what it says as JSON lines')
    .addHelpText('after', HOW_TO_END)
    .action(does(async () => (await import('./worker.ts')).worker))
  addSubmit(program, does)
  const fleet = program.command('fleet').description('the fleet: what waits, what runs where, and how each went')
  addFleetSetup(fleet, does)
  addFleetLooking(fleet, does)
  addFleetTelling(fleet, does)
}

/** What puts sessions into the queue. */
function addSubmit(program: Command, does: Does): void {
  const each = (option: Option) => option.argParser(eachTyped)
  withQueue(program.command('submit'))
    .description('put a session, or those of a file, into the queue of a fleet')
    .argument('[goal...]', 'what is to be done; - reads it from standard input')
    .option('--repo <url>', "the repository, as the workers' git is to clone it (the origin of this checkout)")
    .option('--ref <name>', 'the branch, tag or commit that it begins with (main)')
    .option('--file <path>', 'a TOML file of many sessions, such as night.toml; - is standard input')
    .addOption(templateOption('one agent, round after round'))
    .addOption(verifyOption())
    .option('--priority <n>', 'from -1000 to 1000: the higher, the sooner (0)')
    .addOption(each(new Option('--tag <tag>', 'what its worker has to have, such as gpu; may be repeated')))
    .option('--after <session>', 'begin once that session is done')
    .option('--not-before <time>', 'begin at that time or later, such as 22:00')
    .option('--deadline <time>', 'do not go on after that time, such as 07:00')
    .option('--team <name>', 'who sees it: the members of that team (everybody)')
    .option('--rounds <n>', 'how many rounds at the most')
    .option('--max-time <duration>', 'for how long at the most, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'how many tokens at the most, such as 5M or 500k')
    .option('--max-cost <amount>', 'how much it may cost at the most, by the prices of its worker, such as 10')
    .option('--max-usage <percent>', 'wait at this much of the usage limit, such as 90')
    .option('--max-wait <duration>', 'how long one wait, or failures in a row, may take, such as 12h')
    .option('-m, --model <name>', 'the model (that of the worker)')
    .option('--effort <level>', 'reasoning effort: low, medium, high, …')
    .addOption(
      new Option('--sandbox <mode>', 'what the agent may write, if the worker allows it').choices(SANDBOX_MODES),
    )
    .option('--network', 'let commands in the sandbox reach the network, if the worker allows it')
    .option('--no-network', 'no network, whatever the worker allows')
    .option('--review', 'done only if a fresh look at all changes agrees')
    .option('-n, --dry-run', 'only show what would be submitted; no database is needed')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./submit.ts')).submit))
}

/** What makes a fleet, and looks after it. */
function addFleetSetup(fleet: Command, does: Does): void {
  withQueue(fleet.command('setup'))
    .description('make the tables and roles in the database, or bring them to this version')
    .option('--lease <duration>', 'after how long a worker that says nothing loses what it has, from 10s to 1h (60s)')
    .option('--per-repository <n>', 'how many sessions of one repository run at once (4)')
    .addOption(
      new Option(
        '--team <name>',
        'make the role of a team, whose members alone see its sessions; may be repeated',
      ).argParser(eachTyped),
    )
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./setup.ts')).fleetSetup))
  withQueue(fleet.command('doctor'))
    .description('look whether database, workers, clocks, queue and remotes are as a fleet needs them')
    .option('--offline', 'do not ask the remotes')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./doctor.ts')).fleetDoctor))
}

const WHICH = 'the session, by its id or a part of it, as fleet list shows it'

/** What only looks. */
function addFleetLooking(fleet: Command, does: Does): void {
  const load = () => import('./look.ts')
  withQueue(fleet.command('status'))
    .description('how much waits and runs, on which workers with which logins, and what will be done by the morning')
    .option('--by <time>', 'the time of day up to which it is looked ahead', '07:00')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetStatus))
  withQueue(fleet.command('list'))
    .description('the sessions, the newest first')
    .addOption(
      new Option('--state <state>', 'only those that are so, such as waiting or dead; may be repeated').argParser(
        eachTyped,
      ),
    )
    .option('--repo <part>', 'only those whose repository has this in its address')
    .option('--all', 'all of them, and not the newest 50')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetList))
  withQueue(fleet.command('show'))
    .description('everything of one session')
    .argument('<session>', WHICH)
    .option('--json', 'as JSON, with how it is as codemachine status has it')
    .action(does(async () => (await load()).fleetShow))
  withQueue(fleet.command('logs'))
    .description('what happened in a session, wherever it runs')
    .argument('<session>', WHICH)
    .option('-f, --follow', 'go on until it ends, from worker to worker')
    .option('--json', 'as JSON lines')
    .action(does(async () => (await load()).fleetLogs))
  withQueue(fleet.command('report'))
    .description('what a session has done, as Markdown')
    .argument('<session>', WHICH)
    .addOption(new Option('--html', 'as a page with charts, in one file').conflicts('json'))
    .addOption(new Option('--json', 'as JSON').conflicts('open'))
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'where it is written to; - is stdout')
    .action(does(async () => (await load()).fleetReport))
}

/** What changes something. */
function addFleetTelling(fleet: Command, does: Does): void {
  const load = () => import('./tell.ts')
  withQueue(fleet.command('cancel'))
    .description('have sessions end without a result: one that waits at once, one that runs in its round')
    .argument('<session...>', WHICH)
    .option('--json', 'as JSON lines')
    .action(does(async () => (await load()).fleetCancel))
  withQueue(fleet.command('retry'))
    .description('have sessions wait again that are dead, cancelled or ended without being done')
    .argument('<session...>', WHICH)
    .option('--json', 'as JSON lines')
    .action(does(async () => (await load()).fleetRetry))
  withQueue(fleet.command('steer'))
    .description('tell the agent of a session something, wherever it runs')
    .argument('<session>', WHICH)
    .argument('<text...>', 'what to tell it; - reads it from standard input')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetSteer))
  withQueue(fleet.command('answer'))
    .description('make a decision that a session waits for')
    .argument('<session>', WHICH)
    .argument('<choice>', 'what you choose; fleet show and fleet logs say what is asked')
    .argument('[text...]', 'what you say with it; - reads it from standard input')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetAnswer))
  withQueue(fleet.command('drain'))
    .description('have a worker take nothing more, give back what it has at the end of its rounds, and end')
    .argument('<worker>', 'as fleet status shows it')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetDrain))
  withQueue(fleet.command('prune'))
    .description('remove ended sessions from the database and their branches from the remotes')
    .requiredOption('--older <age>', 'those that ended longer ago, such as 30d')
    .option(
      '--remote <url>',
      "where their savepoints were pushed, if the workers have a --remote (each session's repository)",
    )
    .option('--branches', 'the branches of their results, too')
    .option('--dry-run', 'only say what would go')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetPrune))
}
