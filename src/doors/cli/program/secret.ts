import type { Command } from 'commander'
import { UserError } from '../../../base/errors.ts'
import { type Does, type LookFlags, withLook } from '../flags.ts'

const HOW_IT_IS_KEPT = `
A value is never an argument: the process list and the history of your shell
would show it. codemachine keeps it outside of the project. Only a command that
names it gets it, as a variable. codemachine removes the value from the output
of that command. docs/guides/secrets.md says what this does not protect from.
`

/** Adds the commands of a project's secrets. */
export function addSecret(program: Command, does: Does): void {
  const load = () => import('../commands/secret.ts')
  const secret = program
    .command('secret')
    .description('the secrets of a project: commands can use them, and no model sees them')
    .addHelpText('after', HOW_IT_IS_KEPT)
    .allowExcessArguments()
    .allowUnknownOption()
    .action(() => {
      // What was typed may be a value, and is not repeated.
      if (secret.args.length > 0) throw new UserError('CM0102', NO_COMMAND)
      secret.help()
    })
  const set = withLook(secret.command('set'), undefined, PROJECT)
    .argument('<KEY>', 'its name, like a variable: STRIPE_KEY')
    .description('store a secret; its value is typed hidden, or comes through standard input')
    .option('--check <command>', 'a command that passes if the value is good; it finds it in $KEY')
  onlyItsKey(
    set,
    'set',
    does(async () => (await load()).secretSet),
  )
  withLook(secret.command('list'), undefined, PROJECT)
    .description('the names of the stored secrets; never a value')
    .action(does(async () => (await load()).secretList))
  onlyItsKey(
    withLook(secret.command('rm'), undefined, PROJECT).argument('<KEY>', 'its name').description('remove a secret'),
    'rm',
    does(async () => (await load()).secretRemove),
  )
  onlyItsKey(
    withLook(secret.command('check'), undefined, PROJECT)
      .argument('<KEY>', 'its name')
      .description('run its check: is the value good?')
      .option('--network', 'let the check reach the network'),
    'check',
    does(async () => (await load()).secretCheck),
  )
  onlyItsKey(
    withLook(secret.command('export'), undefined, PROJECT)
      .argument('<KEY>', 'its name')
      .description('write it into an env file of the finished project that git ignores')
      .option('--to <file>', 'the file, relative to the project, such as .env'),
    'export',
    does(async () => (await load()).secretExport),
  )
}

const PROJECT = 'the project, if it is not this directory'
const NO_COMMAND =
  'Use secret set, list, rm, check or export, with the name of a secret. A value is never an argument. For examples: codemachine secret --help'

/** Refuses what stands behind the name: it may be a value, and is not repeated. */
function onlyItsKey(command: Command, name: string, act: (...typed: unknown[]) => Promise<void>): void {
  command
    .allowExcessArguments()
    .allowUnknownOption()
    .action(async (key: string, flags: LookFlags) => {
      if (command.args.length === 1 && !key.includes('=')) return await act(key, flags, command)
      const takes = command.options.map(({ long }) => long).join(' and ')
      throw new UserError(
        'CM0102',
        `secret ${name} accepts one name, and only these options: ${takes}. Never type the value on the command line.`,
        {
          hint: 'Type the value at the hidden prompt, or pipe it in: codemachine secret set KEY < file',
        },
      )
    })
}
