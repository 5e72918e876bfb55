import { createECDH, createPrivateKey, randomBytes, sign } from 'node:crypto'
import { lookup } from 'node:dns'
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { type IncomingMessage, type RequestOptions, request as requestInClear } from 'node:http'
import { request } from 'node:https'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { join } from 'node:path'
import { Hono } from 'hono'
import * as v from 'valibot'
import { messageOf, UserError } from '../../base/errors.ts'
import { makePrivateFolder, writeWholeFile } from '../../platform/files.ts'
import { type Access, readKept } from '../../project/page/access.ts'
import type { SessionCard } from '../../project/watch/cards.ts'
import type { World } from '../../project/world.ts'
import type { WebEnv } from './guard.ts'
import { bodyOf } from './requests.ts'

/** What reaches a device by way of its browser's maker: no word of the project. `path`: what a tap opens. */
interface PushMessage {
  /** What it is about, which its text is chosen by: `question`, `decision`, `needs-person` or `ended`. */
  kind: 'question' | 'decision' | 'needs-person' | 'ended'
  path: string
}

interface PushOptions {
  /** The folder of the page in the records; absolute. */
  folder: string
  world: Pick<World, 'clock' | 'platform'>
  access: Pick<Access, 'isThere'>
  /** Whether the service may be on this machine, and without TLS: for tests, which reach no other one. */
  allowsLoopback: boolean
  /** Ends what is being sent. */
  signal: AbortSignal
  onProblem(problem: string): void
}

/** How long one device may take for one message, with looking up where it is reached, ms. */
const SEND_MS = 30_000
/** How long the browser's maker keeps one for a device that is away, s. */
const KEPT_S = 12 * 3_600
/** The service wants to be told who sends; nobody reads there. */
const SENDER = 'https://codemachine.invalid'

const base64url = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,200}=*$/))
const subscriptionSchema = v.object({
  endpoint: v.pipe(v.string(), v.maxLength(2_000), v.url()),
  keys: v.object({ p256dh: base64url, auth: base64url }),
})
const onSchema = v.strictObject({ subscription: subscriptionSchema })
const nothing = v.strictObject({})
const keysSchema = v.object({ publicKey: base64url, privateKey: base64url })

type SigningKeys = v.InferOutput<typeof keysSchema>
type Subscription = v.InferOutput<typeof subscriptionSchema>

/**
 * Notifications by Web Push, to the devices that have switched them on.
 *
 *     push/keys.json      what this machine signs with (VAPID)
 *     push/<device>.json  where a device is reached, and the keys that only its browser can read with
 */
export class Push {
  readonly #options: PushOptions
  #keys: Promise<SigningKeys> | null = null
  /** What is being sent to each device, one after the other. */
  readonly #sending = new Map<string, Promise<void>>()

  constructor(options: PushOptions) {
    this.#options = options
  }

  /** What a browser subscribes with; it is made when it is wanted first. */
  async publicKey(): Promise<string> {
    return (await this.#signingKeys()).publicKey
  }

  async switchOn(device: string, subscription: Subscription): Promise<void> {
    if (!this.#mayReach(new URL(subscription.endpoint)))
      throw new UserError('CM0812', 'Notifications need an https address of a push service.')
    await this.#write(device, subscription)
  }

  async switchOff(device: string): Promise<void> {
    await rm(this.#path(device), { force: true })
  }

  /**
   * Sends one to all devices that want them, to each at its own pace; those that are ended, or whose browser has forgotten it, are
   * let go.
   */
  async send(message: PushMessage): Promise<void> {
    const devices = await this.#devices()
    await Promise.all(devices.map(device => this.#inTurn(device, () => this.#sendTo(device, message))))
  }

  async #inTurn(device: string, send: () => Promise<void>): Promise<void> {
    const sent = (this.#sending.get(device) ?? Promise.resolve()).then(send)
    this.#sending.set(device, sent)
    await sent
    if (this.#sending.get(device) === sent) this.#sending.delete(device)
  }

  async #sendTo(device: string, message: PushMessage): Promise<void> {
    try {
      const subscription = await readKept(this.#path(device), subscriptionSchema)
      if (subscription === null) return
      if (!(await this.#options.access.isThere(device))) return await this.switchOff(device)
      const status = await this.#post(subscription, message)
      if (status === 404 || status === 410) await this.switchOff(device)
      else if (status < 200 || status > 299) this.#problem(`the service answered ${status}.`)
    } catch (error) {
      this.#problem(messageOf(error))
    }
  }

  /** Resolves with the status that is answered; a redirection is followed nowhere. */
  async #post({ endpoint, keys }: Subscription, message: PushMessage): Promise<number> {
    const url = new URL(endpoint)
    // What an earlier version has kept was looked at by its rules.
    if (!this.#mayReach(url)) throw new Error('its push service is not on the internet.')
    const { encrypt } = (await import('http_ece')).default
    const own = createECDH('prime256v1')
    own.generateKeys()
    const salt = randomBytes(16).toString('base64url')
    const secrets = { dh: keys.p256dh, privateKey: own, salt, authSecret: keys.auth }
    const body = encrypt(Buffer.from(JSON.stringify(message)), { version: 'aes128gcm', ...secrets })
    const { world, allowsLoopback, signal } = this.#options
    const options: RequestOptions = {
      method: 'POST',
      headers: {
        authorization: authorization(await this.#signingKeys(), url.origin, world.clock.now()),
        'content-encoding': 'aes128gcm',
        'content-length': body.length,
        'content-type': 'application/octet-stream',
        ttl: KEPT_S,
        urgency: 'high',
      },
      agent: false,
      signal: AbortSignal.any([signal, AbortSignal.timeout(SEND_MS)]),
      ...(allowsLoopback ? {} : { lookup: lookupOnInternet }),
    }
    const sent = url.protocol === 'https:' ? request(url, options) : requestInClear(url, options)
    sent.end(body)
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    // What else it says is read by nobody.
    sent.on('error', () => {})
    answer.on('error', () => {}).destroy()
    return answer.statusCode ?? 0
  }

  /** Whether a device may name it: it makes this process send requests. Names are looked up when something is sent. */
  #mayReach({ protocol, hostname, username }: URL): boolean {
    const address = hostname.replace(/^\[|\]$/g, '')
    if (this.#options.allowsLoopback && ['127.0.0.1', 'localhost', '::1'].includes(address)) return true
    return protocol === 'https:' && username === '' && !(isIP(address) > 0 && isInternal(address))
  }

  #problem(problem: string): void {
    if (!this.#options.signal.aborted) this.#options.onProblem(`Could not send a notification: ${problem}`)
  }

  async #signingKeys(): Promise<SigningKeys> {
    this.#keys ??= (async () => {
      const known = await readKept(this.#path('keys'), keysSchema)
      if (known !== null) return known
      const pair = createECDH('prime256v1')
      const publicKey = pair.generateKeys().toString('base64url')
      const made = { publicKey, privateKey: pair.getPrivateKey().toString('base64url') }
      await this.#write('keys', made)
      return made
    })()
    return await this.#keys
  }

  async #devices(): Promise<string[]> {
    const names = await readdir(join(this.#options.folder, 'push')).catch(() => [])
    return names.flatMap(each => /^([0-9a-f]{16})\.json$/.exec(each)?.[1] ?? [])
  }

  #path(name: string): string {
    return join(this.#options.folder, 'push', `${name}.json`)
  }

  async #write(name: string, content: object): Promise<void> {
    const folder = join(this.#options.folder, 'push')
    await makePrivateFolder(folder, this.#options.world.platform)
    await writeWholeFile(this.#path(name), `${JSON.stringify(content)}\n`)
  }
}

/** Addresses of this machine, of its networks, and of nothing that is one machine. */
const INTERNAL = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  INTERNAL.addSubnet(net, bits, 'ipv4')
// Also those that carry one of IPv4 inside: `::`, `64:ff9b:1::` and `2002::`. Node itself looks into `::ffff:`.
for (const [net, bits] of [
  ['::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 9],
  ['ff00::', 8],
] as const)
  INTERNAL.addSubnet(net, bits, 'ipv6')

function isInternal(address: string): boolean {
  return INTERNAL.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Looks up a name for a connection, which then goes to what was found here and looked at; fails if anything of it is internal. */
const lookupOnInternet: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, found) => {
    const [first] = found ?? []
    if (error !== null || first === undefined) callback(error ?? new Error(`${hostname} has no network address.`), '')
    else if (found.some(({ address }) => isInternal(address)))
      callback(new Error(`${hostname} belongs to this machine or its networks.`), '')
    else if (options.all) callback(null, found)
    else callback(null, first.address, first.family)
  })
}

/** Who sends, for the service of the browser (RFC 8292): signed for that service, and for half a day. */
function authorization({ publicKey, privateKey }: SigningKeys, audience: string, now: number): string {
  const point = Buffer.from(publicKey, 'base64url')
  const x = point.subarray(1, 33).toString('base64url')
  const y = point.subarray(33).toString('base64url')
  const key = createPrivateKey({ key: { kty: 'EC', crv: 'P-256', x, y, d: privateKey }, format: 'jwk' })
  const parts = [
    { typ: 'JWT', alg: 'ES256' },
    { aud: audience, exp: Math.floor(now / 1000) + KEPT_S, sub: SENDER },
  ].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signature = sign('sha256', Buffer.from(parts.join('.')), { key, dsaEncoding: 'ieee-p1363' })
  return `vapid t=${parts.join('.')}.${signature.toString('base64url')}, k=${publicKey}`
}

/** What a person is told of a session, each under a name of its own: what was not there before is news. */
function newsOf({ row, report, questions }: SessionCard): Map<string, PushMessage> {
  const path = `#/s/${row.key}`
  const news = new Map<string, PushMessage>()
  for (const { question } of questions)
    news.set(`${row.key} ${question}`, { kind: 'question', path: `${path}?q=${question}` })
  const decision = report?.decision ?? null
  if (decision !== null)
    news.set(`${row.key} decision ${decision.id}`, { kind: 'decision', path: `${path}?q=decision` })
  if (row.outcome !== null && row.call === null) {
    const kind = row.outcome.kind === 'needs-person' ? 'needs-person' : 'ended'
    news.set(`${row.key} ${row.outcome.kind}`, { kind, path })
  }
  return news
}

/** Tells of what is new in the sessions; of what is there when it is looked at first nothing is told. */
export class NewsTeller {
  readonly #send: (message: PushMessage) => Promise<void>
  #known: Set<string> | null = null
  #last: Promise<unknown> = Promise.resolve()

  constructor(send: (message: PushMessage) => Promise<void>) {
    this.#send = send
  }

  /** @param cards all sessions, once they have all been read */
  look(cards: readonly SessionCard[]): void {
    const all = new Map(cards.flatMap(card => [...newsOf(card)]))
    const known = this.#known
    this.#known = new Set(all.keys())
    if (known === null) return
    for (const [key, message] of all) {
      if (!known.has(key)) this.#last = Promise.allSettled([this.#last, this.#send(message)])
    }
  }

  /** Settles when all of it has been sent. */
  async done(): Promise<void> {
    await this.#last
  }
}

/** The ways of notifications: any device may switch its own on and off. */
export function pushRoutes(push: Push): Hono<WebEnv> {
  const routes = new Hono<WebEnv>()
  routes.post('/push/on', async c => {
    const { subscription } = await bodyOf(c, onSchema)
    await push.switchOn(c.get('device').id, subscription)
    return c.json({ on: true })
  })
  routes.post('/push/off', async c => {
    await bodyOf(c, nothing)
    await push.switchOff(c.get('device').id)
    return c.json({ on: false })
  })
  return routes
}
