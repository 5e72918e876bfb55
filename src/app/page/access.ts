import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmod, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import { readBoundedText, writeWholeFile } from '../../platform/files.ts'

/** What a device may do: see everything, or answer, tell, start and stop too. */
export type Right = 'look' | 'steer'

/** A browser or program that has a key. Times: ISO 8601 in UTC. */
export interface Device {
  id: string
  /** What a person calls it. */
  name: string
  right: Right
  createdAt: string
  /** To a minute. */
  lastSeenAt: string
}

/** What is given to a device once: `key` is what it sends as `Authorization: Bearer`, and is kept nowhere here. */
export interface NewDevice {
  device: Device
  key: string
}

interface AccessOptions {
  /** The folder of the page in the records; absolute. */
  folder: string
  clock: Pick<Clock, 'now'>
  platform: NodeJS.Platform
}

const BYTES = 32
const MOST_BYTES = 16 * 1024
const MOST_NAME = 80
/** How long a link can be opened, ms. */
const LINK_MS = 60 * 60_000
const SEEN_MS = 60_000
const HEX = /^[0-9a-f]{64}$/
const DEVICE = /^[0-9a-f]{16}$/
const KEY = /^([0-9a-f]{16})\.([A-Za-z0-9_-]{43})$/

const rightSchema = v.picklist(['look', 'steer'])
const linkSchema = v.object({
  right: rightSchema,
  until: v.pipe(v.string(), v.isoTimestamp()),
  /** The id of the device that has made it; not there: a terminal has, or an earlier version. */
  by: v.exactOptional(v.pipe(v.string(), v.regex(DEVICE))),
})
const deviceSchema = v.object({
  name: v.string(),
  right: rightSchema,
  hash: v.pipe(v.string(), v.regex(HEX)),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
})

/**
 * Who may open the page: one-time links, and the devices that have come by one. Everything is a file of its own, so that any
 * number of processes of the person may make links and end devices while the page is served; in the files are hashes of 256-bit values
 * and nothing that opens anything.
 *
 *     links/<SHA-256 of the token>.json   one that nobody has opened yet; renamed by whoever takes it, so that one alone does
 *     devices/<id>.json                   a device; when it was seen last is the file's time
 */
export class Access {
  readonly #options: AccessOptions

  constructor(options: AccessOptions) {
    this.#options = options
  }

  /** Makes its folder, for this user only. */
  async open(): Promise<void> {
    await this.#makePrivate(this.#options.folder)
  }

  /**
   * Makes a link that one device can open within an hour; resolves with its token.
   * @param by the id of the device that makes it, without which it opens nothing; null: a person at a terminal does
   */
  async newLink(right: Right, by: string | null = null): Promise<string> {
    const token = randomBytes(BYTES).toString('base64url')
    const until = new Date(this.#options.clock.now() + LINK_MS).toISOString()
    await this.#removeLinks(link => !this.#isInTime(link))
    const link: Link = { right, until, ...(by === null ? {} : { by }) }
    await this.#write('links', hashOf(token), link)
    return token
  }

  /** Opens a link; null: it is none, was opened before, is too old, or the device that has made it was ended. */
  async openLink(token: string, name: string): Promise<NewDevice | null> {
    if (token.length > 200) return null
    const link = await this.#takeLink(hashOf(token))
    return link === null ? null : await this.add(name, link.right)
  }

  /** Gives a new device a key. */
  async add(name: string, right: Right): Promise<NewDevice> {
    const id = randomBytes(8).toString('hex')
    const secret = randomBytes(BYTES).toString('base64url')
    const createdAt = new Date(this.#options.clock.now()).toISOString()
    const kept = { name: name.toWellFormed().slice(0, MOST_NAME), right, hash: hashOf(secret), createdAt }
    await this.#write('devices', id, kept satisfies v.InferOutput<typeof deviceSchema>)
    const { hash: _, ...device } = kept
    return { device: { id, ...device, lastSeenAt: createdAt }, key: `${id}.${secret}` }
  }

  /** The device that a key is of; null: it is none, or was ended. */
  async deviceOf(key: string): Promise<Device | null> {
    const [, id = '', secret = ''] = KEY.exec(key) ?? []
    const kept = id === '' ? null : await readKept(this.#path('devices', id), deviceSchema)
    if (kept === null || !timingSafeEqual(Buffer.from(kept.hash), Buffer.from(hashOf(secret)))) return null
    return await this.#seen(id, kept)
  }

  /** Whether a device has not been ended. */
  async isThere(id: string): Promise<boolean> {
    return DEVICE.test(id) && (await readKept(this.#path('devices', id), deviceSchema)) !== null
  }

  /** All devices, the oldest first. */
  async devices(): Promise<Device[]> {
    const found: Device[] = []
    for (const id of await this.#names('devices')) {
      if (!DEVICE.test(id)) continue
      const path = this.#path('devices', id)
      const kept = await readKept(path, deviceSchema)
      if (kept === null) continue
      const { hash: _, ...device } = kept
      const at = (await stat(path).catch(() => null))?.mtime.toISOString() ?? kept.createdAt
      found.push({ id, ...device, lastSeenAt: at })
    }
    return found.sort((a, b) => a.createdAt.localeCompare(b.createdAt))
  }

  /** Ends a device: its key and the links that it has made open nothing any more. False: there is none of this id. */
  async end(id: string): Promise<boolean> {
    if (!DEVICE.test(id)) return false
    try {
      await rm(this.#path('devices', id))
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return false
      throw error
    }
    await this.#removeLinks(link => link.by === id)
    return true
  }

  /** Takes a link for oneself: of any number who try at once one alone gets it. */
  async #takeLink(hash: string): Promise<Link | null> {
    const path = this.#path('links', hash)
    const taken = `${path}.${randomBytes(8).toString('hex')}.taken`
    try {
      await rename(path, taken)
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return null
      throw error
    }
    const link = await readKept(taken, linkSchema)
    await rm(taken, { force: true })
    if (link === null || !this.#isInTime(link)) return null
    return link.by === undefined || (await this.isThere(link.by)) ? link : null
  }

  /** One that ends later than any link can has another clock than this one. */
  #isInTime({ until }: { until: string }): boolean {
    const left = Date.parse(until) - this.#options.clock.now()
    return left > 0 && left <= LINK_MS
  }

  /** Removes those that match, and what is none. */
  async #removeLinks(matches: (link: Link) => boolean): Promise<void> {
    for (const hash of await this.#names('links')) {
      const path = this.#path('links', hash)
      const link = await readKept(path, linkSchema)
      if (link === null || matches(link)) await rm(path, { force: true })
    }
  }

  async #seen(id: string, kept: v.InferOutput<typeof deviceSchema>): Promise<Device> {
    const path = this.#path('devices', id)
    const now = new Date(this.#options.clock.now())
    const before = (await stat(path).catch(() => null))?.mtimeMs ?? 0
    // A device that is ended in this moment is not made again.
    if (Math.abs(now.getTime() - before) > SEEN_MS) await utimes(path, now, now).catch(() => {})
    const { hash: _, ...device } = kept
    return { id, ...device, lastSeenAt: now.toISOString() }
  }

  async #names(kind: Kind): Promise<string[]> {
    try {
      const names = await readdir(join(this.#options.folder, kind))
      return names.filter(name => name.endsWith('.json')).map(name => name.slice(0, -'.json'.length))
    } catch (error) {
      if (systemErrorCode(error) === 'ENOENT') return []
      throw error
    }
  }

  #path(kind: Kind, name: string): string {
    return join(this.#options.folder, kind, `${name}.json`)
  }

  async #write(kind: Kind, name: string, content: object): Promise<void> {
    await this.open()
    await this.#makePrivate(join(this.#options.folder, kind))
    await writeWholeFile(this.#path(kind, name), `${JSON.stringify(content)}\n`)
  }

  async #makePrivate(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (this.#options.platform !== 'win32') await chmod(folder, 0o700)
  }
}

type Kind = 'links' | 'devices'
type Link = v.InferOutput<typeof linkSchema>

/** A file of the page in the records, of that shape; null: it is not there, or is none. */
export async function readKept<T>(path: string, schema: v.GenericSchema<unknown, T>): Promise<T | null> {
  const read = await readBoundedText(path, MOST_BYTES)
  if (read === 'missing' || 'problem' in read) return null
  try {
    const { success, output } = v.safeParse(schema, JSON.parse(read.text))
    return success ? output : null
  } catch {
    return null
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}
