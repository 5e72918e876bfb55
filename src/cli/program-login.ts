import { type Command, Option } from 'commander'
import { UserError } from '../base/errors.ts'
import type { CliContext, Ended } from './context.ts'
import { codexBinOption } from './flags.ts'

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
      const { logout } = await import('./commands/logout.ts')
      ended(await logout(context, flags))
    })
}
