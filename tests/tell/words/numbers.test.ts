import { expect, test } from 'vitest'
import { formatCountdown, formatDuration, formatSpan, formatTokens } from '../../../src/tell/words/numbers.ts'

test.each([
  [-5, '0 ms'],
  [340.4, '340 ms'],
  [754, '754 ms'],
  [999.6, '1.0 s'],
  [4_230, '4.2 s'],
  [12_940, '12.9 s'],
  [59_940, '59.9 s'],
  [59_950, '1m00s'],
  [192_345, '3m12s'],
  [3_599_499, '59m59s'],
  [3_599_500, '1h00m'],
  [86_399_999, '1d00h'],
  [7_500_000, '2h05m'],
  [93_600_000, '1d02h'],
])('%d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test.each([
  [-5, '0 s', '0 s'],
  [0, '0 s', '0 s'],
  [754, '754 ms', '1 s'],
  [999.6, '1 s', '1 s'],
  [5_000, '5 s', '5 s'],
  [12_940, '12.9 s', '13 s'],
  [59_040, '59 s', '1 min'],
  [59_950, '1 min', '1 min'],
  [300_000, '5 min', '5 min'],
  [89_499, '1 min 29 s', '1 min'],
  [89_500, '1 min 30 s', '1 min'],
  [11_399_999, '3 h 10 min', '3 h 10 min'],
  [28_800_000, '8 h', '8 h'],
  [3_599_999, '1 h', '1 h'],
  [86_399_999, '1 d', '1 d'],
  [93_600_000, '1 d 2 h', '1 d 2 h'],
  [86_700_000, '1 d', '1 d'],
])('in a sentence, %d ms are %s, and as what is left of a wait %s', (ms, span, countdown) => {
  expect(formatSpan(ms)).toBe(span)
  expect(formatCountdown(ms)).toBe(countdown)
})

test.each([
  [0, '0 tokens'],
  [1, '1 token'],
  [999, '999 tokens'],
  [45_210, '45.2k tokens'],
  [999_949, '999.9k tokens'],
  [999_950, '1M tokens'],
  [5_000_000, '5M tokens'],
  [1_049_000, '1M tokens'],
  [10_000, '10k tokens'],
  [1_234_567, '1.2M tokens'],
])('%d is %s', (tokens, text) => {
  expect(formatTokens(tokens)).toBe(text)
})
