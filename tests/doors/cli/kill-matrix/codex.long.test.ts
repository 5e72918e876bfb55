import { beforeAll, describe, expect, test, vi } from 'vitest'
import { describePoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { sliceOf } from '../../../support/random.ts'
import { eventsOf } from '../../../support/scene.ts'
import { codexChains } from './points.ts'
import { survive, undisturbedTree } from './survive.ts'
import { busyOnce } from './turnouts.ts'

vi.setConfig({ maxConcurrency: 4 })

let tree = ''
beforeAll(async () => {
  tree = await undisturbedTree()
})

const chains = codexChains.map(points => [points.map(describePoint).join('; then '), points] as const)

promise('R4', 'codemachine goes on by itself when its codexes are killed')
describe.concurrent('codemachine goes on by itself when SIGKILL ends', () => {
  test.each(sliceOf(chains))('%s', async (_, points) => {
    const isBusy = points.some(point => 'event' in point && point.event === 'waiting')
    const { events } = await survive(points, tree, isBusy ? { turnout: busyOnce() } : {})
    expect(eventsOf(events, 'session-resumed')).toEqual([])
    const crashed = eventsOf(events, 'round-ended').filter(({ outcome }) => outcome.class === 'crashed')
    expect(crashed.map(({ counts }) => counts)).toEqual(crashed.map(() => false))
    const waits = eventsOf(events, 'waiting').filter(({ cause }) => cause.class === 'crashed')
    expect(waits).toHaveLength(crashed.length)
    for (const { at, until } of waits.slice(0, 1)) expect(Date.parse(until) - Date.parse(at)).toBeLessThanOrEqual(2_000)
  })
})
