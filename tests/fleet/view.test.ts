import { realpathSync } from 'node:fs'
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { SessionOutcome } from '../../src/core/events/outcome.ts'
import { openDatabase } from '../../src/fleet/database.ts'
import { giveBack } from '../../src/fleet/store.ts'
import { followFleet } from '../../src/fleet/view.ts'
import { placesOf } from '../../src/project/world.ts'
import { openRecords, rootOf } from '../../src/session/records/records.ts'
import { takeRunLock } from '../../src/session/records/run-lock.ts'
import { openClient } from '../doors/mcp/mcp-client.ts'
import { serveApi, type Told } from '../doors/page/client.ts'
import { sampleEvents } from '../doors/screen/samples.ts'
import { cliContext } from '../support/cli-context.ts'
import { codemachineHere, startInProcess } from '../support/in-process.ts'
import { type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { created, ended, recorded, resumed, started, worked } from '../support/session-events.ts'
import { type FleetScene, openFleetScene } from './fleet-scene.ts'

const over = (outcome: SessionOutcome) => ({ ...sampleEvents['session-ended'], outcome })
const done = { kind: 'done', verified: false } as const
const within = { timeout: 20_000, interval: 50 }

describe.skipIf(WITHOUT_POSTGRES !== '')(`copies of a fleet's sessions${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const opened = async (): Promise<FleetScene> => {
    const scene = await openFleetScene(cluster)
    onTestFinished(() => scene[Symbol.asyncDispose]())
    return scene
  }
  const copyOf = ({ place }: Pick<FleetScene, 'place'>, id: string) =>
    join(realpathSync(place.env.CODEMACHINE_HOME ?? ''), 'fleet', 'view', id, 'app')

  promise('N11', 'A session of the fleet is shown, steered and answered like one of this machine, by terminal and page')
  test('a session is followed from worker to worker to its end, and can be steered meanwhile as one of here', async () => {
    const scene = await opened()
    const { place, fleet } = scene
    await scene.submit({})
    const first = await scene.take()
    const { id } = first
    await scene.happens(first, created(), started(1))
    await using following = startInProcess(place, ['fleet', 'logs', '-f', id, '--json'], { clock: systemClock })
    await following.event('round-started')
    const here = (...words: string[]) => codemachineHere(place, [...words, '-C', copyOf(scene, id)])
    expect((await codemachineHere(place, ['list', '--all'])).stdout).toContain('No sessions yet.')
    const { session } = JSON.parse((await here('status', '--json')).stdout)
    expect(session).toMatchObject({ id, standing: 'running', round: { round: 1 } })
    const steering = here('steer', 'Use oak.')
    expect(await scene.reply({ code: 'done', message: 'It is told.' })).toEqual({ type: 'steer', text: 'Use oak.' })
    expect(await steering).toMatchObject({ exitCode: 0, stdout: 'It is told.\n' })
    const stopping = here('stop', '--now')
    expect(await scene.reply({ code: 'ending', message: 'It ends already.' })).toEqual({ type: 'stop', now: true })
    expect(await stopping).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('It ends already.') })
    // Its worker gives it back at the end of the round, and the journal says that it ended.
    await scene.happens(first, ended(1, worked), over({ kind: 'interrupted', by: 'SIGTERM' }))
    await giveBack(fleet.database, fleet.queue, first, { reason: 'its worker gave it back' })
    await following.event('session-ended')
    const second = await scene.take('w2')
    await scene.happens(second, resumed(), started(2))
    await following.event('round-started', ({ round }) => round === 2)
    await scene.happens(second, over(done))
    await scene.end(second, { certificate: { format: 'codemachine-done' } })
    const { exitCode, events } = await following.ended
    expect(exitCode).toBe(0)
    expect(events.map(({ type }) => type)).toEqual([
      ...['session-created', 'round-started', 'round-ended', 'session-ended'],
      ...['session-resumed', 'round-started', 'session-ended'],
    ])
    // What is left of it are records like any other's.
    expect(JSON.parse((await here('list', '--json')).stdout)).toMatchObject([{ id, standing: 'ended', outcome: done }])
    const words = (await here('logs', id)).stdout
    expect((await scene.type('logs', id)).stdout).toBe(words)
    const state = join(place.env.CODEMACHINE_HOME ?? '', 'state')
    const [key = ''] = (await readdir(state)).filter(name => name.startsWith('app-'))
    expect(await readFile(join(state, key, 'sessions', id, 'done.json'), 'utf8')).toContain('codemachine-done')
    expect((await readdir(join(state, key))).filter(name => name.endsWith('lock'))).toEqual([])
  })

  test('the report is what its worker has written, else what the journal says', async () => {
    const scene = await opened()
    await scene.submit({}, {})
    const [first, second] = [await scene.take(), await scene.take()]
    expect(await scene.type('report', first.id)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has no log yet: it is being prepared'),
    })
    for (const each of [first, second]) await scene.happens(each, created(), started(1), ended(1, worked), over(done))
    await scene.end(first, { report: '# Done, as its worker says\n' })
    await scene.end(second)
    expect((await scene.type('report', first.id)).stdout).toBe('# Done, as its worker says\n')
    expect((await scene.type('report', second.id)).stdout).toMatch(/^# Done[\s\S]*> build X/)
    expect(JSON.parse((await scene.type('report', first.id, '--json')).stdout)).toMatchObject({ session: first.id })
  })

  test('nothing is run where the copy of a session is', async () => {
    const scene = await opened()
    await scene.submit({})
    const taken = await scene.take()
    await scene.happens(taken, created(), started(1))
    await scene.type('logs', taken.id)
    const refused = await codemachineHere(scene.place, [
      'resume',
      '-C',
      copyOf(scene, taken.id),
      '--codex-bin',
      '/bin/true',
    ])
    expect(refused).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('is only a copy of a session of a fleet'),
    })
    expect(refused.stderr).toContain('codemachine fleet retry')
  })

  test('what a worker of this machine runs is seen once: as it is, and by its copy once it does not run there any more', async () => {
    const scene = await opened()
    const { place, follow } = await serveApi()
    const { context } = place
    await scene.submit({})
    const taken = await scene.take()
    const { id } = taken
    await scene.happens(taken, created(), started(1))
    const directory = join(rootOf(context), 'fleet', 'workers', 'w1', 'sessions', id)
    await mkdir(directory, { recursive: true })
    const own = await openRecords({ ...placesOf(context, directory) })
    const lines = recorded([created(), started(1)]).map(event => JSON.stringify({ ...event, session: id }))
    await mkdir(own.sessionFolder(id), { recursive: true })
    await writeFile(own.journal(id), ['{"format":"codemachine-journal","v":1}', ...lines, ''].join('\n'))
    const cards = ({ data }: Told) => data.cards as { id: string; directory: string }[]
    const directories = (told: Told) => cards(told).map(card => card.directory)
    const alone = await follow('now')
    expect(directories(await alone.until(told => cards(told).length > 0))).toEqual([own.directory])
    const open = () =>
      openDatabase({ url: scene.fleet.url, from: 'a test', mayHoldPassword: false }, { env: {}, most: 2 })
    await using fleet = followFleet(context, { open, onProblem: () => {} })
    await fleet.looked
    const gone = await follow('now')
    expect(directories(await gone.until(told => directories(told).includes('app')))).toEqual(['app'])
    const { platform, pid, clock } = context
    await using _runs = await takeRunLock(own.lock, { platform, pid, now: new Date(clock.now()), directory })
    const again = await follow('now')
    const isOwn = (told: Told) => directories(told).includes(own.directory)
    expect(directories(await again.until(isOwn))).toEqual([own.directory])
  })

  test('a copy goes a week after something was written to it, and not while it is followed', async () => {
    const scene = await opened()
    const { place } = scene
    await scene.submit({}, {})
    const [old, young] = [await scene.take(), await scene.take()]
    for (const each of [old, young]) {
      await scene.happens(each, created(), over(done))
      await scene.end(each)
      await scene.type('logs', each.id)
    }
    await scene.fleet.database.sql(`delete from codemachine.session`)
    const state = join(place.env.CODEMACHINE_HOME ?? '', 'state')
    for (const key of await readdir(state)) {
      const path = join(state, key, 'sessions', old.id, 'journal.ndjson')
      const [then] = [new Date(Date.now() - 8 * 24 * 3_600_000)]
      await utimes(path, then, then).catch(() => {})
    }
    const open = () =>
      openDatabase({ url: scene.fleet.url, from: 'a test', mayHoldPassword: false }, { env: {}, most: 2 })
    await using _ = followFleet(cliContext(place), { open, onProblem: () => {} })
    const copies = () => readdir(join(place.env.CODEMACHINE_HOME ?? '', 'fleet', 'view'))
    await vi.waitUntil(async () => (await copies()).length === 1, within)
    expect(await copies()).toEqual([young.id])
    expect(await readdir(state)).toHaveLength(1)
  })

  test('another agent sees and steers the fleet only where a person has allowed it', async () => {
    const scene = await opened()
    await scene.submit({})
    const taken = await scene.take()
    const { id } = taken
    await scene.happens(taken, created(), started(1))
    const looking = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const slow = scene.fleet.database.transaction(async sql => {
      await sql('lock table codemachine.session')
      locked.resolve()
      await looking.promise
    })
    await locked.promise
    await using client = await openClient(scene.place, { args: ['--fleet'] })
    // The first answer waits for the first look: it says how the session stands.
    const asked = client.call('status')
    await client.call('queue_list')
    looking.resolve()
    await slow
    expect((await asked).value).toMatchObject({ beside: [{ session: { id, standing: 'running' } }] })
    expect((await client.call('status', { session: id })).value.directory).toBe(copyOf(scene, id))
    const steering = client.call('steer', { session: id, text: 'Use oak.' })
    await scene.reply({ code: 'done', message: 'It is told.' })
    expect((await steering).value).toMatchObject({ message: 'It is told.', directory: copyOf(scene, id) })
    await using other = await openClient(scene.place, { args: ['--dir', scene.place.root] })
    expect((await other.call('status', { directory: copyOf(scene, id) })).problem).toContain(
      "is not one of this server's directories",
    )
    expect((await other.call('status', { session: id })).problem).toContain('No sessions in')
  })
})
