import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkFile } from '../src/check.js'
import { main } from '../src/main.js'

/** Writes these files to a fresh directory, and gives the path of the first and the targets that are broken in it. */
async function check(t, files) {
  const directory = await mkdtemp(join(tmpdir(), 'linkcheck-'))
  t.after(() => rm(directory, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  const file = join(directory, Object.keys(files)[0])
  const problems = await checkFile(file)
  return { file, broken: problems.map(problem => `${problem.target}: ${problem.reason}`) }
}

test('a link to a file that is not there is broken', async t => {
  const { broken } = await check(t, { 'page.md': '[a](here.md) [b](gone.md)', 'here.md': '' })
  assert.deepEqual(broken, ['gone.md: no such file'])
})

test('links to other hosts are left alone', async t => {
  const { broken } = await check(t, { 'page.md': '[a](https://example.org/x) [b](mailto:a@example.org)' })
  assert.deepEqual(broken, [])
})

test('the command answers 1 for broken links and names their place', async t => {
  const { file } = await check(t, { 'page.md': 'Text.\n[b](gone.md)' })
  const lines = []
  assert.equal(await main([file], line => lines.push(line)), 1)
  assert.match(lines[0], /page\.md:2: gone\.md: no such file/)
})
