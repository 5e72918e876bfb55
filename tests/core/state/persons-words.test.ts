import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fileOfWords, MOST_WORDS_CHARACTERS, needsFile, wordsInInput } from '../../../src/core/state/persons-words.ts'

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.nat({ max: 20_000 }).map(length => `begin${'x'.repeat(length)}end`),
)
const words = fc.record({ goal: text, said: fc.array(text, { maxLength: 5 }) })

test('an input has all words of the person, or names a file that has them, and stays within its bound', () => {
  fc.assert(
    fc.property(words, given => {
      const isLong = needsFile(given)
      const told = wordsInInput(given, isLong ? '.codemachine/projects/20261120_1/GOAL.md' : null)
      expect(told.length).toBeLessThanOrEqual(MOST_WORDS_CHARACTERS)
      expect(told.includes('GOAL.md')).toBe(isLong)
      const place = isLong ? fileOfWords(given) : told
      for (const part of [given.goal, ...given.said]) {
        for (const line of part.trimEnd().split('\n')) expect(place).toContain(line)
      }
    }),
  )
})

test('the same words stand there in the same way, whatever else a round is told', () => {
  const given = { goal: 'Write it.', said: ['Mind the gap.'] }
  expect(wordsInInput(given, null)).toBe(wordsInInput({ ...given }, null))
  expect(wordsInInput(given, null, { tellsGoal: true })).not.toContain('Write it.')
  expect(wordsInInput({ goal: 'Write it.', said: [] }, null, { tellsGoal: true })).toBe('')
})
