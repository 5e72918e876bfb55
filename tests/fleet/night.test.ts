import { expect, test } from 'vitest'
import { playNight } from '../support/fleet-night.ts'
import { WITHOUT_POSTGRES } from '../support/postgres.ts'
import { SEED } from '../support/random.ts'

test.skipIf(WITHOUT_POSTGRES !== '')(
  `a short night of a fleet in which workers, rounds, the database and the remotes fail: each session is done once, and nothing is left${WITHOUT_POSTGRES}`,
  async () => {
    const shape = { sessions: 6, faults: 3, workers: 2, slots: 2, repositories: 2 }
    const night = await playNight({ ...shape, seed: SEED, turnMs: 50, boundMs: 240_000 })
    expect(night.problems).toEqual([])
  },
)
