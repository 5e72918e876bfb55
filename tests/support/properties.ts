import fc from 'fast-check'
import { SEED } from './random.ts'

/** How often a property is tried: few times in `npm test`, more often in `npm run test:long`. */
export const PROPERTY_RUNS = Number(process.env.PROPERTY_RUNS ?? 30)

fc.configureGlobal({ numRuns: PROPERTY_RUNS, seed: SEED })
