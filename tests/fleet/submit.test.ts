import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { take } from '../../src/fleet/store.ts'
import { BIN, codemachine } from '../support/codemachine.ts'
import { codemachineHere } from '../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../support/place.ts'
import {
  type FleetPlace,
  type PostgresCluster,
  setUpFleet,
  startPostgres,
  WITHOUT_POSTGRES,
} from '../support/postgres.ts'

const REPO = 'git@host:team/app.git'

let place: TestPlace
beforeAll(async () => {
  place = await makePlace('')
  delete place.env.CODEMACHINE_QUEUE
})
afterAll(() => place[Symbol.asyncDispose]())

const submit = (args: readonly string[], options: Parameters<typeof codemachineHere>[2] = {}) =>
  codemachineHere(place, ['submit', ...args], options)

describe('what is wrong is said in a sentence before any database is asked', () => {
  test.each<[string[], string]>([
    [['--repo', REPO], 'The goal is missing; say what to do: codemachine submit "…"'],
    [
      ['x'],
      'This checkout has no git remote "origin"; name the repository with --repo, such as git@host:team/app.git.',
    ],
    [
      ['--repo', 'team/app', 'x'],
      '--repo is not the address of a repository: use https://…, ssh://… or git@host:path.',
    ],
    [
      ['--repo', 'ext::sh -c id', 'x'],
      '--repo is not the address of a repository: use https://…, ssh://… or git@host:path.',
    ],
    [
      ['--repo', '--upload-pack=id', 'x'],
      '--repo is not the address of a repository: use https://…, ssh://… or git@host:path.',
    ],
    [['--repo', 'https://me:pw@host/x', 'x'], '--repo holds a password: each worker has its own credentials.'],
    [
      ['--repo', 'https://ghp_abcdefghij0123456789@host/x', 'x'],
      '--repo holds a token: each worker has its own credentials.',
    ],
    [['--repo', REPO, '--ref', '-x', 'x'], '--ref is not the name of a branch, tag or commit.'],
    [
      ['--repo', REPO, '--template', 'gaol', 'x'],
      '--template cannot be used: There is no template "gaol"; use build or goal or change.',
    ],
    [['--repo', REPO, '--priority', '1001', 'x'], '--priority is "1001"; use a whole number from -1000 to 1000.'],
    [['--repo', REPO, '--tag', 'GPU', 'x'], '--tag GPU cannot be used: use small letters and digits, such as gpu.'],
    [
      ['--repo', REPO, '--after', 'first', 'x'],
      '--after first is not the id of a session; use an id such as 20261121_14.',
    ],
    [
      ['--repo', REPO, '--team', 'A', 'x'],
      '--team is "A"; use the name of a team: small letters, digits and "_", such as "shop".',
    ],
    [
      ['--repo', REPO, '--file', 'night.toml'],
      '--repo and --file cannot be combined; write this option into the file, below [defaults].',
    ],
    [['--file', 'night.toml', 'x'], 'A goal and --file cannot be combined; leave one of them out.'],
    [['--file', 'gone.toml'], 'There is no file gone.toml.'],
    [['--repo', REPO, 'x'], 'No fleet database is configured.'],
    [
      ['--repo', REPO, '--queue', 'postgres://me:pw@host/x', 'x'],
      '--queue contains a password, which other users of this machine can see.',
    ],
    [['--repo', REPO, '--queue', 'mysql://host/x', 'x'], '--queue is not the address of a PostgreSQL database.'],
  ])('%j', async (args, said) => {
    const { exitCode, stdout, stderr } = await submit(args)
    expect({ exitCode, stdout, said: stderr.split('\n')[0]?.replace(/ \(CM\d{4}\)$/, '') }).toEqual({
      exitCode: 2,
      stdout: '',
      said: `codemachine: ${said}`,
    })
  })

  test('a time that is none, or a deadline before the beginning', async () => {
    const wrong = await submit(['--repo', REPO, '--not-before', '25:00', 'x'])
    expect([wrong.exitCode, wrong.stderr]).toEqual([
      2,
      expect.stringMatching(/^codemachine: --not-before is "25:00"; use a time of day, /),
    ])
    const in2Days = new Date(Date.now() + 172_800_000).toISOString()
    const late = await submit(['--repo', REPO, '--not-before', in2Days, '--deadline', '07:00', 'x'])
    expect([late.exitCode, late.stderr]).toEqual([
      2,
      expect.stringMatching(/^codemachine: --deadline comes before its start /),
    ])
  })

  test('a goal or gate with a secret of the environment, which is not shown', async () => {
    const secret = 'abcdefgh-12345678'
    const env = { SHOP_TOKEN: secret }
    const inGoal = await submit(['--repo', REPO, `log in with ${secret}`], { env })
    expect([inGoal.exitCode, inGoal.stderr]).toEqual([
      2,
      'codemachine: The goal holds a secret (SHOP_TOKEN), and secrets are never sent; say where to find it instead. (CM0103)\n',
    ])
    const inGate = await submit(['--repo', REPO, '--verify', `curl ${secret}`, 'x'], { env })
    expect([inGate.exitCode, inGate.stderr]).toEqual([
      2,
      expect.stringContaining('--verify holds a secret (SHOP_TOKEN)'),
    ])
  })
})

test('--dry-run shows what would be submitted, of the origin of this checkout and without a database', async () => {
  await using checkout = await makePlace('')
  git(checkout, 'remote', 'add', 'origin', 'git@host:team/shop.git')
  const args = ['submit', '--dry-run', '--rounds', '20', '--tag', 'gpu', 'add a dark mode']
  const { exitCode, stdout, stderr } = await codemachineHere(checkout, args)
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(stdout).toBe(`repository              ref   limits     wants  goal
git@host:team/shop.git  main  20 rounds  gpu    add a dark mode
1 session; nothing is submitted.
`)
})

test('an origin that holds a password is not sent', async () => {
  await using checkout = await makePlace('')
  git(checkout, 'remote', 'add', 'origin', 'https://me:hunter2hunter2@host/shop.git')
  const { exitCode, stderr } = await codemachineHere(checkout, ['submit', '--dry-run', 'x'])
  expect([exitCode, stderr]).toEqual([
    2,
    'codemachine: The origin of this checkout holds a password: each worker has its own credentials; name the repository with --repo, such as git@host:team/app.git. (CM1112)\n',
  ])
})

test('without the packages pg and pg-boss it is said how they are installed', async () => {
  const root = await mkdtemp(join(tmpdir(), 'codemachine-alone-'))
  try {
    const dist = dirname(BIN)
    await cp(dist, join(root, 'dist'), { recursive: true })
    await cp(join(dist, '../package.json'), join(root, 'package.json'))
    await cp(join(dist, '../settings.js'), join(root, 'settings.js'))
    for (const args of [
      ['submit', '--repo', REPO, 'x'],
      ['fleet', 'setup'],
      ['worker', '--once'],
    ]) {
      const ended = await codemachine(place, [...args, '--queue', 'postgres://127.0.0.1:1/x'], {
        bin: join(root, 'dist/bin.js'),
      })
      expect([ended.exitCode, ended.stderr]).toEqual([
        2,
        'codemachine: A fleet needs the packages pg and pg-boss; they are not installed. (CM1102)\n  Install them beside codemachine: npm install --global pg pg-boss@12.35.0\n',
      ])
    }
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})

describe.skipIf(WITHOUT_POSTGRES !== '')(`a database takes what is submitted${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  let fleet: FleetPlace
  beforeAll(async () => {
    cluster = await startPostgres()
    fleet = await setUpFleet(cluster, { teams: ['shop'] })
  })
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]()
    await cluster?.[Symbol.asyncDispose]()
  })

  const rowOf = async (id: string) => {
    const [row] = await fleet.database.sql('select * from codemachine.session where id = $1', [id])
    return row
  }
  const count = async () => Number(await cluster.ask(fleet.url, 'select count(*) from codemachine.session'))
  const takeNext = (tags: readonly string[] = []) =>
    take(
      fleet.database,
      fleet.queue,
      { name: 'w', instance: '00000000-0000-4000-8000-000000000001', tags, templates: [] },
      { perRepository: 100, without: [] },
    )

  test('one session waits for a worker with its tags, with all that was said', async () => {
    const notBefore = new Date(Date.now() - 60_000).toISOString()
    const args = [
      '--repo',
      REPO,
      '--ref',
      'next',
      '--tag',
      'gpu',
      '--priority',
      '7',
      '--max-time',
      '4h',
      '--max-cost',
      '10',
    ]
    const more = [
      '--verify',
      'npm test',
      '--verify',
      'npm run lint',
      '--sandbox',
      'read-only',
      '--no-network',
      '--review',
    ]
    const { exitCode, stdout, stderr } = await submit(
      [...args, ...more, '--not-before', notBefore, '--queue', fleet.url, '-'],
      { input: 'Add a dark mode.\nWith tests.\n' },
    )
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    const [, id = ''] = /^Submitted as (\d{8}_\d+): Add a dark mode\./.exec(stdout) ?? []
    expect(stdout).toContain(`\nTo look: codemachine fleet show ${id}\n`)
    expect(await rowOf(id)).toMatchObject({
      state: 'waiting',
      repo: REPO,
      ref: 'next',
      priority: 7,
      tags: ['gpu'],
      job: {
        goal: 'Add a dark mode.\nWith tests.',
        template: null,
        gates: ['npm test', 'npm run lint'],
        limits: { timeMs: 14_400_000, cost: 10 },
        sandbox: 'read-only',
        network: false,
        review: true,
      },
    })
    expect(await takeNext([])).toBeNull()
    expect(await takeNext(['gpu'])).toMatchObject({ id })
  })

  test('those of a file wait for each other by name, whatever their order', async () => {
    await writeFile(
      join(place.directory, 'night.toml'),
      `[defaults]\nrepo = "${REPO}"\n[[sessions]]\ngoal = "second"\nafter = "first"\n[[sessions]]\nname = "first"\ngoal = "first"\n`,
    )
    const { exitCode, stdout } = await submit(['--file', 'night.toml', '--queue', fleet.url, '--json'])
    expect(exitCode).toBe(0)
    const { sessions } = JSON.parse(stdout)
    expect(sessions).toEqual([{ id: expect.any(String) }, { id: expect.any(String), name: 'first' }])
    const [second, first] = sessions
    expect(await rowOf(second.id)).toMatchObject({ goal: 'second', state: 'held', after: first.id })
    expect(await rowOf(first.id)).toMatchObject({ goal: 'first', state: 'waiting', after: null })
    expect(await takeNext()).toMatchObject({ id: first.id })
    expect(await takeNext()).toBeNull()
    const third = await submit(['--repo', REPO, '--after', first.id, '--queue', fleet.url, '--json', 'third'])
    expect(await rowOf(JSON.parse(third.stdout).sessions[0].id)).toMatchObject({ state: 'held', after: first.id })
  })

  test('of a file with one bad row nothing is queued, nor of one that waits for what is not there or is over', async () => {
    const before = await count()
    const file = (after: string) =>
      writeFile(
        join(place.directory, 'night.toml'),
        `[defaults]\nrepo = "${REPO}"\n[[sessions]]\ngoal = "one"\n[[sessions]]\ngoal = "two"\nafter = "${after}"\n`,
      )
    await file('nobody')
    expect((await submit(['--file', 'night.toml', '--queue', fleet.url])).exitCode).toBe(2)
    await file('20260101_99')
    expect(await submit(['--file', 'night.toml', '--queue', fleet.url])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^codemachine: There is no session 20260101_99 in the fleet /),
    })
    const dead = await submit(['--repo', REPO, '--queue', fleet.url, '--json', '--tag', 'nobody', 'x'])
    const [{ id }] = JSON.parse(dead.stdout).sessions
    await cluster.ask(fleet.url, `update codemachine.session set state = 'dead' where id = '${id}'`)
    await file(id)
    expect(await submit(['--file', 'night.toml', '--queue', fleet.url])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(
        `${id} ended without being done, so a session that waits for its success would never start.`,
      ),
    })
    expect(await count()).toBe(before + 1)
  })

  test('whoever may only submit does, for the teams that they are in and no other', async () => {
    await cluster.ask(
      fleet.url,
      'create role ann login; grant codemachine_submit, codemachine_team_shop to ann; create role eve login; grant codemachine_look to eve',
    )
    const as = (user: string) => fleet.url.replace('postgres@', `${user}@`)
    const args = ['--repo', REPO, '--tag', 'a-new-lane', 'x']
    expect((await submit([...args, '--team', 'shop', '--queue', as('ann')])).exitCode).toBe(0)
    expect(await submit([...args, '--team', 'bank', '--queue', as('ann')])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/^codemachine: You are not in that team/),
    })
    expect(await submit([...args, '--queue', as('eve')])).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('lacks a right that this needs'),
    })
  })

  test('the address of the database comes from a variable, which may hold a password, or from the own settings', async () => {
    const inVariable = await submit(['--repo', REPO, 'x'], {
      env: { CODEMACHINE_QUEUE: fleet.url.replace('postgres@', 'postgres:secret-of-nobody@') },
    })
    expect(inVariable.exitCode).toBe(0)
    const config = join(place.home, '.config/codemachine')
    await mkdir(config, { recursive: true })
    await writeFile(join(config, 'config.toml'), `[fleet]\nqueue = "${fleet.url}"\n`)
    expect((await submit(['--repo', REPO, 'x'])).exitCode).toBe(0)
  })
})

test('a database that is away is named in one sentence', async () => {
  const away = await submit(['--repo', REPO, '--queue', 'postgres://127.0.0.1:1/x', 'x'])
  expect([away.exitCode, away.stderr.split('\n')[0]]).toEqual([
    4,
    'codemachine: The database at 127.0.0.1:1/x cannot be reached: connect ECONNREFUSED 127.0.0.1:1. (CM1103)',
  ])
})
