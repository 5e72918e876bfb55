import { type Command, Option } from 'commander'
import { type Does, eachTyped } from '../flags.ts'

/** The page in a browser. */
export function addWeb(program: Command, does: Does): void {
  const load = () => import('../commands/runner/web.ts')
  const serve = does(async () => (await load()).web)
  const web = program.command('web')
  web
    .description('a web page of all your sessions, for this machine or a phone: watch, answer, tell, stop')
    .option('--port <number>', 'the port (the setting port); without this option, the next free one')
    .option('--host <address>', 'an address of this machine; any but loopback needs --cert and --key (127.0.0.1)')
    .addOption(
      new Option(
        '--name <name>',
        'another name under which a proxy on this machine serves it; may be repeated',
      ).argParser(eachTyped),
    )
    .option('--cert <file>', 'certificate for https, PEM')
    .option('--key <file>', 'its key, PEM')
    .option('--look', 'a view-only link')
    .option('--open', 'open it in the browser')
    .option('--json', 'the link as JSON')
    .addOption(new Option('--until-idle').hideHelp())
    .action(serve)
  web
    .command('link')
    .option('--look', 'view only')
    .option('--qr', 'as a QR code, too')
    .option('--json', 'as JSON')
    .description('a link for another device; works once')
    .action(inner(web, async () => (await load()).webLink))
  web
    .command('pair')
    .option('--look', 'a view-only device')
    .description('pair a device by a code that you type on it')
    .action(inner(web, async () => (await load()).webPair))
  web
    .command('devices')
    .option('--json', 'as JSON')
    .description('who can open the page')
    .action(inner(web, async () => (await load()).webDevices))
  web
    .command('end')
    .argument('<device>', 'as `web devices` shows it')
    .description('remove a device')
    .action(does(async () => (await load()).webEnd))
  web
    .command('stop')
    .description('stop serving the page; runs continue')
    .action(does(async () => (await load()).webStop))

  /** Flags that the command above knows, too, are taken by that. */
  function inner(above: Command, load: Parameters<Does>[0]): (flags: object, command: Command) => Promise<void> {
    const action = does(load)
    return (flags, command) => action({ ...above.opts(), ...flags }, command)
  }
}

/** The tools for other agents. */
export function addMcp(program: Command, does: Does): void {
  program
    .command('mcp')
    .description('an MCP server on standard input and output: other agents begin, watch and steer sessions')
    .addOption(
      new Option(
        '--dir <dir>',
        'a directory that they may use; may be repeated. Without it those of the setting mcp.dirs, else this one',
      ).argParser(eachTyped),
    )
    .option('--allow-write', 'let them rewind files and land worktrees, too')
    .option('--fleet', 'let them look at and steer the sessions of your fleet, too')
    .addHelpText('after', `\n${WHICH_IS_WHICH}`)
    .action(does(async () => (await import('../commands/runner/mcp.ts')).mcp))
}

const WHICH_IS_WHICH = `This serves codemachine to other agents. On the screen, /mcp lists the MCP
servers that codex uses in its rounds.`
