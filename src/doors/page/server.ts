import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { extname, join, relative, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { messageOf, systemErrorCode, UserError } from '../../base/errors.ts'
import { formatBytes } from '../../base/text.ts'
import type { Access } from '../../project/page/access.ts'
import { guard, needsKey, REPORT_HEADERS, SAFE_HEADERS, type WebEnv } from './guard.ts'

/** How the page is served. */
export interface WebOptions {
  access: Access
  /** The folder of the built page; absolute. */
  page: string
  /** What answers below `/api`. */
  api: Hono<WebEnv>
  /** The report of that name, HTML, which is there no more then; null: there is none. */
  takeReport(ticket: string): string | null
  /** An address of this machine: `127.0.0.1`. Another one than loopback wants `tls`. */
  host: string
  /** The port; 0: a free one. `isExact`: no other one is in use where it is in use. */
  port: number
  isExact: boolean
  /** Other names under which a proxy on this machine reaches it, such as `mac.tailnet.ts.net`. */
  names: readonly string[]
  /** Certificate and key, PEM; null: plain HTTP. */
  tls: { cert: string; key: string } | null
  /** Told what a request has failed with. */
  onFailure(error: unknown): void
}

/** The page while it is served. Disposing of it ends every connection. */
export interface WebServer extends AsyncDisposable {
  readonly port: number
  /** Where it is: `http://127.0.0.1:3000/`. */
  readonly address: string
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost'])
/** Where reports are fetched from, each under a name of its own. */
const REPORTS = '/report/'
/** How many ports are tried from the one that is wanted on. */
const MOST_PORTS = 20
/** Of a request, bytes: the longest prompt fits. */
const MOST_BODY = 8 * 1024 * 1024
/** The same of one that needs no key: a token or a code, and a name. */
const MOST_BODY_WITHOUT_KEY = 4 * 1024
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
const MOST_CONNECTIONS = 500

/** Serves the page; a `UserError` if the port is in use or the address is none of this machine's. */
export async function serveWeb(options: WebOptions): Promise<WebServer> {
  const { host, tls, names, access, api, takeReport, onFailure } = options
  if (!LOOPBACK.has(host) && tls === null) {
    throw new UserError(
      'CM0802',
      `On ${host}, other people can read the traffic of the page. Encrypt it: give a certificate with --cert and --key.`,
      {
        hint: 'Or serve on this machine only, and connect with ssh -L 3000:127.0.0.1:3000, or tailscale serve 3000.',
      },
    )
  }
  const hosts = new Set<string>()
  const elsewhere = new Set<string>()
  const app = new Hono<WebEnv>()
  app.use(async (c, next) => {
    await next()
    const headers = c.req.path.startsWith(REPORTS) ? { ...SAFE_HEADERS, ...REPORT_HEADERS } : SAFE_HEADERS
    for (const [name, value] of Object.entries(headers)) c.res.headers.set(name, value)
  })
  app.use(guard({ access, hosts: () => hosts }))
  const [anybodys, devices] = [atMost(MOST_BODY_WITHOUT_KEY), atMost(MOST_BODY)]
  app.use((c, next) => (needsKey(c.req.path) ? devices : anybodys)(c, next))
  app.use('/api/*', async (c, next) => {
    await next()
    c.res.headers.set('cache-control', 'no-store')
  })
  app.route('/api', api)
  app.get(`${REPORTS}:ticket`, c => {
    const html = takeReport(c.req.param('ticket'))
    if (html === null) return c.text('This report was opened already. Open it from the page again.\n', 404)
    return c.html(html, 200, { 'cache-control': 'no-store' })
  })
  app.all('/api/*', c => c.json({ problem: 'Not found.' }, 404))
  const files = await pageFiles(options.page)
  app.get('*', c => {
    const page = files.get('/')
    const file = files.get(c.req.path) ?? (c.req.path.includes('.') ? undefined : page)
    if (file === undefined) return c.text('Not found.\n', 404)
    // A browser that is let in by one name of this machine is a stranger by another.
    if (file === page && elsewhere.has(c.req.header('host')?.toLowerCase() ?? ''))
      return c.redirect(`${addressOf(options, port)}${c.req.path.slice(1)}`)
    const isZipped = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '')
    return c.body(Uint8Array.from(isZipped ? file.zipped : file.bytes), 200, {
      'content-type': file.type,
      // The names of parts change with what is in them.
      'cache-control': file.isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache',
      ...(isZipped ? { 'content-encoding': 'gzip', vary: 'accept-encoding' } : {}),
    })
  })
  app.onError((error, c) => {
    if (error instanceof UserError) return c.json({ problem: error.message, code: error.code, hint: error.hint }, 400)
    // Nobody waits for it any more.
    if (c.req.raw.signal.aborted) return new Response(null, { status: 499 })
    onFailure(error)
    return c.json({ problem: `That failed: ${messageOf(error)}` }, 500)
  })
  const limits = { headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS }
  const server = createAdaptorServer({
    fetch: app.fetch,
    ...(tls === null
      ? { createServer, serverOptions: limits }
      : { createServer: createTlsServer, serverOptions: { ...limits, ...tls } }),
  }) as Server
  server.maxConnections = MOST_CONNECTIONS
  const port = await listen(server, options)
  for (const each of [host, ...(LOOPBACK.has(host) ? LOOPBACK : [])]) {
    hosts.add(`${inUrl(each)}:${port}`)
    // Browsers leave out the port that a scheme has by itself.
    if (port === (tls === null ? 80 : 443)) hosts.add(inUrl(each))
  }
  for (const each of hosts) if (!each.startsWith(inUrl(host))) elsewhere.add(each)
  for (const name of names.map(each => each.toLowerCase())) if (!elsewhere.delete(name)) hosts.add(name)
  return {
    port,
    address: addressOf(options, port),
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
      if (server.listening) await once(server, 'close')
    },
  }
}

function addressOf({ host, tls }: WebOptions, port: number): string {
  return `${tls === null ? 'http' : 'https'}://${inUrl(host)}:${port}/`
}

/** Refuses a request that is longer, before it has been read to its end. */
function atMost(bytes: number) {
  return bodyLimit({
    maxSize: bytes,
    onError: c => c.json({ problem: `This has at most ${formatBytes(bytes)}.` }, 413),
  })
}

/** Listens on the port that is wanted, or on one of those behind it; answers which. */
async function listen(server: Server, { host, port, isExact }: WebOptions): Promise<number> {
  const last = isExact || port === 0 ? port : Math.min(65_535, port + MOST_PORTS - 1)
  for (let at = port; ; at += 1) {
    try {
      server.listen(at, host)
      await once(server, 'listening')
      const address = server.address()
      return typeof address === 'object' && address !== null ? address.port : at
    } catch (error) {
      if (systemErrorCode(error) !== 'EADDRINUSE') throw whyNotServed(error, host, at)
      if (at < last) continue
      const all = at === port ? '' : `, and so are the ports up to ${last}`
      throw new UserError('CM0801', `Port ${port} of ${host} is in use${all}.`, {
        hint: 'Choose another port with --port; 0 takes any free one.',
      })
    }
  }
}

/** What a person is told where an address or a port is none that can be served on. */
function whyNotServed(error: unknown, host: string, port: number): unknown {
  switch (systemErrorCode(error)) {
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new UserError('CM0801', `${host} is not an address of this machine.`, { hint: 'Give one with --host.' })
    case 'EACCES':
      return new UserError('CM0801', `You have no right to use port ${port} on this machine.`, {
        hint: 'Choose one above 1023 with --port.',
      })
    default:
      return error
  }
}

function inUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

interface PageFile {
  bytes: Buffer
  zipped: Buffer
  type: string
  isNamedByContent: boolean
}

/** The built page, file by file: nothing of a request ever becomes a path. */
async function pageFiles(folder: string): Promise<Map<string, PageFile>> {
  const files = new Map<string, PageFile>()
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    throw new UserError('CM0806', `The files of the page are missing in ${folder}: ${messageOf(error)}.`, {
      hint: 'Install codemachine again.',
    })
  })
  for (const each of found) {
    if (!each.isFile()) continue
    const path = join(each.parentPath, each.name)
    const name = `/${relative(folder, path).split(sep).join('/')}`
    const bytes = await readFile(path)
    files.set(name === '/index.html' ? '/' : name, {
      bytes,
      zipped: gzipSync(bytes),
      type: TYPES[extname(name)] ?? 'application/octet-stream',
      isNamedByContent: /-[A-Z0-9]{8}\.\w+$/.test(name),
    })
  }
  return files
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
}
