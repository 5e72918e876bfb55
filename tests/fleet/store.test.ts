import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Submission } from '../../src/fleet/jobs.ts'
import { groupOf } from '../../src/fleet/queue.ts'
import {
  append,
  beat,
  finish,
  giveBack,
  linesOf,
  Superseded,
  setBase,
  submit,
  type Taken,
  takeBack,
} from '../../src/fleet/store.ts'
import {
  type FleetPlace,
  hasPostgres,
  type PostgresCluster,
  setUpFleet,
  startPostgres,
  WITHOUT_POSTGRES,
} from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { DONE, loseLease, rowOf, submission, submitAll, superviseAnew, takeFor, takeOne, taker } from './submissions.ts'

const again = { reason: 'it was drained' }

describe.skipIf(!hasPostgres)(`sessions of a fleet${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const open = () => setUpFleet(cluster)
  const jobsOf = async ({ database }: FleetPlace, id: string) =>
    await database.sql<{ state: string }>(`select state from codemachine_queue.job where data ->> 'session' = $1`, [id])
  const owned = (fleet: FleetPlace, taken: Taken, first: number, ...lines: string[]) =>
    append(fleet.database, taken, first, lines, null)

  /** Waits until a transaction waits for another one, or what it does is over. */
  const isHeldUp = async ({ database }: FleetPlace, work: Promise<void>) => {
    const isWaiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
    let isOver = false
    const end = () => {
      isOver = true
    }
    work.then(end, end)
    const soon = { timeout: 20_000, interval: 10 }
    await vi.waitFor(async () => expect(isOver || (await database.sql(isWaiting)).length > 0).toBe(true), soon)
  }

  describe('what is submitted', () => {
    test.each([1, 10, 2_500])('of %i sessions each has an id of its own, in the order in which they came', async n => {
      await using fleet = await open()
      const { database } = fleet
      const ids = await submitAll(
        fleet,
        ...Array.from({ length: n }, (_, at) => ({ priority: at % 1_000, ref: `b${at}` })),
      )
      expect(new Set(ids).size).toBe(n)
      const rows = await database.sql<{ id: string; ref: string }>('select id, ref from codemachine.session')
      const refs = new Map(rows.map(({ id, ref }) => [id, ref]))
      expect(ids.map(id => refs.get(id))).toEqual(Array.from({ length: n }, (_, at) => `b${at}`))
      expect(ids[0]).toMatch(/^\d{8}_1$/)
    })

    promise(
      'N3',
      'Of many that are submitted all are, or none; a file with a mistake submits nothing, and each mistake is said with its line',
    )
    test('of which one waits for a session that is not there, nothing is submitted', async () => {
      await using fleet = await open()
      const one = submitAll(fleet, {}, { after: '20260101_99' }, {})
      await expect(one).rejects.toThrow('There is no session 20260101_99 in the fleet')
      // More than go in with one statement.
      const many = Array.from({ length: 1_001 }, (_, at): Partial<Submission> => (at < 1_000 ? {} : { after: 'x_1' }))
      await expect(submitAll(fleet, ...many)).rejects.toThrow('x_1')
      expect(await fleet.database.sql('select id from codemachine.session')).toEqual([])
      expect(await takeFor(fleet, taker('w'))).toBeNull()
    })

    test('a goal with a NUL or half a character comes out without', async () => {
      await using fleet = await open()
      const job = { ...submission().job, goal: 'build \0 \ud83d!' }
      const [id = ''] = await submit(fleet.database, [submission({ job })])
      expect(await rowOf(fleet, id)).toMatchObject({
        goal: 'build \ufffd \ufffd!',
        job: { goal: 'build \ufffd \ufffd!' },
      })
    })
  })

  describe('a worker takes', () => {
    test('the session of the highest priority first, and of the same priority the oldest', async () => {
      await using fleet = await open()
      const [low, ...rest] = await submitAll(fleet, { priority: -5 }, ...Array.from({ length: 8 }, () => ({})))
      const [high, young] = [...(await submitAll(fleet, { priority: 9 })), ...(await submitAll(fleet, {}))]
      const w = taker('w')
      const order: (string | undefined)[] = []
      for (let taken = 0; taken < 11; taken += 1) order.push((await takeFor(fleet, w, { perRepository: 20 }))?.id)
      expect(order).toEqual([high, ...rest, young, low])
      expect(await takeFor(fleet, w, { perRepository: 20 })).toBeNull()
    })

    test('what wants a GPU only if it has one, and that before what everybody can do', async () => {
      await using fleet = await open()
      const [plain, gpu, both] = await submitAll(fleet, { priority: 5 }, { tags: ['gpu'] }, { tags: ['linux', 'gpu'] })
      const weak = taker('weak', ['linux'])
      expect((await takeOne(fleet, weak)).id).toBe(plain)
      expect(await takeFor(fleet, weak)).toBeNull()
      expect((await takeOne(fleet, taker('one', ['gpu']))).id).toBe(gpu)
      expect((await takeOne(fleet, taker('two', ['gpu', 'linux', 'arm']))).id).toBe(both)
    })

    test('nothing before its time', async () => {
      await using fleet = await open()
      const [id = ''] = await submitAll(fleet, { notBefore: new Date(Date.now() + 3_600_000) })
      expect(await takeFor(fleet, taker('w'))).toBeNull()
      await fleet.database.sql(`update codemachine_queue.job set start_after = now() where data ->> 'session' = $1`, [
        id,
      ])
      expect((await takeOne(fleet, taker('w'))).id).toBe(id)
    })

    test('of one repository no more at once than the fleet allows', async () => {
      await using fleet = await open()
      const repo = 'https://git.example/other'
      const [first, , other] = await submitAll(fleet, {}, {}, { repo })
      const w = taker('w')
      const one = { perRepository: 1 }
      const taken = await takeFor(fleet, w, one)
      expect(taken?.id).toBe(first)
      expect((await takeFor(fleet, w, one))?.id).toBe(other)
      expect(await takeFor(fleet, w, one)).toBeNull()
      if (taken !== null) await finish(fleet.database, fleet.queue, taken, DONE)
      expect(await takeFor(fleet, w, one)).not.toBeNull()
    })

    test('no more of it either where some want a tag', async () => {
      await using fleet = await open()
      const [gpu, plain] = await submitAll(fleet, { tags: ['gpu'] }, {})
      const w = taker('w', ['gpu'])
      const taken = await takeFor(fleet, w, { perRepository: 1 })
      expect(taken?.id).toBe(gpu)
      expect(await takeFor(fleet, w, { perRepository: 1 })).toBeNull()
      if (taken !== null) await giveBack(fleet.database, fleet.queue, taken, again)
      expect((await takeFor(fleet, taker('weak'), { perRepository: 1 }))?.id).toBe(plain)
      expect(await takeFor(fleet, w, { perRepository: 1 })).toBeNull()
      // What a lost worker had counts no more.
      await loseLease(fleet, plain ?? '')
      expect(await takeFor(fleet, w, { perRepository: 1 })).not.toBeNull()
    })

    test('no repository that it does not serve', async () => {
      await using fleet = await open()
      const repo = 'https://git.example/other'
      const [, other] = await submitAll(fleet, { priority: 9 }, { repo })
      const without = [groupOf('', 'https://git.example/app')]
      expect((await takeFor(fleet, taker('w'), { without }))?.id).toBe(other)
      expect(await takeFor(fleet, taker('w'), { without })).toBeNull()
    })

    test('none of a template that it does not run, and each of those that it does', async () => {
      await using fleet = await open()
      const job = submission().job
      const [goal, build] = await submitAll(fleet, {}, { job: { ...job, template: 'build' } })
      expect(await takeFor(fleet, taker('w', [], ['change']))).toBeNull()
      const taken = await takeOne(fleet, taker('w', [], ['change', 'build']))
      expect(taken).toMatchObject({ id: build, template: 'build' })
      expect(await takeFor(fleet, taker('w', [], ['build']))).toBeNull()
      await giveBack(fleet.database, fleet.queue, taken, { reason: 'w: the worker ends' })
      expect((await takeOne(fleet, taker('w', [], ['goal']))).id).toBe(goal)
      expect((await takeOne(fleet, taker('w'))).id).toBe(build)
    })

    test('what waited for another one, whatever somebody has written into the database for what it wants', async () => {
      await using fleet = await open()
      const [first = ''] = await submitAll(fleet, {})
      const [odd = ''] = await submitAll(fleet, { after: first })
      await fleet.database.sql(
        `update codemachine.session set tags = '{"g p;u"}', job = jsonb_set(job, '{template}', '"../b u"') where id = $1`,
        [odd],
      )
      await finish(fleet.database, fleet.queue, await takeOne(fleet, taker('w')), DONE)
      expect(await rowOf(fleet, odd)).toMatchObject({ state: 'waiting' })
      expect(await takeFor(fleet, taker('w'))).toBeNull()
      expect((await takeOne(fleet, taker('w', ['g-p-u']))).id).toBe(odd)
    })

    test('nothing that is written in a way that it does not know yet', async () => {
      await using fleet = await open()
      const [id = ''] = await submitAll(fleet, {})
      const { sql } = fleet.database
      await sql(
        `insert into codemachine_queue.queue select (jsonb_populate_record(q, '{"name": "sessions-2"}')).* from codemachine_queue.queue q where name = 'sessions-1/_goal'`,
      )
      await sql(`update codemachine_queue.job set name = 'sessions-2' where data ->> 'session' = $1`, [id])
      expect(await takeFor(fleet, taker('w'))).toBeNull()
      expect(await jobsOf(fleet, id)).toEqual([{ state: 'created' }])
    })

    test('none that was cancelled meanwhile, and none that had not begun by its deadline', async () => {
      await using fleet = await open()
      const deadline = new Date(Date.now() - 1_000)
      const [cancelled = '', late = '', fine = ''] = await submitAll(fleet, {}, { deadline }, {})
      await fleet.database.sql('update codemachine.session set cancel_asked = true where id = $1', [cancelled])
      expect((await takeOne(fleet, taker('w'))).id).toBe(fine)
      expect(await rowOf(fleet, cancelled)).toMatchObject({ state: 'cancelled', ended_at: expect.any(Date) })
      expect(await rowOf(fleet, late)).toMatchObject({
        state: 'dead',
        reason: 'it had not begun by its deadline',
        ended_at: expect.any(Date),
      })
      expect(await takeFor(fleet, taker('w'))).toBeNull()
    })

    test('each session once, however many ask at the same time', async () => {
      await using fleet = await open()
      await submitAll(fleet, ...Array.from({ length: 12 }, (_, at) => ({ repo: `https://git.example/${at}` })))
      const all = await Promise.all(Array.from({ length: 16 }, (_, at) => takeFor(fleet, taker(`w${at}`))))
      const ids = all.flatMap(taken => taken?.id ?? [])
      expect(ids).toHaveLength(12)
      expect(new Set(ids).size).toBe(12)
    })
  })

  describe('whose a session is', () => {
    test('each that takes it raises its epoch by one', async () => {
      await using fleet = await open()
      const [id = ''] = await submitAll(fleet, {})
      for (const epoch of [1, 2, 3]) {
        const taken = await takeOne(fleet, taker('w'))
        expect(taken).toMatchObject({ id, epoch, events: 0 })
        await giveBack(fleet.database, fleet.queue, taken, again)
      }
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'waiting', worker: null, reason: 'it was drained' })
    })

    test('events that are sent twice are there once', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      expect(await owned(fleet, taken, 1, 'a', 'b')).toBe(2)
      expect(await owned(fleet, taken, 1, 'a', 'b')).toBe(2)
      expect(await owned(fleet, taken, 2, 'b', 'c', 'd')).toBe(4)
      expect(await linesOf(fleet.database, taken.id, 4)).toEqual(['a', 'b', 'c', 'd'])
      expect(await rowOf(fleet, taken.id)).toMatchObject({ events: '4', bytes: '4' })
    })

    test('an event whose predecessor is not there is refused', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      await owned(fleet, taken, 1, 'a')
      await expect(owned(fleet, taken, 3, 'c')).rejects.toMatchObject({ code: 'CM002' })
      expect(await linesOf(fleet.database, taken.id, 1)).toEqual(['a'])
    })

    promise('N4')
    test('a worker that was superseded can neither append, nor end it, nor give it back', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      await submitAll(fleet, {})
      const old = await takeOne(fleet, taker('old'))
      await owned(fleet, old, 1, 'a')
      await loseLease(fleet, old.id)
      const young = await takeOne(fleet, taker('young'))
      expect(young).toMatchObject({ id: old.id, epoch: 2, events: 1 })
      await expect(owned(fleet, old, 2, 'late')).rejects.toThrow(Superseded)
      await expect(setBase(database, old, 'f'.repeat(40))).rejects.toThrow(Superseded)
      await expect(finish(database, queue, old, DONE)).rejects.toThrow(Superseded)
      await expect(giveBack(database, queue, old, again)).rejects.toThrow(Superseded)
      expect(await beat(database, queue, old)).toMatchObject({ isOwn: false })
      expect(await beat(database, queue, young)).toMatchObject({ isOwn: true })
      expect(await owned(fleet, young, 2, 'b')).toBe(2)
      expect(await rowOf(fleet, old.id)).toMatchObject({ state: 'running', worker: 'young', base: null })
    })

    test('what is refused says so by a code of its own', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      const { id } = await takeOne(fleet, taker('w'))
      const late = fleet.database.sql(`select codemachine.append($1, 0, 1, array['x'], null)`, [id])
      await expect(late).rejects.toMatchObject({ code: 'CM001' })
    })

    test('nothing is appended once it has ended', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      await finish(database, queue, taken, { ...DONE, report: 'a\0b', branch: 'codemachine/x' })
      await expect(owned(fleet, taken, 1, 'a')).rejects.toThrow(Superseded)
      // Told again by the same worker, whose answer was lost, it stays as it was.
      await finish(database, queue, taken, { ...DONE, state: 'dead' })
      await giveBack(database, queue, taken, again)
      expect(await rowOf(fleet, taken.id)).toMatchObject({
        state: 'ended',
        report: 'a\ufffdb',
        branch: 'codemachine/x',
      })
      expect(await takeFor(fleet, taker('w'))).toBeNull()
    })

    test('a heartbeat says whether a person has cancelled it, and whether its deadline is over', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      expect(await beat(database, queue, taken)).toEqual({ isOwn: true, isCancelled: false, isLate: false })
      await database.sql(
        `update codemachine.session set cancel_asked = true, deadline = now() - interval '1 s' where id = $1`,
        [taken.id],
      )
      expect(await beat(database, queue, taken)).toEqual({ isOwn: true, isCancelled: true, isLate: true })
    })
  })

  describe('a worker that is gone', () => {
    test('keeps its session for the lease and no longer', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      const silentFor = (seconds: number) =>
        fleet.database.sql(`update codemachine_queue.job set heartbeat_on = now() - make_interval(secs => $1)`, [
          seconds,
        ])
      await silentFor(5)
      await superviseAnew(fleet)
      expect(await takeFor(fleet, taker('v'))).toBeNull()
      await silentFor(11)
      await superviseAnew(fleet)
      expect(await takeFor(fleet, taker('v'))).toMatchObject({ id: taken.id, epoch: 2 })
    })

    test('is noticed by whoever looks, a while after somebody else has looked', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      await takeOne(fleet, taker('w'))
      await superviseAnew(fleet)
      await fleet.database.sql(
        `update codemachine_queue.job set heartbeat_on = now() - interval '1 hour' where state = 'active'`,
      )
      await fleet.database.sql(
        `update codemachine_queue.queue set monitor_claim_on = monitor_claim_on - interval '5 s'`,
      )
      await fleet.queue.supervise()
      expect(await takeFor(fleet, taker('v'))).toMatchObject({ epoch: 2 })
    })

    promise('N4', 'A worker that loses its lease hears of it, and can write nothing any more')
    test('that lost its lease hears that the session is not its own any more, before anybody has taken it', async () => {
      await using fleet = await open()
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      await loseLease(fleet, taken.id)
      expect(await beat(fleet.database, fleet.queue, taken)).toMatchObject({ isOwn: false })
    })

    test('that lost its lease, and gives the session back all the same, leaves it to one worker and not to two', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      await loseLease(fleet, taken.id)
      await giveBack(database, queue, taken, again)
      const next = await takeOne(fleet, taker('v'))
      expect(next.epoch).toBe(2)
      expect(await takeFor(fleet, taker('u'))).toBeNull()
      expect(await beat(database, queue, next)).toMatchObject({ isOwn: true })
    })

    test('and is begun anew with its name gets to wait at once what it had, once', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [, , others = ''] = await submitAll(fleet, {}, {}, {})
      const [silent, fresh] = [taker('w'), taker('w')]
      const [one, two] = [await takeOne(fleet, silent), await takeOne(fleet, silent)]
      const other = await takeOne(fleet, taker('other'))
      await loseLease(fleet, one.id)
      await takeBack(database, queue, fresh)
      expect(await rowOf(fleet, one.id)).toMatchObject({ state: 'waiting', reason: 'w: the worker was killed' })
      expect(await rowOf(fleet, others)).toMatchObject({ state: 'running', worker: 'other' })
      const taken = [await takeOne(fleet, fresh), await takeOne(fleet, fresh)]
      expect(taken.map(({ id }) => id).toSorted()).toEqual([one.id, two.id].toSorted())
      expect(taken.map(({ epoch }) => epoch)).toEqual([2, 2])
      expect(await takeFor(fleet, fresh)).toBeNull()
      expect(await beat(database, queue, other)).toMatchObject({ isOwn: true })
      for (const each of taken) expect(await beat(database, queue, each)).toMatchObject({ isOwn: true })
    })

    test('that waits again in the very moment in which its worker begins anew waits once', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [id = ''] = await submitAll(fleet, {})
      await takeOne(fleet, taker('w'))
      let back: Promise<void> | null = null
      await database.transaction(async sql => {
        // As pg-boss does where a lease is over.
        await sql(
          `with gone as (delete from codemachine_queue.job where state = 'active' returning *)
           insert into codemachine_queue.job select * from gone`,
        )
        await sql(`update codemachine_queue.job set state = 'retry', retry_count = retry_count + 1`)
        back = takeBack(database, queue, taker('w'))
        await isHeldUp(fleet, back)
      })
      await back
      expect(await jobsOf(fleet, id)).toEqual([{ state: 'created' }])
    })

    test('is followed by no other once the session has outlived too many', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [id = ''] = await submitAll(fleet, {})
      await takeOne(fleet, taker('w'))
      await database.sql('update codemachine_queue.job set retry_count = retry_limit where state = $1', ['active'])
      await loseLease(fleet, id)
      expect(await takeFor(fleet, taker('v'))).toBeNull()
      const dead = await database.transaction(sql => queue.dead(sql))
      expect(dead).toEqual([{ session: id, why: 'its workers were lost 21 times' }])
      expect(await database.transaction(sql => queue.dead(sql))).toEqual([])
    })
  })

  describe('what is given back', () => {
    test('waits at once, with its priority and tags; longer each time that something has hindered it', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      await submitAll(fleet, { tags: ['gpu'], priority: 7 })
      const w = taker('w', ['gpu'])
      await giveBack(database, queue, await takeOne(fleet, w), again)
      for (const seconds of [2, 4, 8]) {
        await giveBack(database, queue, await takeOne(fleet, w), { ...again, isFault: true })
        expect(await takeFor(fleet, w)).toBeNull()
        const [job] = await database.sql(
          `select name, priority, extract(epoch from start_after - created_on) as seconds from codemachine_queue.job where state = 'created'`,
        )
        expect(job).toMatchObject({ name: 'sessions-1/_goal/gpu', priority: 7 })
        expect(Math.round(Number(job?.seconds))).toBe(seconds)
        await database.sql('update codemachine_queue.job set start_after = now()')
      }
    })

    test('after twenty hindrances is dead, but not after any number of drains', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [id = ''] = await submitAll(fleet, {})
      await giveBack(database, queue, await takeOne(fleet, taker('w')), again)
      await database.sql('update codemachine.session set faults = 20')
      await giveBack(database, queue, await takeOne(fleet, taker('w')), again)
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'waiting', faults: 20 })
      await giveBack(database, queue, await takeOne(fleet, taker('w')), { ...again, isFault: true })
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'dead', faults: 21, ended_at: expect.any(Date) })
      expect(await takeFor(fleet, taker('w'))).toBeNull()
    })
  })

  describe('a session that waits for another one', () => {
    test('is released when that is done', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [first = ''] = await submitAll(fleet, {})
      const [second = ''] = await submitAll(fleet, { after: first, tags: ['gpu'], priority: 3 })
      const w = taker('w', ['gpu'])
      const taken = await takeOne(fleet, w)
      expect(taken.id).toBe(first)
      expect(await takeFor(fleet, w)).toBeNull()
      await finish(database, queue, taken, DONE)
      expect(await takeOne(fleet, w)).toMatchObject({ id: second, tags: ['gpu'], priority: 3 })
    })

    test('stays where that came to another end', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [first = ''] = await submitAll(fleet, {})
      const [second = ''] = await submitAll(fleet, { after: first })
      const end = { ...DONE, outcome: { kind: 'limit' } }
      await finish(database, queue, await takeOne(fleet, taker('w')), end)
      expect(await takeFor(fleet, taker('w'))).toBeNull()
      expect(await rowOf(fleet, second)).toMatchObject({ state: 'held' })
    })

    test('waits for nothing where that is done already', async () => {
      await using fleet = await open()
      const [first = ''] = await submitAll(fleet, {})
      await finish(fleet.database, fleet.queue, await takeOne(fleet, taker('w')), DONE)
      const [second] = await submitAll(fleet, { after: first })
      expect((await takeOne(fleet, taker('w'))).id).toBe(second)
    })

    test('is released also where that ends in the very moment in which it is submitted', async () => {
      await using fleet = await open()
      const { database, queue } = fleet
      const [first = ''] = await submitAll(fleet, {})
      const taken = await takeOne(fleet, taker('w'))
      let ending: Promise<void> | null = null
      const [second = ''] = await database.transaction(async sql => {
        const ids = await submit({ ...database, sql }, [submission({ after: first })])
        ending = finish(database, queue, taken, DONE)
        await isHeldUp(fleet, ending)
        return ids
      })
      await ending
      expect((await takeOne(fleet, taker('w'))).id).toBe(second)
    })
  })
})
