import { mkdir, writeFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { type ApiOptions, openApi } from '../../../src/doors/page/api.ts'
import { serveWeb, type WebOptions } from '../../../src/doors/page/server.ts'
import { Access } from '../../../src/project/page/access.ts'
import type { RealScene } from '../../support/real-scene.ts'
import { makePlace } from '../cli/place.ts'

/** What a device sends and is told, as the page does it. `by`: the key of another device. */
export function clientOf(address: string, key: string) {
  const url = (path: string) => `${address}api/${path}`
  return {
    async post(path: string, body: unknown, by = key) {
      const headers = { 'content-type': 'application/json', 'x-codemachine': '1', authorization: `Bearer ${by}` }
      const answer = await fetch(url(path), { method: 'POST', headers, body: JSON.stringify(body) })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    async get(path: string, by = key) {
      const answer = await fetch(url(path), { headers: { authorization: `Bearer ${by}` } })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    follow: (path: string, by = key) => follow(url(path), { headers: { authorization: `Bearer ${by}` } }),
    /** A command whose answer is a stream. */
    postStream: (path: string, body: unknown, by = key) =>
      follow(url(path), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-codemachine': '1', authorization: `Bearer ${by}` },
        body: JSON.stringify(body),
      }),
  }
}

/** What is sent. */
export interface Sent {
  headers?: Record<string, string>
  method?: string
  body?: string | Iterable<string> | undefined
}

/** A request with exactly these headers, as no browser and no `fetch` would let a test send it. */
export async function send(port: number, path: string, { headers = {}, method = 'GET', body }: Sent) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number
    headers: IncomingHttpHeaders
    text: string
  }>()
  const sent = request({ host: '127.0.0.1', port, path, method, headers, setHost: false }, async answer => {
    const parts = await Array.fromAsync(answer as AsyncIterable<Buffer>)
    resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(parts).toString() })
  })
  sent.on('error', reject)
  if (typeof body === 'string') sent.write(body)
  else if (body !== undefined) for (const part of body) sent.write(part)
  sent.end()
  return await promise
}

export interface Told {
  event: string
  id: string
  data: { [name: string]: unknown }
}

/** A stream as a page reads it. */
async function follow(url: string, init: RequestInit) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const answer = await fetch(url, { ...init, signal: leaving.signal })
  const told: Told[] = []
  let news = Promise.withResolvers<void>()
  let isOver = false
  const read = async () => {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of answer.body ?? []) {
      rest += decoder.decode(chunk, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const field = (name: string) =>
          block
            .split('\n')
            .find(line => line.startsWith(`${name}: `))
            ?.slice(name.length + 2) ?? ''
        if (field('event') !== '')
          told.push({ event: field('event'), id: field('id'), data: JSON.parse(field('data')) })
      }
      news.resolve()
    }
  }
  const over = read()
    .catch(() => {})
    .finally(() => {
      isOver = true
      news.resolve()
    })
  return {
    status: answer.status,
    told,
    over,
    leave: () => leaving.abort(),
    /** Resolves with the first that matches, one that came before too. */
    async until(matches: (each: Told) => boolean): Promise<Told> {
      for (;;) {
        const found = told.find(matches)
        if (found !== undefined) return found
        if (isOver) throw new Error(`The stream has ended with: ${JSON.stringify(told)}`)
        news = Promise.withResolvers<void>()
        await news.promise
      }
    },
  }
}

/** The page of a scene, served by a process of its own, as a device that came by its link. */
export async function openPage(scene: RealScene, ...flags: string[]) {
  const serving = scene.start('web', '--port', '0', '--json', ...flags)
  onTestFinished(() => serving[Symbol.asyncDispose]())
  const { promise: said, resolve } = Promise.withResolvers<{ link: string; address: string }>()
  serving.process.stdout?.on('data', (text: string) => {
    for (const line of String(text).split('\n')) if (line.includes('"link"')) resolve(JSON.parse(line))
  })
  const { link, address } = await Promise.race([
    said,
    serving.ended.then(({ stderr }) => Promise.reject(new Error(stderr))),
  ])
  const token = link.split('#t=')[1]
  const { body } = await clientOf(address, '').post('enter', { token, name: 'phone' })
  return { serving, link, address, ...clientOf(address, String(body.key)) }
}

type ServeOptions = Pick<ApiOptions, 'allowsLoopbackPush'> & Partial<Pick<WebOptions, 'names'>>

/** The API over the records of a place, served. `problems`: what a person is told of it. */
export async function serveApi({ names = [], ...options }: ServeOptions = {}) {
  const place = await makePlace()
  const stop = new AbortController()
  const folder = join(place.records.root, 'web')
  const access = new Access({ folder, clock: place.context.clock, platform: process.platform })
  const page = join(place.directory, 'page')
  await mkdir(page)
  await writeFile(join(page, 'index.html'), '<!doctype html>')
  const problems: string[] = []
  const api = openApi({
    world: place.context,
    access,
    folder,
    page: () => ({ address: server.address, names }),
    signal: stop.signal,
    onProblem: problem => problems.push(problem),
    ...options,
  })
  const failures: unknown[] = []
  const server = await serveWeb({
    access,
    page,
    api: api.routes,
    takeReport: api.takeReport,
    host: '127.0.0.1',
    port: 0,
    isExact: true,
    names,
    tls: null,
    onFailure: error => failures.push(error),
  })
  onTestFinished(async () => {
    stop.abort()
    await server[Symbol.asyncDispose]()
    await api[Symbol.asyncDispose]()
    await place[Symbol.asyncDispose]()
    expect(failures).toEqual([])
  })
  const { key } = await access.add('test', 'steer')
  const client = clientOf(server.address, key)
  return { place, access, key, problems, port: server.port, ...client }
}
