import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { parseDuration } from '../../../src/base/text.ts'
import { shellWord } from '../../../src/platform/shell-word.ts'
import { parseCount } from '../../../src/project/settings/schema.ts'
import { countAsTyped, durationAsTyped } from '../../../src/tell/words/commands.ts'

test.each([
  [8 * 3_600_000, '8h'],
  [5_400_000, '1h30m'],
  [36 * 3_600_000 + 1000, '36h1s'],
  [45_000, '45s'],
  [1500, '2s'],
])('%d ms are typed as %s, which a flag takes', (ms, typed) => {
  expect(durationAsTyped(ms)).toBe(typed)
  expect(parseDuration(typed)).toBe(Math.ceil(ms / 1000) * 1000)
})

test.each([
  [5_000_000, '5M'],
  [500_000, '500k'],
  [1_500_000, '1500k'],
  [1234, '1234'],
])('%d is typed as %s, which a flag takes', (count, typed) => {
  expect(countAsTyped(count)).toBe(typed)
  expect(parseCount(typed)).toBe(count)
})

test('a word of a command that is shown is that word for a shell, whatever stands in it', () => {
  const words = ['plain/path-1.md', "Ann's and Bob's", "''", '$HOME `id` "x" \\', 'two\nlines', '', '*', '-x', '~']
  const typed = `printf '%s\\0' ${words.map(text => shellWord(text)).join(' ')}`
  expect(execFileSync('sh', ['-c', typed], { encoding: 'utf8' }).split('\0')).toEqual([...words, ''])
})
