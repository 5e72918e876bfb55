import { randomUUID } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { kill } from 'node:process'
import { readShownError, systemErrorCode, UserError } from '../../base/errors.ts'
import { startDetached } from '../../platform/detached.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'
import { openRecordsRoot } from '../../session/records/records.ts'
import { readRunner } from '../../session/records/run-lock.ts'
import { oneLine } from '../../tell/words/safe-text.ts'
import type { OwnCommand } from '../start/detached.ts'
import { DETACHED_VARIABLE, placesOf, type World } from '../world.ts'
import { Access, type Right } from './access.ts'

/** World of a process that can serve the page, or have it served. */
export type PageWorld = World & { own: OwnCommand }

/** Places of the page's files in the records. */
export interface PagePlace {
  /** Absolute; for this user only. */
  folder: string
  access: Access
  /** Lock of the process that serves it. */
  lock: string
}

/** Addresses of a served page. `names`: other host names by which a proxy on this machine reaches it, over https. */
export interface ServedPage {
  address: string
  names: readonly string[]
  pid: number
}

type Where = Pick<ServedPage, 'address' | 'names'>

const MOST_ADDRESS = 16 * 1024
/** How long to wait for a page to start, in ms. */
const START_MS = 20_000
/** How long to wait for one to end, in ms. */
const END_MS = 10_000
const LOOK_MS = 100
const MOST_SAID = 1_000

/** Returns the place of the page, and creates its folder. */
export async function placeOfPage(world: World): Promise<PagePlace> {
  const folder = join(await openRecordsRoot(placesOf(world, world.cwd)), 'web')
  const access = new Access({ folder, clock: world.clock, platform: world.platform })
  await access.open()
  return { folder, access, lock: join(folder, 'lock') }
}

/** Writes where the page is served, as the holder of its lock. Disposing removes it. */
export async function announcePage({ folder }: PagePlace, page: Omit<ServedPage, 'pid'>): Promise<AsyncDisposable> {
  const file = addressFile(folder)
  await writeWholeFile(file, `${JSON.stringify(page)}\n`)
  return { [Symbol.asyncDispose]: () => rm(file, { force: true }) }
}

/** Returns the page that a process of this person serves now; null: none. */
export async function servedPage(world: World, { folder, lock }: PagePlace): Promise<ServedPage | null> {
  const runner = await readRunner(lock, world.platform)
  if (runner === null) return null
  const read = await readBoundedText(addressFile(folder), MOST_ADDRESS)
  if (read === 'missing' || 'problem' in read) return null
  try {
    const { address, names } = JSON.parse(read.text) as { address: unknown; names: unknown }
    if (typeof address !== 'string' || !Array.isArray(names)) return null
    return { address, names: names.filter(each => typeof each === 'string'), pid: runner.pid }
  } catch {
    return null
  }
}

/**
 * Returns the page, and starts a process for it if there is none. That process outlives this one, and ends after an hour
 * without use. Throws a `UserError` with its output if it does not start.
 */
export async function havePageServed(world: PageWorld): Promise<ServedPage> {
  const place = await placeOfPage(world)
  const served = await servedPage(world, place)
  if (served !== null) return served
  await removeOldLogs(place.folder)
  const log = join(place.folder, `server-${randomUUID()}.log`)
  const command = [...world.own.command, 'web', '--until-idle']
  const env = { ...world.env, [DETACHED_VARIABLE]: log }
  const { clock, cwd: directory, signal } = world
  const { start } = await startDetached({ command, directory, env, input: null, log, clock }, START_MS, signal)
  const now = await servedPage(world, place)
  if (now !== null) return now
  const { text, code } = readShownError(await readFile(log, 'utf8').catch(() => ''))
  const why = text || `it ${start.kind === 'slow' ? 'takes too long' : 'ended'}`
  throw new UserError(code ?? 'CM0803', `The page could not be served: ${oneLine(why, MOST_SAID)}`, {
    hint: 'codemachine web serves it here.',
  })
}

/** Ends the process that serves the page; false: there is none. Throws a `UserError` if it does not end in time. */
export async function endPage(world: World): Promise<boolean> {
  const place = await placeOfPage(world)
  const runner = await readRunner(place.lock, world.platform)
  if (runner === null) return false
  try {
    kill(runner.pid, 'SIGTERM')
  } catch (error) {
    if (systemErrorCode(error) !== 'ESRCH') throw error
  }
  const end = world.clock.monotonic() + END_MS
  while ((await readRunner(place.lock, world.platform)) !== null) {
    if (world.clock.monotonic() > end)
      throw new UserError('CM0803', `The page is still served, by process ${runner.pid}.`)
    await world.clock.wait(LOOK_MS, world.signal)
    if (world.signal.aborted) return true
  }
  return true
}

/** Returns the address for devices: another name if it has one. */
export function addressOfPage({ address, names: [name] }: Where): string {
  return name === undefined ? address : `https://${name}/`
}

/** Returns a link to a served page that one device can open once. `by`: the device that makes it; null: a terminal. */
export async function linkToPage(access: Access, page: Where, right: Right, by: string | null = null): Promise<string> {
  // In the fragment, which browsers send to no server.
  return `${addressOfPage(page)}#t=${await access.newLink(right, by)}`
}

/** Message with a link that no other device can open. */
export const ONLY_HERE =
  'Only this machine can open that address. For a phone: codemachine web --name, or --host with --cert and --key (docs/guides/phone.md).'

/** Returns whether another device can open a link to it. */
export function isReachedFromElsewhere({ address, names }: ServedPage): boolean {
  return names.length > 0 || !/^https?:\/\/(127\.|localhost|\[::1\])/.test(address)
}

function addressFile(folder: string): string {
  return join(folder, 'address.json')
}

async function removeOldLogs(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (/^server-[\w-]+\.log(\.in)?$/.test(name)) await rm(join(folder, name), { force: true })
  }
}
