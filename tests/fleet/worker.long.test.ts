import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe as describeInOrder, expect } from 'vitest'
import { hasPostgres, type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { processesOf } from '../support/processes.ts'
import { eventsOf } from '../support/scene.ts'
import { describe, test } from '../support/side-by-side.ts'
import { problemOfMounting, unless } from '../support/skipped.ts'
import { rowOf } from './submissions.ts'
import { endOf, expectDoneOnce, leftBy, openCut, openWorkerScene, WRITTEN } from './worker-scene.ts'

const HOUR = 3_600_000

function refsOf(repo: string): string[] {
  const refs = execFileSync('git', ['--git-dir', repo, 'for-each-ref', '--format=%(refname)'], { encoding: 'utf8' })
  return refs.trim().split('\n')
}

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

    test('what the frozen one has done to its end meanwhile counts nothing', async () => {
      await using scene = await open()
      const [id = ''] = await scene.submit({})
      scene.hold('turn', 2)
      await using a = scene.start('a')
      await scene.untilAtWork('a', id, 2)
      await scene.until('the first round is in the database', async () =>
        (await scene.events(id)).some(({ type }) => type === 'round-ended'),
      )
      a.signal('SIGSTOP')
      await using b = scene.start('b')
      await b.said(/takes up to/)
      await scene.loseLease(id)
      await scene.untilAtWork('b', id, 2)
      scene.letGo('turn')
      await expectDoneOnce(scene, id)
      a.signal('SIGCONT')
      await a.said(/taken over by another worker/)
      await Promise.all([endOf(scene, a), endOf(scene, b)])
      const events = await expectDoneOnce(scene, id)
      expect(eventsOf(events, 'session-moved')).toMatchObject([{ worker: 'b', epoch: 2 }])
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

    test('while its result is pushed has come to its end all the same', async () => {
      await using scene = await open()
      scene.hold('result')
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.until('the result is pushed', () => existsSync(join(scene.place.root, 'control', 'result-begun')))
      await scene.type('cancel', id)
      scene.letGo('result')
      await expectDoneOnce(scene, id)
      await endOf(scene, a)
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

    test('drained, gives its session back at the end of the round', async () => {
      await using scene = await open()
      scene.hold('turn')
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a')
      await scene.untilAtWork('a', id)
      await scene.type('drain', 'a')
      await a.said(/Drained/)
      await scene.until(
        'its round is to be the last',
        async () => eventsOf(await scene.events(id), 'stop-asked').length > 0,
      )
      scene.letGo('turn')
      expect(await a.ended).toBe(0)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ state: 'waiting', reason: 'a: the worker is drained' })
      expect(leftBy(scene, 'a')).toEqual([])
      expect(eventsOf(await scene.events(id), 'round-ended')).toMatchObject([{ round: 1, counts: true }])
      await using b = scene.start('b', ['--once'])
      expect(await b.ended).toBe(0)
      const rounds = eventsOf(await expectDoneOnce(scene, id), 'round-ended')
      expect(rounds.map(({ round, counts }) => [round, counts])).toEqual([1, 2, 3].map(round => [round, true]))
    })
  })

  describe('whose login', () => {
    test.each(['turn', 'account'])(
      'has its usage window used up, as its %s says, pauses; another one goes on',
      async by => {
        await using scene = await open()
        const resetsAt = Math.round((Date.now() + 5 * HOUR) / 1000)
        const limits = `{ rateLimits: { primary: { usedPercent: 100, windowDurationMins: 300, resetsAt: ${resetsAt} } } }`
        const peer = await scene.peer(
          by === 'account'
            ? `on['account/rateLimits/read'] = id => send({ id, result: ${limits} })`
            : `on['turn/start'] = id => {
              send({ id, result: { turn: { id: TURN } } }); started()
              say('account/rateLimits/updated', ${limits})
              completed('failed', { message: 'You have hit your usage limit.', codexErrorInfo: 'usageLimitExceeded' })
            }`,
        )
        const [id = ''] = await scene.submit({})
        await using a = scene.start('a', [], { peer })
        await a.said(/This worker takes no sessions for \d+ min: the usage limit of the login is reached until/)
        expect(await scene.untilIs(id, 'waiting')).toMatchObject({ faults: 0 })
        const [second = ''] = await scene.submit({})
        await using b = scene.start('b', ['--once'])
        expect(await b.ended).toBe(0)
        await expectDoneOnce(scene, id)
        expect(await rowOf(scene.fleet, second)).toMatchObject({ worker: 'b', epoch: 1 })
        await scene.until('the database knows of it', async () => {
          const [row] = await scene.fleet.database.sql("select login from codemachine.worker where name = 'a'")
          return row?.login?.windows?.[0]?.usedPercent === 100 && row.login.pausedUntil !== null
        })
        await endOf(scene, a)
      },
    )

    test('is missing pauses, and the session goes to another one', async () => {
      await using scene = await open()
      const peer = await scene.peer(
        `on['account/read'] = id => send({ id, result: { account: null, requiresOpenaiAuth: true } })`,
      )
      const [id = ''] = await scene.submit({})
      await using a = scene.start('a', [], { peer })
      await a.said(/This worker takes no sessions for 10 min: /)
      await using b = scene.start('b')
      await expectDoneOnce(scene, id)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ worker: 'b', epoch: 2 })
      const [row] = await scene.fleet.database.sql("select problem from codemachine.worker where name = 'a'")
      expect(row?.problem).toMatch(/log/)
      await Promise.all([endOf(scene, a), endOf(scene, b)])
    })
  })

  test('with --remote pushes to that one alone, and another worker continues from there', async () => {
    await using scene = await open()
    const store = scene.repository('store', 'empty')
    const remote = ['--remote', scene.url(store)]
    scene.hold('turn', 2)
    const [id = ''] = await scene.submit({})
    await using a = scene.start('a', remote)
    await scene.untilAtWork('a', id, 2)
    await scene.until('the first round is in the database', async () =>
      (await scene.events(id)).some(({ type }) => type === 'round-ended'),
    )
    a.signal('SIGKILL')
    await a.ended
    await using b = scene.start('b', remote)
    await b.said(/takes up to/)
    await scene.loseLease(id)
    await scene.untilAtWork('b', id, 2)
    scene.letGo('turn')
    expect(await scene.untilIs(id, 'ended')).toMatchObject({ epoch: 2, branch: `codemachine/${id}` })
    expect(scene.result(id, store)).toBe(WRITTEN)
    expect(refsOf(scene.repo)).toEqual(['refs/heads/main'])
    expect(refsOf(store)).toEqual([
      `refs/codemachine/${id}/state`,
      `refs/heads/codemachine/${id}`,
      'refs/notes/codemachine',
    ])
    await endOf(scene, b)
  })

  test('ends a session at its deadline, at the end of a round, with what there is', async () => {
    await using scene = await open({ leaseSeconds: 10 })
    scene.hold('turn')
    const [late = '', id = ''] = await scene.submit({ deadline: new Date(Date.now() - HOUR) }, {})
    await using a = scene.start('a')
    expect((await scene.untilIs(late, 'dead')).reason).toBe('it had not begun by its deadline')
    await scene.untilAtWork('a', id)
    await scene.fleet.database.sql("update codemachine.session set deadline = now() - interval '1 s' where id = $1", [
      id,
    ])
    const stopped = async () => (await scene.events(id)).some(({ type }) => type === 'stop-asked')
    await scene.until('it is asked to stop', stopped)
    scene.letGo('turn')
    expect(await scene.untilIs(id, 'ended')).toMatchObject({
      reason: 'its deadline was reached',
      outcome: { kind: 'interrupted' },
    })
    expect(scene.result(id)).toBe('line 1\n')
    await endOf(scene, a)
  })

  test('that is cut off from the database for longer than its lease has lost its session, and leaves no second result', async () => {
    await using scene = await open()
    await using cut = await openCut(new URL(scene.fleet.url))
    scene.hold('turn', 2)
    const [id = ''] = await scene.submit({})
    await using a = scene.start('a', [], { env: { CODEMACHINE_QUEUE: cut.url } })
    await scene.untilAtWork('a', id, 2)
    cut.off()
    await a.said(/Running sessions continue; no new ones start/)
    await using b = scene.start('b')
    await b.said(/takes up to/)
    await scene.loseLease(id)
    await scene.untilAtWork('b', id)
    scene.letGo('turn')
    await expectDoneOnce(scene, id)
    cut.on()
    await a.said(/taken over by another worker/)
    await Promise.all([endOf(scene, a), endOf(scene, b)])
    expect(await rowOf(scene.fleet, id)).toMatchObject({ epoch: 2, worker: 'b' })
    await expectDoneOnce(scene, id)
  })

  test('goes on with a round while the database is away, and writes down later what has happened', async () => {
    await using own = await startPostgres()
    await using scene = await openWorkerScene(own)
    scene.hold('turn')
    const [id = '', next = ''] = await scene.submit({}, {})
    await using a = scene.start('a', ['--slots', '1'])
    await scene.untilAtWork('a', id)
    await own.stop()
    await a.said(/cannot be reached: .* Running sessions continue; no new ones start/)
    scene.letGo('turn')
    await scene.until('all rounds were played', () => scene.heard('turn').length === 3)
    await own.start()
    await a.said(/answers again/)
    const events = await expectDoneOnce(scene, id)
    expect(eventsOf(events, 'round-ended').map(({ round }) => round)).toEqual([1, 2, 3])
    await expectDoneOnce(scene, next)
    expect(await rowOf(scene.fleet, id)).toMatchObject({ epoch: 1 })
    await endOf(scene, a)
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
      await a.said(/This worker takes no sessions for 1 min: the disk is full/)
      await a.said(/ (?:is left|returns to the queue): the disk of the worker is full/)
      expect(/(\S+) (?:is left|returns to the queue): the disk/.exec(a.text)?.[1]).toBe(last)
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
