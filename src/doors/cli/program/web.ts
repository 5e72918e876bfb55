import { type Command, Option } from 'commander'
import { type Does, eachTyped } from '../flags.ts'

/** The page in a browser. */
export function addWeb(program: Command, does: Does): void {
  const load = () => import('../commands/runner/web.ts')
  const serve = does(async () => (await load()).web)
  const web = program.command('web')
  web
    .description('a page of all your sessions for a browser, on this machine or a phone: watch, answer, tell, stop')
    .option('--port <number>', 'the port (the setting port), or the next one that is free where it is not named here')
    .option('--host <address>', 'an address of this machine; another than loopback wants --cert and --key (127.0.0.1)')
    .addOption(
      new Option('--name <name>', 'another name that a proxy on this machine reaches it by; may be repeated').argParser(
        eachTyped,
      ),
    )
    .option('--cert <file>', 'certificate for https, PEM')
    .option('--key <file>', 'its key, PEM')
    .option('--look', 'a link that may look, and not steer')
    .option('--open', 'open it in the browser')
    .option('--json', 'the link as JSON')
    .addOption(new Option('--until-idle').hideHelp())
    .action(serve)
  web
    .command('link')
    .option('--look', 'that may look, and not steer')
    .option('--qr', 'as a QR code, too')
    .option('--json', 'as JSON')
    .description('a link for one more device, to be opened once')
    .action(inner(web, async () => (await load()).webLink))
  web
    .command('pair')
    .option('--look', 'a device that may look, and not steer')
    .description('let a device in by a code that is typed on it')
    .action(inner(web, async () => (await load()).webPair))
  web
    .command('devices')
    .option('--json', 'as JSON')
    .description('who can open the page')
    .action(inner(web, async () => (await load()).webDevices))
  web
    .command('end')
    .argument('<device>', 'as `web devices` shows it')
    .description('have a device open the page no more')
    .action(does(async () => (await load()).webEnd))
  web
    .command('stop')
    .description('end the process that serves the page; what runs goes on')
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

const WHICH_IS_WHICH = `This serves codemachine to other agents. The MCP servers that codex has for its
own rounds are another thing: /mcp on the screen lists those.`
