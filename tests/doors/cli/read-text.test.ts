import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'vitest'
import { BIN, codemachine } from '../../support/codemachine.ts'
import { makePlace } from '../../support/place.ts'
import { describe, test } from '../../support/side-by-side.ts'

describe('a person ends, with one signal, what waits for standard input', () => {
  test.each([
    ['SIGINT', 130, ['-']],
    ['SIGTERM', 143, ['-']],
    ['SIGINT', 130, ['queue', 'add', '-']],
    ['SIGINT', 130, ['steer', '-']],
  ] as const)('%s, exit code %i: codemachine %j', async (signal, code, args) => {
    await using place = await makePlace('')
    const child = spawn(process.execPath, [BIN, ...args], { cwd: place.directory, env: place.env })
    try {
      const closed = once(child, 'close', { signal: AbortSignal.timeout(20_000) })
      let said = ''
      child.stderr.setEncoding('utf8').on('data', text => {
        said += text
      })
      child.stdin.on('error', () => {})
      // More than a pipe holds: once all of it is gone, it is being read.
      await new Promise(resolve => child.stdin.write('x'.repeat(1_000_000), resolve))
      child.kill(signal)
      expect(await closed).toEqual([code, null])
      expect(said).toBe('')
    } finally {
      child.kill('SIGKILL')
    }
    expect((await codemachine(place, ['queue', 'list', '--json'])).stdout).toBe('[]\n')
  })
})
