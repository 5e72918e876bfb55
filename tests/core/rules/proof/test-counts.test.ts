import { expect, test } from 'vitest'
import { failedTestsOf, testCountOf, testCountOfJUnit } from '../../../../src/core/rules/proof/test-counts.ts'

test.each([
  ['pytest', '===== 1 failed, 5 passed, 2 skipped in 0.12s =====', 6],
  ['pytest -q', '5 passed in 0.01s', 5],
  ['pytest without tests', '=== no tests ran in 0.01s ===', 0],
  ['unittest', 'Ran 5 tests in 0.001s\n\nOK', 5],
  ['bun test', ' 4 pass\n 1 fail\nRan 5 tests across 2 files. [8.00ms]', 5],
  ['a runner of a project’s own', 'FAIL a\nRan 5 tests, 1 failed', 5],
  ['Jest', 'Test Suites: 2 passed, 2 total\nTests:       1 failed, 2 skipped, 5 passed, 8 total', 6],
  ['Vitest', ' Test Files  2 passed (2)\n      Tests  1 failed | 5 passed (6)', 6],
  ['Mocha', '  5 passing (12ms)\n  1 failing', 6],
  ['node --test', 'ℹ tests 7\nℹ suites 0\nℹ pass 6\nℹ skipped 1', 6],
  ['node --test, TAP', 'TAP version 13\nok 1 - a\n1..1\n# tests 1\n# skipped 0', 1],
  ['TAP', '1..3\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP no network', 2],
  ['go test -v', '=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL', 2],
  ['cargo test', 'test result: ok. 5 passed; 0 failed; 1 ignored;\ntest result: ok. 2 passed; 0 failed;', 7],
  [
    'Maven',
    'Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s -- in A\nTests run: 5, Failures: 0, Errors: 0, Skipped: 1',
    4,
  ],
  ['Gradle', '5 tests completed, 1 failed', 5],
  ['RSpec', '5 examples, 0 failures', 5],
  ['PHPUnit', 'OK (5 tests, 9 assertions)', 5],
  ['dotnet', 'Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5', 5],
  ['ExUnit', '5 tests, 0 failures', 5],
])('the last lines of %s say how many tests were run', (_, output, count) => {
  expect(testCountOf(output)).toBe(count)
})

test.each([
  ['pytest', '===== 1 failed, 5 passed, 2 errors in 0.12s =====', 3],
  ['unittest', 'Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)', 3],
  ['Jest', 'Test Suites: 1 failed, 2 total\nTests:       4 failed, 2 skipped, 5 passed, 11 total', 4],
  ['Vitest', '      Tests  1 failed | 5 passed (6)', 1],
  ['Mocha', '  5 passing (12ms)\n  2 failing', 2],
  ['bun test', ' 4 pass\n 1 fail\nRan 5 tests across 2 files. [8.00ms]', 1],
  ['node --test', 'ℹ tests 7\nℹ pass 4\nℹ fail 3', 3],
  ['go test -v', '--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL', 1],
  ['cargo test', 'test result: FAILED. 5 passed; 2 failed; 1 ignored;\ntest result: ok. 2 passed; 0 failed;', 2],
  ['Maven', 'Tests run: 5, Failures: 1, Errors: 2, Skipped: 1', 3],
  ['Gradle', '5 tests completed, 1 failed', 1],
  ['RSpec', '5 examples, 2 failures', 2],
  ['PHPUnit', 'Tests: 5, Assertions: 9, Failures: 1, Errors: 1.', 2],
  ['dotnet', 'Failed!  - Failed:     2, Passed:     5, Skipped:     0, Total:     7', 2],
  ['a runner of a project’s own', 'Ran 5 tests, 1 failed', 1],
  ['node --test where all passed', '# tests 7\n# pass 7\n# fail 0', 0],
  ['a linter', '0 errors, 3 warnings', 0],
  ['a compiler', 'It took 2 failed attempts in 3s', 0],
])('the last lines of %s say how many tests failed', (_, output, count) => {
  expect(failedTestsOf(output)).toBe(count)
})

test.each(['', 'all is well', '5 files changed', 'passed in 3s', 'ok 1 - a'])('%j says nothing of tests', output => {
  expect(testCountOf(output)).toBeNull()
})

test('a line without end and many lines take no time to speak of', () => {
  expect(testCountOf(`${'1 a, '.repeat(100_000)}\n${'Tests run: 1, '.repeat(10_000)}`)).toBeNull()
})

test('a report in JUnit\u2019s XML says how many tests were run, without the skipped ones', () => {
  const suite =
    '<testsuite name="a" tests="3"><testcase name="x"/><testcase name="y"><failure/></testcase><testcase name="z"><skipped/></testcase></testsuite>'
  expect(testCountOfJUnit(suite)).toBe(2)
  expect(testCountOfJUnit(`<testsuites>${suite}${suite}</testsuites>`)).toBe(4)
  expect(testCountOfJUnit('<testsuite name="none" tests="0"></testsuite>')).toBe(0)
  expect(testCountOfJUnit('<project><testcase/></project>')).toBeNull()
})
