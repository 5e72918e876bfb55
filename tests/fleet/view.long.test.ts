import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase } from '../../src/fleet/database.ts'
import { followFleet } from '../../src/fleet/view.ts'
import { serveApi, type Told } from '../doors/page/client.ts'
import { type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { created, ended, started, worked } from '../support/session-events.ts'
import { type FleetScene, openFleetScene } from './fleet-scene.ts'

const within = { timeout: 20_000, interval: 50 }

describe.skipIf(WITHOUT_POSTGRES !== '')(`copies of a fleet's sessions${WITHOUT_POSTGRES}`, () => {
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

  promise('N11')
  test('the page shows what the fleet runs by the name of its repository, steers it, and goes on while the database is away', async () => {
    const scene = await opened()
    const { place, post, follow } = await serveApi()
    const problems: string[] = []
    const open = () =>
      openDatabase({ url: scene.fleet.url, from: 'a test', mayHoldPassword: false }, { env: {}, most: 2 })
    await using _ = followFleet(place.context, { open, onProblem: problem => problems.push(problem) })
    await scene.submit({})
    const taken = await scene.take()
    const { id } = taken
    await scene.happens(taken, created(), started(1))
    const cards = ({ data }: Told) => data.cards as { id: string; place: string; directory: string; standing: string }[]
    const now = await follow('now')
    const told = await now.until(each => cards(each).some(({ standing }) => standing === 'running'))
    const [card] = cards(told)
    expect(card).toMatchObject({ id, directory: 'app' })
    const session = `sessions/${card?.place}/${id}`
    const asking = post(`${session}/ask`, { type: 'steer', text: 'Use oak.' })
    expect(await scene.reply({ code: 'kept', message: 'The next round is told.' })).toEqual({
      type: 'steer',
      text: 'Use oak.',
    })
    expect(await asking).toMatchObject({ status: 200, body: { code: 'kept', message: 'The next round is told.' } })
    const stream = await follow(`${session}/stream`)
    await stream.until(({ event }) => event === 'begin')
    await cluster.stop()
    await vi.waitUntil(() => problems.length > 0, within)
    expect(problems).toEqual([expect.stringMatching(/^The list of fleet sessions is out of date: The database at /)])
    await cluster.start()
    await vi.waitFor(() => scene.happens(taken, ended(1, worked), started(2)), within)
    await stream.until(({ data }) => data.n === 4)
    // A database that starts says so, which is another reason.
    expect(problems, 'none is said twice').toEqual([...new Set(problems)])
  })
})
