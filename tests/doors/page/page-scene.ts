import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { SessionEvent } from '../../../src/core/events/events.ts'
import { type Api, openApi } from '../../../src/doors/page/api.ts'
import { serveWeb, type WebServer } from '../../../src/doors/page/server.ts'
import { Access } from '../../../src/project/page/access.ts'
import { takeRunLock } from '../../../src/session/records/run-lock.ts'
import { keepSavepoint } from '../../support/kept-savepoints.ts'
import { makePlace, type Place } from '../cli/place.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'

/** What every wait of these tests is bounded by, ms. */
export const BOUND_MS = 60_000

export const PHONE = { width: 390, height: 844 }
export const DESK = { width: 1280, height: 900 }

/** What would make elements, run or call somebody, were it not shown as text. */
export const HOSTILE = `<img src=x onerror="alert('owned')"><script>alert('owned')</script>`

/** How a person looks at the page. */
interface Look {
  viewport?: { width: number; height: number }
  colorScheme?: 'light' | 'dark'
  right?: 'look' | 'steer'
}

/** Somebody who looks at the page, and all that went wrong there. */
export interface Visitor {
  context: BrowserContext
  page: Page
  /** Errors and warnings of the page and its console, dialogs, and requests to elsewhere. */
  wrongs: readonly string[]
  /** Goes to what stands behind `#`. */
  go(hash: string): Promise<void>
}

/** The records of a person, the built page served over them, and browsers that look at it. */
export class PageScene implements AsyncDisposable {
  readonly place: Place
  readonly #browser: Browser
  #access: Access
  readonly #failures: unknown[] = []
  #contexts: BrowserContext[] = []
  readonly #wrongs: string[][] = []
  readonly #provoked: RegExp[] = []
  #server: WebServer | null = null
  #api: Api | null = null
  #stop = new AbortController()
  #port = 0

  private constructor(browser: Browser, place: Place) {
    this.#browser = browser
    this.place = place
    this.#access = this.#newAccess()
  }

  #newAccess(): Access {
    const folder = join(this.place.records.root, 'web')
    return new Access({ folder, clock: this.place.context.clock, platform: process.platform })
  }

  static async open(browser: Browser): Promise<PageScene> {
    const scene = new PageScene(browser, await makePlace())
    await scene.serve()
    return scene
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}/`
  }

  /** Serves the page; again under the same address. */
  async serve(): Promise<void> {
    this.#stop = new AbortController()
    // Each time as a process of its own would.
    this.#access = this.#newAccess()
    const { context, records } = this.place
    const world = { ...context, env: { ...process.env, ...context.env } as Record<string, string> }
    this.#api = openApi({
      world,
      access: this.#access,
      folder: join(records.root, 'web'),
      page: () => ({ address: this.address, names: [] }),
      signal: this.#stop.signal,
      onProblem: () => {},
    })
    this.#server = await serveWeb({
      access: this.#access,
      page: fileURLToPath(new URL('../../../dist/web', import.meta.url)),
      api: this.#api.routes,
      takeReport: this.#api.takeReport,
      host: '127.0.0.1',
      port: this.#port,
      isExact: true,
      names: [],
      tls: null,
      onFailure: error => void this.#failures.push(error),
    })
    this.#port = this.#server.port
  }

  /** Says what of the wrongs this scene provokes. */
  provokes(wrongs: RegExp): void {
    this.#provoked.push(wrongs)
  }

  /** Ends every connection, and takes no new one until it serves again. */
  async unplug(): Promise<void> {
    // Then the browser itself notes each request that fails, and each that the old key no longer opens.
    this.provokes(/net::ERR_|status of 401/)
    this.#stop.abort()
    await this.#server?.[Symbol.asyncDispose]()
    await this.#api?.[Symbol.asyncDispose]()
    this.#server = null
    this.#api = null
  }

  /** Opens the page by a link, as a person does. */
  async visit({ right = 'steer', ...look }: Look = {}): Promise<Visitor> {
    const visitor = await this.stranger(look, `#t=${await this.#access.newLink(right)}`)
    await visitor.page.locator('.dot.is-open').waitFor()
    await visitor.page.locator('main :is(h1, .quiet)').first().waitFor({ state: 'attached' })
    return visitor
  }

  /** Opens the page on a device that has no key. */
  async stranger({ viewport = PHONE, colorScheme = 'light' }: Look = {}, hash = ''): Promise<Visitor> {
    const context = await this.#browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
    this.#contexts.push(context)
    context.setDefaultTimeout(BOUND_MS)
    const page = await context.newPage()
    const wrongs = wrongsOf(page)
    this.#wrongs.push(wrongs)
    page.on('dialog', dialog => {
      wrongs.push(`dialog: ${dialog.message()}`)
      void dialog.dismiss()
    })
    page.on('request', request => {
      const { origin } = new URL(request.url())
      if (!this.address.startsWith(origin) && !request.url().startsWith('data:')) wrongs.push(`asks ${request.url()}`)
    })
    await page.goto(`${this.address}${hash}`)
    return {
      context,
      page,
      wrongs,
      go: async to => {
        await page.evaluate(behind => {
          location.hash = behind
        }, to)
      },
    }
  }

  /** Writes a session, and answers what its page stands behind: `#/s/<place>/<id>`. */
  async session(id: string, events: readonly SessionEvent[]): Promise<string> {
    const folder = this.place.records.sessionFolder(id)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'journal.ndjson'), linesOf(id, events))
    return `#/s/${this.place.records.key}/${id}`
  }

  /** Writes more of a session. `before`: how many events it has. */
  async goOn(id: string, before: number, events: readonly SessionEvent[]): Promise<void> {
    const filler = Array.from({ length: before }, () => sampleEvents.warning)
    const lines = linesOf(id, [...filler, ...events])
      .split('\n')
      .slice(before)
      .join('\n')
    await appendFile(join(this.place.records.sessionFolder(id), 'journal.ndjson'), lines)
  }

  /** Runs in the directory, as far as others can tell, from before any of its sessions on. */
  async run(): Promise<AsyncDisposable> {
    const { lock, directory } = this.place.records
    const { platform, pid } = process
    return await takeRunLock(lock, { platform, pid, now: new Date('2026-11-01T00:00:00Z'), directory })
  }

  async remove(id: string): Promise<void> {
    await rm(this.place.records.sessionFolder(id), { recursive: true })
  }

  /** Keeps the files of the directory as they are as the savepoint of a round; 0: what it began with. */
  async keep(session: string, round: number): Promise<void> {
    const { directory, context } = this.place
    const env = { ...process.env, ...context.env } as Record<string, string>
    await keepSavepoint({ directory, home: context.home, env }, round, { session })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const context of this.#contexts) await context.close()
    await this.unplug()
    await this.place[Symbol.asyncDispose]()
    if (this.#failures.length > 0) throw new AggregateError(this.#failures, 'the server failed')
    const wrongs = this.#wrongs.flat().filter(wrong => !this.#provoked.some(each => each.test(wrong)))
    if (wrongs.length > 0) throw new Error(`The page went wrong:\n${wrongs.join('\n')}`)
  }
}

/** Errors and warnings of the page and its console, as they come. */
function wrongsOf(page: Page): string[] {
  const wrongs: string[] = []
  page.on('pageerror', error => wrongs.push(`error: ${error.message}`))
  page.on('console', said => {
    if (said.type() === 'error' || said.type() === 'warning')
      wrongs.push(`console: ${said.text()} (${said.location().url})`)
  })
  return wrongs
}

function linesOf(id: string, events: readonly SessionEvent[]): string {
  return recorded(events, id)
    .map(event => `${JSON.stringify(event)}\n`)
    .join('')
}

const { 'session-created': created, 'round-started': started, 'round-ended': ended } = sampleEvents
const item = sampleEvents['item-completed']

/** A session with something for every part of the page, and hostile texts wherever an agent writes. */
export function fullSession(): SessionEvent[] {
  return [
    { ...created, goal: `Build the shop ${HOSTILE}`, limits: { rounds: 4, timeMs: null, tokens: 500_000 } },
    started,
    sampleEvents['turn-started'],
    sampleEvents['plan-updated'],
    {
      ...item,
      item: {
        kind: 'agent-message',
        id: 'm1',
        text: [
          '## What I did',
          '',
          `I wrote **the cart**, see [the docs](https://example.com/cart) and [this](javascript:alert('owned')).`,
          '',
          '![a picture](https://example.com/pixel.png)',
          '',
          HOSTILE,
          '',
          `<div onclick="alert('owned')">${HOSTILE}</div>`,
          '',
          '| file | lines |\n| --- | --- |\n| `src/cart.ts` | 30 |',
          '',
          '- [x] cart\n- [ ] payment',
          '',
          '```ts',
          `const html = '${HOSTILE}'`,
          '```',
        ].join('\n'),
        phase: 'final-answer',
      },
    },
    {
      ...item,
      item: {
        kind: 'command',
        id: 'c1',
        command: `/bin/bash -lc 'npm test'`,
        directory: '/work',
        status: 'failed',
        exitCode: 1,
        durationMs: 4_230,
        output: `not ok 1 ${HOSTILE}\n${'x'.repeat(400)}`,
      },
    },
    {
      ...item,
      item: {
        kind: 'file-change',
        id: 'f1',
        status: 'completed',
        changes: [
          { path: `/work/${HOSTILE}.ts`, change: 'update', movedTo: null, diff: `@@ -1 +1 @@\n-a\n+${HOSTILE}\n` },
        ],
      },
    },
    sampleEvents['question-asked'],
    { ...sampleEvents['gate-ended'], output: `2 tests\n1 failed: ${HOSTILE}` },
    { ...sampleEvents['done-refused'], detail: `tasks.json still has 1 task: ${HOSTILE}` },
    ended,
    { ...started, round: 2 },
    { ...ended, round: 2, outcome: { class: 'crashed', message: `It broke ${HOSTILE}` } },
  ]
}

/** A session of so many rounds. */
export function longSession(rounds: number): SessionEvent[] {
  const events: SessionEvent[] = [{ ...created, goal: 'A long one' }]
  for (let round = 1; round <= rounds; round += 1)
    events.push({ ...started, round }, { ...ended, round, durationMs: 1_000 * (1 + (round % 90)) })
  return events
}
