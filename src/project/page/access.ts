import { createHmac, createPublicKey, randomBytes, timingSafeEqual, verify } from 'node:crypto'
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { Clock } from '../../base/clock.ts'
import { systemErrorCode } from '../../base/errors.ts'
import { makePrivateFolder, readBoundedText, sha256Of, writeWholeFile } from '../../platform/files.ts'

/** Rights of a device: see everything (`look`), or also answer, tell, start and stop (`steer`). */
export type Right = 'look' | 'steer'

/** A browser or program that has a key. Times: ISO 8601 in UTC. */
export interface Device {
  id: string
  /** The person's name for it. */
  name: string
  right: Right
  createdAt: string
  /** Accurate to a minute. */
  lastSeenAt: string
}

/**
 * Sent to a new device once. `key`: a program sends it as `Authorization: Bearer`, and no file here holds it. Null for a
 * browser, which signs in with its own key.
 */
export interface NewDevice {
  device: Device
  key: string | null
}

/** Identity of a browser that asks for access: the public half of its key, as SPKI in base64url, and the page's origin. */
export interface Shown {
  publicKey: string
  origin: string
}

/** A browser's proof of its identity. */
interface SignIn {
  /** Device id. */
  device: string
  challenge: string
  /** Signature of `signedText`: ECDSA over P-256 with SHA-256, 64 bytes in base64url. */
  signature: string
  /** Origin of the page in the browser. */
  origin: string
}

interface AccessOptions {
  /** Folder of the page in the records; absolute. */
  folder: string
  clock: Pick<Clock, 'now'>
  platform: NodeJS.Platform
}

const BYTES = 32
const MOST_BYTES = 16 * 1024
const MOST_NAME = 80
/** How long a link is valid, in ms. */
const LINK_MS = 60 * 60_000
const SEEN_MS = 60_000
/** How long a challenge is valid, in ms. */
const CHALLENGE_MS = 60_000
const MOST_SIGNED_IN = 1_000
const HEX = /^[0-9a-f]{64}$/
const DEVICE = /^[0-9a-f]{16}$/
const KEY = /^([0-9a-f]{16})\.([A-Za-z0-9_-]{43})$/

const rightSchema = v.picklist(['look', 'steer'])
const linkSchema = v.object({
  right: rightSchema,
  until: v.pipe(v.string(), v.isoTimestamp()),
  /** Id of the device that made it; missing: a terminal did, or an earlier version. */
  by: v.exactOptional(v.pipe(v.string(), v.regex(DEVICE))),
})
const deviceSchema = v.object({
  name: v.string(),
  right: rightSchema,
  /** Hash of a program's key, or the public half of a browser's: SPKI in base64url. */
  hash: v.exactOptional(v.pipe(v.string(), v.regex(HEX))),
  publicKey: v.exactOptional(v.pipe(v.string(), v.maxLength(200))),
  /** Origin under which the browser sent it. */
  origin: v.exactOptional(v.string()),
  createdAt: v.pipe(v.string(), v.isoTimestamp()),
})

/**
 * Access to the page: one-time links, and the devices that opened one. Each is its own file, so that any number of the
 * person's processes can create links and remove devices while the page is served. The files hold hashes of 256-bit values
 * and public keys, but nothing that opens the page. The session key of a browser is valid in this process only: a later owner
 * of its port receives nothing that opens the next page.
 *
 *     links/<SHA-256 of the token>.json   an unopened link; renamed to take it, so that only one attempt succeeds
 *     devices/<id>.json                   a device; the file's time is when it was last seen
 */
export class Access {
  readonly #options: AccessOptions
  /** Key for challenges, so that none needs to be stored. */
  readonly #challengeKey = randomBytes(BYTES)
  /** Signed challenges: each counts once. */
  readonly #signed = new Map<string, true>()
  /** Ids of the signed-in browsers, by the hash of their session key. */
  readonly #signedIn = new Map<string, string>()

  constructor(options: AccessOptions) {
    this.#options = options
  }

  /** Creates its folder, for this user only. */
  async open(): Promise<void> {
    await makePrivateFolder(this.#options.folder, this.#options.platform)
  }

  /**
   * Creates a link that one device can open within an hour; resolves with its token.
   * @param by id of the device that makes it, without which it is invalid; null: a person at a terminal
   */
  async newLink(right: Right, by: string | null = null): Promise<string> {
    const token = randomBytes(BYTES).toString('base64url')
    const until = new Date(this.#options.clock.now() + LINK_MS).toISOString()
    await this.#removeLinks(link => !this.#isInTime(link))
    const link: Link = { right, until, ...(by === null ? {} : { by }) }
    await this.#write('links', sha256Of(token), link)
    return token
  }

  /** Opens a link. Null: it is unknown, used or too old, or the device that made it was removed. */
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

  /** Admits a device. `shown`: a browser's identity, with its own key; null: a program, which gets a key. */
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

  /** Returns a text for one browser to sign once, within a minute. */
  challenge(): string {
    const until = this.#options.clock.now() + CHALLENGE_MS
    return this.#challengeOf(`${until}.${randomBytes(16).toString('base64url')}`)
  }

  #challengeOf(made: string): string {
    return `${made}.${createHmac('sha256', this.#challengeKey).update(made).digest('base64url')}`
  }

  /** Returns whether a challenge is valid: made here in the last minute, and not signed yet. */
  #isOpen(challenge: string): boolean {
    const made = challenge.slice(0, challenge.lastIndexOf('.'))
    const until = Number(made.split('.')[0])
    const left = until - this.#options.clock.now()
    return left > 0 && left <= CHALLENGE_MS && challenge === this.#challengeOf(made) && !this.#signed.has(challenge)
  }

  /**
   * Returns the key for a browser that signed a challenge, valid until this process ends. `late`: the challenge is not
   * valid; null: the device was removed, or the signature is not its own.
   */
  async signIn({ device: id, challenge, signature, origin }: SignIn): Promise<{ key: string } | 'late' | null> {
    if (!this.#isOpen(challenge)) return 'late'
    const kept = DEVICE.test(id) ? await readKept(this.#path('devices', id), deviceSchema) : null
    // A script on another origin may have been admitted there, and sign for this one.
    if (kept?.publicKey === undefined || kept.origin !== origin) return null
    if (!isSigned(kept.publicKey, signedText(origin, challenge), signature)) return null
    putBounded(this.#signed, challenge, true, MOST_SIGNED_IN)
    const key = randomBytes(BYTES).toString('base64url')
    putBounded(this.#signedIn, sha256Of(key), id, MOST_SIGNED_IN)
    return { key }
  }

  /** Returns the device of a key; null: unknown, or removed. */
  async deviceOf(key: string): Promise<Device | null> {
    const [, named = '', secret = ''] = KEY.exec(key) ?? []
    const signedIn = this.#signedIn.get(sha256Of(key))
    const id = signedIn ?? named
    const kept = id === '' ? null : await readKept(this.#path('devices', id), deviceSchema)
    if (kept === null) return null
    const isIts = signedIn !== undefined || isHashOf(kept.hash, secret)
    return isIts ? await this.#seen(id, kept) : null
  }

  /** Returns whether a device exists and was not removed. */
  async isThere(id: string): Promise<boolean> {
    return DEVICE.test(id) && (await readKept(this.#path('devices', id), deviceSchema)) !== null
  }

  /** Returns all devices, oldest first. */
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

  /** Removes a device: its key and the links that it made become invalid. False: unknown id. */
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

  /** Takes a link: of any number of simultaneous attempts only one succeeds. */
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

  /** An end later than any link's comes from a clock that differs from this one. */
  #isInTime({ until }: { until: string }): boolean {
    const left = Date.parse(until) - this.#options.clock.now()
    return left > 0 && left <= LINK_MS
  }

  /** Removes matching and unreadable links. */
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
    // Do not create a device again that is removed at this moment.
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
    await makePrivateFolder(join(this.#options.folder, kind), this.#options.platform)
    await writeWholeFile(this.#path(kind, name), `${JSON.stringify(content)}\n`)
  }
}

type Kind = 'links' | 'devices'
type Kept = v.InferOutput<typeof deviceSchema>
type Link = v.InferOutput<typeof linkSchema>

/** Reads a file of the page in the records with this schema; null: missing, or not of that shape. */
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

/** Returns the text that a browser signs. A signature for another origin, such as that of a relay, is invalid. */
export function signedText(origin: string, challenge: string): string {
  return `codemachine\n${origin}\n${challenge}`
}

/** Returns whether a text is the public half of a signing key. */
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

/** Adds an entry, and drops the oldest if there are too many. */
function putBounded<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  const [oldest] = map.keys()
  if (map.size >= most && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}

function isHashOf(hash: string | undefined, secret: string): boolean {
  return hash !== undefined && timingSafeEqual(Buffer.from(hash), Buffer.from(sha256Of(secret)))
}
