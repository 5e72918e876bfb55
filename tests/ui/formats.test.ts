import { expect, test } from 'vitest'
import { formatDuration } from '../../src/ui/format-duration.ts'
import { formatTokens } from '../../src/ui/format-tokens.ts'

test.each([
  [-5, '0 ms'],
  [340.7, '340 ms'],
  [4_230, '4.2 s'],
  [59_999, '59.9 s'],
  [192_345, '3m12s'],
  [3_599_999, '59m59s'],
  [7_500_000, '2h05m'],
  [93_600_000, '1d02h'],
])('%d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test.each([
  [0, '0 tokens'],
  [1, '1 token'],
  [999, '999 tokens'],
  [45_210, '45.2k tokens'],
  [999_949, '999.9k tokens'],
  [999_950, '1.0M tokens'],
  [1_234_567, '1.2M tokens'],
])('%d is %s', (tokens, text) => {
  expect(formatTokens(tokens)).toBe(text)
})
