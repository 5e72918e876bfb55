import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { test } from '../../support/side-by-side.ts'

const BIN = fileURLToPath(new URL('../../../dist/bin.js', import.meta.url))

test('output that is redirected into the work directory does not count as work, so that done can be reached', async () => {
  await using scene = await openRealScene([round(claimDone)])
  const { directory, env } = scene.place
  const log = openSync(join(directory, 'build.log'), 'w')
  const child = spawn(process.execPath, [BIN, '--rounds', '1', 'build X'], {
    cwd: directory,
    env,
    stdio: ['ignore', log, log],
  })
  const [exitCode] = await once(child, 'exit')
  expect(exitCode).toBe(0)
})

promise('O136')
test('a reader that goes away ends the printing and not the work, and a person is told', async () => {
  await using scene = await openRealScene([round('touch a'), round(claimDone)])
  const running = scene.start('--rounds', '3', 'build X')
  running.process.stdout?.once('data', () => running.process.stdout?.destroy())
  const { exitCode, stderr } = await running.ended
  expect(exitCode).toBe(0)
  expect(stderr).toContain('The work continues')
})
