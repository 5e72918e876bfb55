import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findStartFiles } from '../../../src/workspace/context/start-files.ts'
import { workDirectoryForEach } from '../../support/work-directory.ts'

const place = workDirectoryForEach('start-files')

async function found(files: Readonly<Record<string, string | Buffer>>, redact = (text: string) => text) {
  for (const [path, text] of Object.entries(files)) place.write(path, text)
  const { files: told } = await findStartFiles({ root: place.work, redact }, new AbortController().signal)
  return Object.fromEntries(told.map(({ path, text }) => [path, text]))
}

test('says by what a project is started and tested: the most telling first, and nothing of other files', async () => {
  const told = await found({
    'README.md': '# Hello\n\nRun ./start.sh.\n',
    'SERVER_RUN.md': 'Port 8000.\n',
    'start_server.sh': '#!/bin/sh\nuvicorn app:app\n',
    Makefile: 'PORT := 1\n.PHONY: test\ntest lint: app.py\n\tpytest -q\nrun:\n\tpython app.py\n',
    'package.json': JSON.stringify({ scripts: { test: 'vitest', serve: 'node server.js' } }),
    'pyproject.toml': '[project]\nname = "hello"\n[project.scripts]\nhello = "hello:main"\n',
    'compose.yml': 'services: {}\n',
    'app.py': 'print(1)\n',
    'docs/README.md': 'further down\n',
  })
  expect(told).toEqual({
    'SERVER_RUN.md': 'Port 8000.',
    'README.md': '# Hello\n\nRun ./start.sh.',
    'start_server.sh': '#!/bin/sh\nuvicorn app:app',
    Makefile: 'PORT := 1\n.PHONY: test\ntest lint: app.py\n\tpytest -q\nrun:\n\tpython app.py',
    'package.json': '{"scripts":{"test":"vitest","serve":"node server.js"}}',
    'pyproject.toml': '[project]\nname = "hello"\n[project.scripts]\nhello = "hello:main"',
    'compose.yml': 'services: {}',
  })
  expect(Object.keys(told)[0]).toBe('SERVER_RUN.md')
})

test('what cannot be read is said in its place, and no link is followed', async () => {
  place.write('elsewhere.txt', 'not told')
  symlinkSync(join(place.work, 'elsewhere.txt'), join(place.work, 'README.md'))
  mkdirSync(join(place.work, 'start.sh'))
  const told = await found({
    'package.json': '{ "scripts": ',
    'pyproject.toml': '[project\n',
    'README.rst': Buffer.from([0, 1, 2, 3]),
    Makefile: 'all:\n'.repeat(60_000),
  })
  expect(told).toEqual({
    'README.rst': '(It is no text; nothing of it was read.)',
    Makefile: '(It is larger than 256 KiB; nothing of it was read.)',
    'package.json': '{ "scripts":',
    'pyproject.toml': '[project',
  })
})

test('what is told stays within the bound of an event, and has no secrets', async () => {
  const scripts = Array.from({ length: 40 }, (_, n) => [`start-${n}.sh`, `# ${'語'.repeat(6_000)} key-4711\n`] as const)
  const told = await found(Object.fromEntries([...scripts, ['README', 'the key is key-4711']]), text =>
    text.replaceAll('key-4711', '[secret]'),
  )
  expect(told.README).toBe('the key is [secret]')
  const bytes = Buffer.byteLength(JSON.stringify(told))
  expect(bytes).toBeLessThan(60_000)
  expect(bytes).toBeGreaterThan(20_000)
  for (const text of Object.values(told)) expect(text.length).toBeLessThanOrEqual(4_000)
})

test('a project that is gone has nothing to be started by, and a look that is broken off rejects', async () => {
  const project = { root: join(place.work, 'gone'), redact: (text: string) => text }
  expect(await findStartFiles(project, new AbortController().signal)).toEqual({ files: [] })
  place.write('README.md', 'x')
  await expect(findStartFiles({ ...project, root: place.work }, AbortSignal.abort())).rejects.toThrow()
})
