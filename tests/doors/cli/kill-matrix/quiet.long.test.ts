import { beforeAll, describe, expect, test, vi } from 'vitest'
import { describePoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { sliceOf } from '../../../support/random.ts'
import { codexChains, eventfulChains, ITEMS, MADE, quietChains, writingChains } from './points.ts'
import { survive, undisturbedTree } from './survive.ts'

vi.setConfig({ maxConcurrency: 4 })

let tree = ''
beforeAll(async () => {
  tree = await undisturbedTree()
})

const chains = [...quietChains, ...writingChains].map(
  points => [points.map(describePoint).join('; then '), points] as const,
)

describe.concurrent('a session comes to the same end when SIGKILL ends', () => {
  test.each(sliceOf(chains))('%s', async (_, points) => {
    await survive(points, tree)
  })
})

promise('R1', 'A session that is killed at any event comes to the same end when it is resumed')
test('the kill matrix has every kind of event, every kind of item, and more than sixty points', () => {
  const points = [...quietChains, ...writingChains, ...Object.values(eventfulChains), ...codexChains].flat()
  const events = points.flatMap(point => ('event' in point ? [point.event] : []))
  expect(new Set(events)).toEqual(new Set(MADE))
  for (const victim of ['codemachine', 'codex']) {
    const items = points.flatMap(point => ('event' in point && point.victim === victim ? [point.item] : []))
    expect(items).toEqual(expect.arrayContaining([...ITEMS]))
  }
  expect(points.length).toBeGreaterThan(60)
})
