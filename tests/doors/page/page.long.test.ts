import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import axe from 'axe-core'
import { parseSync } from 'oxc-parser'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPersonAnswer } from '../../../src/session/records/questions.ts'
import { hasBrowser, openBrowser, WITHOUT_BROWSER } from '../../support/browser.ts'
import { promise } from '../../support/promise.ts'
import { recorded, sampleEvents } from '../screen/samples.ts'
import { BOUND_MS, DESK, fullSession, HOSTILE, longSession, PageScene, PHONE } from './page-scene.ts'

const DIST = fileURLToPath(new URL('../../../dist/web', import.meta.url))
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const FULL = '20261120_1'

interface Axe {
  run(where: Document, options: object): Promise<{ violations: { id: string; nodes: { target: string[] }[] }[] }>
}

/** What a person with a screen reader, a keyboard or weak eyes would stumble over. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  return await page.evaluate(async rules => {
    const { axe: loaded } = globalThis as unknown as { axe: Axe }
    const { violations } = await loaded.run(document, { iframes: false, runOnly: rules })
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`)
  }, RULES)
}

/** What is smaller than a finger, of all that is pressed. Links within a text are not meant. */
async function smallTargets(page: Page): Promise<string[]> {
  return await page.locator('button:visible, select:visible, summary:visible, nav a:visible').evaluateAll(all =>
    all.flatMap(each => {
      const { width, height } = each.getBoundingClientRect()
      return height < 44 || width < 24 ? [`${each.textContent.slice(0, 40)}: ${width} x ${height}`] : []
    }),
  )
}

/** Has the page hear that it is put away, as when a phone is locked, or seen again. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(
    state => {
      Object.defineProperty(document, 'visibilityState', { value: state, configurable: true })
      document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))
    },
    isHidden ? 'hidden' : 'visible',
  )
}

/** The files of the built page, and how many bytes of each are sent. */
function sizes(): Map<string, number> {
  const files = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter(file => /\.\w+$/.test(file))
  return new Map(files.map(file => [file, gzipSync(readFileSync(join(DIST, file))).length]))
}

/** A script, and those that it cannot begin without. */
function withImports(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found
  found.add(file)
  const { module } = parseSync(file, readFileSync(join(DIST, file), 'utf8'))
  for (const { moduleRequest } of module.staticImports) withImports(moduleRequest.value.replace('./', ''), found)
  return found
}

test('what the first two pages load is at most 120 KB, and all of the page at most 300 KB', () => {
  const all = sizes()
  const first = [...withImports('main.js'), 'style.css', 'index.html', 'icon.svg']
  const sum = (files: Iterable<string>) => [...files].reduce((bytes, file) => bytes + (all.get(file) ?? Number.NaN), 0)
  expect(first.length).toBeGreaterThan(5)
  expect(sum(first)).toBeLessThan(120_000)
  expect(sum([...all.keys()].filter(file => !file.endsWith('.txt')))).toBeLessThan(300_000)
  expect([...all.keys()].filter(file => /\.(woff2?|ttf|otf|map)$/.test(file))).toEqual([])
})

describe.skipIf(!hasBrowser)(`the page${WITHOUT_BROWSER}`, () => {
  let browser: Browser
  let scene: PageScene
  let full: string

  beforeAll(async () => {
    browser = await openBrowser()
    scene = await PageScene.open(browser)
    const { directory } = scene.place
    await writeFile(join(directory, 'a.ts'), 'one\ntwo\nthree\n')
    await scene.keep(FULL, 0)
    await writeFile(join(directory, 'a.ts'), `one\n${HOSTILE}\nthree\n`)
    await writeFile(join(directory, `${HOSTILE.replaceAll('/', '|')}.md`), '# new\n')
    await scene.keep(FULL, 1)
    full = await scene.session(FULL, fullSession())
    await scene.session('20261118_1', [...longSession(2), sampleEvents['session-ended']])
    await scene.session('20261117_1', [
      sampleEvents['session-created'],
      sampleEvents['question-asked'],
      sampleEvents['session-ended'],
    ])
  })

  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]()
    await browser?.close()
  })

  /** Each part of the page, what stands behind `#` there, and what is seen once it is there. */
  const views = (): [name: string, hash: string, seen: string][] => [
    ['now', '#/', '.card .question button'],
    ['check these', '#/', '[aria-label="Check these"] .question button'],
    ['live', full, '.row'],
    ['work', `${full}/work`, '.round'],
    ['changes', `${full}/changes`, '.file'],
    ['proof', `${full}/proof`, '.lines'],
    ['report', `${full}/report`, 'iframe'],
    ['ended', full.replace(FULL, '20261118_1'), 'iframe'],
    ['ended, proof', `${full.replace(FULL, '20261118_1')}/proof`, '.lines'],
    ['new', '#/new', 'textarea[name=wanted]'],
    ['settings', '#/settings', '.device'],
  ]

  describe.each([
    ['a phone', PHONE, 'light'],
    ['a phone', PHONE, 'dark'],
    ['a desk', DESK, 'light'],
    ['a desk', DESK, 'dark'],
  ] as const)('on %s', (_, viewport, colorScheme) => {
    test(`every part of it is for everybody, in ${colorScheme} colours`, async () => {
      const { page, go, wrongs } = await scene.visit({ viewport, colorScheme })
      for (const [name, hash, seen] of views()) {
        await go(hash)
        await page.locator(seen).first().waitFor()
        expect(await violations(page), name).toEqual([])
        expect(await smallTargets(page), name).toEqual([])
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        expect(sideways, `${name} scrolls sideways`).toBeLessThanOrEqual(0)
      }
      expect(wrongs).toEqual([])
    })
  })

  test('its parts are within reach of a thumb', async () => {
    const { page, go } = await scene.visit({ viewport: PHONE })
    for (const hash of ['#/', full]) {
      await go(hash)
      const links = page.locator('nav:visible a')
      await links.first().waitFor()
      for (const box of await Promise.all((await links.all()).map(link => link.boundingBox()))) {
        expect(box?.y).toBeGreaterThan(PHONE.height * 0.8)
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(PHONE.width + 1)
      }
    }
  })

  promise('P91', 'On a phone the five tabs fit, and the log, the question and the field of a session do not overlap')
  test.each([
    [390, 844],
    [360, 640],
  ])('at %i × %i a session is log, question and field, each whole in sight, in this order', async (width, height) => {
    await using own = await PageScene.open(browser)
    await using _ = await own.run()
    const hash = await own.session('20261126_1', [
      sampleEvents['session-created'],
      sampleEvents['round-started'],
      {
        ...sampleEvents['item-completed'],
        item: {
          kind: 'command',
          id: 'c1',
          command: `/bin/bash -lc 'cat > a.txt <<EOF\nsecond line\nEOF'`,
          directory: '/work',
          status: 'completed',
          exitCode: 0,
          durationMs: 40,
          output: 'it printed this',
        },
      },
      {
        ...sampleEvents['question-asked'],
        text: `Which database? ${'There is much to say on that. '.repeat(8)}`,
      },
    ])
    const { page, go } = await own.visit({ viewport: { width, height } })
    await go(hash)
    const parts = ['header', '.head', '.rows', '.question', '.steering form', '.tabs']
    await page.locator('.question button').first().waitFor()
    let from = 0
    for (const part of parts) {
      const box = await page.locator(part).first().boundingBox()
      expect(box?.y, part).toBeGreaterThanOrEqual(from - 1)
      from = (box?.y ?? 0) + (box?.height ?? 0)
    }
    expect(from).toBeLessThanOrEqual(height + 1)
    for (const name of ['SQLite', 'Send', 'Pause']) {
      const box = await page.getByRole('button', { name }).boundingBox()
      expect((box?.y ?? 0) + (box?.height ?? 0), name).toBeLessThanOrEqual(height - 52)
    }
    const tabs = page.locator('.tabs a')
    expect(await tabs.allTextContents()).toEqual(['Live', 'Work', 'Changes', 'Proof', 'Report'])
    for (const tab of await tabs.all())
      expect(await tab.evaluate(each => each.scrollWidth <= each.clientWidth && each.clientHeight < 60)).toBe(true)
    // A command is its first line; a tap shows the rest.
    const command = page.locator('.command')
    expect(await command.locator('code').innerText()).toBe('$ cat > a.txt <<EOF')
    expect(await command.locator('code').evaluate(each => getComputedStyle(each).fontFamily)).toContain('monospace')
    await command.locator('summary').click()
    await command.getByText('second line').waitFor()
    await command.getByText('it printed this').waitFor()
    // So is what a question is about.
    const context = page.locator('.context')
    expect((await context.boundingBox())?.height).toBeLessThan(50)
    await context.locator('summary').click()
    await page.getByText('Assumed meanwhile').waitFor()
    expect(await violations(page)).toEqual([])
  })

  test('the keyboard alone reaches what can be pressed, and sees where it is', async () => {
    const { page } = await scene.visit({ viewport: DESK })
    await page.locator('.card .question button').first().waitFor()
    const reached: string[] = []
    for (let presses = 0; presses < 60 && !reached.includes('PostgreSQL'); presses += 1) {
      await page.keyboard.press('Tab')
      const [text, outline] = await page.evaluate(() => {
        const at = document.activeElement
        return at === null ? ['', ''] : [at.textContent, getComputedStyle(at).outlineStyle]
      })
      expect(outline, text).not.toBe('none')
      reached.push(text)
    }
    expect(reached[0]).toBe('Skip to content')
    expect(reached).toEqual(expect.arrayContaining(['Now', 'New', 'Settings', 'SQLite', 'PostgreSQL']))
  })

  test('what an agent wrote is text, wherever it stands', async () => {
    const { page, go, wrongs } = await scene.visit({ viewport: DESK })
    const shownIn: string[] = []
    for (const [name, hash, seen] of views()) {
      await go(hash)
      await page.locator(seen).first().waitFor()
      await page.locator('details').evaluateAll(all => {
        for (const each of all) (each as HTMLDetailsElement).open = true
      })
      if (name === 'changes') {
        await page.locator('.file', { hasText: 'a.ts' }).click()
        await page.locator('.diff-line.added').first().waitFor()
      }
      if ((await page.locator('main').textContent())?.includes(HOSTILE)) shownIn.push(name)
      // The picture of the page itself is all that there is.
      expect(await page.locator('main :is(img, script, [onerror], [style*=url], object, embed)').count(), name).toBe(0)
    }
    expect(shownIn).toEqual(expect.arrayContaining(['now', 'live', 'work', 'changes']))
    await go(full)
    const words = page.locator('.markdown', { hasText: 'What I did' })
    await page.locator('.rows').evaluate(list => list.scrollTo(0, 0))
    await words.waitFor()
    expect(await words.locator(':is(img, script, div, input:not([disabled]), [onerror], [onclick])').count()).toBe(0)
    expect(await words.textContent()).toContain(HOSTILE)
    expect(await words.getByRole('link').evaluateAll(all => all.map(each => each.getAttribute('href')))).toEqual([
      'https://example.com/cart',
    ])
    await expect.poll(() => words.textContent()).toContain('(https://example.com/cart)')
    expect(await words.textContent()).toContain("this (javascript:alert('owned'))")
    expect(await words.textContent()).toContain(`const html = '${HOSTILE}'`)
    expect(wrongs).toEqual([])
  })

  test('one tap answers a question, and can be taken back for ten seconds', async () => {
    const id = '20261121_1'
    await scene.session(id, [
      sampleEvents['session-created'],
      sampleEvents['round-started'],
      sampleEvents['question-asked'],
    ])
    const { page } = await scene.visit()
    await page.clock.install()
    const card = page.locator('.card', { hasText: id })
    await card.getByRole('button', { name: 'SQLite' }).click()
    await card.getByRole('button', { name: /^Undo/ }).click()
    await card.getByText('Nothing was sent.').waitFor()
    await page.clock.fastForward(20_000)
    expect(await readPersonAnswer(scene.place.records, id, 'Q1')).toBeNull()
    await card.getByRole('button', { name: 'PostgreSQL' }).click()
    await card.getByText('Sent in a moment: PostgreSQL').waitFor()
    expect(await readPersonAnswer(scene.place.records, id, 'Q1')).toBeNull()
    const sent = page.waitForResponse(answer => answer.url().endsWith('/answer'), { timeout: BOUND_MS })
    await page.clock.fastForward(11_000)
    expect((await sent).status()).toBe(200)
    expect(await readPersonAnswer(scene.place.records, id, 'Q1')).toMatchObject({ answer: 'PostgreSQL' })
  })

  test('what was tapped is sent when the page is closed before', async () => {
    const id = '20261121_2'
    await scene.session(id, [
      sampleEvents['session-created'],
      sampleEvents['round-started'],
      sampleEvents['question-asked'],
    ])
    const { page } = await scene.visit()
    const card = page.locator('.card', { hasText: id })
    await card.getByRole('button', { name: 'SQLite' }).click()
    await card.getByRole('button', { name: /^Undo/ }).waitFor()
    await page.close({ runBeforeUnload: false })
    await expect
      .poll(() => readPersonAnswer(scene.place.records, id, 'Q1'), { timeout: BOUND_MS })
      .toMatchObject({ answer: 'SQLite' })
  })

  promise('P17', 'What was tapped is sent when the phone is locked, and kept where it cannot be sent')
  test('what was tapped is sent when the phone is locked, and is kept where it cannot be sent', async () => {
    await using own = await PageScene.open(browser)
    const id = '20261121_3'
    const asked = [sampleEvents['session-created'], sampleEvents['round-started'], sampleEvents['question-asked']]
    await own.session(id, asked)
    const { page } = await own.visit()
    const card = page.locator('.card', { hasText: id })
    await card.getByRole('button', { name: 'SQLite' }).waitFor()
    await own.unplug()
    await page.getByText(/Showing the last state/).waitFor()
    await card.getByRole('button', { name: 'SQLite' }).click()
    await hide(page, true)
    await page.getByText('Not sent: SQLite. Disconnected.').waitFor()
    await hide(page, false)
    await own.serve()
    await page.getByText(/Showing the last state/).waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect
      .poll(() => readPersonAnswer(own.place.records, id, 'Q1'), { timeout: BOUND_MS })
      .toMatchObject({ answer: 'SQLite' })
  })

  test('a page that nobody sees follows nothing, and all is up to date when it is seen again', async () => {
    await using own = await PageScene.open(browser)
    await using _ = await own.run()
    const id = '20261122_2'
    const note = (n: number) => ({ ...sampleEvents.warning, message: `Note ${n}.` })
    const events = [sampleEvents['session-created'], sampleEvents['round-started'], note(1)]
    const hash = await own.session(id, events)
    const { page, go } = await own.visit()
    const asked: string[] = []
    page.on('request', request => void asked.push(new URL(request.url()).pathname))
    await go(hash)
    await page.getByText('Note 1.').waitFor()
    const ended = Promise.all(
      ['/api/now', '/stream'].map(end =>
        page.waitForEvent('requestfailed', { predicate: each => each.url().split('?')[0]?.endsWith(end) === true }),
      ),
    )
    await hide(page, true)
    await ended
    asked.length = 0
    await own.goOn(id, events.length, [note(2)])
    await hide(page, false)
    await page.getByText('Note 2.').waitFor()
    expect(asked.filter(path => path === '/api/now').length).toBe(1)
    expect(await page.getByText(/Showing the last state/).count()).toBe(0)
  })

  test('what could not be read while the connection was cut is read when it is there again', async () => {
    await using own = await PageScene.open(browser)
    const hash = await own.session('20261122_3', longSession(2))
    const { page, go } = await own.visit()
    await go(hash)
    await page.locator('.row').first().waitFor()
    await go(`${hash}/work`)
    await page.locator('.round').first().waitFor()
    await go(`${hash}/report`)
    await page.locator('iframe').waitFor()
    await go(hash)
    await page.locator('.row').first().waitFor()
    await own.unplug()
    await page.getByText(/Showing the last state/).waitFor()
    await go(`${hash}/work`)
    await page.getByText('Loading …').first().waitFor()
    expect(await page.getByText('No rounds yet.').count()).toBe(0)
    await go(`${hash}/report`)
    await page.locator('main').getByText('Disconnected.').waitFor()
    await own.serve()
    await page.locator('iframe').waitFor()
    await go(`${hash}/work`)
    await page.getByText('Round 2', { exact: true }).waitFor()
  })

  promise(
    'P92',
    'A session that has ended opens on its report; one that runs says what is not proved, and when there is a report',
  )
  test('a session that has ended opens on its report, without an empty card; nothing is verified where nothing is proved', async () => {
    const { page, go } = await scene.visit()
    await page.locator('.card', { hasText: 'A long one' }).getByRole('link').click()
    await page.locator('iframe.report').waitFor()
    expect(await page.locator('.tabs [aria-current]').textContent()).toBe('Report')
    await page.getByRole('link', { name: 'Live' }).click()
    await page.locator('.row').first().waitFor()
    expect(await page.locator('.steering').count()).toBe(0)
    await page.getByRole('link', { name: 'Proof' }).click()
    await page.getByRole('heading', { name: 'Not proved' }).waitFor()
    expect(await page.getByRole('button', { name: 'Verify again' }).count()).toBe(0)
    await go('#/')
  })

  test('a session that runs says when there is a report, what is not proved yet, and names its two durations', async () => {
    await using own = await PageScene.open(browser)
    await using _ = await own.run()
    const hash = await own.session('20261127_1', [
      { ...sampleEvents['session-created'], goal: 'Take your time' },
      sampleEvents['round-started'],
    ])
    const { page, go } = await own.visit()
    const facts = page.locator('.card .facts')
    await expect
      .poll(() => facts.textContent(), { timeout: BOUND_MS })
      .toMatch(/round 1.* · round [\d:]+ · in all [\d:]+/)
    expect(await facts.textContent()).not.toContain('0 tokens')
    await go(`${hash}/report`)
    await page.getByText('The report is written when the session ends.').waitFor()
    expect(await page.locator('iframe').count()).toBe(0)
    await go(`${hash}/proof`)
    await page.getByRole('heading', { name: 'Not proved yet' }).waitFor()
    expect(await page.locator('.lines').first().textContent()).toMatch(/has not run|No gates/)
  })

  test('what is still read is said to be loaded', async () => {
    const { page, go, context } = await scene.visit()
    const held = Promise.withResolvers<void>()
    await context.route('**/stream*', async route => {
      await held.promise
      await route.continue()
    })
    await go(full)
    await page.locator('.stream').getByText('Loading …').waitFor()
    held.resolve()
    await page.locator('.row').first().waitFor()
    expect(await page.locator('.stream').getByText('Loading …').count()).toBe(0)
  })

  test('a device that may only look has nothing to press that steers', async () => {
    const { page, go } = await scene.visit({ right: 'look' })
    await page.locator('.card .question').first().waitFor()
    expect(await page.locator('.card button').count()).toBe(0)
    for (const part of ['', '/work', '/changes', '/proof', '/report']) {
      await go(`${full}${part}`)
      await page.locator('.session').waitFor()
      await page
        .getByRole('button', { name: /answer|stop|pause|add|rewind|verify|go on/i })
        .waitFor({ state: 'detached' })
    }
  })

  test('a stream that was cut goes on without a row that is lost or doubled, and says that it was cut', async () => {
    const id = '20261122_1'
    const note = (n: number) => ({ ...sampleEvents.warning, message: `Note ${n}.` })
    const events = [sampleEvents['session-created'], sampleEvents['round-started'], note(1), note(2)]
    await using running = await PageScene.open(browser)
    await using _ = await running.run()
    const hash = await running.session(id, events)
    const { page, go } = await running.visit()
    await go(hash)
    await page.getByText('Note 2.').waitFor()
    await running.goOn(id, events.length, [note(3)])
    await page.getByText('Note 3.').waitFor()
    await running.unplug()
    await page.getByText(/Showing the last state/).waitFor()
    await running.goOn(id, events.length + 1, [note(4), note(5)])
    await running.serve()
    await page.getByText('Note 5.').waitFor()
    await page.getByText(/Showing the last state/).waitFor({ state: 'detached' })
    await running.goOn(id, events.length + 3, [note(6)])
    await page.getByText('Note 6.').waitFor()
    await page.locator('.rows').evaluate(list => list.scrollTo(0, 0))
    const said = await page.locator('.row').allTextContents()
    const notes = said.flatMap(row => /Note \d/.exec(row)?.[0] ?? [])
    expect(notes).toEqual([1, 2, 3, 4, 5, 6].map(n => `Note ${n}`))
  })

  test('a session that is deleted while it is shown is said to be gone', async () => {
    const id = '20261123_1'
    const hash = await scene.session(id, longSession(3))
    const { page, go, wrongs } = await scene.visit()
    await go(hash)
    await page.locator('.row').first().waitFor()
    await scene.remove(id)
    await page.getByText('The files of this session were deleted').waitFor()
    expect(wrongs).toEqual([])
  })

  test('a page of another version loads anew once, and then says so', async () => {
    const { page, context } = await scene.visit()
    const { version }: { version: string } = JSON.parse(
      readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
    )
    let isOld = true
    let loads = 0
    await context.route('**/main.js', async route => {
      loads += 1
      const answer = await route.fetch()
      const body = await answer.text()
      await route.fulfill({ response: answer, body: isOld ? body.replaceAll(`"${version}"`, '"0.0.1"') : body })
    })
    await page.reload()
    await page.getByText('This page is older than its server').waitFor()
    expect(loads).toBe(2)
    isOld = false
    await page.reload()
    await page.locator('.card').first().waitFor()
    expect(await page.getByText('of another version').count()).toBe(0)
  })

  test('the time of a round that runs goes on, whatever else happens', async () => {
    await using _running = await scene.run()
    const begun = { ...sampleEvents['session-created'], goal: 'Take your time' }
    await scene.session('20261125_1', [])
    const at = new Date().toISOString()
    const lines = recorded([begun, sampleEvents['round-started']], '20261125_1').map(event => ({ ...event, at }))
    const path = join(scene.place.records.sessionFolder('20261125_1'), 'journal.ndjson')
    await writeFile(path, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
    const { page } = await scene.visit()
    const facts = page.locator('.card', { hasText: 'Take your time' }).locator('.facts')
    const first = await facts.textContent()
    expect(first).toContain('round 1')
    // By the second of the page's own clock: nothing of the session changes.
    await expect.poll(() => facts.textContent(), { timeout: BOUND_MS }).not.toBe(first)
    await scene.remove('20261125_1')
  })

  test('it can be put on the home screen', async () => {
    const { page } = await scene.visit()
    const session = await page.context().newCDPSession(page)
    const { errors, manifest } = await session.send('Page.getAppManifest')
    expect(errors).toEqual([])
    expect(manifest?.display).toBe('kStandalone')
    const { installabilityErrors } = await session.send('Page.getInstallabilityErrors')
    expect(installabilityErrors.filter(({ errorId }) => errorId !== 'in-incognito')).toEqual([])
  })

  test('a page of another port of this host is given nothing that opens this one', async () => {
    const { page, context } = await scene.visit()
    await page.locator('.card').first().waitFor()
    const sent: IncomingHttpHeaders[] = []
    const other = createServer((request, answer) => {
      sent.push(request.headers)
      answer.setHeader('content-type', 'text/html').end('<!doctype html><title>another</title>')
    })
    await once(other.listen(0, '127.0.0.1'), 'listening')
    try {
      const stranger = await context.newPage()
      await stranger.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)
      expect(sent.length).toBeGreaterThan(0)
      for (const { cookie, authorization } of sent) expect([cookie, authorization]).toEqual([undefined, undefined])
      expect(await stranger.evaluate(() => localStorage.length)).toBe(0)
      const read = (url: string) =>
        fetch(url, { credentials: 'include' }).then(
          answer => `it answers ${answer.status}`,
          () => 'refused',
        )
      expect(await stranger.evaluate(read, `${scene.address}api/now`)).toBe('refused')
      scene.provokes(/status of 401/)
      expect(await page.evaluate(read, '/api/now')).toBe('it answers 401')
    } finally {
      other.close()
      other.closeAllConnections()
    }
  })

  test('the key of a browser stands nowhere in what the page keeps, and cannot be taken out of it', async () => {
    const { page } = await scene.visit()
    const kept = await page.evaluate(async () => {
      const opening = indexedDB.open('codemachine', 1)
      await new Promise(resolve => opening.addEventListener('success', resolve))
      const request = opening.result.transaction('device').objectStore('device').get('device')
      await new Promise(resolve => request.addEventListener('success', resolve))
      const { privateKey } = request.result.keys as CryptoKeyPair
      const taken = await crypto.subtle.exportKey('pkcs8', privateKey).then(
        () => 'taken',
        () => 'refused',
      )
      return { taken, stored: localStorage.length, cookies: document.cookie }
    })
    expect(kept).toEqual({ taken: 'refused', stored: 0, cookies: '' })
  })

  test('a device is let in by a code that is typed on it, and is out when it is ended on the other', async () => {
    await using own = await PageScene.open(browser)
    own.provokes(/status of 40\d/)
    const host = await own.visit({ viewport: DESK })
    await host.go('#/settings')
    await host.page.getByRole('button', { name: 'Pair a device' }).click()
    const code = (await host.page.locator('.code').textContent()) ?? ''
    const guest = await own.stranger()
    expect(await violations(guest.page)).toEqual([])
    await guest.page.getByLabel('Eight-digit code').fill('0000 0000')
    await guest.page.getByRole('button', { name: 'Pair' }).click()
    await guest.page.getByText('No device shows this code at the moment').waitFor()
    await guest.page.getByLabel('Eight-digit code').fill(code)
    await guest.page.getByRole('button', { name: 'Pair' }).click()
    await guest.page.getByText('Now confirm it on the other device').waitFor()
    await host.page.getByRole('button', { name: 'View only' }).click()
    await guest.page.getByText('No sessions yet').waitFor()
    const device = host.page.locator('.device', { hasText: 'view only' })
    await device.getByRole('button').click()
    await guest.page.getByText('Pair this device').waitFor()
    expect([...host.wrongs, ...guest.wrongs].filter(wrong => !wrong.startsWith('console: Failed to load'))).toEqual([])
  })
})
