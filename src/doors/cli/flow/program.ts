import { type Command, Option } from 'commander'
import { UserError } from '../../../base/errors.ts'
import { type Does, eachTyped, withLook, withoutContract, withRunFlags } from '../flags.ts'
import { withSmallHeap } from '../program/parts.ts'

const SAMPLE = '.codex-flow/workflows/commit.workflow.toml'
const EXIT_CODES = `
Exit codes:
  0 done, or replayed    2 wrong usage, or a mistake in a file
  3 a limit was reached    4 a step failed, or needs a person
  6 another codemachine runs here; --wait waits for its end
  130, 143 interrupted: codemachine resume continues at that step

A run is a session of codemachine: codemachine status, stop, resume, report and
all its other commands work for it, too.
`

const WHAT = 'workflows in a TOML file: several agents in a row, each with its prompt, input and output'

/** Adds the commands of workflows to `codemachine flow`, or to the program that has no others. */
export function addFlow(flow: Command, does: Does): void {
  const { parent } = flow
  const load = () => import('./look.ts')
  flow.description(parent === null ? `W${WHAT.slice(1)}.` : WHAT).addHelpText('after', EXIT_CODES)
  withLook(flow.command('init'))
    .description('create .codex-flow: a workflow, its prompts, and a sample recording; existing files stay')
    .option('--dir <path>', 'in which .codex-flow is made (the top of the git repository, or here)')
    .option('--templates-dir <path>', 'a folder with your own prompts, instead of the shipped ones')
    .option('--force', 'replace existing files')
    .action(does(async () => (await load()).flowInit))
  addFlowRun(flow, does)
  withLook(flow.command('list'))
    .description('the workflows of this project')
    .action(does(async () => (await load()).flowList))
  withValues(withLook(flow.command('validate')))
    .argument('[file...]', 'a workflow file, or a name of `list`; without one, all of the project')
    .description('list every mistake of a workflow, with its line and column')
    .action(does(async () => (await load()).flowValidate))
  withValues(withLook(flow.command('show')))
    .argument('<file>', 'a workflow file, or a name of `list`')
    .description('the steps of a workflow, in order')
    .action(does(async () => (await load()).flowShow))
}

function addFlowRun(flow: Command, does: Does): void {
  const run = does(async context => (await withSmallHeap(context, () => import('./run.ts'))).flowRun)
  const said = new Set<string>()
  const command = flow
    .command('run')
    .argument('<file>', `a workflow file, such as ${SAMPLE}, or a name of \`list\``)
    .description('run a workflow: replay what was recorded (mock), or for real')
    .option('--mock', 'replay recordings: no model is asked, nothing is run')
    .option('--no-mock', 'run it for real (without either: as the file says, else --mock)')
    .option('--verbose', 'also engines, settings, input lengths, prompts, outputs and recordings')
    .option('--from <step>', 'begin with this step; earlier steps keep their outputs of the last run')
    .option(
      '--continue-on-error',
      'continue after a failed step, without the steps that need it; the exit code is still 4',
    )
    .option('--pace <seconds>', 'in a replay: seconds between two events; 0 is at once (1)')
    .option('--strict', 'in a replay: refuse a recording that was made with another prompt or input')
    .option('--write', 'in a replay: write output files, too')
    .option('-n, --dry-run', 'only print the command lines and the inputs')
    .option('--wait', 'if another codemachine runs here, wait for its end, at most --max-wait')
    .on('option:mock', () => said.add('--mock'))
    .on('option:no-mock', () => said.add('--no-mock'))
  withoutContract(withRunFlags(withValues(command), 'as many as its steps need')).action(
    async (...typed: unknown[]) => {
      if (said.size > 1)
        throw new UserError('CM0102', '--mock and --no-mock cannot be combined; leave one of them out.')
      await run(...typed)
    },
  )
}

function withValues(command: Command): Command {
  return command
    .addOption(
      new Option('--var <key=value>', 'a value; key=@file takes it from a file, key=@- from standard input').argParser(
        eachTyped,
      ),
    )
    .option('--vars-file <file>', 'a file of values, TOML or JSON; --var overrides it')
    .option('--workflow <name>', 'the workflow, if the file has several (the first)')
}
