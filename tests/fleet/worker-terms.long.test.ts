import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe as describeInOrder, expect } from 'vitest'
import { PLAN } from '../support/change-work.ts'
import { hasPostgres, type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { processesOf } from '../support/processes.ts'
import { promise } from '../support/promise.ts'
import { eventsOf } from '../support/scene.ts'
import { describe, test } from '../support/side-by-side.ts'
import { rowOf } from './submissions.ts'
import { endOf, expectDoneOnce, openWorkerScene, WRITTEN } from './worker-scene.ts'

describeInOrder.skipIf(!hasPostgres)(`a worker of a fleet${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const open = (options?: Parameters<typeof openWorkerScene>[1]) => openWorkerScene(cluster, options)

  describe('a session that is cancelled', () => {
    test('while it is made ready is over at once', async () => {
      await using scene = await open()
      scene.hold('fetch')
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.until('git fetches', () => existsSync(join(scene.place.root, 'control', 'fetch-begun')))
      await scene.type('cancel', id)
      expect(await scene.untilIs(id, 'cancelled')).toMatchObject({ events: '0', branch: null })
      await a.said(/is left: it was cancelled/)
      await endOf(scene, a)
      expect(processesOf(scene.place)).toEqual([])
    })
  })

  describe('gives a session no more than its own settings allow:', () => {
    test('neither a wider sandbox nor the network, and says so', async () => {
      await using scene = await open()
      const job = {
        goal: 'Write.',
        template: null,
        gates: [],
        limits: {},
        sandbox: 'danger-full-access',
        network: true,
      }
      const [id = ''] = await scene.submit({ job: job as never })
      await using a = scene.start('a', ['--once'])
      expect(await a.ended).toBe(0)
      await expectDoneOnce(scene, id)
      expect(a.text).toContain('It asks for the sandbox danger-full-access, but gets workspace-write')
      expect(a.text).toContain('It asks for the network, but this worker does not allow it')
      const given = scene.heard('turn').map(({ params }) => params.sandboxPolicy)
      expect(given).toHaveLength(3)
      for (const each of given) expect(each).toMatchObject({ type: 'workspaceWrite', networkAccess: false })
      const threads = scene.heard('thread').map(({ params }) => params.sandbox)
      expect(threads).not.toContain('danger-full-access')
    })

    test('no template that they do not name', async () => {
      await using scene = await open({ person: '[fleet]\ntemplates = ["build"]\n' })
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a', ['--once'])
      expect(await a.ended).toBe(0)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ state: 'waiting', epoch: 0, faults: 0 })
      // As an earlier codemachine has queued it, which did not say what it wants.
      const { sql } = scene.fleet.database
      await sql(
        `insert into codemachine_queue.queue select (jsonb_populate_record(q, '{"name": "sessions-1"}')).* from codemachine_queue.queue q where name = 'sessions-1/_goal'`,
      )
      await sql(`update codemachine_queue.job set name = 'sessions-1' where data ->> 'session' = $1`, [id])
      await using b = scene.start('b', ['--once'])
      expect(await b.ended).toBe(0)
      expect(await rowOf(scene.fleet, id)).toMatchObject({
        state: 'waiting',
        reason: 'b does not run its template',
        epoch: 1,
        faults: 0,
      })
      expect(scene.heard('thread')).toEqual([])
    })

    test('and nothing that leads to the database', async () => {
      await using scene = await open()
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a', ['--once'], { env: { PGPASSWORD: 'not-a-secret', PGUSER: 'postgres' } })
      expect(await a.ended).toBe(0)
      await expectDoneOnce(scene, id)
      const names = scene.heard('turn').flatMap(({ env }) => env)
      expect(names).toContain('PATH')
      expect(names.filter(name => /^PG|CODEMACHINE_QUEUE/.test(name))).toEqual([])
    })
  })

  describe('with what cannot be begun:', () => {
    test.each([
      ['a job that cannot be read', { job: { goal: 5 } as never }, 'Its job cannot be read'],
      ['a branch that is not there', { ref: 'nope' }, 'There is no nope in'],
      ['an address that is an option', { repo: '--upload-pack=touch /tmp/x' }, 'is not the address of a repository'],
      ['a branch that is an option', { ref: '--exec=x' }, 'is not the name of a branch'],
    ])('%s is dead, with its reason', async (_what, change, reason) => {
      await using scene = await open()
      const [id = ''] = await scene.submit(change)
      await using a = scene.start('a', 'repo' in change ? ['--repos', '**'] : [])
      expect((await scene.untilIs(id, 'dead')).reason).toContain(reason)
      await endOf(scene, a)
    })

    test('of an empty repository there is nothing to begin with', async () => {
      await using scene = await open()
      const [id = ''] = await scene.submit({ repo: scene.url(scene.repository('nothing', 'empty')) })
      await using a = scene.start('a')
      expect((await scene.untilIs(id, 'dead')).reason).toContain('There is no main in')
      await endOf(scene, a)
    })

    test('a repository that is gone is tried again, and found when it is back', async () => {
      await using scene = await open()
      renameSync(scene.repo, `${scene.repo}.away`)
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.until('it was tried', async () => (await rowOf(scene.fleet, id)).faults === 1)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ state: 'waiting' })
      renameSync(`${scene.repo}.away`, scene.repo)
      await expectDoneOnce(scene, id)
      await endOf(scene, a)
    })
  })

  test('hands what a person says on to the round, and keeps it until there is one', async () => {
    await using scene = await open()
    scene.hold('turn')
    scene.hold('fetch')
    const [id = ''] = await scene.submit({})
    await using a = scene.start('a')
    await scene.until('git fetches', () => existsSync(join(scene.place.root, 'control', 'fetch-begun')))
    const first = scene.type('steer', id, 'use the small hammer')
    scene.letGo('fetch')
    await scene.untilAtWork('a', id)
    expect(await first).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await scene.type('steer', id, 'and the long nails')).toMatchObject({ exitCode: 0, stderr: '' })
    await scene.until('both are heard', () => {
      const all = JSON.stringify([...scene.heard('turn'), ...scene.heard('steer')].map(({ params }) => params))
      return all.includes('small hammer') && all.includes('long nails')
    })
    scene.letGo('turn')
    await expectDoneOnce(scene, id)
    await endOf(scene, a)
  })

  test('makes the decision that a person has sent, and says what cannot be chosen', async () => {
    await using scene = await open()
    const plan = JSON.stringify({ ...PLAN, verification: [{ run: 'grep -q line work.txt', why: 'it is written' }] })
    const planner = await scene.peer(`on['turn/start'] = (id, params) => {
      send({ id, result: { turn: { id: TURN } } }); started(); hear('turn', params); message(${JSON.stringify(plan)}); completed()
    }`)
    const [id = ''] = await scene.submit({ job: { goal: 'Limit it.', template: 'change', gates: [], limits: {} } })
    await using a = scene.start('a', [], { peer: planner })
    const asked = async () => eventsOf(await scene.events(id), 'decision-asked')
    await scene.until('it asks', async () => (await asked()).length === 1)
    expect((await scene.type('show', id)).stdout).toContain(`codemachine fleet answer ${id} accept|change|stop\n`)
    expect(await scene.type('answer', id, 'gladly')).toMatchObject({ exitCode: 2 })
    expect(await scene.type('answer', id, 'change', 'no new packages')).toMatchObject({ exitCode: 0, stderr: '' })
    await scene.until('it asks of another plan', async () => (await asked()).length === 2)
    expect(JSON.stringify(scene.heard('turn').at(-1)?.params)).toContain('no new packages')
    // Where it waits for a person, it is cancelled at once.
    await scene.type('cancel', id)
    await scene.untilIs(id, 'cancelled')
    await endOf(scene, a)
    expect(processesOf(scene.place)).toEqual([])
  })

  test('takes what its --repos and --tags allow, and leaves the rest to others', async () => {
    await using scene = await open()
    const shop = scene.repository('shop')
    const [app = '', gpu = '', other = ''] = await scene.submit({}, { tags: ['gpu'] }, { repo: scene.url(shop) })
    await using a = scene.start('a', ['--once', '--repos', '**/app.git'])
    await using b = scene.start('b', ['--tags', 'gpu', '--repos', 'ssh://machine/**/s*.git'])
    expect(await a.ended).toBe(0)
    await expectDoneOnce(scene, app)
    await scene.untilIs(other, 'ended')
    expect(scene.result(other, shop)).toBe(WRITTEN)
    expect([(await rowOf(scene.fleet, app)).worker, (await rowOf(scene.fleet, other)).worker]).toEqual(['a', 'b'])
    expect(await rowOf(scene.fleet, gpu)).toMatchObject({ state: 'waiting' })
    await endOf(scene, b)
    await using c = scene.start('c', ['--once', '--tags', 'linux,gpu'])
    expect(await c.ended).toBe(0)
    await expectDoneOnce(scene, gpu)
  })

  promise('N15', "A job's own mistake stops no worker")
  test('with no other right than to work goes on where others have mistyped a branch, a repository or a template', async () => {
    await using scene = await open()
    const bad = { ref: 'nope', priority: 9 }
    const gone = { repo: `${scene.url()}.gone`, priority: 8 }
    const strange = { job: { goal: 'Write.', template: 'sorcery', gates: [], limits: {} }, priority: 9 }
    const [, , third = '', away = '', unknown = '', good = ''] = await scene.submit(bad, bad, bad, gone, strange, {})
    const { url } = await cluster.login('night', 'in role codemachine_work', scene.fleet.url)
    await using a = scene.start('a', ['--slots', '1'], { env: { CODEMACHINE_QUEUE: url } })
    await expectDoneOnce(scene, good)
    await a.said(/takes no sessions of ssh:.*\.gone for 10 min/)
    expect(await rowOf(scene.fleet, third)).toMatchObject({ state: 'dead' })
    expect(await rowOf(scene.fleet, away)).toMatchObject({ state: 'waiting', faults: 3 })
    expect(await rowOf(scene.fleet, unknown)).toMatchObject({ state: 'waiting', epoch: 0 })
    expect(a.text).not.toMatch(/takes no sessions for/)
    const [next = ''] = await scene.submit({})
    await expectDoneOnce(scene, next)
    await endOf(scene, a)
  })
})
