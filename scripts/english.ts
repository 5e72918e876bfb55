/** The English of this house: `check:docs` holds the pages to it, and `check:words` the texts of the source. */

export const LONGEST_SENTENCE = 35

/** What readers stumbled over. */
const FOREIGN = [
  'go on with',
  'goes on with',
  'gone on with',
  'work off',
  'works off',
  'worked off',
  'mend',
  'mends',
  'mended',
  'mending',
  'of before',
  'take out',
  'takes out',
  'taken out',
  'draw anew',
  'draws anew',
]

export function countWords(text: string): number {
  return text.split(/\s+/).filter(word => /[\p{L}\p{N}]/u.test(word)).length
}

/** What is wrong with a sentence, in words; nothing if it is good. */
export function wrongIn(sentence: string): string[] {
  const words = ` ${sentence.toLowerCase().replace(/[^\p{L}]+/gu, ' ')} `
  const count = countWords(sentence)
  return [
    ...(count > LONGEST_SENTENCE ? [`${count} words`] : []),
    ...FOREIGN.filter(each => words.includes(` ${each} `)).map(each => `"${each}"`),
  ]
}

/** The sentences of a block without line breaks. */
export function sentencesOfBlock(block: string): string[] {
  return block
    .split(/(?<=[.!?:;]) +(?=[\p{Lu}`*])/u)
    .map(sentence => sentence.replace(/^[-*#\s\d.|]+/, '').trim())
    .filter(sentence => /\p{L}{2}/u.test(sentence))
}
