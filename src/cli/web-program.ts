import { type Command, Option } from 'commander'
import { type Does, eachTyped } from './flags.ts'

/** The page in a browser. */
export function addWeb(program: Command, does: Does): void {
  const load = () => import('./commands/web.ts')
  const web = program
    .command('web')
    .description('a page of all your sessions for a browser, on this machine or a phone: watch, answer, tell, stop')
    .option('--port <number>', 'the port; without it 3000, or the next one that is free')
    .option(
      '--host <address>',
      'an address of this machine; another one than loopback wants --cert and --key',
      '127.0.0.1',
    )
    .addOption(
      new Option('--name <name>', 'another name that a proxy reaches it by; may be repeated').argParser(eachTyped),
    )
    .option('--cert <file>', 'certificate for https, PEM')
    .option('--key <file>', 'its key, PEM')
    .option('--look', 'a link that may look, and not steer')
    .option('--open', 'open it in the browser')
    .action(does(async () => (await load()).web))
  web
    .command('link')
    .description('a link for one more device, to be opened once')
    .option('--look', 'that may look, and not steer')
    .action(does(async () => (await load()).webLink))
  web
    .command('devices')
    .description('who can open the page')
    .option('--json', 'as JSON')
    .action(does(async () => (await load()).webDevices))
  web
    .command('end')
    .argument('<device>', 'as `web devices` shows it')
    .description('have a device open the page no more')
    .action(does(async () => (await load()).webEnd))
}
