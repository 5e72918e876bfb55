import { type Command, Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import { type Does, roundsUnless, withRunFlags, worktreeOption } from '../flags.ts'
import { withSmallHeap } from '../program/parts.ts'

const WHILE_IT_RUNS = `
While it runs: codemachine plan shows the plan, codemachine plan accept accepts
it, codemachine replan "…" changes it.
`

/** Adds the command that makes one change, from a request to its proof. */
export function addChange(program: Command, does: Does): void {
  const run = does(async context => (await withSmallHeap(context, () => import('./run.ts'))).change)
  const said = new Set<string>()
  const command = program
    .command('change')
    .argument('[request...]', 'what to change; - reads it from standard input')
    .description('make one change: plan it, ask you to accept the plan, carry it out task by task, and prove it')
    .addHelpText('after', WHILE_IT_RUNS)
    .on('option:executor', () => said.add('--executor'))
    .on('option:no-local', () => said.add('--no-local'))
    .on('option:executor-engine', () => said.add('--executor-engine'))
  withChangeFlags(withRunFlags(command, roundsUnless(200)))
    .addOption(worktreeOption())
    .addOption(new Option('--follow-up [session]', 'build on the result of another session (the newest change here)'))
    .option('-n, --dry-run', 'only print the context and the prompts; nothing is started and nothing spent')
    .option('--wait', 'if another codemachine runs here, wait for its end, at most --max-wait')
    .action(async (...typed: unknown[]) => {
      if (said.size > 1)
        throw new UserError('CM0102', `${[...said].join(' and ')} cannot be combined; leave one of them out.`)
      await run(...typed)
    })
}

/** Adds the flags of a change that stand for settings, and `--plan-only`. */
export function withChangeFlags(command: Command): Command {
  return command
    .option('--auto', 'accept the plan automatically; its commands then do not count as proof')
    .option('--plan-only', 'end when a plan is accepted; codemachine resume carries it out')
    .option('--fix-attempts <5-10>', 'most attempts to fix one verification; fewer than 5 gives up early (5)')
    .option(
      '--executor <provider>',
      'the provider that carries out the tasks: ollama, lmstudio, or one of your config.toml',
    )
    .option('--executor-engine <name>', 'the engine that carries out the tasks, such as claude')
    .option('--no-local', 'the planner carries out the tasks, whatever the settings say')
    .option('--planner-model <name>', 'the model that plans, cuts the plan into tasks and sums up (as the rounds)')
    .option('--planner-effort <level>', 'its reasoning effort: low, medium, high, … (high)')
    .option('--planner-engine <name>', 'the engine that plans, such as claude (as the rounds)')
}
