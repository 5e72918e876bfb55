import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { placesOf } from '../../app/world.ts'
import { messageOf, UserError } from '../../base/errors.ts'
import { packageFile } from '../../base/package.ts'
import { openPage } from '../../platform/browser.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { openRecordsRoot } from '../../records/records.ts'
import { readRunner, takeRunLock } from '../../records/run-lock.ts'
import type { CliContext } from '../../tui/cli-context.ts'
import { Access, type Right } from '../../web/access.ts'
import { formatMoment } from '../../words/numbers.ts'
import { oneLine } from '../../words/safe-text.ts'

/** Flags of `codemachine web`. */
export interface WebFlags {
  port?: string
  host: string
  name?: string[]
  cert?: string
  key?: string
  open?: true
  look?: true
}

const DEFAULT_PORT = 3000
const MOST_ADDRESS = 4096
const MOST_PEM = 1024 * 1024

/** `codemachine web`: serves the page until it is ended; where it is served already, a new link to it. */
export async function web(context: CliContext, flags: WebFlags): Promise<number> {
  const { stdout, stderr, signal, clock, platform, pid } = context
  const { access, folder, lock, addressFile } = await placeOfPage(context)
  const right: Right = flags.look ? 'look' : 'steer'
  const running = await addressOfRunning(context)
  if (running !== null) {
    stdout.write(`The page is served already.\n${await linkTo(access, running, right)}`)
    return 0
  }
  const port = portOf(flags.port)
  const [{ serveWeb }, { openApi }] = await Promise.all([import('../../web/server.ts'), import('../../web/api.ts')])
  const hint = 'codemachine web link prints a link to the page that is served.'
  await using _held = await takeRunLock(lock, { platform, pid, now: new Date(clock.now()), hint })
  const said = new Set<string>()
  const say = (problem: string) => {
    if (said.size < MOST_SAID && !said.has(problem)) stderr.write(`codemachine: ${oneLine(problem, 500)}\n`)
    said.add(problem)
  }
  let address = ''
  await using api = openApi({ world: context, access, folder, address: () => address, signal, onProblem: say })
  await using server = await serveWeb({
    access,
    page: packageFile('dist/web'),
    api: api.routes,
    takeReport: api.takeReport,
    host: flags.host,
    port: port ?? DEFAULT_PORT,
    isExact: port !== null,
    names: flags.name ?? [],
    tls: await certificateOf(flags),
    onFailure: error => say(messageOf(error)),
  })
  address = server.address
  await writeWholeFile(addressFile, `${server.address}\n`)
  try {
    const link = await linkTo(access, server.address, right)
    if (port === null && server.port !== DEFAULT_PORT)
      stdout.write(`Port ${DEFAULT_PORT} is taken; it is ${server.port}.\n`)
    stdout.write(`${link}It is served until Ctrl+C; what runs does not need it.\n`)
    if (flags.open) {
      const problem = await openPage(link.trim().split(/\s+/).at(-1) ?? server.address, context)
      if (problem !== null) say(`No browser could be opened: ${problem}`)
    }
    await ended(signal)
  } finally {
    await rm(addressFile, { force: true })
  }
  return 0
}

/** `codemachine web link`: a link that another device can open once. */
export async function webLink(context: CliContext, { look }: { look?: true }): Promise<number> {
  const { access } = await placeOfPage(context)
  const address = await addressOfRunning(context)
  if (address === null) throw new UserError('The page is not served.', { hint: 'codemachine web serves it.' })
  context.stdout.write(await linkTo(access, address, look ? 'look' : 'steer'))
  return 0
}

/** `codemachine web devices`: who can open the page. */
export async function webDevices(context: CliContext, { json }: { json?: boolean }): Promise<number> {
  const { access } = await placeOfPage(context)
  const devices = await access.devices()
  const now = context.clock.now()
  if (json) context.stdout.write(`${JSON.stringify(devices)}\n`)
  else if (devices.length === 0) context.stdout.write('No device can open the page.\n')
  else
    for (const { id, name, right, lastSeenAt } of devices)
      context.stdout.write(
        `${id}  ${right.padEnd(5)}  seen ${formatMoment(Date.parse(lastSeenAt), now)}  ${oneLine(name, 80)}\n`,
      )
  return 0
}

/** `codemachine web end`: a device can open the page no more. */
export async function webEnd(context: CliContext, id: string): Promise<number> {
  const { access } = await placeOfPage(context)
  if (!(await access.end(id)))
    throw new UserError(`There is no device ${oneLine(id, 40)}.`, { hint: 'codemachine web devices names them.' })
  context.stdout.write(`${id} can open the page no more.\n`)
  return 0
}

const MOST_SAID = 100

async function placeOfPage(context: CliContext) {
  const folder = join(await openRecordsRoot(placesOf(context, context.cwd)), 'web')
  const access = new Access({ folder, clock: context.clock, platform: context.platform })
  await access.open()
  return { access, folder, lock: join(folder, 'lock'), addressFile: join(folder, 'address') }
}

/** Where the page is served by another process; null: it is not. */
async function addressOfRunning(context: CliContext): Promise<string | null> {
  const { lock, addressFile } = await placeOfPage(context)
  if ((await readRunner(lock, context.platform)) === null) return null
  const read = await readBoundedText(addressFile, MOST_ADDRESS)
  return typeof read === 'object' && 'text' in read ? read.text.trim() : null
}

/** In the fragment, which a browser sends to no server. */
async function linkTo(access: Access, address: string, right: Right): Promise<string> {
  return `Open this once, within an hour:\n  ${address}#t=${await access.newLink(right)}\n`
}

function portOf(typed: string | undefined): number | null {
  if (typed === undefined) return null
  const port = /^\d{1,5}$/.test(typed) ? Number(typed) : Number.NaN
  if (port <= 65_535) return port
  throw new UserError(`--port is "${oneLine(typed, 40)}"; use a number from 0 to 65535.`)
}

async function certificateOf({ cert, key }: WebFlags): Promise<{ cert: string; key: string } | null> {
  if (cert === undefined && key === undefined) return null
  if (cert === undefined || key === undefined) throw new UserError('Give both --cert and --key, or neither.')
  return { cert: await pem(cert), key: await pem(key) }
}

async function pem(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UserError(`${oneLine(path, 200)} cannot be read: ${messageOf(error)}.`)
  })
  if (text.length > MOST_PEM || !text.includes('-----BEGIN '))
    throw new UserError(`${oneLine(path, 200)} is no PEM file.`)
  return text
}

function ended(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve())
  return promise
}
