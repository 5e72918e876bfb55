import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startAppServer } from '../../../src/engines/codex/app-server.ts'
import { isAlive } from '../../../src/platform/processes.ts'
import { writePeer } from '../../support/scripted-peer.ts'
import { TestClock } from '../../support/test-clock.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'codemachine-app-server-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('a process that outlives SIGKILL, as one does that hangs in the kernel, is given up after five seconds', async () => {
  const clock = new TestClock()
  const sent: string[] = []
  const server = startAppServer({
    path: await writePeer(folder, `process.stderr.write('stuck\\n'); on.end = () => {}; setInterval(() => {}, 1000)`),
    args: [],
    env: { ...process.env },
    directory: folder,
    clock,
    endMs: 2_000,
    signalTree: (_pid, signal) => {
      sent.push(signal)
    },
  })
  const pid = server.pid ?? 0
  try {
    // One that starts late would write to pipes that are closed by then, and die of it.
    await vi.waitFor(() => expect(server.stderr()).toBe('stuck\n'), { timeout: 30_000 })
    let ended = false
    void server.exit.then(() => {
      ended = true
    })
    const closed = server.close()
    await clock.advance(3_500)
    expect(sent).toEqual(['SIGTERM', 'SIGKILL'])
    await clock.advance(4_000)
    expect(ended).toBe(false)
    await clock.advance(1_500)
    expect(await closed).toEqual({ reason: 'not-ended', stderr: 'stuck\n' })
    expect(await server.exit).toEqual(await closed)
    expect(await server.close()).toEqual(await closed)
    expect(await isAlive(pid, 'linux')).toBe(true)
  } finally {
    process.kill(pid, 'SIGKILL')
  }
})
