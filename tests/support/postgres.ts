import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chownSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setImmediate as nextTick } from 'node:timers/promises'
import { type Database, type DatabaseAddress, openDatabase } from '../../src/fleet/database.ts'
import { type FleetQueue, openQueue } from '../../src/fleet/queue.ts'
import { type FleetTerms, fleetTerms, setUp } from '../../src/fleet/schema.ts'
import { RUN_MARK } from './end-with-run.ts'
import { unless } from './skipped.ts'

/** Where `initdb`, `postgres` and `psql` are, and whom they run as; null: not on this machine. */
const PROGRAMS = findPrograms()

/** Whether there is a PostgreSQL on this machine. */
export const hasPostgres = PROGRAMS !== null
/** Stands in the title of what is skipped: empty where PostgreSQL is there. */
export const WITHOUT_POSTGRES = unless(hasPostgres, 'there is no PostgreSQL here')

/** A cluster of PostgreSQL of its own, on loopback and in a temporary directory. Its owner is `postgres`. */
export interface PostgresCluster extends AsyncDisposable {
  readonly port: number
  /** Makes a database, and answers its address: an empty one, or with what that one holds which nobody is connected to. */
  database(like?: string): string
  /** Databases in which a fleet is set up and nothing else, by how it is. */
  readonly readyMade: Map<string, string>
  /** Makes a role that logs in with a password, with what it is a member of or may (`in role codemachine_look`), and answers how it opens a database. */
  login(name: string, may: string, url: string): DatabaseAddress
  /** Sends statements to a database by the cluster's owner, and answers what comes of the last one: fields by `|`, rows by newline. */
  psql(url: string, statements: string): string
  /** At once, as by a power cut; what is connected is cut off. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Both, with the same port and data. */
  restart(): Promise<void>
}

/** A database that a fleet is set up in. */
export interface FleetPlace extends AsyncDisposable {
  readonly url: string
  readonly database: Database
  readonly queue: FleetQueue
  readonly terms: FleetTerms
}

/** How long a program of PostgreSQL may take, ms. */
const BOUND_MS = 60_000
const WHO_COMES_IN = `local all all trust
host all +with_password 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 trust
`
/** Of everybody who is made with `login`. */
const PASSWORD = 'not-a-secret'

export async function startPostgres(): Promise<PostgresCluster> {
  const { bin, as } = programs()
  const root = mkdtempSync(join(tmpdir(), 'codemachine-postgres-'))
  if (as.uid !== undefined) chownSync(root, as.uid, as.gid ?? as.uid)
  const data = join(root, 'data')
  const env = {
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    LC_ALL: 'C.UTF-8',
    HOME: root,
    [RUN_MARK]: process.env[RUN_MARK],
  }
  const run = (program: string, args: string[]) =>
    execFileSync(join(bin, program), args, {
      ...as,
      env,
      cwd: root,
      stdio: 'pipe',
      encoding: 'utf8',
      timeout: BOUND_MS,
    })
  run('initdb', ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions'])
  writeFileSync(join(data, 'pg_hba.conf'), WHO_COMES_IN)
  const port = await freePort()
  let server: ReturnType<typeof spawn> | null = null
  let made = 0
  const psql = (url: string, statements: string) =>
    run('psql', ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', statements]).trim()
  const addressOf = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`
  const start = async () => {
    const options = ['-D', data, '-p', String(port), '-k', root, '-h', '127.0.0.1', '-F', '-c', 'max_connections=200']
    server = spawn(join(bin, 'postgres'), options, { ...as, env, cwd: root, stdio: 'ignore' })
    for (const until = performance.now() + BOUND_MS; ; ) {
      try {
        run('pg_isready', ['-q', '-h', '127.0.0.1', '-p', String(port)])
        return
      } catch (error) {
        // It is heard of here if it has ended.
        await nextTick()
        if (performance.now() > until || server.exitCode !== null) throw error
      }
    }
  }
  const stop = async () => {
    if (server === null || server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit', { signal: AbortSignal.timeout(BOUND_MS) })
    // What it leaves is mended when it starts.
    server.kill('SIGQUIT')
    await gone
  }
  await start()
  psql(addressOf('postgres'), 'create role with_password')
  return {
    port,
    readyMade: new Map(),
    database(like) {
      made += 1
      const template = like === undefined ? '' : ` template ${like.split('/').at(-1)}`
      psql(addressOf('postgres'), `create database fleet_${made}${template}`)
      return addressOf(`fleet_${made}`)
    },
    login(name, may, url) {
      psql(url, `create role ${name} login password '${PASSWORD}' ${may}; grant with_password to ${name}`)
      const own = Object.assign(new URL(url), { username: name, password: PASSWORD })
      return { url: own.href, from: 'CODEMACHINE_QUEUE', mayHoldPassword: true }
    },
    psql,
    start,
    stop,
    async restart() {
      await stop()
      await start()
    },
    async [Symbol.asyncDispose]() {
      await stop()
      rmSync(root, { recursive: true, force: true })
    },
  }
}

/** Sets a fleet up in a new database of the cluster. A lease of 10 s is the shortest. */
export async function setUpFleet(
  cluster: PostgresCluster,
  {
    leaseSeconds = 10,
    perRepository = 4,
    teams = [],
    most = 8,
  }: Partial<FleetTerms> & { teams?: readonly string[]; most?: number } = {},
): Promise<FleetPlace> {
  const how = JSON.stringify([leaseSeconds, perRepository, teams])
  const readyMade = cluster.readyMade.get(how) ?? cluster.database()
  if (!cluster.readyMade.has(how)) {
    await using first = await openDatabase(addressIn(readyMade), { env: {}, most })
    await setUp(first, { terms: { leaseSeconds, perRepository }, teams })
    cluster.readyMade.set(how, readyMade)
  }
  const url = cluster.database(readyMade)
  const database = await openDatabase(addressIn(url), { env: {}, most })
  const terms = await fleetTerms(database)
  const queue = await openQueue(database, terms, () => {})
  return {
    url,
    database,
    queue,
    terms,
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** As `--queue` says it. */
export function addressIn(url: string): DatabaseAddress {
  return { url, from: '--queue', mayHoldPassword: false }
}

function programs() {
  if (PROGRAMS === null) throw new Error('There is no PostgreSQL here.')
  return PROGRAMS
}

function findPrograms(): { bin: string; as: { uid?: number; gid?: number } } | null {
  const onPath = (process.env.PATH ?? '').split(delimiter).filter(folder => folder !== '')
  const ofDebian = globSync('/usr/lib/postgresql/*/bin').toSorted((a, b) => versionOf(b) - versionOf(a))
  const bin = [...onPath, ...said('pg_config', '--bindir'), ...ofDebian].find(folder =>
    ['initdb', 'postgres', 'psql', 'pg_isready'].every(name => isThere(join(folder, name))),
  )
  if (bin === undefined) return null
  // It does not run for root.
  if (process.getuid?.() !== 0) return { bin, as: {} }
  const [[uid], [gid]] = [said('id', '-u', 'postgres'), said('id', '-g', 'postgres')]
  return uid === undefined || gid === undefined ? null : { bin, as: { uid: Number(uid), gid: Number(gid) } }
}

/** What a program says, a line; none: it is not there, or fails. */
function said(program: string, ...args: string[]): string[] {
  try {
    return [execFileSync(program, args, { stdio: 'pipe', encoding: 'utf8' }).trim()]
  } catch {
    return []
  }
}

function versionOf(bin: string): number {
  return Number(/(\d+)$/.exec(dirname(bin))?.[1] ?? 0)
}

function isThere(path: string): boolean {
  try {
    accessSync(path)
    return true
  } catch {
    return false
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
