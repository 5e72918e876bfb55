import { configDefaults, defineConfig } from 'vitest/config'

const LONG = 'tests/**/*.long.test.ts'

export default defineConfig({
  test: {
    // Real processes on two cores: the bound is for a machine that is busy, not for a test that waits.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    // Tests side by side within a file. Two files run at a time too.
    maxConcurrency: 2,
    // A worker takes one file after the other, and loads and compiles what they share once.
    isolate: false,
    // With this one after the summary, plain lines: `--reporter` on the command line takes the place of both.
    reporters: ['default', './scripts/slowest-tests.ts'],
    projects: [
      {
        extends: true,
        test: { name: 'short', include: ['tests/**/*.test.ts'], exclude: [...configDefaults.exclude, LONG] },
      },
      { extends: true, test: { name: 'long', include: [LONG] } },
    ],
  },
})
