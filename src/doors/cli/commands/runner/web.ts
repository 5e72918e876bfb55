import { readFile } from 'node:fs/promises'
import { messageOf, UserError, withCode } from '../../../../base/errors.ts'
import { packageFile } from '../../../../base/package.ts'
import { followNamedFleet } from '../../../../fleet/fleet.ts'
import { openPage } from '../../../../platform/browser.ts'
import { agentFolders } from '../../../../project/environment/agent-folders.ts'
import { settingsOf } from '../../../../project/open-run.ts'
import type { Right } from '../../../../project/page/access.ts'
import {
  addressOfPage,
  announcePage,
  endPage,
  havePageServed,
  isReachedFromElsewhere,
  linkToPage,
  ONLY_HERE,
  placeOfPage,
  type ServedPage,
  servedPage,
} from '../../../../project/page/served.ts'
import { takeRunLock } from '../../../../session/records/run-lock.ts'
import { formatMoment } from '../../../../tell/words/numbers.ts'
import { oneLine } from '../../../../tell/words/safe-text.ts'
import { writableIn } from '../../../../workspace/git/find-git.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { type LookFlags, printDone } from '../../flags.ts'
import { warnOn } from '../../warn-on.ts'

/** Flags of `codemachine web`. */
export interface WebFlags {
  port?: string
  /** Left out: loopback. */
  host?: string
  name?: string[]
  cert?: string
  key?: string
  open?: true
  look?: true
  json?: true
  /** Whether it ends when nobody has needed it for an hour: what `--web` and `/web` have started does. */
  untilIdle?: true
}

const LOOPBACK = '127.0.0.1'
const MOST_PEM = 1024 * 1024
const MOST_SAID = 100

/** `codemachine web`: serves the page until it is ended; where it is served already, a new link to it. */
export async function web(context: CliContext, flags: WebFlags): Promise<number> {
  const place = await placeOfPage(context)
  const right: Right = flags.look ? 'look' : 'steer'
  const port = portOf(flags.port)
  const running = await servedPage(context, place)
  if (running !== null) {
    refuseOther(running, flags, port)
    const more = port === 0 ? `, on port ${portIn(running)}; --port 0 does not change that` : ''
    if (!flags.json) context.stdout.write(`The page is already served${more}.\n`)
    await show(context, running, await linkToPage(place.access, running, right), flags)
    return 0
  }
  await servePage(context, flags, async (served, isOther) => {
    context.own.detached?.tell(served)
    if (flags.untilIdle) return
    if (isOther !== null && !flags.json) context.stdout.write(`Port ${isOther} is taken; it is ${portIn(served)}.\n`)
    await show(context, served, await linkToPage(place.access, served, right), flags)
    if (!flags.json) context.stdout.write('Ctrl+C stops the page; sessions continue without it.\n')
  })
  return 0
}

/**
 * Serves the page until the context's signal aborts.
 * @param ready told where it is; `isOther`: the port that was wanted where that is taken, null: it has it
 */
export async function servePage(
  context: CliContext,
  flags: WebFlags,
  ready: (served: ServedPage, isOther: number | null) => Promise<void>,
): Promise<void> {
  const { clock, platform, pid } = context
  const place = await placeOfPage(context)
  const typed = portOf(flags.port)
  const wanted = typed ?? (await settingsOf(context, context.cwd, {})).settings.port
  const [{ serveWeb }, { openApi }] = await Promise.all([
    import('../../../page/server.ts'),
    import('../../../page/api.ts'),
  ])
  const hint = 'codemachine web link prints a link to the page that is served.'
  await using _held = await takeRunLock(place.lock, { platform, pid, now: new Date(clock.now()), hint })
  const said = new Set<string>()
  const say = (problem: string) => {
    if (said.size < MOST_SAID && !said.has(problem)) warnOn(context)(problem)
    said.add(problem)
  }
  const names = flags.name ?? []
  let address = ''
  const { access, folder } = place
  const { signal } = context
  await using api = openApi({
    world: context,
    access,
    folder,
    page: () => ({ address, names }),
    signal,
    onProblem: say,
  })
  await using server = await serveWeb({
    access,
    page: packageFile('dist/web'),
    api: api.routes,
    takeReport: api.takeReport,
    host: flags.host ?? LOOPBACK,
    port: wanted,
    // Whoever opens it by a name is led to one port, whatever serves there.
    isExact: typed !== null || names.length > 0,
    names,
    tls: await certificateOf(flags),
    onFailure: error => say(messageOf(error)),
  })
  address = server.address
  await using _fleet = await followNamedFleet(context, say)
  const served = { address, names, pid }
  await using _announced = await announcePage(place, served)
  await ready(served, typed === null && server.port !== wanted ? wanted : null)
  if (flags.untilIdle) await untilIdle(context, () => api.isNeeded)
  else await ended(signal)
}

const IDLE_MS = 60 * 60_000
const LOOK_MS = 60_000

/** Resolves when nobody has needed it for an hour, or the context's signal aborts. */
async function untilIdle({ clock, signal }: CliContext, isNeeded: () => boolean): Promise<void> {
  let needed = clock.monotonic()
  while (!signal.aborted && clock.monotonic() - needed < IDLE_MS) {
    await clock.wait(LOOK_MS, signal)
    if (isNeeded()) needed = clock.monotonic()
  }
}

/** Prints where the page is, and opens it where that is wanted. */
async function show(context: CliContext, served: ServedPage, link: string, { json, open }: WebFlags): Promise<void> {
  const { stdout, stderr } = context
  if (json) stdout.write(`${JSON.stringify({ link, address: served.address, names: served.names })}\n`)
  else stdout.write(`Open this link (it works once, within an hour):\n  ${link}\n`)
  if (!open) return
  const { env, platform, cwd } = context
  const where = await writableIn(cwd, env, await agentFolders(context))
  const problem = await openPage(link, { env, platform, where })
  if (problem !== null) stderr.write(`codemachine: No browser could be opened: ${oneLine(problem, 300)}\n`)
}

/** `codemachine web link`: a link that another device can open once. */
export async function webLink(
  context: CliContext,
  { look, json, qr }: { look?: true; json?: true; qr?: true },
): Promise<number> {
  const { access, served } = await pageThatIsServed(context)
  const link = await linkToPage(access, served, look ? 'look' : 'steer')
  await show(context, served, link, json ? { json } : {})
  if (!qr || json) return 0
  const { linesOfQr } = await import('../../../screen/blocks/qr.ts')
  context.stdout.write(`${linesOfQr(link).join('\n')}\n`)
  if (!isReachedFromElsewhere(served)) context.stdout.write(`${ONLY_HERE}\n`)
  return 0
}

/** `--web` on a run: has the page served by a process of its own, and prints a link to it. */
export async function sayPage(context: CliContext): Promise<void> {
  const served = await havePageServed(context)
  const { access } = await placeOfPage(context)
  context.stderr.write(
    `Link to the page (it works once, within an hour):\n  ${await linkToPage(access, served, 'steer')}\n`,
  )
}

/** How long it is waited before the page is served again that could not be, or that another process serves, ms. */
const AGAIN_MS = 30_000

/** Keeps the page served until the context's signal aborts, where no other process of the person does. */
export async function keepPageServed(context: CliContext, say: (line: string) => void): Promise<void> {
  const { signal, clock } = context
  let said = ''
  while (!signal.aborted) {
    try {
      if ((await servedPage(context, await placeOfPage(context))) === null)
        await servePage(context, {}, async ({ address }) => say(`The page is served: ${address}`))
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      if (error.message !== said) say(`The page is not served: ${withCode(error)}`)
      said = error.message
    }
    await clock.wait(AGAIN_MS, signal)
  }
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

/** `codemachine web end`: a device can no longer open the page. */
export async function webEnd(context: CliContext, id: string, flags: Pick<LookFlags, 'json'>): Promise<number> {
  const { access } = await placeOfPage(context)
  if (!(await access.end(id)))
    throw new UserError('CM0805', `There is no device ${oneLine(id, 40)}.`, {
      hint: 'codemachine web devices lists them.',
    })
  return printDone(context, flags, `The device ${id} can no longer open the page.`, { id })
}

/** `codemachine web stop`: ends the process that serves the page. */
export async function webStop(context: CliContext, flags: Pick<LookFlags, 'json'>): Promise<number> {
  const wasServed = await endPage(context)
  return printDone(context, flags, wasServed ? 'The page is no longer served.' : 'The page is not served.')
}

/** `codemachine web pair`: shows a code that a new device types, and lets it in or not. */
export async function webPair(context: CliContext, { look }: { look?: true }): Promise<number> {
  const { access, served } = await pageThatIsServed(context)
  const { pairFromHere } = await import('../../../../project/page/pair-from-here.ts')
  const { askEach } = await import('../../output.ts')
  const right: Right = look ? 'look' : 'steer'
  const how = await pairFromHere(served.address, access, {
    right,
    signal: context.signal,
    onCode: code =>
      void context.stdout.write(
        `Open ${addressOfPage(served)} on the new device, and type this code within five minutes:\n  ${code.slice(0, 4)} ${code.slice(4)}\n`,
      ),
    confirm: async name => {
      const what = `Let "${oneLine(name, 80)}" ${look ? 'look' : 'look and steer'}?`
      return (await askEach(context, [what], false))[0] === true
    },
  })
  const WORDS = { 'let-in': 'Paired.', refused: 'Not paired.', 'too-late': 'Nobody typed the code in time.' }
  context.stdout.write(`${WORDS[how]}\n`)
  return how === 'let-in' ? 0 : 4
}

async function pageThatIsServed(context: CliContext) {
  const place = await placeOfPage(context)
  const served = await servedPage(context, place)
  if (served === null) throw new UserError('CM0803', 'The page is not served.', { hint: 'codemachine web serves it.' })
  return { ...place, served }
}

/**
 * Refuses what was said of how the page is to be served, where one is served already in another way.
 * @param port as typed; null: none was
 */
function refuseOther(running: ServedPage, { host, name = [], cert, key }: WebFlags, port: number | null): void {
  const { protocol, hostname } = new URL(running.address)
  const isTls = protocol === 'https:'
  const isLocal = (each: string) => /^(?:localhost|127\.0\.0\.1|::1)$/.test(each)
  const served = hostname.replace(/^\[|\]$/g, '')
  const other = [
    ...(port === null || port === 0 || String(port) === portIn(running) ? [] : [`--port ${port}`]),
    ...(host === undefined || host === served || (isLocal(host) && isLocal(served))
      ? []
      : [`--host ${oneLine(host, 100)}`]),
    ...name.filter(each => !running.names.includes(each)).map(each => `--name ${oneLine(each, 100)}`),
    ...((cert !== undefined || key !== undefined) && !isTls ? ['--cert and --key'] : []),
  ]
  if (other.length === 0) return
  throw new UserError(
    'CM0804',
    `The page is already served at ${addressOfPage(running)}, but without ${other.join(', ')}.`,
    {
      hint: 'To change that: codemachine web stop, then repeat this command. A link to the running page: codemachine web link',
    },
  )
}

function portIn({ address }: ServedPage): string {
  return new URL(address).port
}

function portOf(typed: string | undefined): number | null {
  if (typed === undefined) return null
  const port = /^\d{1,5}$/.test(typed) ? Number(typed) : Number.NaN
  if (port <= 65_535) return port
  throw new UserError('CM0103', `--port is "${oneLine(typed, 40)}", but must be a number from 0 to 65535.`)
}

async function certificateOf({ cert, key }: WebFlags): Promise<{ cert: string; key: string } | null> {
  if (cert === undefined && key === undefined) return null
  if (cert === undefined || key === undefined) throw new UserError('CM0802', 'Give both --cert and --key, or neither.')
  return { cert: await pem(cert, '--cert'), key: await pem(key, '--key') }
}

async function pem(path: string, flag: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UserError('CM0802', `${flag} cannot be read: ${messageOf(error)}`)
  })
  if (text.length <= MOST_PEM && text.includes('-----BEGIN ')) return text
  throw new UserError('CM0802', `${flag}: ${oneLine(path, 300)} is not a PEM file.`)
}

async function ended(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
}
