import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { claimDone, held, round } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'

/** A session that is in its first round, which is done as soon as the gate opens. */
async function inFirstRound(): Promise<{ scene: Scene; open: () => void }> {
  const gate = Promise.withResolvers<void>()
  const scene = await openScene([[held(gate.promise), ...round(claimDone)], round(claimDone), round(claimDone)])
  return { scene, open: () => gate.resolve() }
}

test('a stop that was asked for in a session holds although that session ends as done: what waits is kept', async () => {
  const { scene, open } = await inFirstRound()
  await using _ = scene
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('queue', 'add', 'then Y')
  expect((await scene.run('stop')).exitCode).toBe(0)
  open()
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-created')).toHaveLength(1)
  expect((await scene.run('queue', 'list')).stdout).toContain('then Y')
})

test('a pause holds the next session too, until a person goes on', async () => {
  const { scene, open } = await inFirstRound()
  await using _ = scene
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('queue', 'add', 'then Y')
  await scene.run('pause')
  open()
  await running.event('session-created', ({ goal }) => goal === 'then Y')
  await running.event('paused', ({ session }) => session.endsWith('_2'))
  expect((await scene.run('unpause')).exitCode).toBe(0)
  const { exitCode, events } = await running.ended
  expect(exitCode).toBe(0)
  const types = events.filter(({ session }) => session.endsWith('_2')).map(({ type }) => type)
  expect(types.indexOf('unpaused')).toBeLessThan(types.indexOf('round-started'))
})

test('what waits behind a session that goes on does not get the rights which that one was begun with', async () => {
  const { scene, open } = await inFirstRound()
  await using _ = scene
  {
    await using running = scene.start('--json', '--yolo', '--effort', 'high', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    await scene.run('stop', '--now')
    await running.ended
  }
  open()
  await scene.run('queue', 'add', 'then Y')
  const { exitCode, events } = await scene.run('resume', '--json')
  expect(exitCode).toBe(0)
  expect(eventsOf(events, 'session-resumed')).toMatchObject([
    { said: { sandbox: 'danger-full-access', effort: 'high' } },
  ])
  expect(eventsOf(events, 'session-created')).toMatchObject([
    { goal: 'then Y', sandbox: 'workspace-write', network: false, effort: null, said: {} },
  ])
})

test('a session that goes on in a narrower sandbox does not keep the network of the wider one', async () => {
  const { scene, open } = await inFirstRound()
  await using _ = scene
  {
    await using running = scene.start('--json', '--yolo', '--max-usage', '90', '--max-wait', '2h', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    await scene.run('stop', '--now')
    await running.ended
  }
  open()
  const { events } = await scene.run('resume', '--json', '--sandbox', 'workspace-write')
  expect(eventsOf(events, 'session-resumed')[0]?.said).toEqual({
    sandbox: 'workspace-write',
    maxUsage: 90,
    maxWaitMs: 7_200_000,
  })
})

test('a setting that was mended in a file counts when the session goes on', async () => {
  const { scene, open } = await inFirstRound()
  await using _ = scene
  const project = join(scene.place.directory, 'codemachine.toml')
  await writeFile(project, 'model = "wrong"\n')
  {
    await using running = scene.start('--json', 'build X')
    await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
    await scene.run('stop', '--now')
    await running.ended
  }
  open()
  await writeFile(project, 'model = "right"\n')
  const { events } = await scene.run('resume', '--json')
  expect(eventsOf(events, 'round-started')).toMatchObject(
    [{ model: 'right' }, { model: 'right' }].slice(0, eventsOf(events, 'round-started').length),
  )
  expect(existsSync(project)).toBe(true)
})
