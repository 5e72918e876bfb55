import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { SCHEMA } from '../../src/fleet/schema.ts'
import { git } from '../support/place.ts'
import { type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { created, started } from '../support/session-events.ts'
import { type FleetScene, openFleetScene } from './fleet-scene.ts'

describe.skipIf(WITHOUT_POSTGRES !== '')(`looking at a fleet, and telling it${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const opened = async (): Promise<FleetScene> => {
    const scene = await openFleetScene(cluster)
    onTestFinished(() => scene[Symbol.asyncDispose]())
    return scene
  }
  const json = async (scene: FleetScene, ...words: string[]) =>
    JSON.parse((await scene.type(...words, '--json')).stdout)
  const stateOf = async (scene: FleetScene, id: string) => (await json(scene, 'show', id)).state

  test('the sessions are listed with the newest first, by state and repository, and not more than fifty without --all', async () => {
    const scene = await opened()
    const [first = '', second = ''] = await scene.submit({}, { repo: 'git@host:team/other.git', priority: 3 })
    const taken = await scene.take('w7')
    expect(taken.id).toBe(second)
    await scene.happens(taken, created(), started(1))
    expect(await json(scene, 'list')).toMatchObject([
      { id: second, state: 'running', worker: 'w7', rounds: 1, mostRounds: 8, goal: 'mend the door', priority: 3 },
      { id: first, state: 'waiting', worker: null, repo: 'git@host:team/app.git' },
    ])
    expect(await json(scene, 'list', '--state', 'waiting', '--state', 'dead')).toMatchObject([{ id: first }])
    expect(await json(scene, 'list', '--repo', 'team/other')).toMatchObject([{ id: second }])
    const shown = await scene.type('list')
    expect(shown.stdout).toMatch(
      new RegExp(`^${second} .*round 1 +team/other +w7 +mend the door\n${first} .*waiting +team/app`),
    )
    await scene.submit(...Array.from({ length: 60 }, () => ({})))
    expect(await json(scene, 'list')).toHaveLength(50)
    expect((await scene.type('list')).stdout).toContain('--all shows all of them')
    expect(await json(scene, 'list', '--all')).toHaveLength(62)
    const wrong = await scene.type('list', '--state', 'lost')
    expect(wrong).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('--state lost is not a state; use one of running, waiting'),
    })
  })

  promise('N14', 'What one worker or submitter has written keeps nobody from seeing the rest, and steers no terminal')
  test.each([
    ['an outcome of a newer worker', `outcome = '{"kind":"postponed\\u001b[2J","until":7}'`, 'unknown: postponed␛[2J'],
    ['an outcome that is no object', `outcome = '"so"'`, 'unknown: '],
    ['a reason to stop that is new', `outcome = '{"kind":"limit","limit":"patience"}'`, 'unknown: limit'],
    ['a hint that is new', `outcome = '{"kind":"needs-person","reason":"r","hint":{"do":"dance"}}'`, 'needs a person'],
    ['rounds that are no number', `progress = '{"round":"many","rounds":1.5}'`, 'done, not verified'],
    ['more events than a number counts', 'events = 9007199254740991', 'done, not verified'],
    [
      'times without end',
      `not_before = 'infinity', deadline = 'infinity', taken_at = '-infinity'`,
      'done, not verified',
    ],
  ])('one session keeps nobody from seeing the others, with %s', async (_what, change, shown) => {
    const scene = await opened()
    const [id = '', other = ''] = await scene.submit({}, {})
    const taken = await scene.take()
    await scene.end(taken)
    await scene.fleet.database.sql(`update ${SCHEMA}.session set ${change} where id = $1`, [id])
    const { exitCode, stdout } = await scene.type('list')
    expect(exitCode).toBe(0)
    const line = (of: string) => stdout.split('\n').find(each => each.startsWith(of)) ?? ''
    expect(line(id)).toContain(shown)
    expect(line(other)).toContain('waiting')
    expect(await json(scene, 'list')).toMatchObject([{ id: other }, { id }])
    if (shown.startsWith('unknown')) expect((await scene.type('retry', id)).stderr).toContain('Update codemachine')
    expect((await scene.type('status')).exitCode).toBe(0)
  })

  promise('N14')
  test('what the database says reaches no terminal as a command of it', async () => {
    const scene = await opened()
    const [id = '', other = ''] = await scene.submit({}, {})
    await scene.end(await scene.take(), { report: '# Done\u001b]0;mine\u0007' })
    await scene.end(await scene.take(), { state: 'dead', outcome: null, reason: 'so \u001b[2J\nit is' })
    const bad = '20200101_9\u001b[31m'
    await scene.fleet.database.sql(
      `update ${SCHEMA}.session set id = $2, repo = $2, branch = $2, created_by = $2, goal = $2, worker = $2, after = $2 where id = $1`,
      [other, bad],
    )
    await scene.worker(`w\u001b[1m`)
    for (const words of [
      ['list'],
      ['status'],
      ['show', id],
      ['report', id],
      ['drain', 'x'],
      ['doctor', '--offline'],
      ['prune', '--older', '0s', '--dry-run'],
      ['retry', '9'],
    ]) {
      const { stdout, stderr } = await scene.type(...words)
      const all = stdout + stderr
      expect(all.replace(/[^\n\P{Cc}]/gu, '!'), words.join(' ')).toBe(all)
    }
  })

  test('all data of one session is shown, by its counter, too; one that is not there is said', async () => {
    const scene = await opened()
    const [id = ''] = await scene.submit({ tags: ['gpu'], priority: 7, notBefore: new Date(Date.now() - 1000) })
    const taken = await scene.take('w1', ['gpu'])
    await scene.happens(taken, created(), started(1))
    const counter = id.split('_')[1] ?? ''
    const { stdout } = await scene.type('show', counter)
    expect(stdout).toMatch(/^session +\d{8}_\d+\ngoal +mend the door\nstate +round 1\n/)
    for (const line of [
      'worker      w1',
      'epoch       1',
      'events      2',
      'rounds      1 of 8',
      'tags        gpu',
      'priority    7',
    ])
      expect(stdout).toContain(`${line}\n`)
    // What `status` says of a session of here is said of it.
    expect(await json(scene, 'show', id)).toMatchObject({
      id,
      session: { id, goal: 'build X', standing: 'running', roundsUsed: 0, round: { round: 1 } },
    })
    const none = await scene.type('show', '20200101_99')
    expect(none).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('There is no session "20200101_99" in the fleet.'),
    })
  })

  test('the status counts, names workers, windows of their logins and the dead with why, and says what will be done', async () => {
    const scene = await opened()
    const before = await scene.type('status')
    expect(before.stdout).toContain('nothing runs or waits')
    await scene.submit({}, {}, { tags: ['gpu'] })
    expect((await scene.type('status')).stdout).toContain('so their duration is not known')
    const reset = new Date(Date.now() + 3_600_000).toISOString()
    await scene.worker('w1', {
      login: { windows: [{ name: '5 h', usedPercent: 83, resetsAt: reset }], pausedUntil: null },
    })
    await scene.worker('w2', { login: { windows: 'so' } })
    const [one, other] = [await scene.take(), await scene.take()]
    await scene.happens(one, created())
    await scene.end(one)
    await scene.end(other, { state: 'dead', outcome: null, reason: 'There is no main in it.' })
    const { stdout } = await scene.type('status')
    expect(stdout).toContain('0 running, 1 waiting, 0 held, 1 ended (1 done), 0 cancelled, 1 dead')
    expect(stdout).toMatch(/w1 +0 of 2 +- +on host-of-w1; login: 5 h 83 % until /)
    expect(stdout).toMatch(new RegExp(`dead +${other.id} +There is no main in it.`))
    expect(stdout).toMatch(/by .*07:00 0 of 1 have ended .*the median of 1 session/)
    expect(stdout).toContain('no worker that takes sessions has gpu')
    await scene.submit({})
    const status = await json(scene, 'status', '--by', '23:59')
    expect(status).toMatchObject({
      counts: { waiting: 2, ended: 1, done: 1, dead: 1 },
      workers: [
        { name: 'w1', standing: 'runs' },
        { name: 'w2', login: null },
      ],
      dead: [{ id: other.id, reason: 'There is no main in it.' }],
      forecast: {
        usual: { of: 1 },
        done: [{ id: expect.any(String) }],
        late: [{ why: expect.stringContaining('gpu') }],
      },
    })
    expect(await scene.type('status', '--by', '25:00')).toMatchObject({ exitCode: 2 })
  })

  promise('N12', 'What waits is cancelled at once, what runs when its worker hears of it')
  test('what waits is cancelled at once, what runs when its worker hears of it, and what has ended is refused', async () => {
    const scene = await opened()
    const [first = '', second = ''] = await scene.submit({}, {})
    expect((await scene.type('cancel', first)).stdout).toBe(`${first} is cancelled.\n`)
    const taken = await scene.take()
    expect(taken.id).toBe(second)
    await expect(scene.take()).rejects.toThrow('Nothing waits.')
    expect((await scene.type('cancel', second)).stdout).toContain('will be cancelled when w1 hears of it')
    expect(await json(scene, 'show', second)).toMatchObject({ state: 'running', cancelAsked: true })
    await scene.end(taken, { state: 'cancelled', outcome: null })
    for (const id of [first, second])
      expect(await scene.type('cancel', id)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining('it is cancelled already'),
      })
  })

  test('one that is cancelled, dead or stopped waits again under its id, once; what is done, or has no room left, does not', async () => {
    const scene = await opened()
    const [id = ''] = await scene.submit({ notBefore: new Date(Date.now() + 3_600_000) })
    await scene.type('cancel', id)
    expect((await scene.type('retry', id)).stdout).toBe(`${id} waits for a worker again.\n`)
    expect(await scene.type('retry', id)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('already waits'),
    })
    const first = await scene.take()
    await scene.happens(first, created())
    await scene.end(first, { outcome: { kind: 'interrupted', by: 'stop' } })
    await scene.type('retry', id)
    const again = await scene.take('w2')
    expect(again).toMatchObject({ id, epoch: 2, events: 1 })
    await expect(scene.take()).rejects.toThrow('Nothing waits.')
    await scene.end(again, { outcome: { kind: 'limit', limit: 'rounds' } })
    expect(await scene.type('retry', id)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has reached its limit'),
    })
    await scene.fleet.database.sql(`update ${SCHEMA}.session set outcome = '{"kind":"done","verified":true}'`)
    expect(await scene.type('retry', id)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has ended'),
    })
  })

  test('one that waits for another one to be done is held again by a retry', async () => {
    const scene = await opened()
    const [first = ''] = await scene.submit({})
    const [second = ''] = await scene.submit({ after: first })
    await scene.type('cancel', second)
    expect((await scene.type('retry', second)).stdout).toBe(`${second} waits until ${first} is done.\n`)
    await scene.end(await scene.take())
    expect(await stateOf(scene, second)).toBe('waiting')
    expect((await scene.take()).id).toBe(second)
  })

  test('what a person says reaches the worker and its reply comes back; without a worker it stays for the next one', async () => {
    const scene = await opened()
    const [id = ''] = await scene.submit({})
    expect((await scene.type('steer', id, 'Use', 'oak.')).stdout).toContain(
      'The next worker that takes it will be told.',
    )
    await scene.take()
    expect(await scene.reply({ code: 'done', message: 'so' })).toEqual({ type: 'steer', text: 'Use oak.' })
    const steering = scene.type('steer', id, 'And brass.')
    await scene.reply({ code: 'done', message: 'The agent of round 1 reads it with its next step.' })
    expect(await steering).toMatchObject({ exitCode: 0, stdout: 'The agent of round 1 reads it with its next step.\n' })
    const answering = scene.type('answer', id, 'accept', 'as', 'it', 'is')
    expect(await scene.reply({ code: 'not-asked', message: 'It asks nothing.' })).toEqual({
      type: 'decide',
      choice: 'accept',
      text: 'as it is',
      session: id,
    })
    expect(await answering).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('It asks nothing.') })
    await scene.type('cancel', id)
  })

  test('nobody is told anything in a session that has ended', async () => {
    const scene = await opened()
    const [id = ''] = await scene.submit({})
    await scene.end(await scene.take())
    expect(await scene.type('steer', id, 'More.')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('has ended'),
    })
    expect(await scene.fleet.database.sql(`select from ${SCHEMA}.ask`)).toEqual([])
  })

  test('a worker drains by its name, and one that is not there is said with those that are', async () => {
    const scene = await opened()
    await scene.worker('w1')
    expect((await scene.type('drain', 'w1')).stdout).toContain('w1 takes no more sessions')
    expect((await scene.type('status')).stdout).toMatch(/w1 +0 of 2 +- +drains/)
    expect(await scene.type('drain', 'w9')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('Running workers: w1'),
    })
  })

  test('pruning takes old sessions out with what was carried of them, and leaves those of a remote that is away', async () => {
    const scene = await opened()
    const { place } = scene
    const bare = join(place.root, 'app.git')
    execFileSync('git', ['clone', '-q', '--bare', place.directory, bare])
    const inBare = (...args: string[]) => execFileSync('git', ['--git-dir', bare, ...args], { encoding: 'utf8' })
    const gone = join(place.root, 'gone.git')
    await scene.submit({ repo: bare }, { repo: gone }, { repo: bare }, { repo: bare })
    const all = [await scene.take(), await scene.take(), await scene.take(), await scene.take()]
    const [old, away, young, waited] = all
    if (!old || !away || !young || !waited) throw new Error('Not all were taken.')
    for (const { id } of [old, young, waited]) {
      inBare('update-ref', `refs/codemachine/${id}/state`, git(place, 'rev-parse', 'HEAD'))
      inBare('update-ref', `refs/heads/codemachine/${id}`, git(place, 'rev-parse', 'HEAD'))
    }
    await scene.submit({ after: waited.id })
    for (const each of all) {
      await scene.happens(each, created())
      await scene.end(each, { outcome: { kind: 'stalled', rounds: 3, why: 'idle' } })
    }
    await scene.fleet.database.sql(
      `update ${SCHEMA}.session set ended_at = now() - interval '40 days' where id = any($1)`,
      [[old.id, away.id, waited.id]],
    )
    const refs = () => inBare('for-each-ref', '--format=%(refname)').trim().split('\n')
    const before = refs()
    const dry = await scene.type('prune', '--older', '30d', '--dry-run')
    expect(dry).toMatchObject({ exitCode: 4, stdout: `1 session and 1 reference would go.\n  ${old.id}\n` })
    expect(refs()).toEqual(before)
    const pruned = await scene.type('prune', '--older', '30d')
    expect(pruned).toMatchObject({ exitCode: 4, stdout: '1 session and 1 reference are gone.\n' })
    expect(pruned.stderr).toContain(`${gone}: `)
    expect(pruned.stderr).toContain('1 session of it stay')
    expect(refs()).toEqual(before.filter(ref => ref !== `refs/codemachine/${old.id}/state`))
    expect((await json(scene, 'list', '--all')).map(({ id }: { id: string }) => id)).not.toContain(old.id)
    expect(await stateOf(scene, away.id)).toBe('ended')
    // The branch of a result stays unless it is named.
    await scene.fleet.database.sql(`update ${SCHEMA}.session set ended_at = now() - interval '40 days' where id = $1`, [
      young.id,
    ])
    await scene.type('prune', '--older', '30d', '--branches')
    expect(refs()).not.toContain(`refs/heads/codemachine/${young.id}`)
    expect(refs()).toContain(`refs/heads/codemachine/${old.id}`)
    expect(await scene.type('prune', '--older', 'long')).toMatchObject({ exitCode: 2 })
  })
})
