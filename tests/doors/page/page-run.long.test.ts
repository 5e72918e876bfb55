import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { functionCall, message, reply, shell, updatePlan } from '../../../src/demo/model/reply.ts'
import { hasBrowser, openBrowser, WITHOUT_BROWSER } from '../../support/browser.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { askHuman, openRealTeamScene, plans, runShell, works } from '../../support/team-scene.ts'
import { openPage } from './page-run-scene.ts'
import { BOUND_MS, DESK, PHONE } from './page-scene.ts'

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
    await page.getByText('More', { exact: true }).click()
    await page.getByRole('button', { name: 'Stop now' }).click()
    await page.getByText('Sent in a moment: Stop now').waitFor()
    await page.locator('.head', { hasText: 'stopped by a person' }).waitFor()
  })

  test.each([
    ['a phone', PHONE],
    ['a desk', DESK],
  ] as const)(
    'on %s, what an ended session assumed is fine, for every device, or is done otherwise in a new session',
    async (_, viewport) => {
      const asks = (question: string, assumption: string) =>
        reply(functionCall('ask_person', { question, options: [], assumption }))
      await using scene = await openRealScene([
        [asks('Which database?', 'SQLite is enough'), asks('Which name?', 'It is called app'), ...round(claimDone)],
        round(claimDone),
        round(claimDone),
        round(claimDone),
      ])
      expect(await scene.run('--json', 'build a shop')).toMatchObject({ exitCode: 0 })
      const { page, web } = await openPage(scene, browser, viewport)
      await using _web = web
      const check = page.getByRole('region', { name: 'Check these' })
      await check.locator('.card', { hasText: 'build a shop' }).waitFor()
      expect(await page.getByRole('region', { name: 'Needs you' }).count()).toBe(0)

      await page.clock.install()
      await check.getByRole('region', { name: 'Assumption Q1' }).getByRole('button', { name: 'Fine' }).click()
      await check.getByText('Sent in a moment: Fine').waitFor()
      await page.clock.runFor(11_000)
      await page.clock.resume()
      await check.getByText('SQLite is enough').waitFor({ state: 'detached' })
      expect(JSON.parse((await scene.run('questions', '--json')).stdout)).toMatchObject([{ text: 'Which name?' }])
      await page.reload()
      const name = check.getByRole('region', { name: 'Assumption Q2' })
      await name.getByText('Do it differently').click()
      expect(await check.getByText('SQLite is enough').count()).toBe(0)

      await name.getByText('This begins a new session.').waitFor()
      await name.getByLabel(/^What should the agent do instead/).fill('Call it corner shop.')
      await name.getByRole('button', { name: 'Begin a session' }).click()
      await name.getByText('Sent in a moment: Call it corner shop.').waitFor()
      await page.clock.runFor(11_000)
      const next = page.locator('.card', { hasText: '– Call it corner shop.' })
      await next.filter({ hasText: 'done, not verified' }).waitFor()
      expect(await check.count()).toBe(0)
      const told = scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')
      expect(told).toMatch(/> It is called app\n[\s\S]+My answer is:\n\nCall it corner shop\./)
    },
  )

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
    await page.locator('.card', { hasText: 'done, not verified' }).waitFor()
    expect(await page.content()).not.toContain(value)
    // Its end is told before all that it has begun is tidied up.
    await vi.waitFor(() => expect(scene.findLeaks(value)).toEqual([]), { timeout: BOUND_MS, interval: 500 })
  })

  test('is watched word by word, told, paused, given more and other work, and proved again, all from a phone', async () => {
    const opened = Promise.withResolvers<void>()
    const words = Array.from({ length: 60 }, (_, n) => `word${n}`).join(' ')
    await using scene = await openRealScene([
      [
        reply(
          updatePlan([
            { step: 'Look around', status: 'in_progress' },
            { step: 'Build it', status: 'pending' },
          ]),
        ),
        held(opened.promise),
        {
          // Of what a command prints codex may leave out the first part.
          ...reply(
            message(words, { chunkSize: 12 }),
            shell('until [ -e go ]; do sleep 0.2; echo it goes on; done', { yieldMs: 30_000 }),
          ),
          deltaMs: 150,
        },
        ...round('echo one > one.txt'),
      ],
      round('echo two > two.txt', claimDone),
      round(claimDone),
    ])
    await using running = scene.start('--json', '--verify', 'test -e one.txt', '--rounds', '5', 'build X')
    await running.event('turn-started')
    const { page, web } = await openPage(scene, browser)
    await using _ = web
    await page.locator('.card').getByRole('link').click()

    await page.locator('.row', { hasText: 'Working.' }).waitFor()
    opened.resolve()
    // Its words are there before all of them are said, then what its command prints, while that runs.
    const live = page.locator('.live pre')
    await live.filter({ hasText: 'word1' }).first().waitFor()
    await live.filter({ hasText: 'it goes on' }).waitFor()
    // Whoever comes again sees what was printed meanwhile, too.
    await page.reload()
    await live.filter({ hasText: 'it goes on' }).waitFor()
    await page.locator('.markdown', { hasText: 'word59' }).waitFor()
    await page.getByText('Plan of the round').waitFor()

    await page.getByLabel('Tell the agent').fill('Mind the doors.')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.row', { hasText: 'Mind the doors.' }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Continue', exact: true }).click()
    await page.locator('.row', { hasText: 'continuing' }).waitFor()

    await page.getByText('More', { exact: true }).click()
    const limits = page.getByRole('group', { name: /New total limit/ })
    await limits.getByLabel('Rounds').fill('many')
    await limits.getByRole('button', { name: 'Change' }).click()
    await page.getByText('Not a valid limit').waitFor()
    await limits.getByLabel('Rounds').fill('7')
    await limits.getByRole('button', { name: 'Change' }).click()
    await page.getByText(/of 7/).first().waitFor()

    await page.getByRole('link', { name: 'Work' }).click()
    for (const prompt of ['First', 'Second']) {
      await page.getByLabel('Prompt').fill(prompt)
      await page.getByRole('button', { name: 'Add', exact: true }).click()
      await page.locator('.waiting', { hasText: prompt }).waitFor()
    }
    const waiting = page.locator('.waiting')
    await waiting
      .nth(1)
      .getByRole('button', { name: /^Earlier/ })
      .click()
    await waiting.first().getByText('Second').waitFor()
    await waiting.first().getByRole('button', { name: /^Edit/ }).click()
    await waiting.first().getByLabel('Prompt').fill('Another second')
    await waiting.first().getByRole('button', { name: 'Save' }).click()
    await waiting.first().getByText('Another second').waitFor()
    for (const left of [1, 0]) {
      await waiting
        .first()
        .getByRole('button', { name: /^Remove/ })
        .click()
      await waiting.nth(left).waitFor({ state: 'detached' })
    }

    await writeFile(join(scene.place.directory, 'go'), '')
    const { exitCode, events } = await running.ended
    expect(exitCode).toBe(0)
    expect(eventsOf(events, 'steered')).toMatchObject([{ text: 'Mind the doors.' }])
    expect(eventsOf(events, 'settings-taken')).toMatchObject([{ limits: { rounds: 7 } }])

    await page.getByRole('link', { name: 'Work' }).click()
    await page.locator('.round', { hasText: 'Round 2' }).waitFor()
    await page.getByRole('link', { name: 'Changes', exact: true }).click()
    await page.locator('.file', { hasText: 'one.txt' }).click()
    await page.locator('.diff-line.added', { hasText: 'one' }).waitFor()
    await page.getByRole('link', { name: 'Work' }).click()
    await page.locator('.task.done', { hasText: 'build it' }).waitFor()
    await page.getByRole('link', { name: 'Report' }).click()
    await page.frameLocator('iframe.report').getByText('build X').first().waitFor()
    await page.getByRole('link', { name: 'Proof' }).click()
    await page.getByRole('button', { name: 'Verify again' }).click()
    await page.locator('.verified', { hasText: 'still true' }).waitFor()

    // What a person undoes is seen before it is done.
    await page.getByRole('link', { name: 'Changes', exact: true }).click()
    await page.getByText('Rewind the files').click()
    await page
      .getByLabel('Restore the files of')
      .selectOption({ index: -1 + (await page.locator('.rewind option').count()) })
    await page.getByRole('button', { name: 'Preview the changes' }).click()
    await page.getByRole('button', { name: /^Rewind to/ }).click()
    await page.getByText(/To undo this, rewind to/).waitFor()
  })
})
