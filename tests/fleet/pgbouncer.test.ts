import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { RUN_MARK } from '../support/end-with-run.ts'
import { codemachineHere } from '../support/in-process.ts'
import { makePlace } from '../support/place.ts'
import { hasPostgres, type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { unless } from '../support/skipped.ts'
import { expectDoneOnce, openWorkerScene } from './worker-scene.ts'

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find(existsSync)
const SKIPPED = WITHOUT_POSTGRES || unless(PROGRAM !== undefined, 'there is no PgBouncer here')

/** Answers how an address of the cluster is reached by a PgBouncer in transaction mode, with two connections. */
async function startPgBouncer({ port }: PostgresCluster, ignored: string) {
  const folder = mkdtempSync(join(tmpdir(), 'codemachine-pgbouncer-'))
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const ownPort = typeof address === 'object' ? address?.port : 0
  await new Promise(resolve => server.close(resolve))
  const config = join(folder, 'pgbouncer.ini')
  writeFileSync(join(folder, 'users'), '"postgres" ""\n')
  writeFileSync(
    config,
    `[databases]
* = host=127.0.0.1 port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users')}
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = ${ignored}
`,
  )
  // It does not run for root.
  const isRoot = process.getuid?.() === 0
  const uid = isRoot ? Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' })) : undefined
  if (uid !== undefined) for (const path of [folder, config, join(folder, 'users')]) chownSync(path, uid, -1)
  const env = { [RUN_MARK]: process.env[RUN_MARK] }
  const child = spawn(PROGRAM ?? '', ['-q', config], { env, stdio: 'ignore', ...(uid === undefined ? {} : { uid }) })
  const through = (url: string) => Object.assign(new URL(url), { port: String(ownPort) }).href
  await vi.waitFor(
    async () => {
      const client = new pg.Client({ connectionString: through(`postgres://postgres@127.0.0.1:${port}/postgres`) })
      client.on('error', () => {})
      await client.connect()
      await client.end()
    },
    { timeout: 30_000, interval: 50 },
  )
  return {
    through,
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
      rmSync(folder, { recursive: true })
    },
  }
}

describe.skipIf(!hasPostgres || PROGRAM === undefined)(`a fleet behind PgBouncer in transaction mode${SKIPPED}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const IGNORED = 'statement_timeout,idle_in_transaction_session_timeout'

  promise('E54', 'A fleet works through PgBouncer in transaction mode')
  test('is set up, and two workers do each session once, with more connections than the database gives', async () => {
    await using bouncer = await startPgBouncer(cluster, IGNORED)
    await using place = await makePlace('')
    const url = bouncer.through(await cluster.database())
    expect(await codemachineHere(place, ['fleet', 'setup', '--queue', url])).toMatchObject({ exitCode: 0 })
    expect(await codemachineHere(place, ['fleet', 'doctor', '--queue', url])).toMatchObject({ exitCode: 0 })

    await using scene = await openWorkerScene(cluster)
    const env = { CODEMACHINE_QUEUE: bouncer.through(scene.fleet.url) }
    scene.hold('turn')
    const [steered = '', ...others] = await scene.submit({}, {}, {}, {})
    await using a = scene.start('a', ['--once', '--slots', '2'], { env })
    await using b = scene.start('b', ['--once', '--slots', '2'], { env })
    await scene.until('the first is at work', () => scene.heard('turn').some(({ cwd }) => cwd.endsWith(`/${steered}`)))
    const told = await codemachineHere(scene.place, [
      'fleet',
      'steer',
      '--queue',
      env.CODEMACHINE_QUEUE,
      steered,
      'Keep it.',
    ])
    expect(told).toMatchObject({ exitCode: 0 })
    await scene.until('it is steered', () => scene.heard('steer').length === 1)
    scene.letGo('turn')
    expect(await Promise.all([a.ended, b.ended])).toEqual([0, 0])
    for (const id of others) await expectDoneOnce(scene, id)
    await scene.untilIs(steered, 'ended')
  })

  test('that takes no settings of a connection says which line is missing', async () => {
    await using bouncer = await startPgBouncer(cluster, '')
    await using place = await makePlace('')
    const url = bouncer.through(await cluster.database())
    const { exitCode, stdout } = await codemachineHere(place, ['fleet', 'doctor', '--queue', url])
    expect(exitCode).not.toBe(0)
    expect(stdout).toMatch(
      /PgBouncer at 127\.0\.0\.1:\d+\/\w+ refuses two settings of each connection: unsupported startup parameter: \w+\./,
    )
    expect(stdout).toContain(`→ Add to pgbouncer.ini: ignore_startup_parameters = ${IGNORED}`)
  })
})
