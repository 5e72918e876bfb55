import { expect } from 'vitest'
import { killIfAlive } from '../../support/kill-if-alive.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { test } from '../../support/side-by-side.ts'
import { asTheManagerDoes, withManager, working } from './service-scene.ts'

promise('R51', 'The service works queues off, but not what a person has ended, until they add to it')
test('the service works queues off, but not what a person has ended, until they add to it', async () => {
  await using scene = await openRealScene([working, round(claimDone), round(claimDone), round(claimDone)])
  await withManager(scene)
  await scene.run('service', 'install')
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('queue', 'add', 'one thing')
  running.process.kill('SIGINT')
  await running.ended
  expect((await scene.run('service', 'status')).stdout).toContain('to do    nothing')
  await scene.run('queue', 'add', 'another thing')
  await using service = asTheManagerDoes(scene)
  await service.until(/works off the 2 prompts that wait\n[\s\S]*ended with exit code 0/)
  expect((await scene.run('queue', 'list')).stdout).toContain('The queue is empty')
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).not.toContain('interrupted')
})

promise('R52', 'What was left before the service was installed is not gone on with')
test('what was left before the service was installed is the person’s', async () => {
  await using scene = await openRealScene([working])
  await withManager(scene)
  const { pid } = JSON.parse((await scene.run('--detach', '--json', 'build X')).stdout)
  await killIfAlive(pid)
  await scene.run('service', 'install')
  expect((await scene.run('service', 'status')).stdout).toContain('to do    nothing')
})
