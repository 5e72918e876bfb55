import { expect, it } from 'vitest'
import { SEED } from '../../support/random.ts'
import { compareWithGit } from './random-work.ts'

const DIRECTORIES = 15
const STEPS = 30

it('a fingerprint that is taken by what is known of the last one is that of git, whatever is done at random', {
  timeout: 900_000,
}, async () => {
  for (let n = 0; n < DIRECTORIES; n++) await compareWithGit(SEED + n, STEPS, n % 5 === 0 ? 4_200 : 0)
  expect.assertions(DIRECTORIES * (1 + 3 * STEPS))
})
