import { type Command, Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import type { CliContext } from '../../screen/cli-context.ts'
import { type Does, roundsUnless, withLook, withoutContract, withRunFlags } from '../flags.ts'
import { refuseMistypedCommand, withSmallHeap } from '../program/parts.ts'
import type { TeamFlags } from './run.ts'

const END_OF_HELP = `
If a step needs a key: codemachine secret set <KEY> -C <project>. No model ever
sees the value.

Exit codes:
  0 done    2 wrong usage    3 a limit was reached    5 stalled: no progress
  4 a step failed, a secret is missing, or it needs a person
  6 another codemachine runs there
  130, 143 interrupted: codemachine resume -C <project> continues
`

/** Adds the commands of a planner, a worker and a reviewer who make a project. */
export function addTeam(program: Command, does: Does): void {
  const load = (context: Pick<CliContext, 'ownsProcess'>) => withSmallHeap(context, () => import('./run.ts'))
  const team = withTeamFlags(program.command('team'), roundsUnless(200))
    .argument('[goal...]', 'the goal of the project; - reads it from standard input')
    .description('have a planner, a worker and a reviewer make a project in a directory of its own')
    .option('--repair <0-3>', 'most rounds to fix findings of high severity (1)')
    .option(
      '-y, --yes',
      'accept the plan automatically, and let commands have secrets and the network together; you are still asked for secrets',
    )
    .addHelpText('after', END_OF_HELP)
  keepDashes(team)
  const goal = does(async context => (await load(context)).team)
  team.action(async (words: string[], flags: TeamFlags, command) => {
    const isGoal = words[0] === DASHES
    if (!isGoal) refuseMistypedCommand(words, team)
    await goal(isGoal ? words.slice(1) : words, flags, command)
  })
  withTeamFlags(team.command('plan'))
    .argument('[goal...]', 'the goal of the project; - reads it from standard input')
    .description('the planner alone: its JSON on stdout; codemachine resume carries the plan out')
    .action(does(async context => (await load(context)).teamPlan))
  withTeamFlags(team.command('work'))
    .argument('[step...]', 'the step; - reads it from standard input')
    .description('the worker alone: one step, in an existing project')
    .option('-y, --yes', 'let commands have secrets and the network together; you are still asked for secrets')
    .action(does(async context => (await load(context)).teamWork))
  withTeamFlags(team.command('review'))
    .description('the reviewer alone, of an existing project: its JSON on stdout')
    .action(does(async context => (await load(context)).teamReview))
  addLooks(team, does)
  team.hook('preAction', refuseFlagsBetween)
}

function addLooks(team: Command, does: Does): void {
  const load = () => import('./look.ts')
  withLook(team.command('rm'), undefined, WORKSPACE)
    .argument('<project>', 'the project, as `team list` names it, or its directory')
    .description('remove a project, its records and its secrets, after asking for each')
    .option('-y, --yes', 'all of them, without being asked')
    .action(does(async () => (await load()).teamRemove))
  withLook(team.command('list'), undefined, WORKSPACE)
    .description('the projects here, how each ended, and how to test it')
    .action(does(async () => (await load()).teamList))
  withLook(team.command('show'), undefined, WORKSPACE)
    .argument('<project>', 'the project, as `team list` names it, or its directory')
    .description('one project: goal, steps, issues, how to test it, its runs, and what is missing')
    .action(does(async () => (await load()).teamShow))
}

/** Adds the flags of a team. */
export function withTeamFlags(command: Command, rounds = 'as many as it needs'): Command {
  return withoutContract(withRunFlags(command, rounds, WORKSPACE))
    .option('--project <dir>', 'work in this existing directory; without it, a new one in projects/')
    .option('--stepwise', 'one shell command an answer, which codemachine runs: for models that cannot call tools')
    .option('--planner-engine <name>', 'the engine that plans, such as claude (as the rounds)')
    .option('--worker-engine <name>', 'the engine that works and says how to test')
    .option('--reviewer-engine <name>', 'the engine that reviews the result')
    .addOption(new Option('--worktree [name]').hideHelp())
}

const WORKSPACE = 'the workspace, in which projects/, runs/ and logs/ lie, if it is not this directory'
const DASHES = '--'

/** Has words behind `--` be a goal, though the first of them be the name of a command: the `--` is kept as the first word. */
function keepDashes(team: Command): void {
  const parse = team.parseOptions.bind(team)
  team.parseOptions = typed => {
    const parsed = parse(typed)
    const at = typed.indexOf(DASHES)
    const isFirst = at !== -1 && parsed.operands.length === typed.length - at - 1
    return isFirst ? { ...parsed, operands: [DASHES, ...parsed.operands] } : parsed
  }
}

/** Refuses flags between `team` and the command that they are for: it is not told of them. */
function refuseFlagsBetween(team: Command, command: Command): void {
  if (command === team) return
  const before = team.options.find(option => team.getOptionValueSource(option.attributeName()) === 'cli')
  if (before === undefined) return
  const name = `team ${command.name()}`
  throw new UserError(
    'CM0102',
    command.options.some(({ long }) => long === before.long)
      ? `Write ${before.long} after ${name}: codemachine ${name} ${before.long} …`
      : `${before.long} does not apply to ${name}; leave it out.`,
  )
}
