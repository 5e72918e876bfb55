import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { commandsPage } from '../../scripts/commands-page.ts'
import { brokenLinks, readBook } from '../../scripts/site/book.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

test('the page of commands says what the command line has (node scripts/commands-page.ts writes it)', () => {
  expect(readFileSync(join(ROOT, 'docs/reference/commands.md'), 'utf8')).toBe(commandsPage())
})

test('each page is named by the map, and each link leads to a page and a heading that are there', () => {
  const book = readBook(ROOT)
  expect(book.pages.length).toBeGreaterThan(30)
  expect(brokenLinks(ROOT, ['README.md', ...book.pages.map(({ path }) => `docs/${path}`)])).toEqual([])
})

test('a link to a page or a heading that is not there is told with its file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-docs-'))
  try {
    await writeFile(join(folder, 'a.md'), '# A\n\n[b](b.md), [here](#a), [there](#there), [far](https://example.org)\n')
    expect(brokenLinks(folder, ['a.md'])).toEqual(['a.md: b.md is not there', 'a.md: a.md has no heading #there'])
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
