import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RUN_MARK } from '../support/end-with-run.ts'
import { codemachineHere } from '../support/in-process.ts'
import { makePlace, type TestPlace } from '../support/place.ts'
import { WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'

/** A start of PostgreSQL on a busy machine. */
const START_MS = 120_000

describe.skipIf(WITHOUT_POSTGRES !== '')(`a fleet on this machine${WITHOUT_POSTGRES}`, () => {
  let place: TestPlace
  let config: string
  beforeAll(async () => {
    place = await makePlace('')
    delete place.env.CODEMACHINE_QUEUE
    config = join(place.env.XDG_CONFIG_HOME ?? '', 'codemachine', 'config.toml')
  })
  afterAll(async () => {
    if (place === undefined) return
    await codemachineHere(place, ['fleet', 'setup', '--remove'])
    await place[Symbol.asyncDispose]()
  })

  const fleet = async (...args: string[]) => await codemachineHere(place, ['fleet', ...args])
  const folder = async (): Promise<string> => {
    const { url } = /"(?<url>postgres:[^"]*)"/.exec(await readFile(config, 'utf8'))?.groups ?? {}
    return new URL(url ?? '').searchParams.get('host') ?? ''
  }
  const lockOf = async () => join(await folder(), 'data', 'postmaster.pid')
  const submitted = async () => {
    const { exitCode, stdout, stderr } = await fleet('list', '--json')
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    return JSON.parse(stdout).length
  }

  promise('T57', 'A PostgreSQL that fleet setup starts is of its user alone, and keeps its data when it is killed')
  test(
    'fleet setup --local starts a PostgreSQL of the user alone, and the other commands find it',
    async () => {
      const { exitCode, stdout, stderr } = await fleet('setup', '--local', '--lease', '30s')
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
      expect(stdout).toContain('A worker that is silent for 30 s loses its sessions')
      expect(stdout).toContain(`\nfleet.queue in ${config} names this database. In a checkout, type:\n`)
      expect(stdout).toMatch(/^ {2}codemachine fleet setup --remove +stop it, and remove it/m)
      const submit = await codemachineHere(place, ['submit', '--repo', place.directory, 'mend the door'])
      expect({ exitCode: submit.exitCode, stderr: submit.stderr }).toEqual({ exitCode: 0, stderr: '' })
      expect(await submitted()).toBe(1)
      const status = await fleet('status')
      expect([status.exitCode, status.stdout]).toEqual([0, expect.stringContaining('0 running, 1 waiting')])
    },
    START_MS,
  )

  test('it has no port, and lets nobody in as its superuser', async () => {
    const started = readFileSync(await lockOf(), 'utf8').split('\n')
    // The address that it listens to.
    expect(started[5]).toBe('')
    const url = `postgres://codemachine_owner@localhost:5432/postgres?host=${await folder()}`
    const { exitCode, stderr } = await fleet('status', '--queue', url)
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining('no pg_hba.conf entry')])
  })

  test(
    'a PostgreSQL that was killed starts again with its data, whatever has its id since a restart of the machine',
    async () => {
      const lock = await lockOf()
      const [pid = ''] = readFileSync(lock, 'utf8').split('\n')
      process.kill(Number(pid), 'SIGKILL')
      const away = await fleet('status')
      expect([away.exitCode, away.stderr]).toEqual([4, expect.stringContaining('codemachine fleet setup --local')])
      expect((await fleet('setup', '--local')).exitCode).toBe(0)
      expect(await submitted()).toBe(1)

      const [running = ''] = readFileSync(lock, 'utf8').split('\n')
      process.kill(Number(running), 'SIGKILL')
      // As whoever runs PostgreSQL: the process of another user is not taken for one.
      const [uid, gid] = ['%u', '%g'].map(what =>
        Number(execFileSync('stat', ['-c', what, lock], { encoding: 'utf8' })),
      )
      const env = { PATH: process.env.PATH, [RUN_MARK]: process.env[RUN_MARK] }
      const other = spawn('sleep', ['1000'], {
        stdio: 'ignore',
        cwd: '/',
        env,
        ...(process.getuid?.() === 0 && { uid, gid }),
      })
      const gone = once(other, 'exit')
      try {
        for (const path of [lock, join(await folder(), '.s.PGSQL.5432.lock')]) {
          const lines = readFileSync(path, 'utf8').split('\n')
          writeFileSync(path, [String(other.pid), lines[1], '1000000000', ...lines.slice(3)].join('\n'))
        }
        expect((await fleet('setup', '--stop')).stdout).toMatch(/^No PostgreSQL runs in /)
        expect((await fleet('setup', '--local')).exitCode).toBe(0)
        expect([await submitted(), other.exitCode]).toEqual([1, null])
      } finally {
        other.kill('SIGKILL')
        await gone
      }
    },
    START_MS,
  )

  test('codemachine uninstall removes nothing of what it runs on', async () => {
    const { exitCode, stderr } = await codemachineHere(place, ['uninstall', '--yes'])
    expect([exitCode, stderr]).toEqual([
      6,
      expect.stringContaining('Remove it first: codemachine fleet setup --remove'),
    ])
    expect(await submitted()).toBe(1)
  })

  test(
    '--stop keeps the data, and --remove leaves nothing, in the settings neither',
    async () => {
      const root = await folder()
      const stop = await fleet('setup', '--stop')
      expect([stop.exitCode, stop.stdout]).toEqual([
        0,
        `The PostgreSQL in ${root} is stopped.\nTo start it again: codemachine fleet setup --local\n`,
      ])
      expect((await fleet('setup', '--local')).exitCode).toBe(0)
      expect(await submitted()).toBe(1)
      await writeFile(config, `${await readFile(config, 'utf8')}rounds = 3\n`)
      const removed = await fleet('setup', '--remove', '--json')
      expect([removed.exitCode, JSON.parse(removed.stdout)]).toEqual([
        0,
        { folder: root, stopped: true, removed: true, settings: config },
      ])
      expect(existsSync(root)).toBe(false)
      expect(await readFile(config, 'utf8')).toMatch(/^#:schema [^\n]*\nrounds = 3\n$/)
      expect((await fleet('setup', '--remove')).stdout).toBe(`No PostgreSQL runs in ${root}.\n`)
    },
    START_MS,
  )

  test('it starts nothing where another fleet is named', async () => {
    await mkdir(dirname(config), { recursive: true })
    const text = 'fleet.queue = "postgres://night@db.example/fleet"\n'
    await writeFile(config, text)
    const { exitCode, stdout, stderr } = await fleet('setup', '--local')
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'codemachine: fleet.queue already names another database of a fleet. (CM1101)\n  Remove fleet.queue first.\n',
    })
    expect(await readFile(config, 'utf8')).toBe(text)
  })
})
