import { existsSync } from 'node:fs'
import { readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply } from '../../../src/demo/model/reply.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round, says } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { hold, usageLimitReached } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'
import { untilInFolder } from '../../support/until-in-folder.ts'

promise('O2', 'What a person says from another terminal reaches the running turn, or the next round')
test('what a person says from another terminal reaches the running turn', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([[reply(message('Working.'), hold(gate.promise)), ...round(claimDone)]])
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  const { exitCode, stdout } = await scene.run('steer', 'leave', 'the API 🚀 as it is')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^The agent of round 1 reads it with its next step\.\n$/),
  ])
  gate.resolve()
  const { events } = await running.ended
  expect(eventsOf(events, 'steered')).toMatchObject([{ text: 'leave the API 🚀 as it is', delivered: true, round: 1 }])
  expect(scene.model.requests[1]?.userTexts.at(-1)).toBe('leave the API 🚀 as it is')
})

promise('O132', 'What is said to a run in its first moment is kept, and told')
test('what is said in the first moment after a start is kept, and told', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone), round(claimDone)])
  await scene.run('queue', 'list')
  await using running = scene.start('--json', '--rounds', '3', 'build X')
  await untilInFolder(scene.records(), 'the lock', () => existsSync(join(scene.records(), 'lock')) || null)
  const { exitCode, stderr } = await scene.run('steer', 'mind the gap')
  expect([exitCode, stderr]).toEqual([0, ''])
  const { events } = await running.ended
  expect(eventsOf(events, 'steered')).toMatchObject([{ text: 'mind the gap' }])
  const told = scene.model.requests.flatMap(({ userTexts }) => userTexts)
  expect(told.filter(text => text.includes('mind the gap'))).not.toEqual([])
})

test('with no run there is nothing to steer, and the queue is named instead', async () => {
  await using scene = await openScene([])
  const { exitCode, stderr } = await scene.run('steer', 'hello')
  expect(exitCode).toBe(2)
  expect(stderr).toBe(
    `codemachine: No codemachine runs in ${scene.place.directory}, so there is nothing to steer. (CM0613)\n  To make it a session of its own: codemachine queue add "…"\n`,
  )
})

promise('O2')
test('what is said while no turn takes it is told to the next round', async () => {
  const usedUp = usageLimitReached(Math.round(Date.now() / 1000) + 3600)
  await using scene = await openScene([[usedUp], [says('Here again.')], round(claimDone)])
  await using running = scene.start('--json', '--rounds', '3', 'build X')
  await running.event('waiting')
  const { exitCode, stdout } = await scene.run('steer', 'mind the gap')
  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringMatching(/^The next round reads it first: \d{8}_1 waits \(codemachine retry ends that\)\.\n$/),
  ])
  await scene.run('retry')
  const { events } = await running.ended
  expect(eventsOf(events, 'steered')).toMatchObject([{ delivered: false, round: null }])
  expect(scene.input(2)).toContain('A person says: mind the gap')
})

promise('E9', 'If no round takes what a person says, the command fails')
test('what nobody takes is no success: a person is told to say it again', async () => {
  await using scene = await openRealScene([[reply(message('Working.'), hold(new Promise<never>(() => {})))]])
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  // The run stands still, and is answered for as it would be if it had ended meanwhile.
  running.process.kill('SIGSTOP')
  const control = join(scene.records(), 'control')
  const steering = scene.start('steer', 'too late')
  const sent = async () => (await readdir(control)).find(each => each.endsWith('.json')) ?? null
  const name = await untilInFolder(control, 'the command', sent)
  const late = { delivered: false, kept: false, message: 'The run that it was for has ended.' }
  await writeFile(join(control, 'answer'), JSON.stringify(late))
  await rename(join(control, 'answer'), join(control, name.replace('.json', '.reply.json')))
  const { exitCode, stdout, stderr } = await steering.ended
  expect([exitCode, stdout, stderr]).toEqual([
    2,
    '',
    'codemachine: The run that it was for has ended. (CM0617)\n  If the session continues, send it again; else: codemachine queue add "…"\n',
  ])
})
