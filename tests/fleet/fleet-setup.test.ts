import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { version } from '../../src/base/package.ts'
import type { Finding } from '../../src/tell/words/doctor.ts'
import { codemachineHere } from '../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../support/place.ts'
import { type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('')
  delete place.env.CODEMACHINE_QUEUE
})
afterAll(() => place[Symbol.asyncDispose]())

const fleet = (...args: string[]) => codemachineHere(place, ['fleet', ...args])

/** What the doctor of a fleet finds. */
async function examine(...args: string[]) {
  const { exitCode, stdout, stderr } = await fleet('doctor', '--json', ...args)
  expect(stderr).toBe('')
  const findings: Finding[] = JSON.parse(stdout)
  const of = (check: Finding['check']) => findings.filter(finding => finding.check === check)
  return { exitCode, findings, of, bad: findings.filter(({ status }) => status !== 'ok') }
}

test.each<[string[], string]>([
  [['setup', '--lease', '5s'], '--lease 5s cannot be used: use a time from 10s to 1h, such as 60s.'],
  [['setup', '--per-repository', '0'], '--per-repository 0 cannot be used: use a whole number from 1 to 10000.'],
  [
    ['setup', '--team', 'A-b'],
    '--team A-b cannot be used: use at most 31 characters, lower-case letters, digits and "_", such as shop.',
  ],
  [['setup'], 'No fleet database is configured.'],
])('fleet %j is refused in a sentence', async (args, said) => {
  const { exitCode, stdout, stderr } = await fleet(...args)
  expect({ exitCode, stdout, said: stderr.split('\n')[0]?.replace(/ \(CM\d{4}\)$/, '') }).toEqual({
    exitCode: 2,
    stdout: '',
    said: `codemachine: ${said}`,
  })
})

test('the doctor says of a database that is not named, or away, what to do', async () => {
  const unnamed = await examine()
  expect([unnamed.exitCode, unnamed.bad]).toEqual([
    4,
    [expect.objectContaining({ check: 'database', message: 'No fleet database is configured.' })],
  ])
  const away = await examine('--queue', 'postgres://127.0.0.1:1/x')
  expect([away.exitCode, away.bad]).toEqual([
    4,
    [
      {
        check: 'database',
        status: 'problem',
        message: 'The database at 127.0.0.1:1/x cannot be reached: connect ECONNREFUSED 127.0.0.1:1.',
        code: 'CM1103',
        mend: expect.stringMatching(/^Check that PostgreSQL runs there/),
      },
    ],
  ])
})

describe.skipIf(WITHOUT_POSTGRES !== '')(`with a database${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const as = (url: string, user: string) => url.replace('postgres@', `${user}@`)

  test('setup makes a fleet, says what to grant, and changes nothing that is there when it is told again', async () => {
    const url = await cluster.database()
    const first = await fleet('setup', '--queue', url, '--lease', '30s', '--per-repository', '2', '--team', 'shop')
    expect({ exitCode: first.exitCode, stderr: first.stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(first.stdout).toContain('The schema codemachine is made, version ')
    expect(first.stdout).toContain(
      'A worker that is silent for 30 s loses its sessions; at most 2 sessions of one repository run at once.',
    )
    expect(first.stdout).toMatch(/^ {2}grant codemachine_work to <login>; +-- runs a worker$/m)
    expect(first.stdout).toMatch(
      /^ {2}grant codemachine_team_shop to <login>; +-- sees the sessions of the team shop$/m,
    )
    await codemachineHere(place, ['submit', '--repo', 'git@host:a/b.git', '--queue', url, 'x'])
    const again = await fleet('setup', '--queue', url, '--json')
    expect([again.exitCode, JSON.parse(again.stdout)]).toEqual([
      0,
      expect.objectContaining({
        done: [],
        problems: [],
        terms: { leaseSeconds: 30, perRepository: 2, dayBegins: '00:00' },
        limits: [],
      }),
    ])
    // The queue that is there already goes by a lease that is changed.
    await fleet('setup', '--queue', url, '--lease', '90s')
    const beats = `select heartbeat_seconds from codemachine_queue.queue where name like 'sessions-%'`
    expect([await cluster.ask(url, beats), await cluster.ask(url, 'select count(*) from codemachine.session')]).toEqual(
      ['90', '1'],
    )
  })

  test('whoever may not set it up is told which right they lack', async () => {
    const url = await cluster.database()
    await cluster.ask(url, 'create role dan login')
    const none = await fleet('setup', '--queue', as(url, 'dan'))
    const [database] = url.split('/').slice(-1)
    expect([none.exitCode, none.stderr]).toEqual([
      4,
      `codemachine: The login dan may not create a schema in the database at 127.0.0.1:${cluster.port}/${database}. (CM1105)\n  Ask its owner to run: grant create on database "${database}" to "dan";\n`,
    ])
    await cluster.ask(url, `grant create on database ${database} to dan`)
    const own = await fleet('setup', '--queue', as(url, 'dan'), '--team', 'new')
    expect([own.exitCode, own.stderr]).toEqual([
      4,
      expect.stringContaining('create role codemachine_team_new nologin;'),
    ])
    await cluster.ask(url, 'create role erin login')
    const other = await fleet('setup', '--queue', as(url, 'erin'))
    expect([other.exitCode, other.stderr]).toEqual([
      4,
      expect.stringContaining('belongs to dan, and erin may not change it.'),
    ])
  })

  test('a fleet of a newer codemachine is left as it is', async () => {
    const url = await cluster.database()
    await fleet('setup', '--queue', url)
    await cluster.ask(url, 'update codemachine.version set version = 99')
    const { exitCode, stderr } = await fleet('setup', '--queue', url)
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('has schema version 99')])
    expect((await examine('--queue', url)).bad).toEqual([
      expect.objectContaining({
        check: 'schema',
        status: 'problem',
        message: expect.stringContaining('has schema version 99'),
      }),
    ])
  })

  test('the doctor finds what is wrong with rights and schema', async () => {
    const url = await cluster.database()
    expect((await examine('--queue', url)).bad).toEqual([
      expect.objectContaining({ check: 'schema', status: 'problem', mend: 'Its owner types: codemachine fleet setup' }),
    ])
    await fleet('setup', '--queue', url)
    await cluster.ask(url, 'create role fay login; create role gus login; grant codemachine_look to gus')
    const fay = await examine('--queue', as(url, 'fay'))
    expect([fay.exitCode, fay.bad]).toEqual([
      4,
      [
        {
          check: 'rights',
          status: 'problem',
          message: "fay may not use the fleet: it has none of the fleet's roles.",
          code: 'CM1105',
          mend: 'Have postgres do this: grant codemachine_look to "fay"; (or codemachine_submit, codemachine_work)',
        },
      ],
    ])
    const gus = await examine('--queue', as(url, 'gus'), '--offline')
    expect([gus.exitCode, gus.of('rights')[0]?.message]).toEqual([0, 'gus is in codemachine_look, and in no team'])
    await cluster.ask(url, `alter role gus set default_transaction_read_only = on`)
    const readOnly = await examine('--queue', as(url, 'gus'), '--offline')
    expect([readOnly.exitCode, readOnly.of('database')[0]]).toEqual([
      4,
      expect.objectContaining({ status: 'problem', message: expect.stringMatching(/: it is read-only\.$/) }),
    ])
  })

  test('the doctor finds workers that are silent, drained, of another version or with a wrong clock', async () => {
    const url = await cluster.database()
    await fleet('setup', '--queue', url)
    const none = await examine('--queue', url)
    expect([none.exitCode, none.bad]).toEqual([
      0,
      [expect.objectContaining({ check: 'workers', message: 'No worker runs.' })],
    ])
    const worker = (name: string, { seen = '0 s', off = 0, of = version, drains = false, problem = 'null' }) =>
      cluster.ask(
        url,
        `insert into codemachine.worker (name, instance, host, place, version, seen_at, clock_off_ms, slots, tags, repos, drains, problem)
         values ('${name}', gen_random_uuid(), 'box', 'box:/x', '${of}', clock_timestamp() - interval '${seen}', ${off}, 2, '{gpu}', '{}', ${drains}, ${problem})`,
      )
    await worker('good', {})
    await worker('gone', { seen: '10 min' })
    await worker('late', { off: -5_000 })
    await worker('old', { of: '0.0.1' })
    await worker('drained', { drains: true })
    await worker('full', { problem: `'the disk is full'` })
    const { of } = await examine('--queue', url)
    expect([...of('workers'), ...of('clock').slice(1)].map(({ status, message }) => [status, message])).toEqual([
      ['ok', '5: drained, full, good, late, old'],
      ['warning', 'drained on box is drained: it takes no more sessions.'],
      ['warning', 'full on box takes no sessions now: the disk is full'],
      ['warning', 'gone on box has been silent for 10 min: other workers take its sessions.'],
      ['warning', `old on box is of version 0.0.1, and this is ${version}.`],
      ['warning', 'the clock of late on box is 5.0 s behind the clock of the database, which the fleet uses.'],
    ])
  })

  test('the doctor finds sessions that nobody will take, and remotes that cannot be reached', async () => {
    const url = await cluster.database()
    await fleet('setup', '--queue', url)
    await cluster.ask(
      url,
      `insert into codemachine.worker (name, instance, host, place, version, clock_off_ms, slots, tags, repos, templates)
       values ('good', gen_random_uuid(), 'box', 'box:/x', '${version}', 0, 2, '{}', '{}', '{goal,build}')`,
    )
    const remote = join(place.root, 'remote')
    await mkdir(remote)
    git({ ...place, directory: remote }, 'init', '-q', '--bare')
    const submit = async (...args: string[]) => {
      const { stdout } = await codemachineHere(place, ['submit', '--queue', url, '--json', ...args])
      return JSON.parse(stdout).sessions[0].id as string
    }
    const http = 'http://127.0.0.1:1/x.git'
    const dead = await submit('--repo', http, 'x')
    const held = await submit('--repo', http, '--after', dead, 'x')
    await cluster.ask(
      url,
      `update codemachine.session set state = 'dead', reason = 'the base is gone', ended_at = now() where id = '${dead}'`,
    )
    const wants = await submit('--repo', http, '--tag', 'gpu', 'x')
    const local = await submit('--repo', remote, 'x')
    const change = await submit('--repo', http, '--template', 'change', 'x')
    const { exitCode, of } = await examine('--queue', url)
    expect(exitCode).toBe(0)
    expect(of('queue').map(({ status, message }) => [status, message])).toEqual([
      ['ok', '3 sessions waiting, 0 running, 1 waiting for another session'],
      ['warning', `1 session will not be tried again: ${dead} (the base is gone)`],
      ...[
        `No worker that is there takes ${remote}, for which 1 session waits, such as ${local}.`,
        `No worker that is there and takes ${http} runs the template change, for which 1 session waits, such as ${change}.`,
        `No worker with gpu that is there takes ${http}, for which 1 session waits, such as ${wants}.`,
      ].map(message => ['warning', message]),
      ['warning', `${held} waits for ${dead}, which ended without being done.`],
    ])
    expect(of('remote').map(({ status, message }) => [status, message])).toEqual([
      ['ok', `${remote} answers`],
      [
        'warning',
        expect.stringMatching(/^http:\/\/127\.0\.0\.1:1\/x\.git does not let this machine in: fatal: unable to access/),
      ],
    ])
    expect((await examine('--queue', url, '--offline')).of('remote')).toEqual([])
  })

  test('the doctor prints as codemachine doctor does', async () => {
    const url = await cluster.database()
    await fleet('setup', '--queue', url)
    const { exitCode, stdout } = await fleet('doctor', '--queue', url)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^ok {7}packages {6}pg and pg-boss are installed\nok {7}database {6}PostgreSQL /)
    expect(stdout).toMatch(/\n {23}→ On a machine where codex is logged in, type: codemachine worker\n/)
    expect(stdout).toMatch(/\n\nThe fleet can work \(1 warning\)\.\n$/)
  })
})
