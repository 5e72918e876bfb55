import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { commandTree } from '../../scripts/command-tree.ts'
import { commandsPage } from '../../scripts/commands-page.ts'
import { errorsPage } from '../../scripts/errors-page.ts'
import { manPage } from '../../scripts/man-page.ts'
import { brokenLinks, readBook, sectionsToSearch } from '../../scripts/site/book.ts'
import { openSearch } from '../../scripts/site/open-search.ts'
import { errorKinds } from '../../src/base/error-codes.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

test('the page of commands says what the command line has (node scripts/commands-page.ts writes it)', () => {
  expect(readFileSync(join(ROOT, 'docs/reference/commands.md'), 'utf8')).toBe(commandsPage())
})

test('the man page names each command, and is shown without a warning (node scripts/commands-page.ts writes it)', context => {
  const path = join(ROOT, 'man/codemachine.1')
  expect(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).man).toBe('man/codemachine.1')
  expect(readFileSync(path, 'utf8')).toBe(manPage())
  const { stdout, stderr, error } = spawnSync('man', ['--warnings', '-l', path], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '500', MANPAGER: 'cat' },
  })
  if (error !== undefined) return context.skip('this machine has no man')
  expect(stderr).toBe('')
  const { entries, options } = commandTree()
  for (const { words, usage } of entries) expect(stdout).toContain(`codemachine ${words} ${usage}`.trim())
  for (const [term] of options) expect(stdout).toContain(term)
})

test('the page of troubleshooting has every kind of error (node scripts/errors-page.ts writes it)', () => {
  const page = readFileSync(join(ROOT, 'docs/troubleshooting.md'), 'utf8')
  expect(page).toBe(errorsPage(page))
})

test('each command and flag that the troubleshooting of an error names is there', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/commands.md'), 'utf8')
  const commands = new Set([...page.matchAll(/^##+ (.+)$/gm)].map(([, command]) => command))
  const typed = Object.values(errorKinds).flatMap(({ cause, remedy }) =>
    [...`${cause} ${remedy}`.matchAll(/`codemachine ([^`]+)`/g)].map(([, words = '']) => words),
  )
  expect(typed.length).toBeGreaterThan(50)
  for (const words of typed) {
    const [command = ''] = /^[a-z]+(?: [a-z]+)*/.exec(words) ?? []
    if (command !== '' && !command.startsWith('help')) expect(commands).toContain(command)
    for (const [flag] of words.matchAll(/--[a-z-]+/g)) expect(page).toContain(flag)
  }
})

test.each([
  ['CM0302', /^cm0302-/],
  ['cm1103', /^cm1103-/],
  ['codex is not logged in', /^cm0302-/],
  ['codemachine: codex is not logged in (CM0302)', /^cm0302-/],
  ['port in use', /^cm0801-/],
  ['Another codemachine is running here', /^cm0601-/],
  ['no codex found', /^cm0301-/],
  ['usage limit', /usage-limit/],
  ['disk full', /^cm0109-/],
  ['merge conflict', /^cm0513-/],
  ['database cannot be reached', /^cm1103-/],
  ['there is no secret', /^cm0902-/],
  ['max-cost refused no price', /^cm0402-/],
])('a search of the site for "%s" finds what to do first', (typed, anchor) => {
  const search = openSearch(sectionsToSearch(readBook(ROOT).pages))
  const [first] = search(typed)
  expect(first?.id).toMatch(/^troubleshooting\.html#/)
  expect(first?.id.split('#')[1]).toMatch(anchor)
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
