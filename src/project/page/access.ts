import { createHmac, createPublicKey, randomBytes, timingSafeEqual, verify } from 'node:crypto'
import { chmod, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import { readBoundedText, sha256Of, writeWholeFile } from '../../platform/files.ts'

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

/**
 * What is given to a device once. `key`: what a program sends as `Authorization: Bearer`, and is kept nowhere here; null of a browser,
 * which has a key of its own to sign in with.
 */
export interface NewDevice {
  device: Device
  key: string | null
}

/** What a browser shows as it is let in: the public half of its key, as SPKI in base64url, and the origin of the page. */
export interface Shown {
  publicKey: string
  origin: string
}

/** By what a browser shows who it is. */
interface SignIn {
  /** Its id. */
  device: string
  challenge: string
  /** Of `signedText`, by ECDSA over P-256 with SHA-256, as 64 bytes; in base64url. */
  signature: string
  /** The origin under which the browser sees the page. */
  origin: string
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
/** How long a challenge can be signed, ms. */
const CHALLENGE_MS = 60_000
const MOST_SIGNED_IN = 1_000
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
  /** Of a program's key, or the public half of a browser's: SPKI in base64url. */
  hash: v.exactOptional(v.pipe(v.string(), v.regex(HEX))),
  publicKey: v.exactOptional(v.pipe(v.string(), v.maxLength(200))),
  /** Under which the browser has shown it. */
  origin: v.exactOptional(v.string()),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
})

/**
 * Who may open the page: one-time links, and the devices that have come by one. Everything is a file of its own, so that any
 * number of processes of the person may make links and end devices while the page is served; in the files are hashes of 256-bit values,
 * public keys, and nothing that opens anything. What a browser sends once it has signed in counts in this process alone: whoever
 * has its port afterwards is sent nothing that opens the next one.
 *
 *     links/<SHA-256 of the token>.json   one that nobody has opened yet; renamed by whoever takes it, so that one alone does
 *     devices/<id>.json                   a device; when it was seen last is the file's time
 */
export class Access {
  readonly #options: AccessOptions
  /** What challenges are made with, so that however many are asked for none is kept. */
  readonly #challengeKey = randomBytes(BYTES)
  /** Those that were signed: each counts once. */
  readonly #signed = new Map<string, true>()
  /** By the hash of what they send, the ids of the browsers that have signed in. */
  readonly #signedIn = new Map<string, string>()

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
    await this.#write('links', sha256Of(token), link)
    return token
  }

  /** Opens a link; null: it is none, was opened before, is too old, or the device that has made it was ended. */
  async openLink(token: string, name: string, shown: Shown | null = null): Promise<NewDevice | null> {
    if (token.length > 200) return null
    const link = await this.#takeLink(sha256Of(token))
    return link === null ? null : await this.admit(name, link.right, shown)
  }

  /** Gives a program a key. */
  async add(name: string, right: Right): Promise<NewDevice & { key: string }> {
    const secret = randomBytes(BYTES).toString('base64url')
    const device = await this.#newDevice(name, right, { hash: sha256Of(secret) })
    return { device, key: `${device.id}.${secret}` }
  }

  /** Lets a device in. `shown`: what a browser shows, which has a key of its own; null: it is a program, and given one. */
  async admit(name: string, right: Right, shown: Shown | null): Promise<NewDevice> {
    if (shown === null) return await this.add(name, right)
    return { device: await this.#newDevice(name, right, shown), key: null }
  }

  async #newDevice(name: string, right: Right, proof: { hash: string } | Shown): Promise<Device> {
    const id = randomBytes(8).toString('hex')
    const createdAt = new Date(this.#options.clock.now()).toISOString()
    const device = { name: name.toWellFormed().slice(0, MOST_NAME), right, createdAt }
    await this.#write('devices', id, { ...device, ...proof } satisfies Kept)
    return { id, ...device, lastSeenAt: createdAt }
  }

  /** A text that one browser signs, once, within a minute. */
  challenge(): string {
    const until = this.#options.clock.now() + CHALLENGE_MS
    return this.#challengeOf(`${until}.${randomBytes(16).toString('base64url')}`)
  }

  #challengeOf(made: string): string {
    return `${made}.${createHmac('sha256', this.#challengeKey).update(made).digest('base64url')}`
  }

  /** Whether a challenge can be signed: it was made here, in the last minute, and was not signed yet. */
  #isOpen(challenge: string): boolean {
    const made = challenge.slice(0, challenge.lastIndexOf('.'))
    const until = Number(made.split('.')[0])
    const left = until - this.#options.clock.now()
    return left > 0 && left <= CHALLENGE_MS && challenge === this.#challengeOf(made) && !this.#signed.has(challenge)
  }

  /**
   * What a browser that has signed a challenge sends from then on, until this process ends; `late`: the challenge is none that can
   * be signed; null: the device was ended, or is another one.
   */
  async signIn({ device: id, challenge, signature, origin }: SignIn): Promise<{ key: string } | 'late' | null> {
    if (!this.#isOpen(challenge)) return 'late'
    const kept = DEVICE.test(id) ? await readKept(this.#path('devices', id), deviceSchema) : null
    // A script of another address may have been let in there, and sign for this one.
    if (kept?.publicKey === undefined || kept.origin !== origin) return null
    if (!isSigned(kept.publicKey, signedText(origin, challenge), signature)) return null
    putBounded(this.#signed, challenge, true, MOST_SIGNED_IN)
    const key = randomBytes(BYTES).toString('base64url')
    putBounded(this.#signedIn, sha256Of(key), id, MOST_SIGNED_IN)
    return { key }
  }

  /** The device that a key is of; null: it is none, or was ended. */
  async deviceOf(key: string): Promise<Device | null> {
    const [, named = '', secret = ''] = KEY.exec(key) ?? []
    const signedIn = this.#signedIn.get(sha256Of(key))
    const id = signedIn ?? named
    const kept = id === '' ? null : await readKept(this.#path('devices', id), deviceSchema)
    if (kept === null) return null
    const isIts = signedIn !== undefined || isHashOf(kept.hash, secret)
    return isIts ? await this.#seen(id, kept) : null
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
      const { hash: _, publicKey: __, origin: ___, ...device } = kept
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

  async #seen(id: string, kept: Kept): Promise<Device> {
    const path = this.#path('devices', id)
    const now = new Date(this.#options.clock.now())
    const before = (await stat(path).catch(() => null))?.mtimeMs ?? 0
    // A device that is ended in this moment is not made again.
    if (Math.abs(now.getTime() - before) > SEEN_MS) await utimes(path, now, now).catch(() => {})
    const { hash: _, publicKey: __, origin: ___, ...device } = kept
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
type Kept = v.InferOutput<typeof deviceSchema>
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

/** What a browser signs: for another origin than its own, such as that of who passes on what it sends, it opens nothing. */
export function signedText(origin: string, challenge: string): string {
  return `codemachine\n${origin}\n${challenge}`
}

/** Whether that is the public half of a key that a browser signs with. */
export function isPublicKey(text: string): boolean {
  return publicKeyOf(text) !== null
}

function publicKeyOf(text: string) {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64url'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null
  } catch {
    return null
  }
}

function isSigned(publicKey: string, text: string, signature: string): boolean {
  const key = publicKeyOf(publicKey)
  if (key === null) return false
  return verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))
}

/** Puts one in, and drops the oldest of too many. */
function putBounded<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  const [oldest] = map.keys()
  if (map.size >= most && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}

function isHashOf(hash: string | undefined, secret: string): boolean {
  return hash !== undefined && timingSafeEqual(Buffer.from(hash), Buffer.from(sha256Of(secret)))
}
