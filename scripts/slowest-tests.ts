import type { Reporter, TestModule } from 'vitest/node'

const SHOWN = 10

/** A reporter for vitest that ends a run with its ten slowest tests: seconds, file, and name. */
export default class SlowestTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap(module =>
      [...module.children.allTests()].map(test => ({
        file: module.relativeModuleId,
        name: test.fullName.replace(/\s+/g, ' '),
        ms: test.diagnostic()?.duration ?? 0,
      })),
    )
    const slowest = tests.toSorted((a, b) => b.ms - a.ms).slice(0, SHOWN)
    if (slowest.length === 0) return
    const lines = slowest.map(({ ms, file, name }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}  ${name}`)
    process.stdout.write(`The slowest:\n${lines.join('\n')}\n`)
  }
}
