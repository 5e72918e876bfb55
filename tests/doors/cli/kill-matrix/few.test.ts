import { beforeAll, describe, test } from 'vitest'
import { describePoint } from '../../../support/kill-points.ts'
import { promise } from '../../../support/promise.ts'
import { fewChains } from './points.ts'
import { survive, undisturbedTree } from './survive.ts'

// All points: quiet, eventful and codex.long.test.ts
const chains = fewChains.map(points => [points.map(describePoint).join('; then '), points] as const)

let tree = ''
beforeAll(async () => {
  tree = await undisturbedTree()
})

promise('R1')
promise('E25', 'A SIGKILL loses nothing')
describe.concurrent('a session comes to the same end, to name a few, when SIGKILL ends', () => {
  test.each(chains)('%s', async (_, points) => {
    await survive(points, tree)
  })
})
