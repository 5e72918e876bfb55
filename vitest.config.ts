import { globSync, readFileSync } from 'node:fs'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const LONG = 'tests/**/*.long.test.ts'
const RUN_SESSIONS = /\/tests\/(doors\/cli|demo|doors\/screen\/host)\//

/** Files whose tests run whole sessions come first: one that begins last, alone, keeps only one core at work. */
class SessionsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => (RUN_SESSIONS.test(moduleId) ? 0 : 1)
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

/** The files that try properties: a few times in `npm test`, and more often in `npm run test:long`. */
const ofProperties = () =>
  globSync('tests/**/*.test.ts').filter(path =>
    /from '(?:fast-check|.*\/properties\.ts)'/.test(readFileSync(path, 'utf8')),
  )

export default defineConfig({
  test: {
    // Real processes on two cores: the bound is for a machine that is busy, or five times as slow, not for a test that waits.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // More than two: where a file has one test at a time, its worker uses half a core and waits for the other half.
    maxWorkers: 4,
    // Each process that a worker starts is a fork of it, which costs by its size.
    execArgv: ['--max-semi-space-size=4'],
    // Tests side by side within a file, beside the other files.
    maxConcurrency: 2,
    // A worker takes one file after the other, and loads and compiles what they share once.
    isolate: false,
    sequence: { sequencer: SessionsFirst },
    // A snapshot that is missing is a failure: `-u` writes one.
    update: 'none',
    // Of a failure a report has the message alone: with the usual 40 characters it says `[ …(2) ]`.
    chaiConfig: { truncateThreshold: 1_000 },
    // What tests have started ends with their run, however that ends.
    globalSetup: ['./tests/support/end-with-run.ts', './tests/support/prepared.ts', './tests/support/seed.ts'],
    setupFiles: ['./tests/support/properties.ts'],
    // With this one after the summary, plain lines: `--reporter` on the command line takes the place of both.
    reporters: ['default', './scripts/slowest-tests.ts'],
    projects: [
      {
        extends: true,
        test: { name: 'short', include: ['tests/**/*.test.ts'], exclude: [...configDefaults.exclude, LONG] },
      },
      { extends: true, test: { name: 'long', include: [LONG] } },
      { extends: true, test: { name: 'properties', include: ofProperties(), env: { PROPERTY_RUNS: '300' } } },
    ],
  },
})
