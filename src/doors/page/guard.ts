import type { HttpBindings } from '@hono/node-server'
import type { Context, MiddlewareHandler } from 'hono'
import type { Access, Device } from '../../project/page/access.ts'

/** What each request brings with it. `device`: who has sent it, once that is known. */
export interface WebEnv {
  Bindings: HttpBindings
  Variables: { device: Device }
}

interface GuardOptions {
  access: Access
  /** Values of `Host` by which the page is reached, in lower case, with their ports: `127.0.0.1:3000`. */
  hosts(): ReadonlySet<string>
}

/** Ways that need no key: those by which a device gets one. They carry a secret of their own. */
const WITHOUT_KEY: ReadonlySet<string> = new Set(['/api/enter', '/api/pair', '/api/challenge', '/api/sign-in'])
/** What a device that may only look changes of itself. */
const ITS_OWN: ReadonlySet<string> = new Set(['/api/push/on', '/api/push/off'])
/** What every write carries: a form or a page of elsewhere cannot send it without asking first, which is never granted. */
const WRITE_HEADER = 'x-codemachine'

/**
 * Lets through only what comes from the page itself, by the name that it is served under (against DNS rebinding), and what a
 * program sends that has a key. There are no cookies: a browser would send them to every other server of this host as well.
 */
export function guard({ access, hosts }: GuardOptions): MiddlewareHandler<WebEnv> {
  return async (c, next) => {
    const refusal = refusalOfRequest(c, hosts())
    if (refusal !== null) return c.json({ problem: refusal.problem }, refusal.status)
    if (!needsKey(c.req.path)) return await next()
    const [, key = ''] = /^Bearer ([\w.-]{1,200})$/.exec(c.req.header('authorization') ?? '') ?? []
    const device = key === '' ? null : await access.deviceOf(key)
    if (device === null) return c.json({ problem: 'This device has no key, or was removed.' }, 401)
    if (c.req.method === 'POST' && device.right !== 'steer' && !ITS_OWN.has(c.req.path))
      return c.json({ problem: 'This device is view only.' }, 403)
    c.set('device', device)
    return await next()
  }
}

interface Refusal {
  status: 403 | 405 | 415
  problem: string
}

/** Why a request is not taken, whoever sends it; null if it is. */
function refusalOfRequest(c: Context<WebEnv>, hosts: ReadonlySet<string>): Refusal | null {
  const problem = problemOfOrigin(c, hosts)
  if (problem !== null) return { status: 403, problem }
  const { method } = c.req
  if (method === 'GET') return null
  if (!isOfApi(c)) return method === 'HEAD' ? null : { status: 405, problem: 'This path is read-only.' }
  if (method !== 'POST') return { status: 405, problem: 'Use GET or POST.' }
  return isJson(c) ? null : { status: 415, problem: `Send JSON, with the header ${WRITE_HEADER}.` }
}

/** Whether only a device that is in may ask for that path. */
export function needsKey(path: string): boolean {
  return path.startsWith('/api/') && !WITHOUT_KEY.has(path)
}

function isOfApi(c: Context<WebEnv>): boolean {
  return c.req.path.startsWith('/api/')
}

/** Why a request is not from the page or a program of the person's, a sentence; null if it may be. */
function problemOfOrigin(c: Context<WebEnv>, hosts: ReadonlySet<string>): string | null {
  const host = hostOf(c)
  if (!hosts.has(host)) return 'The page is not served under this name. --name adds a name.'
  const origin = c.req.header('origin')
  const mayBeClear = isOfThisMachine(host) && !isEncrypted(c)
  // Under another name a proxy is in between, and what the page was opened by is what it has to the browser.
  const isClear = origin === undefined ? c.req.method === 'POST' && !isEncrypted(c) : origin === `http://${host}`
  if (isClear && !mayBeClear) return 'Under this name, open the page by https.'
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
    return 'This request comes from another origin.'
  const site = c.req.header('sec-fetch-site')
  if (site === undefined || site === 'same-origin') return null
  const isOpened = c.req.header('sec-fetch-mode') === 'navigate' && c.req.header('sec-fetch-dest') === 'document'
  // A link that is followed shows the page, which says nothing by itself.
  if (isOpened && !c.req.path.startsWith('/api/')) return null
  return 'This request comes from another page.'
}

/**
 * Whether nobody between the device and this process can read what is sent: it is encrypted, does not leave this machine, or comes
 * from a page that was opened by https, which a proxy of this machine has decrypted.
 */
export function isPrivate(c: Context<WebEnv>): boolean {
  if (isEncrypted(c)) return true
  if (!/^(127\.|::1$|::ffff:127\.)/.test(c.env.incoming.socket.remoteAddress ?? '')) return false
  if (c.req.header('origin') === `https://${hostOf(c)}`) return true
  // A proxy of this machine comes from there, too, and says for whom: that it encrypts is not known.
  return isOfThisMachine(hostOf(c)) && c.req.header('x-forwarded-for') === undefined
}

function isEncrypted(c: Context<WebEnv>): boolean {
  const { socket } = c.env.incoming
  return 'encrypted' in socket && socket.encrypted === true
}

function hostOf(c: Context<WebEnv>): string {
  return (c.req.header('host') ?? '').toLowerCase()
}

/** Whether a `Host` is a name of the machine that the browser runs on. */
function isOfThisMachine(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/.test(host)
}

function isJson(c: Context<WebEnv>): boolean {
  const type = c.req.header('content-type') ?? ''
  return /^application\/json(;|$)/i.test(type) && c.req.header(WRITE_HEADER) !== undefined
}

/** What a report carries, which is a file with styles of its own: it can load, run and send nothing, and is of no origin. */
export const REPORT_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-popups",
  'x-frame-options': 'SAMEORIGIN',
}

/** What every answer carries. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
