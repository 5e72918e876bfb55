import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const file = name => fileURLToPath(new URL(`../${name}`, import.meta.url))

async function run(...args) {
  const [code] = await once(fork(file('bin/reading-list.js'), args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] }), 'exit')
  return code
}

test('the command writes the page', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'reading-list-'))
  t.after(() => rm(folder, { recursive: true }))
  const page = join(folder, 'index.html')
  assert.equal(await run(file('books.json'), page), 0)
  assert.match(await readFile(page, 'utf8'), /C\+\+ &lt;in&gt; a Nutshell &amp; Beyond/)
})

test('the command answers 1 if there is no list, and 2 if it was called wrongly', async () => {
  assert.equal(await run('gone.json', 'page.html'), 1)
  assert.equal(await run(), 2)
})
