import { expect, it } from 'vitest'
import { SEED } from '../../support/random.ts'
import { compareWithNew } from './random-work.ts'

const DIRECTORIES = 15
const STEPS = 30

it('a fingerprint is the one that is taken anew, whatever is done at random', { timeout: 900_000 }, async () => {
  for (let n = 0; n < DIRECTORIES; n++) await compareWithNew(SEED + n, STEPS)
  expect.assertions(DIRECTORIES * (1 + 3 * STEPS))
})
