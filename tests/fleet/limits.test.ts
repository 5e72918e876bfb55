import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { dayLimits } from '../../src/fleet/limits.ts'
import { append, type Taken } from '../../src/fleet/store.ts'
import { codemachineHere } from '../support/in-process.ts'
import { type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { created } from '../support/session-events.ts'
import { type FleetScene, openFleetScene } from './fleet-scene.ts'
import { expectDoneOnce, openWorkerScene } from './worker-scene.ts'

describe.skipIf(WITHOUT_POSTGRES !== '')(`what a fleet may spend in a day${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const opened = async (...limits: string[]): Promise<FleetScene> => {
    const scene = await openFleetScene(cluster)
    onTestFinished(() => scene[Symbol.asyncDispose]())
    // No test meets the end of a day.
    const begins = new Date(Date.now() + 12 * 3_600_000).toISOString().slice(11, 16)
    expect(await scene.type('setup', '--day-begins', begins, ...limits)).toMatchObject({ exitCode: 0, stderr: '' })
    return scene
  }
  const status = async (scene: FleetScene) => JSON.parse((await scene.type('status', '--by', '23:59', '--json')).stdout)
  /** As its worker reports: what it has used until now. */
  const uses = async ({ fleet }: FleetScene, taken: Taken, progress: object) =>
    await append(fleet.database, taken, 1, ['{}'], progress)
  /** As if it was spent so many hours earlier. */
  const earlier = async ({ fleet }: FleetScene, hours: number) =>
    await fleet.database.sql(`update codemachine.spent set at = at - $1::int * interval '1 hour'`, [hours])

  promise('N16', 'A team at its limit of the day starts nothing before the next day; what runs goes on')
  test('a team that has used its tokens waits for the next day, and others go on', async () => {
    const scene = await opened('--tokens-per-day', 'shop=5M', '--team', 'shop')
    const [first, second, other] = await scene.submit({ team: 'shop' }, { team: 'shop', repo: 'git@host:b/c' }, {})
    const taken = await scene.take()
    expect(taken.id).toBe(first)
    await uses(scene, taken, { tokens: 4_999_999, cost: 70 })
    expect((await status(scene)).limits).toMatchObject([
      { team: 'shop', tokens: 5_000_000, cost: null, usedTokens: 4_999_999, usedCost: 70, isFull: false },
    ])
    // Reported once more, as after a lost answer: nothing is counted twice.
    await uses(scene, taken, { tokens: 5_000_000, cost: 70 })
    await uses(scene, taken, { tokens: 5_000_000, cost: 70 })
    expect((await status(scene)).limits).toMatchObject([{ usedTokens: 5_000_000, isFull: true }])
    const { stdout } = await scene.type('status')
    expect(stdout).toMatch(/^limits +shop +5M of 5M tokens +full: no session starts before \S+/m)
    expect((await scene.take()).id).toBe(other)
    await expect(scene.take()).rejects.toThrow('Nothing waits.')
    const late = await codemachineHere(scene.place, ['submit', '--team', 'shop', '--repo', 'git@host:a/b', 'x'])
    expect(late.stdout).toMatch(/The team shop has reached its limit of the day: no session starts before /)
    expect(late.exitCode).toBe(0)
    // The next day.
    await earlier(scene, 24)
    expect((await status(scene)).limits).toMatchObject([{ usedTokens: 0, isFull: false }])
    expect((await scene.take()).id).toBe(second)
  })

  test('the limit of the whole fleet holds for all, by cost, too; off removes it', async () => {
    const scene = await opened('--cost-per-day', '20', '--tokens-per-day', '9M')
    await scene.submit({ team: 'shop' }, {})
    await uses(scene, await scene.take(), { tokens: 10, cost: 20.5 })
    await expect(scene.take()).rejects.toThrow('Nothing waits.')
    const { stdout } = await scene.type('status')
    expect(stdout).toMatch(/^limits +all +10 of 9M tokens, cost 20.50 of 20.00 +full: /m)
    const { limits, terms } = JSON.parse((await scene.type('setup', '--cost-per-day', 'off', '--json')).stdout)
    expect([limits, terms.leaseSeconds]).toEqual([[{ team: '', tokens: 9_000_000, cost: null }], 3600])
    await scene.take()
    await scene.type('setup', '--tokens-per-day', 'off')
    expect((await status(scene)).limits).toEqual([])
  })

  test('a day begins when the fleet says so, and a removed session stays in its day', async () => {
    const scene = await opened('--tokens-per-day', '1k')
    const minutes = new Date(Date.now() + 60_000 * 7).toISOString().slice(11, 16)
    const said = await scene.type('setup', '--day-begins', minutes)
    expect(said.stdout).toContain(`The fleet may use 1k tokens a day, from ${minutes} UTC on.`)
    await scene.submit({}, {})
    const taken = await scene.take()
    await uses(scene, taken, { tokens: 1_000 })
    const [limit] = (await status(scene)).limits
    expect(limit.isFull).toBe(true)
    const leftMs = Date.parse(limit.endsAt) - Date.now()
    expect(leftMs).toBeGreaterThan(5 * 60_000)
    expect(leftMs).toBeLessThan(8 * 60_000)
    await scene.end(taken)
    await scene.fleet.database.sql('select codemachine.prune(array[$1])', [taken.id])
    await expect(scene.take()).rejects.toThrow('Nothing waits.')
  })

  test('what was spent counts in one day, also when the day begins at another time from then on', async () => {
    const scene = await opened('--tokens-per-day', '1k')
    const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16)
    await scene.submit({})
    await uses(scene, await scene.take(), { tokens: 1_000 })
    for (const hours of [2, 20]) {
      await scene.type('setup', '--day-begins', inHours(hours))
      expect((await status(scene)).limits).toMatchObject([{ usedTokens: 1_000, isFull: true }])
    }
    // Two hours later that day is over.
    await earlier(scene, 2)
    await scene.type('setup', '--day-begins', inHours(0))
    expect((await status(scene)).limits).toMatchObject([{ usedTokens: 0, isFull: false }])
  })

  test('of a session that began with an earlier codemachine only what it uses from now on counts', async () => {
    const scene = await opened('--tokens-per-day', '9M')
    await scene.submit({})
    const taken = await scene.take()
    // As an earlier worker reports.
    await scene.happens(taken, created())
    await uses(scene, taken, { tokens: 8_000_000, cost: 'much' })
    expect((await status(scene)).limits).toMatchObject([{ usedTokens: 0, usedCost: 0 }])
    await uses(scene, taken, { tokens: 8_000_050, cost: 2 })
    expect((await status(scene)).limits).toMatchObject([{ usedTokens: 50, usedCost: 2 }])
  })

  test('many limits cost no more than one: what was spent is read once', async () => {
    const teams = ['a', 'b', 'c', 'd'].flatMap(team => ['--team', team, '--tokens-per-day', `${team}=1k`])
    const { fleet } = await opened('--tokens-per-day', '9k', ...teams)
    await fleet.database.sql(
      `insert into codemachine.spent (at, team, session, tokens, cost)
       select now(), team, n::text, 1, 0 from unnest('{a,b,c,d}'::text[]) as team, generate_series(1, 100) as n`,
    )
    await fleet.database.transaction(async sql => {
      expect((await dayLimits(sql)).map(({ usedTokens }) => usedTokens)).toEqual([400, 100, 100, 100, 100])
      const [{ read } = { read: 0 }] = await sql<{ read: number }>(
        `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_xact_user_tables where relid = 'codemachine.spent'::regclass`,
      )
      expect(read).toBe(400)
    })
  })

  test('the forecast says which sessions will wait for the next day', async () => {
    const scene = await opened('--team', 'shop', '--tokens-per-day', 'shop=5k')
    await scene.submit({ team: 'shop' })
    const taken = await scene.take()
    await scene.happens(taken, created())
    await scene.fleet.database.sql(`update codemachine.session set progress = '{"tokens": 3000, "cost": "much"}'`)
    await scene.end(taken)
    await scene.worker('w1', { slots: 1 })
    const ids = await scene.submit({ team: 'shop' }, { team: 'shop' }, { team: 'shop' }, { priority: -1 })
    const { stdout } = await scene.type('status', '--by', new Date(Date.now() + 120_000).toTimeString().slice(0, 5))
    expect(stdout).toContain(`not ${ids[2]}: the team shop will reach its limit of the day`)
    for (const id of [ids[0], ids[1], ids[3]]) expect(stdout).not.toContain(`not ${id}`)
  })

  test('only the owner sets it, a member sees that of its team, and a mistake changes nothing', async () => {
    const teams = ['shop', 'other'].flatMap(team => ['--team', team, '--tokens-per-day', `${team}=5M`])
    const scene = await opened(...teams, '--tokens-per-day', '50M')
    const member = await cluster.login('of_shop', 'in role codemachine_submit, codemachine_team_shop', scene.fleet.url)
    scene.place.env.CODEMACHINE_QUEUE = member.url
    expect((await status(scene)).limits.map(({ team }: { team: string }) => team)).toEqual(['', 'shop'])
    expect(await scene.type('setup', '--tokens-per-day', 'shop=off')).toMatchObject({ exitCode: 4 })
    scene.place.env.CODEMACHINE_QUEUE = scene.fleet.url
    const noTeam = await scene.type('setup', '--lease', '11s', '--tokens-per-day', '9M', '--cost-per-day', 'shpo=50')
    expect(noTeam).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('There is no team shpo') })
    expect(await scene.type('setup', '--tokens-per-day', 'shpo=off')).toMatchObject({ exitCode: 0, stderr: '' })
    for (const [flag, text] of [
      ['--tokens-per-day', 'shop=many'],
      ['--tokens-per-day', 'Shop=5M'],
      ['--cost-per-day', '0'],
      ['--day-begins', '24:00'],
    ] as const)
      expect(await scene.type('setup', '--lease', '11s', flag, text)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(flag),
      })
    expect(JSON.parse((await scene.type('setup', '--json')).stdout)).toMatchObject({
      terms: { leaseSeconds: 3600 },
      limits: [{ team: '' }, { team: 'other' }, { team: 'shop', tokens: 5_000_000 }],
    })
  })

  promise('N16')
  test('a worker reports what its session uses, and starts the next one on another day', async () => {
    await using scene = await openWorkerScene(cluster)
    await scene.type('setup', '--tokens-per-day', '500')
    const peer = await scene.peer(`
const start = on['turn/start']
const total = { inputTokens: 400, cachedInputTokens: 0, outputTokens: 100, reasoningOutputTokens: 0, totalTokens: 500 }
on['turn/start'] = (id, params) => {
  start(id, params)
  send({ method: 'thread/tokenUsage/updated', params: { threadId: THREAD, turnId: TURN, tokenUsage: { total, last: total, modelContextWindow: null } } })
}`)
    const [id = '', next = ''] = await scene.submit({}, {})
    await using a = scene.start('a', ['--once', '--slots', '1'], { peer })
    expect(await a.ended).toBe(0)
    const events = await expectDoneOnce(scene, id)
    const { limits } = JSON.parse((await scene.type('status', '--json')).stdout)
    const rounds = events.filter(({ type }) => type === 'round-started').length
    expect(limits).toMatchObject([{ team: '', usedTokens: 500 * rounds, isFull: true }])
    expect(await scene.untilIs(next, 'waiting')).toMatchObject({ epoch: 0 })
  })
})
