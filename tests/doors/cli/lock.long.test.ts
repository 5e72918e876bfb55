import { readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { expect } from 'vitest'
import { codemachine } from '../../support/codemachine.ts'
import { makePlace, type TestPlace } from '../../support/place.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'
import { recordsOf } from './journaled.ts'

test('beside a run no second one starts, and everything that only looks or asks works', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openRealScene([[held(gate.promise), ...round(claimDone)], round(claimDone)])
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await using following = scene.start('logs', '-f', '--json')
  await following.event('turn-started')

  const refused = new RegExp(
    `^codemachine: Another codemachine \\(pid ${running.pid}\\) is running here since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\. \\(CM0601\\)\n {2}codemachine status shows its work; .*\\n$`,
  )
  for (const args of [['another goal'], ['resume'], []]) {
    const { exitCode, stdout, stderr } = await scene.run(...args)
    expect([exitCode, stdout, stderr], args.join(' ')).toEqual([6, '', expect.stringMatching(refused)])
  }
  expect((await scene.run('queue', 'add', 'goal two')).stdout).toBe('Queued as 000001: goal two\n')
  expect((await scene.run('queue', 'list')).stdout).toBe('000001  goal two\n')
  expect((await scene.run('steer', 'mind the gap')).stdout).toMatch(/reads it with its next step\.\n$/)
  expect(JSON.parse((await scene.run('status', '--json')).stdout)).toMatchObject({
    runner: { pid: running.pid },
    session: { standing: 'running', round: { round: 1 } },
    queued: 1,
  })
  expect(JSON.parse((await scene.run('list', '--json')).stdout)).toMatchObject([{ standing: 'running' }])

  gate.resolve()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-created').map(({ goal }) => goal)).toEqual(['build X', 'goal two'])
  const first = events[0]?.session
  const followed = await following.ended
  expect(followed.events).toEqual(events.filter(({ session }) => session === first))
})

/** The lock of a codemachine that was killed in this place. */
async function lockOfKilled(place: TestPlace): Promise<{ path: string; lock: object }> {
  const { lock: path } = await recordsOf(place)
  const holder = { pid: process.pid, startTime: '1', host: hostname(), bootId: null, at: '2026-11-20T23:00:00.000Z' }
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => '')
  return { path, lock: { ...holder, bootId: boot.trim() || null, nonce: 'n' } }
}

describe('a lock whose holder is gone is taken over', () => {
  test.each<[string, object]>([
    ['its pid is another process now', {}],
    ['no process has its pid', { pid: 4_194_305 }],
    ['the machine was started again', { bootId: 'before' }],
  ])('%s', async (_what, changes) => {
    await using scene = await openScene([round(claimDone)])
    const { path, lock } = await lockOfKilled(scene.place)
    await writeFile(path, JSON.stringify({ ...lock, ...changes }))
    expect(await scene.run('build X')).toMatchObject({ exitCode: 0, stderr: '' })
    await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

test('a lock that cannot be judged, or cannot be read, stops a run in one sentence and stays', async () => {
  await using place = await makePlace('')
  const { path, lock } = await lockOfKilled(place)
  const elsewhere = JSON.stringify({ ...lock, host: 'laptop', bootId: 'its own', pid: 4711 })
  for (const [text, said] of [
    [
      elsewhere,
      /^codemachine: Another codemachine \(pid 4711 on laptop\) is running here since .+\. \(CM0601\)\n {2}codemachine cannot look at another machine or container; .+ delete .+\/lock\.\n$/,
    ],
    [
      'rubbish',
      /^codemachine: .+\/lock is not a lock of codemachine; if no codemachine runs here, delete it\. \(CM0602\)\n$/,
    ],
  ] as const) {
    await writeFile(path, text)
    const { exitCode, stdout, stderr } = await codemachine(place, ['build X'])
    expect([exitCode, stdout, stderr]).toEqual([6, '', expect.stringMatching(said)])
    expect(await readFile(path, 'utf8')).toBe(text)
  }
  await rm(path)
})
