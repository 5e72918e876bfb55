import { afterAll, beforeAll, describe as describeInOrder, expect } from 'vitest'
import { hasPostgres, type PostgresCluster, startPostgres, WITHOUT_POSTGRES } from '../support/postgres.ts'
import { processesOf } from '../support/processes.ts'
import { promise } from '../support/promise.ts'
import { describe, test } from '../support/side-by-side.ts'
import { rowOf } from './submissions.ts'
import { expectDoneOnce, leftBy, openWorkerScene } from './worker-scene.ts'

describeInOrder.skipIf(!hasPostgres)(`a worker of a fleet${WITHOUT_POSTGRES}`, () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster?.[Symbol.asyncDispose]())

  const open = (options?: Parameters<typeof openWorkerScene>[1]) => openWorkerScene(cluster, options)

  describe('that leaves', () => {
    promise('E36', "Workers take sessions from a fleet's queue")
    test('killed, and begun again, goes on at once with what it had', async () => {
      await using scene = await open()
      scene.hold('turn')
      const [id = ''] = await scene.submit({})
      {
        await using a = scene.start('a')
        await scene.untilAtWork('a', id)
        a.signal('SIGKILL')
        expect(await a.ended).toBeNull()
      }
      scene.letGo('turn')
      await using again = scene.start('a', ['--once'])
      expect(await again.ended).toBe(0)
      await expectDoneOnce(scene, id)
      expect(scene.note(id)).toContain(`"session":"${id}"`)
      expect(await rowOf(scene.fleet, id)).toMatchObject({ epoch: 2, faults: 0 })
      expect(leftBy(scene, 'a')).toEqual([])
      expect(processesOf(scene.place)).toEqual([])
    })
  })
})
