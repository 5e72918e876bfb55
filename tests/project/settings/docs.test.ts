import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { settingsPage } from '../../../scripts/settings-page.ts'
import { settingInfos } from '../../../src/project/settings/schema.ts'
import { openSettings } from './settings-places.ts'

const page = await readFile(new URL('../../../docs/reference/settings.md', import.meta.url), 'utf8')

const examples = [...page.matchAll(/```toml\n(.*?)```/gs)].map(([, example = '']) => example)

test('every setting stands in docs/reference/settings.md with its flag, default and what a project may say, and no other does', () => {
  const rows = [...page.matchAll(/^\| `([\w.]+)` \| (?:`--[\w-]+`)? ?\|.*\|.*\|.*\|/gm)].map(([, toml]) => toml)
  expect(rows.sort()).toEqual(settingInfos.map(({ toml }) => toml).sort())
  expect(settingsPage()).toBe(page)
})

test('the config.toml for a night on that page is one', async () => {
  await using settings = await openSettings()
  await settings.person(examples[0] ?? '')
  expect((await settings.load()).settings).toMatchObject({
    maxTime: 9 * 60 * 60 * 1000,
    notify: { command: ['notify-send', 'codemachine'], events: ['ended', 'needs-person', 'waiting', 'stuck'] },
  })
})

test('a project may say the gates in docs/gates.md, and every key of one stands there', async () => {
  const page = await readFile(new URL('../../../docs/reference/gates.md', import.meta.url), 'utf8')
  const [, gates = ''] = /```toml\n(.*?)```/s.exec(page) ?? []
  await using settings = await openSettings()
  await settings.project(gates)
  expect((await settings.load()).gates).toMatchObject([
    {
      name: 'tests',
      run: 'npm test',
      timeoutMs: 1_200_000,
      required: true,
      protect: ['tests/**', 'vitest.config.ts', 'package.json'],
    },
    { name: 'lint', timeoutMs: 600_000, required: false, everyRound: true },
  ])
  await settings.project('[[gates]]\nrun = "a"\nwhatever = 1\n')
  const [, keys = ''] = /the known ones are (.*)\./.exec(await settings.sentence()) ?? []
  expect([...page.matchAll(/^\| `(\w+)`/gm)].map(([, key]) => key).sort()).toEqual(keys.split(', ').sort())
})
