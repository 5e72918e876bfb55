import { afterAll, beforeAll, describe as describeInOrder, expect } from 'vitest'
import { saidOf, startCollector } from '../support/collector.ts'
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

  describe('with a collector of OpenTelemetry', () => {
    test('sends the spans and metrics of its sessions, and the length of the queue', async () => {
      await using collector = await startCollector()
      await using scene = await open()
      const [id = ''] = await scene.submit({})
      await using worker = scene.start('a', ['--once'], { env: collector.env })
      expect(await worker.ended).toBe(0)
      await expectDoneOnce(scene, id)
      const spans = collector.spans()
      const sessions = spans.filter(({ name }) => name === 'codemachine.session')
      expect(sessions.map(saidOf)).toMatchObject([{ 'session.id': id, outcome: 'done', rounds: 3 }])
      const rounds = spans.filter(({ name }) => name === 'codemachine.round')
      expect(rounds.map(({ parentSpanId }) => parentSpanId)).toEqual(rounds.map(() => sessions[0]?.spanId))
      expect(rounds).toHaveLength(3)
      const counted = collector.metrics().filter(({ name }) => name === 'codemachine.rounds')
      expect(counted.flatMap(({ sum }) => sum?.dataPoints ?? []).map(point => point.asInt ?? point.asDouble)).toEqual([
        3,
      ])
      expect(collector.metrics().map(({ name }) => name)).toContain('codemachine.queue.length')
      expect(new Set(collector.bodies.map(({ authorization }) => authorization))).toEqual(new Set(['canary-header']))
      expect(scene.heard('turn').flatMap(({ env }) => env.filter(name => name.startsWith('OTEL_EXPORTER')))).toEqual([])
    })
  })
})
