import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Access } from '../../src/app/page/access.ts'
import { openApi } from '../../src/web/api.ts'
import { serveWeb } from '../../src/web/server.ts'
import { makePlace } from '../cli/place.ts'
import { recorded, sampleEvents } from '../tui/samples.ts'

const created = sampleEvents['session-created']
const started = sampleEvents['round-started']
const ended = sampleEvents['session-ended']

/** The API over the records of a place, served. */
async function serveApi() {
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
    address: () => server.address,
    signal: stop.signal,
    onProblem: problem => problems.push(problem),
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
    names: [],
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
  const url = (path: string) => `${server.address}api/${path}`
  const post = async (path: string, body: unknown, key = '') => {
    const headers = { 'content-type': 'application/json', 'x-codemachine': '1', authorization: `Bearer ${key}` }
    const answer = await fetch(url(path), { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const get = async (path: string, key: string) => {
    const answer = await fetch(url(path), { headers: { authorization: `Bearer ${key}` } })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const { key } = await access.add('test', 'steer')
  return { place, access, post, get, key, follow: (path: string, by = key) => follow(url(path), by) }
}

interface Told {
  event: string
  id: string
  data: { [name: string]: unknown }
}

/** A stream as a page reads it. */
async function follow(url: string, key: string) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` }, signal: leaving.signal })
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

test('a link gives a device its key once; with that it sees the sessions of every directory as they change', async () => {
  const { place, access, post, follow } = await serveApi()
  await place.journal('20261120_1', [{ ...created, goal: 'mend the door' }, started, ended])
  const token = await access.newLink('look')
  const opened = await post('enter', { token, name: 'phone' })
  expect(opened).toMatchObject({ status: 200, body: { device: { name: 'phone', right: 'look' } } })
  expect(await post('enter', { token, name: 'thief' })).toMatchObject({ status: 403 })
  const stream = await follow('now', String(opened.body.key))
  const cards = ({ data }: Told) => data.cards as { goal: string; directory: string; standing: string }[]
  const first = await stream.until(each => cards(each).length === 1)
  expect(cards(first)).toMatchObject([{ goal: 'mend the door', directory: place.directory, standing: 'ended' }])
  await place.journal('20261120_2', [{ ...created, goal: 'oil the hinges' }, started])
  const second = await stream.until(each => cards(each).length === 2)
  expect(cards(second)).toMatchObject([{ goal: 'oil the hinges', standing: 'cut-off' }, { goal: 'mend the door' }])
})

test('a stream that was cut goes on where it stopped', async () => {
  const { place, follow } = await serveApi()
  const path = await place.journal('20261120_1', [created, started])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const session = `sessions/${place.records.key}/20261120_1/stream`
  const first = await follow(session)
  const begin = await first.until(({ event }) => event === 'begin')
  expect(begin).toMatchObject({ id: '2', data: { n: 2, standing: 'cut-off', rows: [{ n: 1 }, { n: 2, round: 1 }] } })
  first.leave()
  await first.over
  const more = recorded([created, started, sampleEvents.warning, sampleEvents.warning], '20261120_1').slice(2)
  await appendFile(path, more.map(event => `${JSON.stringify(event)}\n`).join(''))
  const again = await follow(`${session}?after=3`)
  const told = await again.until(({ id }) => id === '4')
  expect(told.data).toMatchObject({ n: 4 })
  expect(again.told.every(({ data }) => (data.n as number) > 3 || data.kind === 'begin')).toBe(true)
})

test('a device that is ended has its streams ended at once, and those of others go on', async () => {
  const { access, post, follow, key } = await serveApi()
  const other = await access.add('lost phone', 'look')
  const [mine, lost] = [await follow('now'), await follow('now', other.key)]
  await mine.until(() => true)
  await lost.until(() => true)
  expect(await post(`devices/${other.device.id}/end`, {}, key)).toMatchObject({ status: 200 })
  await lost.over
  expect(await Promise.race([mine.over.then(() => 'over'), Promise.resolve('goes on')])).toBe('goes on')
  expect((await follow('now', other.key)).status).toBe(401)
})

test('what is asked in a wrong way gets a sentence, and changes nothing', async () => {
  const { place, post, get, follow, key } = await serveApi()
  await place.journal('20261120_1', [created, started, ended])
  const now = await follow('now')
  await now.until(({ data }) => (data.cards as unknown[]).length === 1)
  const session = `sessions/${place.records.key}/20261120_1`
  expect(await post(`${session}/ask`, { type: 'stop' }, key)).toMatchObject({
    status: 400,
    body: { problem: expect.stringContaining('now') },
  })
  expect(await post(`${session}/ask`, { type: 'erase' }, key)).toMatchObject({ status: 400 })
  expect(await post(`${session}/ask`, { type: 'steer', text: ' ' }, key)).toMatchObject({ status: 400 })
  expect(await post(`${session}/ask`, { type: 'pause' }, key)).toMatchObject({ body: { code: 'no-session' } })
  expect(await post(`${session}/answer`, { question: 'Q9', answer: 'yes' }, key)).toMatchObject({ status: 404 })
  expect(await post('sessions/..%2f..%2fx/20261120_1/ask', { type: 'pause' }, key)).toMatchObject({ status: 400 })
  expect(await get(`places/${session.split('/')[1]}/queue`, key)).toMatchObject({ status: 200, body: { prompts: [] } })
  expect(await get('nothing', key)).toMatchObject({ status: 404 })
})
