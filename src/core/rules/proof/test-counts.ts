/**
 * Returns how many tests ran, by the last lines of common runners: pytest, unittest, Jest, Vitest, Mocha, node --test, Bun,
 * TAP, Go, Cargo, Maven, Gradle, RSpec, PHPUnit, dotnet, ExUnit, Bats. Skipped tests do not count. Null: unknown output.
 * Pure.
 * @param output plain text; only the last 16,000 characters count
 */
export function testCountOf(output: string): number | null {
  return mostOf(RUNNERS, output)
}

/** Returns how many tests failed by the same lines, including errors; 0: none reported. Pure. */
export function failedTestsOf(output: string): number {
  return mostOf(FAILURES, output) ?? 0
}

function mostOf(runners: readonly Runner[], output: string): number | null {
  const lines = output
    .slice(-MOST_CHARACTERS)
    .split('\n')
    .slice(-MOST_LINES)
    .map(line => line.slice(0, LONGEST_LINE))
  const counts = runners.flatMap(runner => runner(lines) ?? [])
  return counts.length === 0 ? null : Math.max(...counts)
}

/** Returns the number of tests in a JUnit XML report, without skipped ones; null: not a report. Pure. */
export function testCountOfJUnit(xml: string): number | null {
  if (!/<testsuites?[\s>/]/.test(xml)) return null
  const count = (tag: RegExp) => xml.match(tag)?.length ?? 0
  return Math.max(0, count(/<testcase[\s>/]/g) - count(/<skipped[\s>/]/g))
}

const MOST_CHARACTERS = 16_000
const MOST_LINES = 2_000
const LONGEST_LINE = 500

type Runner = (lines: readonly string[]) => number | null

const RUNNERS: readonly Runner[] = [
  // 5 passed, 1 failed, 2 skipped in 0.12s · no tests ran in 0.01s
  summed(/^=* ?(?:\d+ [a-z]+,? ?)+in [\d.]+ ?s/, /(\d+) (?:passed|failed|errors?|xpassed)\b/g),
  fixed(/^=* ?no tests ran\b/, 0),
  // Ran 5 tests in 0.001s · Ran 5 tests across 2 files. [8.00ms]
  added(/^Ran (\d+) tests?(?: in | across |[,.:]|$)/),
  // Tests:       1 failed, 2 skipped, 5 passed, 8 total
  summed(/^\s*Tests:? +.*\d/, /(\d+) (?:passed|failed)\b/g),
  fixed(/^No test(?: file|)s found\b/i, 0),
  // 5 passing (12ms) / 1 failing
  summed(/^\s*\d+ (?:passing|failing)\b/, /(\d+) (?:passing|failing)\b/g),
  nodeTests,
  tapPlan,
  // --- PASS: TestA (0.00s)
  counted(/^\s*--- (?:PASS|FAIL): /),
  // test result: ok. 5 passed; 0 failed; 0 ignored
  summed(/^test result: /, /(\d+) (?:passed|failed);/g),
  // Tests run: 5, Failures: 0, Errors: 0, Skipped: 1
  mavenTests,
  // 5 tests completed, 1 failed
  added(/^(\d+) tests? completed\b/),
  // 5 examples, 0 failures
  added(/^(\d+) examples?, \d+ failures?\b/),
  // OK (5 tests, 9 assertions) · Tests: 5, Assertions: 9, Failures: 1.
  added(/^OK \((\d+) tests?, /),
  added(/^Tests: (\d+), Assertions: /),
  // Passed!  - Failed: 0, Passed: 5, Skipped: 0
  summed(/^\s*(?:Passed|Failed)!\s+- /, /(?:Failed|Passed):\s*(\d+)/g),
  // 5 tests, 0 failures
  added(/^(?:\d+ doctests?, )?(\d+) tests?, \d+ failures?\b/),
]

const FAILURES: readonly Runner[] = [
  summed(/^=* ?(?:\d+ [a-z]+,? ?)+in [\d.]+ ?s/, /(\d+) (?:failed|errors?)\b/g),
  // FAILED (failures=1, errors=1)
  summed(/^FAILED \(/, /(?:failures|errors)=(\d+)/g),
  summed(/^\s*Tests:? +.*\d/, /(\d+) failed\b/g),
  // 1 failing · 1 fail
  added(/^\s*(\d+) fail(?:ing)?$/),
  added(/^(?:#|ℹ) fail (\d+)$/),
  // Ran 5 tests, 1 failed · 5 tests completed, 1 failed
  added(/^(?:Ran )?\d+ tests?(?: completed)?, (\d+) failed\b/),
  counted(/^\s*--- FAIL: /),
  summed(/^test result: /, /(\d+) failed;/g),
  summed(/Tests run: \d+, .*Skipped: \d+\s*$/, /(?:Failures|Errors): (\d+)/g),
  added(/^(?:\d+ doctests?, )?\d+ (?:examples?|tests?), (\d+) failures?\b/),
  summed(/^Tests: \d+, Assertions: /, /(?:Failures|Errors): (\d+)/g),
  summed(/^\s*(?:Passed|Failed)!\s+- /, /Failed:\s*(\d+)/g),
]

function fixed(line: RegExp, count: number): Runner {
  return lines => (lines.some(each => line.test(each)) ? count : null)
}

/** Sums the numbers of `part` over all matching lines. */
function summed(line: RegExp, part: RegExp): Runner {
  return lines => {
    const fitting = lines.filter(each => line.test(each))
    const numbers = fitting.flatMap(each => [...each.matchAll(part)].map(([, number]) => Number(number)))
    return fitting.length === 0 ? null : sumOf(numbers)
  }
}

function added(line: RegExp): Runner {
  return lines => {
    const numbers = lines.flatMap(each => line.exec(each)?.[1] ?? []).map(Number)
    return numbers.length === 0 ? null : sumOf(numbers)
  }
}

function counted(line: RegExp): Runner {
  return lines => lines.filter(each => line.test(each)).length || null
}

/** Counts node's `# tests 5` minus `# skipped 1`, with either reporter's sign. */
function nodeTests(lines: readonly string[]): number | null {
  const of = (word: string) =>
    sumOf(lines.flatMap(each => new RegExp(`^(?:#|ℹ) ${word} (\\d+)$`).exec(each)?.[1] ?? []).map(Number))
  return lines.some(each => /^(?:#|ℹ) tests \d+$/.test(each)) ? Math.max(0, of('tests') - of('skipped')) : null
}

/** Counts `ok 1 - …` and `not ok 2 - …` under a top-level plan. */
function tapPlan(lines: readonly string[]): number | null {
  if (!lines.some(each => /^1\.\.\d+/.test(each))) return null
  return lines.filter(each => /^(?:not )?ok\b/.test(each) && !/# *skip/i.test(each)).length
}

/** Maven's final sum has no class name after it. */
function mavenTests(lines: readonly string[]): number | null {
  const sums = lines.flatMap(each => {
    const [, run, skipped] = /Tests run: (\d+), Failures: \d+, Errors: \d+, Skipped: (\d+)\s*$/.exec(each) ?? []
    return run === undefined ? [] : [Number(run) - Number(skipped)]
  })
  return sums.at(-1) ?? null
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0)
}
