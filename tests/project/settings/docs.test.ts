import { readFile } from 'node:fs/promises'
import { Validator } from '@cfworker/json-schema'
import { expect, test } from 'vitest'
import { SCHEMAS, schemaText } from '../../../scripts/settings-docs.ts'
import { settingsPage } from '../../../scripts/settings-page.ts'
import { parseToml, tomlTree, tomlValue } from '../../../src/platform/toml.ts'
import { settingInfos } from '../../../src/project/settings/schema.ts'
import { openSettings } from './settings-places.ts'

const page = await readFile(new URL('../../../docs/reference/settings.md', import.meta.url), 'utf8')

const examples = [...page.matchAll(/```toml\n(.*?)```/gs)].map(([, example = '']) => example)

const docs = (name: string) => readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')

test('every setting stands in docs/reference/settings.md with its flag, default and what a project may say, and no other does', () => {
  const rows = [...page.matchAll(/^\| `([\w.]+)` \| (?:`--[\w-]+`)? ?\|.*\|.*\|.*\|/gm)].map(([, toml]) => toml)
  expect(rows.sort()).toEqual(settingInfos.map(({ toml }) => toml).sort())
  expect(settingsPage()).toBe(page)
})

test.each(Object.entries(SCHEMAS))(
  'docs/reference/%s is made from the schema, and takes the examples of the page',
  async (name, schema) => {
    const text = await docs(`reference/${name}`)
    expect(schemaText(schema)).toBe(text)
    const validator = new Validator(JSON.parse(text), '7')
    const pages = name.startsWith('settings')
      ? ['reference/settings.md', 'reference/gates.md', 'guides/local-model.md']
      : ['guides/workflows.md']
    const found = await Promise.all(
      pages.map(async each => [...(await docs(each)).matchAll(/```toml\n(.*?)```/gs)].map(([, toml = '']) => toml)),
    )
    const ours = found.flat().filter(toml => !toml.startsWith('# ~/.codex/'))
    expect(ours).not.toEqual([])
    for (const toml of ours) {
      const value = tomlValue(tomlTree(parseToml(toml, { name })))
      expect([toml, validator.validate(value).errors]).toEqual([toml, []])
      expect(validator.validate({ ...Object(value), nonsense: 1 }).valid).toBe(false)
    }
  },
)

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
