import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import axe from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { htmlOf } from '../../../src/tell/report/page/page.ts'
import type { ReportData } from '../../../src/tell/report/report-data.ts'
import { planned, starts } from '../../doors/screen/build/night.ts'
import { hasBrowser, openBrowser, WITHOUT_BROWSER } from '../../support/browser.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { withContract } from './contract-night.ts'
import { HOSTILE, hostileNight } from './hostile-night.ts'
import { badNight, goodNight, HERE, MadeUpNight } from './made-up-night.ts'

let browser: Browser
let place: TestPlace

describe.skipIf(!hasBrowser)(`the page of a report${WITHOUT_BROWSER}`, () => {
  beforeAll(async () => {
    place = await makePlace('', { git: false })
    browser = await openBrowser(place.env)
  })

  afterAll(async () => {
    await browser?.close()
    await place?.[Symbol.asyncDispose]()
  })

  const PHONE = { width: 360, height: 740 }
  const DESKTOP = { width: 1280, height: 900 }

  interface Look {
    viewport: { width: number; height: number }
    colorScheme?: 'light' | 'dark'
    javaScriptEnabled?: boolean
  }

  /** Opens the page of a report as a person does, and watches what it does. */
  async function open(data: ReportData, look: Look) {
    const path = join(place.root, 'report.html')
    await writeFile(path, htmlOf(data, HERE))
    const context = await browser.newContext(look)
    const page = await context.newPage()
    const url = pathToFileURL(path).href
    const noise: string[] = []
    page.on('console', message => noise.push(`console: ${message.text()}`))
    page.on('pageerror', error => noise.push(`error: ${error.message}`))
    page.on('dialog', dialog => noise.push(`dialog: ${dialog.message()}`))
    page.on('request', request => {
      if (request.url() !== url && request.url() !== 'data:,') noise.push(`request: ${request.url()}`)
    })
    await page.goto(url)
    return { page, noise, [Symbol.asyncDispose]: () => context.close() }
  }

  test('on a phone each sentence of a contract is one row, which opens to its check and its wrong version', async () => {
    await using opened = await open(withContract(), { viewport: { width: 390, height: 844 }, colorScheme: 'light' })
    const { page, noise } = opened
    const rows = page.locator('.sentence > summary')
    expect(await rows.count()).toBe(4)
    for (const row of await rows.all()) expect((await row.boundingBox())?.height).toBe(44)
    const weak = page.locator('.sentence').nth(1)
    await weak.locator('summary').click()
    expect(await weak.innerText()).toContain('1 passing')
    expect(await weak.locator('.diff .removed').last().innerText()).toContain('return "dark"')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    await page.evaluate(axe.source)
    const found = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run())
    expect(found.violations.map(({ id }) => id)).toEqual([])
    expect(noise).toEqual([])
  })

  test.each([
    ['hours', (night: MadeUpNight) => night.round({ minutes: 400 })],
    ['seconds', (night: MadeUpNight) => night.round({ minutes: 0.7 })],
  ])('on a phone no two times of the timeline touch: %s', async (_, worked) => {
    await using opened = await open(worked(new MadeUpNight()).report('running'), {
      viewport: { width: 390, height: 844 },
    })
    const { page } = opened
    const boxes = await page.locator('.tick-1 text').evaluateAll(all =>
      all.map(each => {
        const { left, right } = each.getBoundingClientRect()
        return { left, right }
      }),
    )
    expect(boxes.length).toBeGreaterThan(1)
    for (const [at, { left }] of boxes.entries()) expect(left).toBeGreaterThan(boxes[at - 1]?.right ?? 0)
    expect(boxes.at(-1)?.right).toBeLessThanOrEqual(390)
  })

  describe.each([
    ['a phone', { viewport: PHONE, colorScheme: 'light' }],
    ['a desktop', { viewport: DESKTOP, colorScheme: 'dark' }],
    ['a phone without JavaScript', { viewport: PHONE, javaScriptEnabled: false }],
    ['a desktop without JavaScript', { viewport: DESKTOP, javaScriptEnabled: false }],
  ] as const)('on %s', (_, look) => {
    test('the page shows the outcome and three charts with names, fits the width, and asks for nothing', async () => {
      await using opened = await open(goodNight().report(), look)
      const { page, noise } = opened
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(
        'Done, gates pass: verified by 2 gates, reviewed; flaky: tests; your request itself was not checked',
      )
      const charts = page.locator('.numbers').getByRole('img')
      expect(await charts.count()).toBe(3)
      for (const chart of await charts.all()) {
        const box = await chart.boundingBox()
        expect(box?.width).toBeGreaterThan(240)
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(look.viewport.width)
        expect(await chart.locator('path').count()).toBeGreaterThan(5)
      }
      expect(await charts.first().getAttribute('aria-label')).toBe('Time a round, min over the rounds')
      expect(await page.getByRole('columnheader', { name: 'outcome' }).count()).toBe(1)
      // What sticks out shows by its place: the size of the page is not to be had without JavaScript.
      const widest = await page.locator('section').last().boundingBox()
      expect((widest?.x ?? 0) + (widest?.width ?? 0)).toBeLessThanOrEqual(look.viewport.width)
      expect(noise).toEqual([])
    })
  })

  test.each([
    ['a phone', PHONE],
    ['a desktop', DESKTOP],
  ])('on %s nothing of a hostile session is run, nothing is a link, and nothing sticks out', async (_, viewport) => {
    await using opened = await open(hostileNight().report(), { viewport })
    const { page, noise } = opened
    expect(await page.evaluate('window.pwned')).toBeUndefined()
    expect(await page.evaluate('document.scripts.length + document.links.length + document.images.length')).toBe(0)
    expect(
      await page.evaluate('document.querySelectorAll("iframe, base, [onload], [onerror], [onmouseover]").length'),
    ).toBe(0)
    const goal = await page.locator('.goal').innerText()
    expect(goal).toContain('<script>window.pwned = 1</script>')
    expect(await page.locator('.goal').textContent()).toContain('left<U+202E>right<U+2066>␛[31mred')
    expect(HOSTILE).toContain('\u202e')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    expect(noise).toEqual([])
  })

  test('a script that were there all the same would not be run: the page forbids it', async () => {
    await using opened = await open(badNight().report(), { viewport: PHONE })
    const { page } = opened
    await page.evaluate(
      'document.body.append(Object.assign(document.createElement("script"), { text: "window.pwned = 1" }))',
    )
    expect(await page.evaluate('window.pwned')).toBeUndefined()
  })

  test('600 rounds, a long goal and a page that is printed still fit', async () => {
    const night = new MadeUpNight('Port the whole thing, with all its parts.\n'.repeat(60))
    for (let round = 1; round <= 600; round++) night.round({ minutes: 3 + (round % 11) })
    await using opened = await open(night.report('running'), { viewport: PHONE })
    const { page, noise } = opened
    expect(await page.locator('.numbers').getByRole('img').count()).toBe(3)
    expect(await page.locator('.rounds tr.gap').textContent()).toContain('400 rounds left out here')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
    expect(await page.locator('.rounds tr.gap').isVisible()).toBe(false)
    await page.getByText('600 rounds, one by one').click()
    expect(await page.locator('.rounds tr.gap').isVisible()).toBe(true)
    expect((await page.pdf({ format: 'A4' })).length).toBeGreaterThan(10_000)
    expect(noise).toEqual([])
  })

  /** In how many lines the cells of a table's first column are written, the most of them all. */
  const linesOfFirstColumn = (
    table: string,
  ) => `Math.max(...[...document.querySelectorAll("${table} td:first-child")].map(cell => {
  const range = document.createRange()
  range.selectNodeContents(cell)
  return range.getClientRects().length
}))`

  test.each([360, 600, 1280])(
    'at %i px the tables of a build can be read, and a long id does not stick out',
    async width => {
      const night = new MadeUpNight('A shop for tea.', { template: 'build' })
      const long = { id: 'T9'.repeat(100), name: 'x'.repeat(300), phase: 'Building' }
      const [begun, ended, ready] = planned
      if (begun === undefined || ended === undefined || ready?.type !== 'plan-ready')
        throw new Error('No plan is made.')
      const events = [begun, ended, ready, starts('frontend-dev', 1, 'T2')]
      for (const event of events) night.add(event)
      await using opened = await open(night.report('running'), { viewport: { width, height: 800 } })
      const { page } = opened
      expect(await page.evaluate(linesOfFirstColumn('table.tasks'))).toBe(1)
      expect(await page.evaluate(linesOfFirstColumn('table.agents'))).toBeLessThanOrEqual(2)
      night.add({ ...ready, tasks: [long] })
      await using again = await open(night.report('running'), { viewport: { width, height: 800 } })
      expect(await again.page.evaluate('document.documentElement.scrollWidth')).toBe(width)
    },
  )
})
