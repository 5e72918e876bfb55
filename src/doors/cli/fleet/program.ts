import { type Command, Option } from 'commander'
import { SANDBOX_MODES } from '../../../core/shapes/sandbox.ts'
import { codexBinOption, type Does, eachTyped, issueOption, verifyOption } from '../flags.ts'
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
    .option('--slots <n>', 'number of sessions at once', '2')
    .option('--name <name>', 'the name of the worker (the name of this machine)')
    .option('--tags <list>', 'its features, such as gpu,linux: it gets the sessions that need them')
    .addOption(
      new Option(
        '--repos <pattern>',
        "allowed repositories, such as 'git@host:team/*' or '/srv/git/**'; may be repeated (all but those on a disk)",
      ).argParser(eachTyped),
    )
    .option('--remote <url>', 'where savepoints and results are pushed (to the repository of each session)')
    .option('--keep <n>', 'number of clones to keep for later sessions', '20')
    .option('--once', 'end when the queue is empty')
    .addOption(codexBinOption())
    .option('--json', 'print JSON lines')
    .addHelpText('after', HOW_TO_END)
    .action(does(async () => (await import('./worker.ts')).worker))
  addSubmit(program, does)
  const fleet = program.command('fleet').description('the fleet: what waits, what runs where, and how each went')
  addFleetSetup(fleet, does)
  addFleetDemo(fleet, does)
  addFleetLooking(fleet, does)
  addFleetTelling(fleet, does)
}

/** What puts sessions into the queue. */
function addSubmit(program: Command, does: Does): void {
  const each = (option: Option) => option.argParser(eachTyped)
  withQueue(program.command('submit'))
    .description('put a session, or those of a file, into the queue of a fleet')
    .argument('[goal...]', 'what is to be done; - reads it from standard input')
    .addOption(issueOption())
    .option('-y, --yes', 'with --issue: ask nothing')
    .option('--repo <url>', 'the repository that the workers clone (the origin of this checkout)')
    .option('--ref <name>', 'the branch, tag or commit that it begins with (main)')
    .option('--file <path>', 'a TOML file of many sessions, such as night.toml; - is standard input')
    .addOption(templateOption('one agent, round after round'))
    .addOption(verifyOption())
    .option('--priority <n>', 'priority from -1000 to 1000; the highest starts first (0)')
    .addOption(each(new Option('--tag <tag>', 'a feature that its worker needs, such as gpu; may be repeated')))
    .option('--after <session>', 'begin once that session is done')
    .option('--not-before <time>', 'begin at that time or later, such as 22:00')
    .option('--deadline <time>', 'do not continue after that time, such as 07:00')
    .option('--team <name>', 'only the members of that team see it (everybody)')
    .option('--rounds <n>', 'most rounds')
    .option('--max-time <duration>', 'most time, such as 8h or 1h30m')
    .option('--max-tokens <count>', 'most tokens, such as 5M or 500k')
    .option('--max-cost <amount>', 'most cost, by the prices of its worker, such as 10')
    .option('--max-usage <percent>', 'wait at this percentage of the usage limit, such as 90')
    .option('--max-wait <duration>', 'longest wait, or time of failures in a row, such as 12h')
    .option('-m, --model <name>', 'the model (that of the worker)')
    .option('--effort <level>', 'reasoning effort: low, medium, high, …')
    .addOption(
      new Option('--sandbox <mode>', 'what the agent may write, if the worker allows it').choices(SANDBOX_MODES),
    )
    .option('--network', 'let commands in the sandbox reach the network, if the worker allows it')
    .option('--no-network', 'no network, whatever the worker allows')
    .option('--review', 'done only if a reviewer agrees')
    .option('-n, --dry-run', 'only show what would be submitted; no database is needed')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./submit.ts')).submit))
}

/** What makes a fleet, and looks after it. */
function addFleetSetup(fleet: Command, does: Does): void {
  withQueue(fleet.command('setup'))
    .description('make the tables and roles in the database, or bring them to this version')
    .option('--lease <duration>', 'time after which a silent worker loses its sessions, from 10s to 1h (60s)')
    .option('--per-repository <n>', 'how many sessions of one repository run at once (4)')
    .addOption(
      new Option(
        '--team <name>',
        'make the role of a team, whose members alone see its sessions; may be repeated',
      ).argParser(eachTyped),
    )
    .addOption(
      new Option(
        '--tokens-per-day <limit>',
        'what a team may use, such as shop=50M; 200M for the whole fleet, off for no limit; may be repeated',
      ).argParser(eachTyped),
    )
    .addOption(
      new Option(
        '--cost-per-day <limit>',
        'the same for the cost, by the prices of the workers, such as shop=20; may be repeated',
      ).argParser(eachTyped),
    )
    .option('--day-begins <time>', 'when such a day begins, in UTC (00:00)')
    .addOption(
      new Option('--local', 'start your own PostgreSQL here, and name it in your config.toml').conflicts('queue'),
    )
    .addOption(new Option('--stop', 'stop the PostgreSQL of --local').conflicts(['local', 'queue']))
    .addOption(new Option('--remove', 'stop it, and remove its data').conflicts(['local', 'queue', 'stop']))
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./setup.ts')).fleetSetup))
  withQueue(fleet.command('doctor'))
    .description('check database, workers, clocks, queue and remotes')
    .option('--offline', 'do not ask the remotes')
    .option('--json', 'as JSON')
    .action(does(async () => (await import('./doctor.ts')).fleetDoctor))
}

function addFleetDemo(fleet: Command, does: Does): void {
  fleet
    .command('demo')
    .description('two workers, one of which is killed, on this machine: a scripted model, no account, no network')
    .option('--keep', 'keep the repositories with the results')
    .addOption(codexBinOption())
    .option('--json', 'the results as JSON')
    .action(does(async () => (await import('./demo.ts')).fleetDemo))
}

const WHICH = 'the session, by its id or a part of it, as fleet list shows it'

/** What only looks. */
function addFleetLooking(fleet: Command, does: Does): void {
  const load = () => import('./look.ts')
  withQueue(fleet.command('status'))
    .description('waiting and running sessions, workers and their logins, and a forecast for the morning')
    .option('--by <time>', 'the time of day for the forecast', '07:00')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetStatus))
  withQueue(fleet.command('list'))
    .description('the sessions, the newest first')
    .addOption(
      new Option('--state <state>', 'only those in this state, such as waiting or dead; may be repeated').argParser(
        eachTyped,
      ),
    )
    .option('--repo <part>', 'only those whose repository has this in its address')
    .option('--all', 'all of them, not only the newest 50')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetList))
  withQueue(fleet.command('show'))
    .description('all data of one session')
    .argument('<session>', WHICH)
    .option('--json', 'as JSON, with the state as in codemachine status')
    .action(does(async () => (await load()).fleetShow))
  withQueue(fleet.command('logs'))
    .description('what happened in a session, wherever it runs')
    .argument('<session>', WHICH)
    .option('-f, --follow', 'follow it until it ends, from worker to worker')
    .option('--json', 'as JSON lines')
    .action(does(async () => (await load()).fleetLogs))
  withQueue(fleet.command('report'))
    .description('what a session has done, as Markdown')
    .argument('<session>', WHICH)
    .addOption(new Option('--html', 'as a page with charts, in one file').conflicts('json'))
    .addOption(new Option('--json', 'as JSON').conflicts('open'))
    .option('--open', 'open the page in the browser')
    .option('--output <file>', 'output file; - is stdout')
    .action(does(async () => (await load()).fleetReport))
}

/** What changes something. */
function addFleetTelling(fleet: Command, does: Does): void {
  const load = () => import('./tell.ts')
  withQueue(fleet.command('cancel'))
    .description('end sessions without a result: a waiting one at once, a running one in its round')
    .argument('<session...>', WHICH)
    .option('--json', 'as JSON lines')
    .action(does(async () => (await load()).fleetCancel))
  withQueue(fleet.command('retry'))
    .description('queue sessions again that are dead, cancelled or ended without being done')
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
    .argument('[text...]', 'your comment; - reads it from standard input')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetAnswer))
  withQueue(fleet.command('drain'))
    .description('end a worker after its running rounds; its sessions return to the queue')
    .argument('<worker>', 'the worker, as fleet status shows it')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetDrain))
  withQueue(fleet.command('prune'))
    .description('remove ended sessions from the database and their branches from the remotes')
    .requiredOption('--older <age>', 'those that ended longer ago, such as 30d')
    .option(
      '--remote <url>',
      "where their savepoints were pushed, if the workers have a --remote (each session's repository)",
    )
    .option('--branches', 'also the branches with results')
    .option('--dry-run', 'only show what would be removed')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).fleetPrune))
}
