import { expect, test } from 'vitest'
import { endWithFailures, mayNameFailure, namesFailure } from '../../src/base/failure-lines.ts'

test.each([
  ['vitest', ' FAIL  tests/a.test.ts > adds two numbers'],
  ['vitest', 'AssertionError: expected 3 to be 4 // Object.is equality'],
  ['jest', '  ● sum › adds two numbers'],
  ['mocha', '  1) adds two numbers'],
  ['node', 'not ok 3 - adds two numbers'],
  ['pytest', 'FAILED tests/test_a.py::test_add - assert 3 == 4'],
  ['pytest', 'E       assert 3 == 4'],
  ['go', '--- FAIL: TestAdd (0.00s)'],
  ['cargo', "thread 'adds' panicked at src/lib.rs:9:9:"],
  ['rustc', 'error[E0308]: mismatched types'],
  ['tsc', "src/a.ts(3,1): error TS2322: Type 'x' is not assignable"],
  ['a sum', 'Tests:       1 failed, 41 passed, 42 total'],
])('%s names a failure: %s', (_, line) => {
  expect(namesFailure(line)).toBe(true)
  expect(mayNameFailure(`before\n${line}\nafter`)).toBe(true)
})

test.each([
  ['a row of a coverage table', ' errors.ts     |   98.21 |    91.66 |     100 | 12-14'],
  ['a sum of nothing', 'Tests: 0 failed, 42 passed'],
  ['a sum of nothing', 'Found 0 errors.'],
  ['a passed test', ' ✓ tests/failures.test.ts (3 tests)'],
  ['a path', 'src/errors/error-page.ts'],
])('%s names none: %s', (_, line) => {
  expect(namesFailure(line)).toBe(false)
})

const TABLE = Array.from({ length: 400 }, (_, n) => ` file-${n}.ts | 100 | 100 | 100 | 100 |`).join('\n')

test('the failure stays above a coverage table that is longer than the room', () => {
  const output = `> vitest\n FAIL  a.test.ts > adds\nAssertionError: expected 3 to be 4\n${TABLE}\nERROR: coverage is too low`
  const end = endWithFailures(output, 4_000)
  expect(end.length).toBeLessThanOrEqual(4_000)
  expect(end).toMatch(/^ FAIL {2}a\.test\.ts > adds\nAssertionError: expected 3 to be 4\n\[…\]\n file-\d+\.ts/)
  expect(end.endsWith('file-399.ts | 100 | 100 | 100 | 100 |\nERROR: coverage is too low')).toBe(true)
})

test('a failure that stands where the room for the table ends is not lost', () => {
  const [short, fail] = ['x'.repeat(90), `FAIL at the edge ${'y'.repeat(60)}`]
  for (let before = 30; before < 60; before += 1) {
    const lines = [
      'FAIL the first',
      ...Array<string>(before).fill(short),
      fail,
      ...Array<string>(60 - before).fill(short),
    ]
    const end = endWithFailures(lines.join('\n'), 4_000)
    expect(end.length).toBeLessThanOrEqual(4_000)
    expect(end.split('\n').filter(line => line.startsWith('FAIL'))).toEqual(['FAIL the first', fail])
  }
})

test('where nothing names a failure, or all of it has room, it is the end as it is', () => {
  expect(endWithFailures('a\nFAIL b\nc', 100)).toBe('a\nFAIL b\nc')
  expect(endWithFailures(TABLE, 100)).toBe(
    ' file-398.ts | 100 | 100 | 100 | 100 |\n file-399.ts | 100 | 100 | 100 | 100 |',
  )
})

test('thousands of failures take half of the room', () => {
  const output = `${Array.from({ length: 5_000 }, (_, n) => `FAIL ${n}`).join('\n')}\n${TABLE}`
  const end = endWithFailures(output, 4_000)
  expect(end.length).toBeLessThanOrEqual(4_000)
  expect(end.startsWith('FAIL 0\nFAIL 1\n')).toBe(true)
  expect(end.indexOf('[…]')).toBeLessThanOrEqual(2_000)
})
