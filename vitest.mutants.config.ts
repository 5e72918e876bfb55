import { defineConfig } from 'vitest/config'

/** The tests that `npm run mutants` asks (stryker.config.js): of rules, folds and parsers, without processes and waits. */
export default defineConfig({
  test: {
    testTimeout: 60_000,
    include: [
      'tests/core/{rules,state,contracts}/*.test.ts',
      'tests/run/{break-in-ends,decisions,gates,person,replayed,session-runner}.test.ts',
      'tests/run/plan/{plan-change,plan-check}.test.ts',
      'tests/templates/**/*.test.ts',
      'tests/workspace/memory/{tasks-file,task-marks}.test.ts',
    ],
    isolate: false,
  },
})
