import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'

promise('O151')
test('a codex that never answers is waited for ten seconds, and the conversations with others are listed', async () => {
  await using place = await makePlace('')
  const folder = join(place.home, '.claude', 'projects', place.directory.replace(/[^a-zA-Z0-9]/g, '-'))
  await mkdir(folder, { recursive: true })
  const line = { type: 'user', cwd: place.directory, message: { role: 'user', content: 'Add the discount.' } }
  await writeFile(join(folder, '290e3929.jsonl'), JSON.stringify(line))
  const silent = join(place.root, 'codex')
  const script = '#!/bin/sh\n[ "$1" = --version ] && echo codex-cli 0.169.0 && exit\nexec sleep 60\n'
  await writeFile(silent, script, { mode: 0o755 })
  const { exitCode, stdout, stderr } = await codemachineHere(place, ['adopt', '--codex-bin', silent])
  expect(exitCode).toBe(0)
  expect(stderr).toContain('The conversations of codex cannot be read: codex did not answer')
  expect(stdout).toMatch(/^290e3929 {2}Claude Code {2}.*Add the discount\.\n/)
})
