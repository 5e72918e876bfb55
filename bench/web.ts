import { readFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { message, reply } from '../src/demo/model/reply.ts'
import { longSession, PageScene } from '../tests/doors/page/page-scene.ts'
import { recorded, sampleEvents } from '../tests/doors/screen/samples.ts'
import { hasBrowser, openBrowser } from '../tests/support/browser.ts'
import { startCodemachine } from '../tests/support/codemachine.ts'
import { makePlace } from '../tests/support/place.ts'
import { openRealScene } from '../tests/support/real-scene.ts'
import { atMost, type Figure, shown } from './figure.ts'
import { median } from './median.ts'

const RUNS = 5
const WATCHERS = 50
const EVENTS_PER_SECOND = 100
const WATCHED_MS = 10_000
/** A run is alone and watched in turns, each so long. */
const TURNS = 4
const TURN_MS = 5_000
const DELTAS_PER_SECOND = 5_000
/** Of a phone that is slow, on a bad connection: bytes a second. */
const BYTES_PER_SECOND = (1.6 * 1024 * 1024) / 8
const LATENCY_MS = 40
const CPU_SLOWDOWN = 4

/** The page: how soon it is seen, how soon it answers while much is written, and what its server takes. */
export async function web(): Promise<Figure[]> {
  const watched = [...(await watchers()), ...(await runner())]
  if (!hasBrowser) return [...watched, { ...shown('there is no browser', 0, ''), value: null }]
  const browser = await openBrowser()
  try {
    await using scene = await PageScene.open(browser)
    const hash = await scene.session('20261120_1', longSession(20))
    const { page } = await scene.visit()
    const paints: number[] = []
    for (let run = 0; run <= RUNS; run += 1) {
      const paint = await firstPaint(page)
      if (run > 0) paints.push(paint)
    }
    const { clicked, grown } = await whileMuchIsWritten(scene, hash)
    return [
      {
        what: 'first paint, processor 4x slower, 1.6 Mbit/s',
        value: median(paints),
        unit: 'ms',
        target: atMost(1_000),
      },
      {
        what: `tap to frame at ${DELTAS_PER_SECOND} deltas a second`,
        value: median(clicked),
        unit: 'ms',
        target: atMost(100),
      },
      { what: 'memory of the tab after 10,000 rounds, to before', value: grown, unit: 'x', target: atMost(1.5) },
      ...watched,
    ]
  } finally {
    await browser.close()
  }
}

/** From the navigation until something is painted, with nothing in the browser's cache, ms. */
async function firstPaint(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: LATENCY_MS,
    downloadThroughput: BYTES_PER_SECOND,
    uploadThroughput: BYTES_PER_SECOND,
  })
  await session.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN })
  await page.reload()
  await page.locator('.card').first().waitFor()
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0)
  await session.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await session.detach()
  return paint
}

/** How long a tap takes to its frame while words stream in, and how the memory of the tab grows over many rounds. */
async function whileMuchIsWritten(scene: PageScene, hash: string): Promise<{ clicked: number[]; grown: number }> {
  const { page, context } = await scene.visit()
  await context.addInitScript(streamDeltas, DELTAS_PER_SECOND)
  await page.reload()
  await page.evaluate(behind => {
    location.hash = behind
  }, hash)
  await page.locator('.live pre').first().waitFor()
  const clicked: number[] = []
  for (let run = 0; run <= RUNS; run += 1) {
    const took = await page.evaluate(async () => {
      const link = document.querySelectorAll<HTMLElement>('.tabs a')[2]
      const from = performance.now()
      link?.click()
      await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
      const ms = performance.now() - from
      document.querySelector<HTMLElement>('.tabs a')?.click()
      return ms
    })
    if (run > 0) clicked.push(took)
    await delay(300)
  }
  const long = await scene.session('20261121_1', longSession(10_000))
  const { page: other } = await scene.visit()
  const session = await other.context().newCDPSession(other)
  const heap = async () => {
    await session.send('HeapProfiler.collectGarbage')
    return (await session.send('Runtime.getHeapUsage')).usedSize
  }
  await other.evaluate(behind => {
    location.hash = behind
  }, `${long}/rounds`)
  const list = other.locator('.timeline')
  await other.locator('.round b').first().waitFor()
  const before = await heap()
  for (let part = 0; part <= 50; part += 1) {
    await list.evaluate((frame, share) => {
      frame.scrollTop = frame.scrollHeight * share
    }, part / 50)
    await other.locator('.round b').first().waitFor()
  }
  return { clicked, grown: (await heap()) / before }
}

/** In the page: the stream of a session brings so many words a second. */
function streamDeltas(perSecond: number): void {
  const real = globalThis.fetch.bind(globalThis)
  globalThis.fetch = async (input, init) => {
    if (!String(input).includes('/stream')) return await real(input, init)
    const encoder = new TextEncoder()
    const told = (kind: string, data: object) =>
      encoder.encode(`event: ${kind}\nid: 1\ndata: ${JSON.stringify({ kind, n: 1, ...data })}\n\n`)
    const item = { kind: 'agent-message', id: 'm1', text: '', phase: null }
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(told('begin', { rows: [], standing: 'running' }))
        controller.enqueue(told('live', { at: 1, event: { type: 'item-started', round: 1, item } }))
        const event = { type: 'text-delta', round: 1, item: 'm1', source: 'agent-message', text: 'word ' }
        setInterval(() => {
          for (let n = 0; n < perSecond / 50; n += 1) controller.enqueue(told('live', { at: 1, event }))
        }, 20)
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
}

/** The share of a core that the server takes for many who watch a session in which much happens. */
async function watchers(): Promise<Figure[]> {
  await using place = await makePlace('')
  const journal = await sessionOf(place)
  await using serving = startCodemachine(place, ['web', '--port', '0', '--json'])
  const { address, headers } = await enter(serving)
  let bytes = 0
  const ended = await watch(address, headers, part => {
    bytes += part
  })
  const idle = await shareOf(serving.pid, async () => await delay(WATCHED_MS / 2))
  const lines = recorded(
    Array.from({ length: EVENTS_PER_SECOND / 10 }, () => sampleEvents.warning),
    '20261120_1',
  ).map(event => `${JSON.stringify(event)}\n`)
  const busy = await shareOf(serving.pid, async () => {
    for (let part = 0; part < WATCHED_MS / 100; part += 1) {
      await appendFile(journal, lines.join(''))
      await delay(100)
    }
  })
  await ended()
  return [
    {
      what: `server: ${WATCHERS} watchers at ${EVENTS_PER_SECOND} events a second, of a core`,
      value: busy,
      unit: '%',
      target: atMost(20),
    },
    shown(`server: ${WATCHERS} watchers while nothing happens, of a core`, idle, '%'),
    shown('told to all watchers', bytes / 1024 / 1024, 'MB'),
  ]
}

/** How much more processor time a run takes while many watch it, in turns within one round in which much is said. */
async function runner(): Promise<Figure[]> {
  const count = (2 * TURNS + 2) * (TURN_MS / 1000) * EVENTS_PER_SECOND * 2
  const said = { ...reply(message('word '.repeat(count), { chunkSize: 5 })), deltaMs: 1000 / EVENTS_PER_SECOND }
  await using scene = await openRealScene([[said]])
  await using running = scene.start('--json', '--rounds', '1', 'say much')
  await running.event('turn-started')
  await using serving = scene.start('web', '--port', '0', '--json')
  const { address, headers } = await enter(serving)
  await delay(TURN_MS)
  const spent = { alone: 0, watched: 0 }
  for (let turn = 0; turn < TURNS; turn += 1) {
    spent.alone += await shareOf(running.pid, async () => await delay(TURN_MS))
    const ended = await watch(address, headers, () => {})
    spent.watched += await shareOf(running.pid, async () => await delay(TURN_MS))
    await ended()
  }
  const more = 100 * (spent.watched / spent.alone - 1)
  return [
    { what: `runner: more processor time with ${WATCHERS} watchers`, value: more, unit: '%', target: atMost(2) },
    shown('runner: of a core, with nobody who watches', spent.alone / TURNS, '%'),
  ]
}

/** Waits for the page to be served, and is let in as a program. */
async function enter(serving: ReturnType<typeof startCodemachine>) {
  const { promise, resolve } = Promise.withResolvers<{ link: string; address: string }>()
  serving.process.stdout?.on('data', (text: string) => {
    for (const line of String(text).split('\n')) if (line.includes('"link"')) resolve(JSON.parse(line))
  })
  const { link, address } = await promise
  const entered = await fetch(`${address}api/enter`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-codemachine': '1' },
    body: JSON.stringify({ token: link.split('#t=')[1], name: 'bench' }),
  })
  const { key } = (await entered.json()) as { key: string }
  return { address, headers: { authorization: `Bearer ${key}` } }
}

/** Has the one session that there is watched by many, and waits until they are; resolves with what ends that. */
async function watch(address: string, headers: Record<string, string>, onPart: (bytes: number) => void) {
  const over = new AbortController()
  const key = await keyOfSession(`${address}api/now`, headers)
  const watching = Array.from({ length: WATCHERS }, async () => {
    const answer = await fetch(`${address}api/sessions/${key}/stream`, { headers, signal: over.signal })
    for await (const part of answer.body ?? []) onPart(part.length)
  })
  for (const each of watching) each.catch(() => {})
  await delay(1_000)
  return async () => {
    over.abort()
    await Promise.allSettled(watching)
  }
}

async function sessionOf(place: { directory: string; home: string; env: Record<string, string> }): Promise<string> {
  const { openRecords } = await import('../src/session/records/records.ts')
  const { OWN_TEMPLATES } = await import('../src/modes/registry.ts')
  const { mkdir } = await import('node:fs/promises')
  const records = await openRecords({
    directory: place.directory,
    env: place.env,
    home: place.home,
    platform: process.platform,
    templates: OWN_TEMPLATES,
  })
  const { takeRunLock } = await import('../src/session/records/run-lock.ts')
  const { pid, platform } = process
  await takeRunLock(records.lock, { platform, pid, now: new Date('2026-11-01T00:00:00Z'), directory: place.directory })
  const folder = records.sessionFolder('20261120_1')
  await mkdir(folder, { recursive: true })
  const path = join(folder, 'journal.ndjson')
  const events = recorded([sampleEvents['session-created'], sampleEvents['round-started']], '20261120_1')
  await appendFile(path, events.map(event => `${JSON.stringify(event)}\n`).join(''))
  return path
}

/** What the one session that there is stands behind: `<place>/<id>`. */
async function keyOfSession(url: string, headers: Record<string, string>): Promise<string> {
  const answer = await fetch(url, { headers })
  let text = ''
  for await (const part of answer.body ?? []) {
    text += new TextDecoder().decode(part)
    const [, key] = /"key":"([\w.-]+\/[\w.-]+)"/.exec(text) ?? []
    // Leaving the loop ends the stream.
    if (key !== undefined) return key
  }
  throw new Error('The server tells of no session.')
}

/** Processor time of a process while something goes on, per cent of a core. */
async function shareOf(pid: number, action: () => Promise<void>): Promise<number> {
  const [before, from] = [cpuMs(pid), performance.now()]
  await action()
  return (100 * (cpuMs(pid) - before)) / (performance.now() - from)
}

/** In clock ticks of a hundredth of a second, as Linux counts them. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
