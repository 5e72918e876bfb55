import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../src/fleet/database.ts'
import { type FleetQueue, openQueue } from '../../src/fleet/queue.ts'
import { fleetTerms, setUp } from '../../src/fleet/schema.ts'
import { append, beat, finish, giveBack, submit, takeBack } from '../../src/fleet/store.ts'
import { cancelSession, retrySession } from '../../src/fleet/tell.ts'
import {
  addressIn,
  type FleetPlace,
  hasPostgres,
  type PostgresCluster,
  setUpFleet,
  startPostgres,
  WITHOUT_POSTGRES,
} from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { DONE, loseLease, rowOf, submission, submitAll, superviseAnew, takeFor, takeOne, taker } from './submissions.ts'

/** Everything that says how a database is made: tables, columns, functions, policies and rights. */
const SHAPE = `select n.nspname, c.relname, c.relkind, c.relrowsecurity, c.relacl::text,
   (select array_agg(a.attname || ' ' || a.atttypid::regtype order by a.attnum) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0) as columns,
   (select array_agg(p.polname || pg_get_expr(p.polqual, p.polrelid)) from pg_policy p where p.polrelid = c.oid) as policies
 from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname like 'codemachine%' order by 1, 2`

describe.skipIf(!hasPostgres)(`a fleet that is set up${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  let logins = 0
  /** The fleet as somebody sees it whose login is of these roles. */
  async function seenBy({ url, terms }: FleetPlace, ...roles: string[]): Promise<FleetPlace> {
    logins += 1
    const may = roles.length === 0 ? '' : `in role ${roles.join(', ')}`
    const database = await openDatabase(await cluster.login(`login_${logins}`, may, url), { env: {}, most: 4 })
    const queue = await openQueue(database, terms, () => {})
    return { url, database, terms, queue, [Symbol.asyncDispose]: () => close(queue, database) }
  }
  async function close(queue: FleetQueue, database: Database) {
    await queue[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  }
  const refused = expect.objectContaining({ exitCode: 4, message: expect.stringMatching(/./) })
  const count = async ({ sql }: Database, table: string) =>
    Number((await sql<{ count: string }>(`select count(*) from codemachine.${table}`))[0]?.count)

  describe('a second time', () => {
    test('is the same, and says that nothing was done', async () => {
      const url = await cluster.database()
      await using database = await openDatabase(addressIn(url), { env: {}, most: 4 })
      const first = await setUp(database, { terms: { leaseSeconds: 30 }, teams: ['again'] })
      expect(first.problems).toEqual([])
      expect(first.done.join('\n')).toMatch(/schema codemachine is made/)
      expect(first.done.join('\n')).toMatch(/codemachine_team_again/)
      const shape = await database.sql(SHAPE)
      expect(await setUp(database, { terms: {}, teams: ['again'] })).toEqual({ done: [], problems: [] })
      expect(await database.sql(SHAPE)).toEqual(shape)
      expect(await fleetTerms(database)).toEqual({ leaseSeconds: 30, perRepository: 4, dayBegins: '00:00' })
    })

    test('by a newer codemachine brings it to its version, and all that was in it is gone on with', async () => {
      const url = await cluster.database()
      await cluster.ask(url, readFileSync(new URL('../data/fleet-1.sql', import.meta.url), 'utf8'))
      await using database = await openDatabase(addressIn(url), { env: {}, most: 4 })
      await expect(fleetTerms(database)).rejects.toThrow(/has schema version 1, but this codemachine needs version 5/)
      const { done } = await setUp(database, { terms: {}, teams: [] })
      expect(done).toContain('The schema codemachine was updated from version 1 to 5.')
      const terms = await fleetTerms(database)
      const queue = await openQueue(database, terms, () => {})
      await using fleet = { url, database, terms, queue, [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose]() }
      const states = await database.sql('select id, state, events::int from codemachine.session order by id')
      expect(states.map(({ state, events }) => [state, events])).toEqual([
        ['ended', 1],
        ['running', 0],
        ['waiting', 0],
        ['waiting', 0],
        ['held', 0],
      ])
      const [, running, build, gpu, held] = states.map(({ id }) => id)
      await takeBack(database, queue, taker('w1'))
      const builds = taker('builds', ['gpu'], ['build'])
      // What it was queued with said nothing of its template: it is found where it belongs from now on.
      const other = await takeOne(fleet, builds)
      expect(other.id).toBe(gpu)
      await giveBack(database, queue, other, { reason: 'it is for others' })
      const first = await takeOne(fleet, builds)
      expect(first).toMatchObject({ id: build, template: 'build' })
      await finish(database, queue, first, DONE)
      expect((await takeOne(fleet, builds)).id).toBe(held)
      expect(await takeFor(fleet, builds)).toBeNull()
      const goals = taker('goals', ['gpu'], ['goal'])
      expect([(await takeOne(fleet, goals)).id, (await takeOne(fleet, goals)).id]).toEqual([gpu, running])
    })

    test('keeps what is in it', async () => {
      await using fleet = await setUpFleet(cluster)
      const [id = ''] = await submitAll(fleet, {})
      await append(fleet.database, await takeOne(fleet, taker('w')), 1, ['a'], null)
      await setUp(fleet.database, { terms: { perRepository: 9 }, teams: [] })
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'running', events: '1' })
      expect(await fleetTerms(fleet.database)).toEqual({ leaseSeconds: 10, perRepository: 9, dayBegins: '00:00' })
    })

    test('at the same time is one after the other', async () => {
      const url = await cluster.database()
      const both = await Promise.all(
        [1, 2].map(async () => {
          await using database = await openDatabase(addressIn(url), { env: {}, most: 4 })
          return await setUp(database, { terms: {}, teams: [] })
        }),
      )
      expect(both.map(({ problems }) => problems)).toEqual([[], []])
      expect(both.flatMap(({ done }) => done).filter(each => /schema codemachine is made/.test(each))).toHaveLength(1)
    })
  })

  test.each([{ leaseSeconds: 9 }, { leaseSeconds: 3_601 }, { perRepository: 0 }])(
    'takes no terms that cannot be kept: %j',
    async terms => {
      await using fleet = await setUpFleet(cluster)
      await expect(setUp(fleet.database, { terms, teams: [] })).rejects.toMatchObject({ code: '23514' })
      expect(await fleetTerms(fleet.database)).toEqual(fleet.terms)
    },
  )

  describe('gives rights by roles', () => {
    test('who looks reads all and writes nothing', async () => {
      await using fleet = await setUpFleet(cluster)
      const [id = ''] = await submitAll(fleet, {}, {})
      const taken = await takeOne(fleet, taker('w'))
      await append(fleet.database, taken, 1, ['a'], null)
      await using looker = await seenBy(fleet, 'codemachine_look')
      expect(await fleetTerms(looker.database)).toEqual(fleet.terms)
      expect(await rowOf(looker, id)).toMatchObject({ id, state: 'running' })
      expect(await count(looker.database, 'event')).toBe(1)
      await expect(submit(looker.database, [submission()])).rejects.toEqual(refused)
      await expect(append(looker.database, taken, 2, ['b'], null)).rejects.toEqual(refused)
      await expect(finish(looker.database, looker.queue, taken, DONE)).rejects.toEqual(refused)
      await expect(takeFor(looker, taker('v'))).rejects.toEqual(refused)
      for (const statement of [
        `update codemachine.session set cancel_asked = true`,
        `delete from codemachine.session`,
        `delete from codemachine.event`,
        `insert into codemachine.ask (session, ask) values ('${id}', '{}')`,
        `update codemachine.worker set drains = true`,
        `update codemachine.term set lease_seconds = 11`,
        `delete from codemachine_queue.job`,
      ])
        await expect(looker.database.sql(statement), statement).rejects.toEqual(refused)
      expect(await rowOf(fleet, id)).toMatchObject({ state: 'running', events: '1', cancel_asked: false })
    })

    test('who submits has sessions run, and drains workers, and writes no events', async () => {
      await using fleet = await setUpFleet(cluster)
      await using submitter = await seenBy(fleet, 'codemachine_submit')
      const { database } = submitter
      const [first = ''] = await submit(database, [submission({ tags: ['a-new-lane'] })])
      const [second = ''] = await submit(database, [submission({ after: first, tags: ['a-new-lane'] })])
      const w = taker('w', ['a-new-lane'])
      const taken = await takeOne(fleet, w)
      expect(taken.id).toBe(first)
      expect(await cancelSession(database, second)).toMatchObject({ state: 'cancelled' })
      await database.sql('insert into codemachine.ask (session, ask) values ($1, $2)', [first, '{"ask": "stop"}'])
      await database.sql('update codemachine.worker set drains = true')
      const [third = ''] = await submit(database, [submission({ tags: ['a-new-lane'] })])
      await cancelSession(database, third)
      expect(await takeFor(fleet, w)).toBeNull()
      expect(await retrySession(database, third)).toMatchObject({ state: 'waiting' })
      expect((await takeOne(fleet, w)).id).toBe(third)
      await expect(append(database, taken, 1, ['forged'], null)).rejects.toEqual(refused)
      for (const statement of [
        `insert into codemachine.event (session, number, epoch, line) values ('${first}', 1, 1, 'forged')`,
        `delete from codemachine.event`,
        `update codemachine.ask set reply = '{}'`,
        `update codemachine.worker set instance = gen_random_uuid()`,
        `update codemachine.term set lease_seconds = 11`,
      ])
        await expect(database.sql(statement), statement).rejects.toEqual(refused)
      expect(await count(fleet.database, 'event')).toBe(0)
    })

    promise('N13', 'Nobody but a worker says how a session of the fleet ended, and what is done stays so')
    test('who submits changes by hand only what is asked and which workers drain, and who looks nothing', async () => {
      await using fleet = await setUpFleet(cluster)
      // As an earlier codemachine gave it.
      for (const earlier of [
        'grant insert, update, delete on codemachine.session to codemachine_submit, codemachine_work',
        'grant insert, delete on codemachine.event to codemachine_work',
        'grant insert, update, delete on all tables in schema codemachine_queue to codemachine_submit',
      ])
        await fleet.database.sql(earlier)
      await setUp(fleet.database, { terms: {}, teams: [] })
      const mayWrite = (role: string) =>
        fleet.database.sql(
          `select distinct c.relname || coalesce('.' || a.attname, '') || ' ' || may as right from pg_class c
             join pg_namespace n on n.oid = c.relnamespace cross join unnest('{insert,update,delete,truncate}'::text[]) as may
             left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and may in ('insert', 'update')
           where n.nspname like 'codemachine%' and c.relkind in ('r', 'p') and case when may in ('insert', 'update')
             then has_column_privilege('${role}', c.oid, a.attnum, may) else has_table_privilege('${role}', c.oid, may) end order by 1`,
        )
      const rights = async (role: string) => (await mayWrite(role)).map(({ right }) => right)
      expect(await rights('codemachine_look')).toEqual([])
      expect(await rights('codemachine_submit')).toEqual([
        'ask.ask insert',
        'ask.session insert',
        'worker.drains update',
      ])
      const ofWorker = await rights('codemachine_work')
      expect(ofWorker).toContain('session.outcome update')
      for (const column of ['created_by', 'team', 'job', 'goal', 'repo', 'cancel_asked'])
        expect(ofWorker).not.toContain(`session.${column} update`)
      expect(
        ofWorker.filter(right => /^(session|event|ask|term) ?.* (insert|delete|truncate)/.test(String(right))),
      ).toEqual([])
    })

    promise('N13')
    test('what is done stays as its worker has left it, and who submits takes out nothing but what it submitted', async () => {
      await using fleet = await setUpFleet(cluster)
      await using submitter = await seenBy(fleet, 'codemachine_submit')
      const { database } = submitter
      const [own = ''] = await submit(database, [submission()])
      const [other = ''] = await submitAll(fleet, {})
      for (const id of [own, other]) {
        const outcome = { kind: 'done', verified: true }
        const end = { ...DONE, outcome, report: 'a report', certificate: { of: id } }
        await finish(fleet.database, fleet.queue, await takeOne(fleet, taker('w')), end)
      }
      const before = [await rowOf(fleet, own), await rowOf(fleet, other)]
      expect(before[0]?.created_by).toMatch(/^login_/)
      await expect(retrySession(database, own)).rejects.toThrow(/has ended/)
      await expect(database.sql('select codemachine.retry($1)', [own])).rejects.toMatchObject({ code: 'CM007' })
      await database.sql('select codemachine.cancel($1), codemachine.dequeue($1)', [own])
      expect([await rowOf(fleet, own), await rowOf(fleet, other)]).toEqual(before)
      await database.sql('select codemachine.prune($1)', [[own, other]])
      expect(await fleet.database.sql('select id from codemachine.session')).toEqual([{ id: other }])
      await using worker = await seenBy(fleet, 'codemachine_work')
      await worker.database.sql('select codemachine.prune($1)', [[other]])
      expect(await count(fleet.database, 'session')).toBe(0)
    })

    test.each([
      ['a priority beyond the others', { priority: 1_001 }],
      ['a tag that is none', { tags: ['GPU; drop'] }],
      ['a time that never comes', { notBefore: 'infinity' as never }],
      ['a deadline without end', { deadline: '-infinity' as never }],
    ])('nobody submits %s', async (_what, wrong) => {
      await using fleet = await setUpFleet(cluster)
      await expect(submitAll(fleet, {}, wrong)).rejects.toMatchObject({ code: 'CM006' })
      expect(await count(fleet.database, 'session')).toBe(0)
    })

    test('who works takes, appends, gives back, ends, and takes over from who is lost', async () => {
      await using fleet = await setUpFleet(cluster)
      const [id = '', other = ''] = await submitAll(fleet, {}, {})
      await submitAll(fleet, { after: id })
      await using worker = await seenBy(fleet, 'codemachine_work')
      const { database, queue } = worker
      const w = taker('w')
      await giveBack(database, queue, await takeOne(worker, w), { reason: 'drained', isFault: false })
      const lost = await takeOne(worker, w)
      await loseLease(fleet, lost.id)
      await superviseAnew(fleet)
      await queue.supervise()
      const [one, two] = [await takeOne(worker, w), await takeOne(worker, w)]
      expect([one.id, two.id].toSorted()).toEqual([id, other].toSorted())
      await takeBack(database, queue, taker('w'))
      for (const taken of [await takeOne(worker, w), await takeOne(worker, w)]) {
        await append(database, taken, 1, ['a'], { round: 1 })
        expect(await beat(database, queue, taken)).toMatchObject({ isOwn: true })
        await finish(database, queue, taken, DONE)
      }
      expect(await takeOne(worker, w)).toMatchObject({ epoch: 1 })
      expect(await database.transaction(sql => queue.dead(sql))).toEqual([])
      await expect(database.sql('update codemachine.term set lease_seconds = 11')).rejects.toEqual(refused)
    })

    test('who has none of them is told whom to ask', async () => {
      await using fleet = await setUpFleet(cluster)
      const database = await openDatabase(await cluster.login('nobody_here', '', fleet.url), { env: {}, most: 2 })
      await using _closed = database
      await expect(fleetTerms(database)).rejects.toEqual(refused)
    })
  })

  describe('keeps teams apart', () => {
    /** A session of each of two teams, one of them with an event and something asked, and one of nobody's. */
    async function openTeams() {
      const fleet = await setUpFleet(cluster, { teams: ['a', 'b'] })
      const [a = '', b = '', all = ''] = await submitAll(
        fleet,
        { team: 'a' },
        { team: 'b', priority: 99 },
        { priority: -9 },
      )
      const taken = await takeOne(fleet, taker('of-b'))
      await append(fleet.database, taken, 1, ['a secret of b'], null)
      await fleet.database.sql(`insert into codemachine.ask (session, ask) values ($1, '{}')`, [b])
      return { fleet, a, b, all, taken }
    }

    promise('N5')
    test('a member of one does not see what is of another', async () => {
      const { fleet, a, all } = await openTeams()
      await using _fleet = fleet
      await using looker = await seenBy(fleet, 'codemachine_look', 'codemachine_team_a')
      const { sql } = looker.database
      const seen = await sql<{ id: string }>('select id from codemachine.session order by id')
      expect(seen.map(({ id }) => id)).toEqual([a, all].toSorted())
      expect(await count(looker.database, 'event')).toBe(0)
      expect(await count(looker.database, 'ask')).toBe(0)
      await using other = await seenBy(fleet, 'codemachine_look', 'codemachine_team_b')
      expect(await count(other.database, 'event')).toBe(1)
      expect(await count(other.database, 'ask')).toBe(1)
    })

    promise('N5', "A team's sessions are seen, changed and taken by nobody else")
    test('nor by tables and functions of its own in the place of those of the database', async () => {
      const { fleet, b } = await openTeams()
      await using _fleet = fleet
      await using member = await seenBy(fleet, 'codemachine_submit', 'codemachine_work', 'codemachine_team_a')
      const seen = await member.database.transaction(async sql => {
        await sql(`create temp view pg_roles as select 'codemachine_team_b'::name as rolname, r.oid from pg_catalog.pg_roles r
          where r.rolname = session_user`)
        await sql(`create function pg_temp.pg_has_role(name, oid, text) returns boolean language sql as 'select true'`)
        await sql('set local search_path = pg_temp, pg_catalog')
        await sql('select codemachine.cancel($1), codemachine.prune(array[$1])', [b])
        return await sql('select id from codemachine.session where id = $1', [b])
      })
      expect(seen).toEqual([])
      expect(await rowOf(fleet, b)).toMatchObject({ cancel_asked: false })
    })

    test('nor changes, waits for, asks or submits anything there', async () => {
      const { fleet, b, taken } = await openTeams()
      await using _fleet = fleet
      const roles = ['codemachine_submit', 'codemachine_work', 'codemachine_team_a']
      await using member = await seenBy(fleet, ...roles)
      const { database } = member
      for (const change of [cancelSession, retrySession])
        await expect(change(database, b)).rejects.toThrow(/There is no session/)
      for (const call of ['cancel($1)', 'dequeue($1)', `enqueue(array[$1], null)`, 'prune(array[$1])'])
        await database.sql(`select codemachine.${call}`, [b])
      for (const call of ['retry($1)', `append($1, 1, 2, '{forged}', null)`])
        await expect(database.sql(`select codemachine.${call}`, [b]), call).rejects.toThrow(b)
      await database.sql(`update codemachine.session set state = 'dead' where id = $1`, [b])
      await database.sql(`delete from codemachine_queue.job where data ->> 'session' = $1`, [b])
      await database.sql(`delete from codemachine_queue.job_common where data ->> 'session' = $1`, [b])
      expect(await database.sql(`select name from codemachine_queue.queue where name like '%.b%'`)).toEqual([])
      expect(await rowOf(fleet, b)).toMatchObject({ cancel_asked: false, events: '1', state: 'running' })
      expect(await count(fleet.database, 'event')).toBe(1)
      await expect(submit(database, [submission({ team: 'b' })])).rejects.toEqual(refused)
      await expect(submit(database, [submission({ team: 'a', after: b })])).rejects.toThrow(/no session/)
      await expect(append(database, taken, 2, ['forged'], null)).rejects.toThrow(/taken over/)
      const ask = `insert into codemachine.ask (session, ask) values ('${b}', '{}')`
      await expect(database.sql(ask)).rejects.toEqual(refused)
      await expect(database.sql(`update codemachine.session set team = 'b' where team = 'a'`)).rejects.toEqual(refused)
      expect(await submit(database, [submission({ team: 'a' })])).toHaveLength(1)
    })

    promise('N5')
    test('a worker takes those of its teams, and leaves the others where they are', async () => {
      const { fleet, a, b, all, taken } = await openTeams()
      await using _fleet = fleet
      await giveBack(fleet.database, fleet.queue, taken, { reason: 'drained', isFault: false })
      await using member = await seenBy(fleet, 'codemachine_work', 'codemachine_team_a')
      const w = taker('of-a')
      expect([(await takeOne(member, w)).id, (await takeOne(member, w)).id].toSorted()).toEqual([a, all].toSorted())
      expect(await takeFor(member, w)).toBeNull()
      await using of = await seenBy(fleet, 'codemachine_work', 'codemachine_team_b')
      expect(await takeOne(of, taker('of-b'))).toMatchObject({ id: b, epoch: 2, events: 1 })
    })

    test('those of a team that were lost too often are told to a worker of the team', async () => {
      const { fleet, b } = await openTeams()
      await using _fleet = fleet
      await fleet.database.sql(`update codemachine_queue.job set retry_count = retry_limit where state = 'active'`)
      await loseLease(fleet, b)
      await using member = await seenBy(fleet, 'codemachine_work', 'codemachine_team_a')
      await using of = await seenBy(fleet, 'codemachine_work', 'codemachine_team_b')
      expect(await member.database.transaction(sql => member.queue.dead(sql))).toEqual([])
      expect(await of.database.transaction(sql => of.queue.dead(sql))).toMatchObject([{ session: b }])
    })
  })
})

describe.skipIf(!hasPostgres)(`whoever may make no roles${WITHOUT_POSTGRES}`, () => {
  test('is told so, and uses the fleet alone', async () => {
    // Roles are of a whole cluster: here there are none.
    await using cluster = await startPostgres()
    const url = await cluster.database()
    const address = await cluster.login('owner', '', url)
    await cluster.ask(url, `grant create on database ${url.split('/').at(-1)} to owner`)
    await using database = await openDatabase(address, { env: {}, most: 4 })
    const { done, problems } = await setUp(database, { terms: { leaseSeconds: 10 }, teams: ['a'] })
    expect(done.join('\n')).toMatch(/schema codemachine is made/)
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(/CREATEROLE/)
    expect(problems[0]).toMatch(/create role codemachine_submit nologin/)
    const terms = await fleetTerms(database)
    await using queue = await openQueue(database, terms, () => {})
    const fleet: FleetPlace = { url, database, queue, terms, [Symbol.asyncDispose]: async () => {} }
    const [id, ofTeam] = await submitAll(fleet, { priority: 1 }, { team: 'a' })
    expect((await takeOne(fleet, taker('w'))).id).toBe(id)
    // Whoever owns it sees all teams.
    expect((await takeOne(fleet, taker('w'))).id).toBe(ofTeam)
    for (const role of ['codemachine_submit', 'codemachine_work', 'codemachine_look', 'codemachine_team_a'])
      await cluster.ask(url, `create role ${role} nologin`)
    expect(await setUp(database, { terms: {}, teams: ['a'] })).toEqual({ done: [], problems: [] })
    const looker = await cluster.login('looker', 'in role codemachine_look', url)
    await using seen = await openDatabase(looker, { env: {}, most: 2 })
    expect(await fleetTerms(seen)).toEqual(terms)
  })
})
