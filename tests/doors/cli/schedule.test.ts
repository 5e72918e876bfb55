import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { runService } from '../../../src/project/service/service.ts'
import { cliContext } from '../../support/cli-context.ts'
import { HandClock } from '../../support/hand-clock.ts'
import { promise } from '../../support/promise.ts'
import { openRealScene, type RealScene } from '../../support/real-scene.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { eventsOf } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { asTheManagerDoes, withManager } from './service-scene.ts'

/** A clock whose waits end when a test says so, at the time that the test sets. */
class SetClock extends HandClock {
  time = 0

  override now(): number {
    return this.time
  }
}

const LOOK_MS = 15_000
const HOUR_MS = 60 * 60_000
const WITHOUT_SERVICE = 'codemachine: The service does not run, so nothing is queued: codemachine service install\n'

const waiting = async (scene: RealScene) => JSON.parse((await scene.run('queue', 'list', '--json')).stdout)

test('a schedule is added, listed and removed; without a service the command says so', async () => {
  await using scene = await openRealScene([])
  const added = await scene.run('schedule', 'add', '0 1 * * 1-5', '--rounds', '4', 'fix', 'it')
  expect(added).toMatchObject({ exitCode: 0, stderr: WITHOUT_SERVICE })
  expect(added.stdout).toMatch(/^Added schedule 1, next .+: fix it\n$/)
  const second = JSON.parse((await scene.run('schedule', 'add', '@hourly', 'look', '--json')).stdout)
  expect(second).toMatchObject({ v: 1, id: '2' })
  expect(Date.parse(second.next) - Date.now()).toBeLessThan(HOUR_MS)
  const listed = (await scene.run('schedule')).stdout.split('\n')
  expect(listed[0]).toMatch(/^1 {2}0 1 \* \* 1-5 {2}next .+ {2}fix it \(4 rounds\)$/)
  const [first] = JSON.parse((await scene.run('schedule', 'list', '--json')).stdout)
  expect(first).toMatchObject({ id: '1', cron: '0 1 * * 1-5', prompt: 'fix it', limits: { rounds: 4 }, last: null })
  expect((await scene.run('schedule', 'rm', '1')).stdout).toBe('Removed schedule 1.\n')
  const gone = await scene.run('schedule', 'rm', '1')
  expect([gone.exitCode, gone.stderr]).toEqual([
    2,
    'codemachine: There is no schedule 1 here. (CM0626)\n  All schedules of this directory: codemachine schedule list\n',
  ])
})

test('`schedule add` refuses a wrong time, and one that never comes, and adds nothing', async () => {
  await using scene = await openRealScene([])
  for (const [cron, words] of [
    ['0 25 * * *', '"0 25 * * *" is not a time in the format of cron: Invalid value for hour: 25.'],
    ['every night', '"every night" is not a time in the format of cron: it has 2 fields.'],
    ['0 0 31 2 *', 'No date ever matches "0 0 31 2 *"; use other fields, such as "0 1 * * 1-5".'],
  ] as const) {
    const { exitCode, stderr } = await scene.run('schedule', 'add', cron, 'fix it')
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(words)])
  }
  expect((await scene.run('schedule', 'list', '--json')).stdout).toBe('[]\n')
})

promise('R64', 'Several missed times of a schedule count once, and a prompt that still waits is not queued again')
test('a time that comes queues the prompt once; missed times count once; a waiting prompt is not doubled', async () => {
  await using scene = await openRealScene([])
  await scene.run('schedule', 'add', '0 * * * *', '--template', 'goal', 'fix it')
  const ending = new AbortController()
  const clock = new SetClock()
  clock.time = Date.now()
  const said: string[] = []
  const root = join(scene.place.home, '.codemachine')
  const running = runService(cliContext(scene.place, { clock, signal: ending.signal }), {
    root,
    say: line => void said.push(line),
    start: async () => ({ pid: 0, exited: new Promise<number>(() => {}) }),
    end: () => {},
  })
  const after = async (ms: number) => {
    await clock.over(LOOK_MS)
    clock.time += ms
    await clock.over(LOOK_MS)
    await clock.over(LOOK_MS)
    return said.splice(0).map(line => line.replace(`${scene.place.directory}: `, ''))
  }
  expect(await after(0)).toEqual([])
  expect(await after(50 * HOUR_MS)).toEqual(['schedule 1 queued 000001', 'works off the prompt that waits'])
  expect(await waiting(scene)).toMatchObject([{ prompt: 'fix it', template: 'goal', schedule: '1' }])
  expect((await scene.run('queue', 'list')).stdout).toBe('000001  fix it (goal, schedule 1)\n')
  expect(await after(HOUR_MS)).toEqual(['schedule 1 adds no prompt, because 000001 still waits'])
  await scene.run('queue', 'rm', '1')
  expect(await after(HOUR_MS)).toEqual(['schedule 1 queued 000002'])
  writeFileSync(join(scene.records(), 'schedules', '1.json'), '{')
  expect(await after(HOUR_MS)).toHaveLength(1)
  expect(await after(HOUR_MS)).toEqual([])
  ending.abort('SIGTERM')
  await clock.over(75_000)
  await running
})

test('the service runs a session for a schedule whose time was missed, and no second one', async () => {
  await using scene = await openRealScene([round(claimDone)])
  await withManager(scene)
  await scene.run('service', 'install')
  await scene.run('schedule', 'add', '0 * * * *', 'fix it')
  const file = join(scene.records(), 'schedules', '1.json')
  const { at, ...rest } = JSON.parse(readFileSync(file, 'utf8'))
  writeFileSync(file, JSON.stringify({ ...rest, at: new Date(Date.parse(at) - 30 * HOUR_MS).toISOString() }))
  {
    await using service = asTheManagerDoes(scene)
    await service.until(/ended with exit code 0/)
  }
  await using again = asTheManagerDoes(scene)
  await again.until(/Watching/)
  const { events } = await scene.run('logs', '--json')
  expect(eventsOf(events, 'session-created').map(({ goal, queued }) => [goal, queued])).toEqual([['fix it', '000001']])
  expect(await waiting(scene)).toEqual([])
})
