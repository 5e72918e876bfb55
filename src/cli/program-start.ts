import { Argument, type Command, Option } from 'commander'
import { UserError } from '../base/errors.ts'
import type { StartFlags } from './commands/start.ts'
import type { CliContext, Ended } from './context.ts'
import { type DirectoryFlags, directoryOf, withDirectory, withRunFlags, worktreeOption } from './flags.ts'
import { TEMPLATES, templateNamed } from './start/templates.ts'

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
      const { keepHeapSmall } = await import('./small-heap.ts')
      keepHeapSmall()
      const { start } = await import('./commands/start.ts')
      ended(await start(context, flags))
    })
  addTemplates(program, context, ended)
}

function addTemplates(program: Command, context: CliContext, ended: Ended): void {
  const load = () => import('./commands/templates.ts')
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
