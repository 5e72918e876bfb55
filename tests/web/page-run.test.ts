import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { message, reply } from '../../src/demo/model/reply.ts'
import { hasBrowser, openBrowser, WITHOUT_BROWSER } from '../support/browser.ts'
import { openRealScene } from '../support/real-scene.ts'
import { claimDone, round } from '../support/rounds.ts'
import { askHuman, openRealTeamScene, plans, runShell, works } from '../support/team-scene.ts'
import { openPage } from './page-run-scene.ts'
import { BOUND_MS } from './page-scene.ts'

describe.skipIf(!hasBrowser)(`a session on the page${WITHOUT_BROWSER}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
  })

  test('begins from the page, with a file named by @, and stops there', async () => {
    const never = new Promise<never>(() => {})
    await using scene = await openRealScene([
      round(claimDone),
      [reply(message('Working.'), { kind: 'hold', until: never })],
    ])
    await writeFile(join(scene.place.directory, 'door.md'), '# the door\n')
    expect(await scene.run('--json', 'build X')).toMatchObject({ exitCode: 0 })
    const { page, web } = await openPage(scene, browser)
    await using _ = web
    await page.locator('.card').waitFor()
    await page.getByRole('link', { name: 'New' }).click()
    await page.getByRole('textbox', { name: /^Goal/ }).fill('')
    await page.getByRole('textbox', { name: /^Goal/ }).pressSequentially('Mend @doo')
    await page.getByRole('button', { name: 'door.md' }).click()
    await page.getByRole('textbox', { name: /^Goal/ }).pressSequentially('now')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.locator('.head', { hasText: 'Mend @door.md now' }).waitFor()
    await page.locator('.row', { hasText: 'Working.' }).waitFor()
    await page.getByText('Steer the session').click()
    await page.getByRole('button', { name: 'Stop now' }).click()
    await page.getByText('Sent in a moment: Stop now').waitFor()
    await page.locator('.head', { hasText: 'stopped by a person' }).waitFor()
  })

  test('a team’s plan is taken, and a secret that it needs is given, from the page; the secret stands nowhere', async () => {
    const [key, value] = ['SERVICE_API_KEY', 'sk-live-0123456789abcdef']
    await using scene = await openRealTeamScene({
      planner: [[plans('Ask the service.')]],
      worker: {
        1: [
          [askHuman(key), works({ done: false })],
          [runShell(`test -n "$${key}" && echo it is there`, key), works()],
        ],
      },
    })
    const begun = await scene.run('team', '--detach', '--no-keep-awake', 'ask the service')
    expect(begun.exitCode, begun.stderr).toBe(0)
    const { page, web } = await openPage(scene, browser)
    await using _ = web
    const card = page.locator('.card', { hasText: 'ask the service' })
    await card.getByText('Ask the service.').waitFor()
    expect(await card.textContent()).not.toContain('codemachine decide')
    await page.clock.install()
    await card.getByRole('button', { name: 'Carry it out' }).click()
    await card.getByText('Sent in a moment').waitFor()
    await page.clock.runFor(11_000)
    const field = card.getByLabel(key)
    await field.fill(value)
    await field.press('Enter')
    await page.clock.resume()
    await page.locator('.card', { hasText: 'done — unverified' }).waitFor()
    expect(await page.content()).not.toContain(value)
    // Its end is told before all that it has begun is tidied up.
    await vi.waitFor(() => expect(scene.findLeaks(value)).toEqual([]), { timeout: BOUND_MS, interval: 500 })
  })
})
