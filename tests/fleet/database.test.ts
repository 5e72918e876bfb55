import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { UserError } from '../../src/base/errors.ts'
import { type DatabaseAddress, DatabaseAway, openDatabase } from '../../src/fleet/database.ts'
import { fleetTerms, setUp } from '../../src/fleet/schema.ts'
import { hasPostgres, type PostgresCluster, setUpFleet, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'

const of = (url: string, from = '--queue'): DatabaseAddress => ({
  url,
  from,
  mayHoldPassword: from === 'CODEMACHINE_QUEUE',
})
const open = (address: DatabaseAddress, env: NodeJS.ProcessEnv = {}) => openDatabase(address, { env, most: 3 })

/** What a person is told. */
async function problemOf(doing: Promise<unknown>): Promise<UserError> {
  const problem = await doing.then(
    () => null,
    error => error,
  )
  if (!(problem instanceof UserError)) throw new Error(`It is no sentence for a person: ${problem}`, { cause: problem })
  expect(problem.message).toMatch(/^[^\n]+\.$/)
  expect(problem.hint).toMatch(/\S/)
  return problem
}

describe('the address of the database', () => {
  test.each(['--queue', 'fleet.queue'])('holds no password where others can see it: in %s', async from => {
    for (const url of ['postgres://night:secret@127.0.0.1/fleet', 'postgres://127.0.0.1/fleet?password=secret']) {
      const { message, exitCode } = await problemOf(open(of(url, from)))
      expect(message).toBe(`${from} contains a password, which other users of this machine can see.`)
      expect(exitCode).toBe(2)
    }
  })

  promise('N10', 'A password is in no argument, and what goes to another machine is encrypted')
  test('may hold one in the environment, and is never shown with it', async () => {
    await using database = await open(of('postgres://night:secret@127.0.0.1:5/fleet', 'CODEMACHINE_QUEUE'))
    expect(database.place).toBe('127.0.0.1:5/fleet')
    expect((await problemOf(database.sql('select 1'))).message).not.toContain('secret')
  })

  test.each(['', 'fleet', 'http://db.example/fleet', '/var/run/postgresql', 'mysql://db.example/fleet'])(
    'is one of PostgreSQL, which "%s" is not',
    async url => {
      const { message, hint } = await problemOf(open(of(url)))
      expect(message).toBe('--queue is not the address of a PostgreSQL database.')
      expect(hint).toContain('postgres://night@db.example/fleet')
    },
  )

  test('is said in full by what the environment adds', async () => {
    await using database = await open(of('postgres:///fleet'), { PGHOST: '/run/postgresql', PGPORT: '6000' })
    expect(database.place).toBe('/run/postgresql:6000/fleet')
    await using here = await open(of('postgresql://[::1]:7/x'))
    expect(here.place).toBe('::1:7/x')
    await using other = await open(of('postgres://127.0.0.1/fleet?host=db.example&port=8'))
    expect(other.place).toBe('db.example:8/fleet')
  })

  test.each(['disable', 'allow', 'prefer', 'no-verify'])(
    'of another machine is refused where it gives up encryption: sslmode=%s',
    async mode => {
      const address = `postgres://db.example/fleet?sslmode=${mode}`
      const { message } = await problemOf(open(of(address)))
      expect(message).toContain(`--queue contains sslmode=${mode}, but the connection to db.example, another machine`)
      // What the rest of the address says of the host counts.
      await problemOf(open(of(`postgres://127.0.0.1/fleet?host=db.example&sslmode=${mode}`)))
      await problemOf(open(of(`postgres:///fleet?sslmode=${mode}`), { PGHOST: 'db.example' }))
      await using _here = await open(of('postgres://127.0.0.1/fleet?sslmode=disable'))
    },
  )

  test.each(['ssl=0', 'ssl=no-verify', 'sslnegotiation=direct', 'uselibpqcompat=true&sslmode=require'])(
    'has no other way to give up encryption: %s',
    async said => {
      expect((await problemOf(open(of(`postgres://db.example/fleet?${said}`)))).message).toMatch(/use sslmode/)
    },
  )
})

describe('a connection', () => {
  /** Somebody who listens, and does as told with what comes. */
  async function listen(host: string, on: (socket: Socket, first: Buffer) => void) {
    const server = createServer(socket => {
      socket.on('error', () => {})
      socket.once('data', first => on(socket, first))
    }).listen(0, host)
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    return { port, [Symbol.asyncDispose]: async () => void server.close() }
  }
  /** What asks for TLS before anything else. */
  const TLS = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

  test('to this machine is made without TLS, and with where that is asked for', async () => {
    const firsts: Buffer[] = []
    await using server = await listen('127.0.0.1', (socket, first) => {
      firsts.push(first)
      socket.end()
    })
    for (const mode of ['', '?sslmode=prefer', '?sslmode=require', '?sslmode=verify-full']) {
      await using database = await open(of(`postgres://n@127.0.0.1:${server.port}/fleet${mode}`))
      await expect(database.sql('select 1')).rejects.toThrow(DatabaseAway)
    }
    expect(firsts.map(first => first.equals(TLS))).toEqual([false, false, true, true])
  })

  promise('N10')
  test('to another machine says nothing before it is encrypted', async () => {
    const firsts: Buffer[] = []
    await using server = await listen('0.0.0.0', (socket, first) => {
      firsts.push(first)
      // It has no TLS.
      socket.end('N')
    })
    // Loopback, by a name that does not say so.
    await using database = await open(of(`postgres://n@0.0.0.0:${server.port}/fleet`))
    const { message } = await problemOf(database.sql('select 1'))
    expect(message).toMatch(/SSL/)
    expect(firsts.every(first => first.equals(TLS))).toBe(true)
  })
})

describe.skipIf(!hasPostgres)(`a database${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  test('that is away is said in one sentence, and is used again once it is back', async () => {
    const url = await cluster.database()
    await using database = await open(of(url))
    await database.sql('select 1')
    await cluster.stop()
    const problem = await problemOf(database.sql('select 1'))
    expect(problem).toBeInstanceOf(DatabaseAway)
    expect(problem.message).toContain(`The database at 127.0.0.1:${cluster.port}/`)
    expect(problem.exitCode).toBe(4)
    await expect(database.transaction(sql => sql('select 1'))).rejects.toThrow(/ECONNREFUSED/)
    await cluster.start()
    expect(await database.sql('select 1 as one')).toEqual([{ one: 1 }])
  })

  test('that goes in the middle of a transaction is away, and nothing of that is there afterwards', async () => {
    const url = await cluster.database()
    await using database = await open(of(url))
    await database.sql('create table t (n int)')
    const cut = database.transaction(async sql => {
      await sql('insert into t values (1)')
      await cluster.restart()
      await sql('insert into t values (2)')
    })
    expect(await problemOf(cut)).toBeInstanceOf(DatabaseAway)
    expect(await database.sql('select n from t')).toEqual([])
  })

  test('that is not there is named', async () => {
    await using database = await open(of((await cluster.database()).replace(/\w+$/, 'night')))
    const { message, exitCode } = await problemOf(database.sql('select 1'))
    expect(message).toContain('There is no such database')
    expect(message).toContain('"night"')
    expect(exitCode).toBe(2)
  })

  test('that is not set up is to be set up', async () => {
    await using database = await open(of(await cluster.database()))
    const { message, hint } = await problemOf(fleetTerms(database))
    expect(message).toContain('is not set up for a fleet')
    expect(hint).toContain('codemachine fleet setup')
  })

  test('lets nobody in with a wrong password, or none', async () => {
    const url = await cluster.database()
    const { url: right, ...rest } = await cluster.login('owl', '', url)
    await using known = await open({ url: right, ...rest })
    expect(await known.sql('select session_user as me')).toEqual([{ me: 'owl' }])
    for (const password of ['wrong', '']) {
      const other = Object.assign(new URL(right), { password })
      await using database = await open({ url: other.href, ...rest })
      const { message, hint, exitCode } = await problemOf(database.sql('select 1'))
      expect(message).toContain('refuses your login')
      expect(hint).toContain('PGPASSWORD')
      expect(exitCode).toBe(4)
    }
  })

  test('that can only be read says so, and may take it another time', async () => {
    const url = await cluster.database()
    await using database = await open(of(url))
    await setUp(database, { terms: {}, teams: [] })
    await cluster.ask(url, `alter database ${url.split('/').at(-1)} set default_transaction_read_only = on`)
    await using replica = await open(of(url))
    const problem = await problemOf(setUp(replica, { terms: { leaseSeconds: 30 }, teams: [] }))
    expect(problem.message).toContain('is read-only')
    expect(problem.exitCode).toBe(4)
    // A worker tries again what such a one has refused.
    expect(problem).toBeInstanceOf(DatabaseAway)
  })

  test('of a newer codemachine is left as it is', async () => {
    await using fleet = await setUpFleet(cluster)
    const { database } = fleet
    await database.sql('update codemachine.version set version = 99')
    for (const doing of [fleetTerms(database), setUp(database, { terms: { leaseSeconds: 99 }, teams: [] })])
      await expect(doing).rejects.toThrow(
        /has schema version 99, but this codemachine only knows versions up to \d+; update codemachine\./,
      )
    expect(await database.sql('select lease_seconds from codemachine.term')).toEqual([{ lease_seconds: 10 }])
  })

  test('keeps nothing of a transaction that fails, and its connection is used again', async () => {
    await using database = await open(of(await cluster.database()))
    await database.sql('create table t (n int primary key)')
    const failing = database.transaction(async sql => {
      await sql('insert into t values (1)')
      await sql('insert into t values (1)')
    })
    await expect(failing).rejects.toMatchObject({ code: '23505' })
    const thrown = database.transaction(async sql => {
      await sql('insert into t values ($1)', [2])
      throw new Error('the caller has changed its mind')
    })
    await expect(thrown).rejects.toThrow('the caller has changed its mind')
    expect(await database.sql('select n from t')).toEqual([])
    await database.transaction(sql => sql('insert into t values (3)'))
    expect(await database.sql('select n from t')).toEqual([{ n: 3 }])
  })

  test('is asked beside many transactions that each ask something else, too', async () => {
    await using database = await open(of(await cluster.database()))
    const both = () =>
      database.transaction(async sql => {
        await sql('select 1')
        return await database.sql<{ two: number }>('select 2 as two')
      })
    const all = await Promise.all(Array.from({ length: 20 }, both))
    expect(all.flat()).toEqual(Array.from({ length: 20 }, () => ({ two: 2 })))
  })
})
