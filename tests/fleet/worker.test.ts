import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe as describeInOrder, expect } from 'vitest'
import { hasPostgres, type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { processesOf } from '../support/processes.ts'
import { eventsOf } from '../support/scene.ts'
import { describe, test } from '../support/side-by-side.ts'
import { problemOfMounting, unless } from '../support/skipped.ts'
import { rowOf } from './submissions.ts'
import { endOf, expectDoneOnce, leftBy, openWorkerScene, WRITTEN } from './worker-scene.ts'

describeInOrder.skipIf(!hasPostgres)(`a worker of a fleet${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const open = (options?: Parameters<typeof openWorkerScene>[1]) => openWorkerScene(cluster, options)

  describe('of two that believe to own a session', () => {
    test('the one that was frozen ends its round when it is thawed, and there is one result', async () => {
      await using scene = await open()
      const [id = ''] = await scene.submit({})
      scene.hold('turn')
      await using a = scene.start('a')
      await scene.untilAtWork('a', id)
      a.signal('SIGSTOP')
      await using b = scene.start('b')
      await b.said(/takes up to/)
      await scene.loseLease(id)
      await scene.untilAtWork('b', id)
      a.signal('SIGCONT')
      await a.said(/taken over by another worker/)
      await scene.until('nothing of a runs', () => leftBy(scene, 'a').length === 0)
      expect(processesOf(scene.place).filter(line => line.includes('home-a/'))).toEqual([])
      scene.letGo('turn')
      await expectDoneOnce(scene, id)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ epoch: 2, worker: 'b' })
      await Promise.all([endOf(scene, a), endOf(scene, b)])
      expect(processesOf(scene.place)).toEqual([])
    })
  })

  describe('a session that is cancelled', () => {
    test('while a round runs has its round ended', async () => {
      await using scene = await open()
      scene.hold('turn')
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.untilAtWork('a', id)
      await scene.type('cancel', id)
      await scene.untilIs(id, 'cancelled')
      expect(eventsOf(await scene.events(id), 'session-ended')).toMatchObject([{ outcome: { kind: 'interrupted' } }])
      expect(scene.result(id)).toBeNull()
      await endOf(scene, a)
      expect(processesOf(scene.place)).toEqual([])
    })
  })

  describe('that leaves', () => {
    test('by a signal, gives its session back at once, and the round is begun anew', async () => {
      await using scene = await open()
      scene.hold('turn')
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.untilAtWork('a', id)
      expect(await endOf(scene, a)).toBe(0)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ state: 'waiting', reason: 'a: the worker ends' })
      expect(processesOf(scene.place)).toEqual([])
      scene.letGo('turn')
      await using b = scene.start('b', ['--once'])
      expect(await b.ended).toBe(0)
      await expectDoneOnce(scene, id)
    })

    test('killed, and begun again, goes on at once with what it had', async () => {
      await using scene = await open()
      scene.hold('turn')
      const [id = ''] = await scene.submit({})
      {
        await using a = scene.start('a')
        await scene.untilAtWork('a', id)
        a.signal('SIGKILL')
        expect(await a.ended).toBeNull()
      }
      scene.letGo('turn')
      await using again = scene.start('a', ['--once'])
      expect(await again.ended).toBe(0)
      await expectDoneOnce(scene, id)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ epoch: 2, faults: 0 })
      expect(leftBy(scene, 'a')).toEqual([])
      expect(processesOf(scene.place)).toEqual([])
    })
  })

  test.each([
    ['in its place', 'a'],
    ['in another place', 'elsewhere'],
  ])('does not begin beside another one of its name %s', async (_where, home) => {
    await using scene = await open()
    await using a = scene.start('a')
    await a.said(/takes up to/)
    await using other = scene.start('a', [], { home })
    expect(await other.ended).toBe(6)
    expect(other.text).toContain('Give this one another --name.')
    expect(await endOf(scene, a)).toBe(0)
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
      expect(a.text).toContain('It asks for the sandbox danger-full-access, and gets workspace-write')
      expect(a.text).toContain('It asks for the network, and does not get it')
      const given = scene.heard('turn').map(({ params }) => params.sandboxPolicy)
      expect(given).toHaveLength(3)
      for (const each of given) expect(each).toMatchObject({ type: 'workspaceWrite', networkAccess: false })
      const threads = scene.heard('thread').map(({ params }) => params.sandbox)
      expect(threads).not.toContain('danger-full-access')
    })
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

  test('with no other right than to work goes on where others have mistyped a branch, a repository or a template', async () => {
    await using scene = await open()
    const bad = { ref: 'nope', priority: 9 }
    const gone = { repo: `${scene.url()}.gone`, priority: 8 }
    const strange = { job: { goal: 'Write.', template: 'sorcery', gates: [], limits: {} }, priority: 9 }
    const [, , third = '', away = '', unknown = '', good = ''] = await scene.submit(bad, bad, bad, gone, strange, {})
    const { url } = await cluster.login('night', 'in role codemachine_work', scene.fleet.url)
    await using a = scene.start('a', ['--slots', '1'], { env: { CODEMACHINE_QUEUE: url } })
    await expectDoneOnce(scene, good)
    await a.said(/Nothing of ssh:.*\.gone is taken for 10 min/)
    expect(await rowOf(scene.fleet, third)).toMatchObject({ state: 'dead' })
    expect(await rowOf(scene.fleet, away)).toMatchObject({ state: 'waiting', faults: 3 })
    expect(await rowOf(scene.fleet, unknown)).toMatchObject({ state: 'waiting', epoch: 0 })
    expect(a.text).not.toMatch(/Nothing is taken/)
    const [next = ''] = await scene.submit({})
    await expectDoneOnce(scene, next)
    await endOf(scene, a)
  })

  const noMount = problemOfMounting()
  const onMount = noMount === null ? test : test.skip
  const why = unless(noMount === null, noMount ?? '')
  onMount(`takes nothing while its disk is full, says so, and gives back first what came last${why}`, async () => {
    await using scene = await open()
    const home = join(scene.place.root, 'home-a')
    mkdirSync(home)
    // Nothing of it is taken before it is written.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4g', 'tmpfs', home])
    try {
      scene.hold('turn')
      const [first = '', last = '', id = ''] = await scene.submit({}, {}, {})
      await using a = scene.start('a', ['--slots', '2'])
      await scene.untilAtWork('a', first)
      await scene.untilAtWork('a', last)
      execFileSync('mount', ['-o', 'remount,size=64m', home])
      await a.said(/Nothing is taken for 1 min: the disk is full/)
      await a.said(/ is (?:left|given back): the disk of the worker is full/)
      expect(/(\S+) is (?:left|given back): the disk/.exec(a.text)?.[1]).toBe(last)
      await scene.until('the database knows', async () => {
        const [row] = await scene.fleet.database.sql("select problem from codemachine.worker where name = 'a'")
        return row?.problem === 'the disk is full'
      })
      expect(await rowOf(scene.fleet, id)).toMatchObject({ state: 'waiting', epoch: 0 })
      await endOf(scene, a)
    } finally {
      execFileSync('umount', ['--lazy', home])
    }
  })
})
