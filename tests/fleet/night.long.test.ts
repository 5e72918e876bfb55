import { expect, test } from 'vitest'
import { playNight } from '../support/fleet-night.ts'
import { WITHOUT_POSTGRES } from '../support/postgres.ts'
import { promise } from '../support/promise.ts'
import { SEED } from '../support/random.ts'

promise(
  'N1',
  'Whatever fails in a night of many machines, each session is done once, with the files of an undisturbed one, and nothing is left',
)
test.skipIf(WITHOUT_POSTGRES !== '')(
  `a night of a fleet in which workers, rounds, the database and the remotes fail: each session is done once, and nothing is left${WITHOUT_POSTGRES}`,
  async () => {
    const shape = { sessions: 30, faults: 10, workers: 3, slots: 2, repositories: 3 }
    const night = await playNight({ ...shape, seed: SEED, turnMs: 50, boundMs: 240_000 })
    expect(night.problems).toEqual([])
    expect(night.takeOvers).toBeGreaterThan(0)
  },
)
