import { isIP } from 'node:net'
import type { Pool, PoolClient, PoolConfig, QueryResult, QueryResultRow } from 'pg'
import { messageOf, systemErrorCode, UserError } from '../base/errors.ts'

/** Sends statements, through the pool or in one transaction. */
export interface Sql {
  /** Returns the rows of a statement; `values` replace `$1`, `$2`, …. */
  <Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>
  /** Returns pg's raw result; a list for several statements. */
  raw(text: string, values?: unknown[]): Promise<QueryResult>
}

/** The database of a fleet. Disposal closes every connection. */
export interface Database extends AsyncDisposable {
  readonly sql: Sql
  /** Address without a password: `db.example:5432/fleet`. */
  readonly place: string
  /** Runs `work` in one transaction, completely or not at all. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>
}

/** The address of a database, and its source. */
export interface DatabaseAddress {
  /** Address `postgres://user@host:5432/name`; missing parts come from `PGHOST`, `PGUSER`, … as for `psql`. */
  url: string
  /** Source of the address: `--queue`, `CODEMACHINE_QUEUE` or `fleet.queue`. */
  from: string
  /** True if it may have a password: only a variable may. */
  mayHoldPassword: boolean
}

/** Timeouts of a connection and of a statement, ms. */
const CONNECT_MS = 10_000
const STATEMENT_MS = 30_000

/**
 * Opens the database without a request. Throws a `UserError` for an invalid address or missing packages.
 * @param most the number of connections, 2 at least
 */
export async function openDatabase(
  address: DatabaseAddress,
  { env, most }: { env: NodeJS.ProcessEnv; most: number },
): Promise<Database> {
  const url = parsed(address)
  const host = url.searchParams.get('host') ?? (unbracketed(url.hostname) || (env.PGHOST ?? 'localhost'))
  const place = `${host}:${url.searchParams.get('port') || url.port || env.PGPORT || '5432'}${url.pathname === '/' ? '' : url.pathname}`
  const { Pool } = await packagePg()
  const pool = new Pool({
    connectionString: withoutSslMode(url),
    ...sslOf(url, host, address.from),
    max: most,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    query_timeout: STATEMENT_MS + 5_000,
    idle_in_transaction_session_timeout: STATEMENT_MS,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'codemachine',
  })
  // The pool replaces an idle connection that breaks.
  pool.on('error', () => {})
  // Keep one connection free: pg-boss uses its own during a transaction.
  const turns = new Turns(Math.max(1, most - 1))
  return {
    place,
    sql: sqlBy(place, (text, values) => pool.query(text, values)),
    transaction: work => turns.take(() => transaction(pool, place, work)),
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

function sqlBy(place: string, query: (text: string, values?: unknown[]) => Promise<QueryResult>): Sql {
  const raw = (text: string, values?: unknown[]) => said(place, () => query(text, values))
  return Object.assign(
    async <Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]> =>
      (await raw(text, values === undefined ? undefined : [...values])).rows as Row[],
    { raw },
  )
}

async function transaction<T>(pool: Pool, place: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const client: PoolClient = await said(place, () => pool.connect())
  let broken: Error | undefined
  // A break between two statements shows in the next one.
  const onError = (problem: Error) => {
    broken = problem
  }
  client.on('error', onError)
  try {
    await said(place, () => client.query('begin'))
    const done = await work(sqlBy(place, (text, values) => client.query(text, values)))
    await said(place, () => client.query('commit'))
    return done
  } catch (error) {
    // Do not reuse a connection without a successful rollback.
    await client.query('rollback').catch((problem: Error) => {
      broken = problem
    })
    throw error
  } finally {
    client.off('error', onError)
    client.release(broken)
  }
}

/** Limits the number of actions at once; others wait, first come first served. */
class Turns {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(free: number) {
    this.#free = free
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}

function parsed({ url, from, mayHoldPassword }: DatabaseAddress): URL {
  let read: URL
  try {
    read = new URL(url)
  } catch {
    throw badAddress(from)
  }
  if (!/^postgres(ql)?:$/.test(read.protocol)) throw badAddress(from)
  if (!mayHoldPassword && (read.password !== '' || read.searchParams.has('password')))
    throw new UserError('CM1101', `${from} contains a password, which other users of this machine can see.`, {
      hint: 'Put it into PGPASSWORD or ~/.pgpass, or the whole address into CODEMACHINE_QUEUE.',
    })
  return read
}

function badAddress(from: string): UserError {
  return new UserError('CM1101', `${from} is not the address of a PostgreSQL database.`, {
    hint: 'Such as postgres://night@db.example/fleet, with the password in PGPASSWORD or ~/.pgpass.',
  })
}

/** Returns TLS options: encryption with a checked certificate, unless the database is on this machine. */
function sslOf(url: URL, host: string, from: string): Pick<PoolConfig, 'ssl'> {
  // These parameters would override this function.
  const other = ['ssl', 'sslnegotiation', 'uselibpqcompat'].find(name => url.searchParams.has(name))
  if (other !== undefined)
    throw new UserError('CM1104', `${from} contains ${other}, which codemachine does not support; use sslmode.`, {
      hint: 'Connections to other machines are always encrypted; sslrootcert names the certificate to trust.',
    })
  const mode = url.searchParams.get('sslmode')
  if (isLoopback(host)) return mode === null || mode === 'disable' || mode === 'prefer' ? {} : { ssl: true }
  if (mode === 'disable' || mode === 'allow' || mode === 'prefer' || mode === 'no-verify')
    throw new UserError(
      'CM1104',
      `${from} contains sslmode=${mode}, but the connection to ${host}, another machine, must be encrypted.`,
      {
        hint: 'Leave sslmode out, or reach the database by ssh -L on 127.0.0.1.',
      },
    )
  return { ssl: { rejectUnauthorized: true } }
}

/** Removes `sslmode`, which `sslOf` has applied: its meaning in pg varies by version. Keeps a certificate's path. */
function withoutSslMode(url: URL): string {
  const rest = new URL(url)
  rest.searchParams.delete('sslmode')
  return rest.href
}

/** True for this machine, also by a socket's folder. */
function isLoopback(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

function unbracketed(host: string): string {
  return decodeURIComponent(host).replace(/^\[(.*)\]$/, '$1')
}

async function packagePg(): Promise<Pick<typeof import('pg'), 'Pool'>> {
  return (await import('pg').catch(missing)).default
}

/** Imports pg-boss, which fleet owners install; otherwise throws a `UserError` with the install command. */
export async function packagePgBoss(): Promise<typeof import('pg-boss')> {
  return await import('pg-boss').catch(missing)
}

function missing(error: unknown): never {
  if (systemErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new UserError('CM1102', 'A fleet needs the packages pg and pg-boss; they are not installed.', {
    hint: 'Install them beside codemachine: npm install --global pg pg-boss@12.35.0',
  })
}

/** Runs a request. Reports a failure in one sentence; errors raised by codemachine's own functions stay database errors. */
async function said<T>(place: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw asUserError(error, place)
  }
}

/** Error code of codemachine's functions in the database: the session has another owner. */
export const SUPERSEDED = 'CM001'

/** Thrown if the database is unreachable, disconnects, or accepts no request now (full, or a replica): retry later. */
export class DatabaseAway extends UserError {}

/** What to do if a database with a socket is away. */
export const START_LOCAL = 'If it is the PostgreSQL of this machine, start it: codemachine fleet setup --local'

function asUserError(error: unknown, place: string): unknown {
  const code = systemErrorCode(error) ?? ''
  const why = messageOf(error).split('\n')[0]
  const [kind = ''] = /^../.exec(code) ?? []
  if (/^unsupported startup parameter/.test(why ?? ''))
    return new UserError('CM1103', `PgBouncer at ${place} refuses two settings of each connection: ${why}.`, {
      hint: 'Add to pgbouncer.ini: ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout',
      exitCode: 4,
      cause: error,
    })
  if (
    AWAY.has(code) ||
    kind === '08' ||
    (code === '' && /terminat|timeout|Connection ended|not queryable|ECONN/i.test(why ?? ''))
  )
    return new DatabaseAway('CM1103', `The database at ${place} cannot be reached: ${why}.`, {
      hint: place.startsWith('/') ? START_LOCAL : 'To find out why: codemachine fleet doctor',
      exitCode: 4,
      cause: error,
    })
  if (TLS.test(`${code} ${why}`))
    return new UserError('CM1104', `The connection to the database at ${place} is not safe: ${why}.`, {
      hint: 'Its certificate must have that name and be trusted here. Name the certificate with ?sslrootcert=…, or reach the database by ssh -L on 127.0.0.1.',
      exitCode: 4,
      cause: error,
    })
  switch (/^SASL: .*password must be a/.test(why ?? '') ? '28P01' : code) {
    case '28P01':
    case '28000':
      return new UserError('CM1105', `The database at ${place} refuses your login: ${why}.`, {
        hint: 'Set PGUSER and PGPASSWORD, or write a line in ~/.pgpass.',
        exitCode: 4,
        cause: error,
      })
    case '3D000':
      return new UserError('CM1106', `There is no such database at ${place}: ${why}.`, {
        hint: 'Its owner creates it with createdb, then types: codemachine fleet setup',
        cause: error,
      })
    case '3F000':
    case '42P01':
    case '42883':
      return new UserError('CM1106', `The database at ${place} is not set up for a fleet.`, {
        hint: 'Its owner types: codemachine fleet setup',
        cause: error,
      })
    case '42501':
      return new UserError('CM1105', `Your login at the database ${place} lacks a right that this needs: ${why}.`, {
        hint: 'Ask its owner for a role; codemachine fleet setup lists what each role may do.',
        exitCode: 4,
        cause: error,
      })
    case '25006':
      return new DatabaseAway('CM1107', `The database at ${place} is read-only.`, {
        hint: 'Is it a replica? Name the one that takes writes.',
        exitCode: 4,
        cause: error,
      })
    case '53100':
      return new DatabaseAway('CM1107', `The disk of the database at ${place} is full.`, {
        hint: 'Nothing is lost. To remove ended sessions: codemachine fleet prune',
        exitCode: 4,
        cause: error,
      })
    default:
      return error
  }
}

/** Matches errors of missing TLS or an untrusted certificate. */
const TLS = /^ERR_(SSL|TLS)_|_CERT|CERT_|UNABLE_TO_(GET|VERIFY)_|does not support SSL/

/** Error codes of a database that is unreachable, shutting down or without a free connection. */
const AWAY: ReadonlySet<string> = new Set(
  'ECONNREFUSED ECONNRESET ENOTFOUND EAI_AGAIN ETIMEDOUT EHOSTUNREACH ENETUNREACH EPIPE ENOENT 57P01 57P02 57P03 25P03 40001 40P01 53300 57014'.split(
    ' ',
  ),
)
