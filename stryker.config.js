// `npm run mutants`: makes small mistakes in the code below, one at a time, and asks the tests of scripts/mutants-runner.ts
// whether they see them. By hand; of one file with `npm run mutants -- --mutate <file>`.
export default {
  // What decides whether work counts as done, and what happened: wrong there, it is wrong without a crash. Files are left
  // to the tests of faults and kills.
  mutate: ['src/core/rules/*.ts', 'src/core/state/*.ts', 'src/workspace/memory/tasks-file.ts'],
  // A wrong word of one of our unions does not pass the compiler, and what is said in prose is read by people.
  mutator: { excludedMutations: ['StringLiteral'] },
  testRunner: 'pure',
  plugins: ['./scripts/mutants-runner.ts'],
  // Stryker would rewrite it with a TypeScript that has its old programming interface.
  tsconfigFile: 'none.json',
  coverageAnalysis: 'perTest',
  // What runs only while a module is loaded, tables above all, would need a new process for each.
  ignoreStatic: true,
  concurrency: 2,
  // The machine may be busy.
  timeoutMS: 10_000,
  reporters: ['clear-text', 'progress-append-only', 'json'],
  thresholds: { high: 95, low: 90, break: 90 },
}
