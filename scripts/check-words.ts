import { fileURLToPath } from 'node:url'
import { countWords, LONGEST_SENTENCE, sentencesOfBlock, wrongIn } from './english.ts'
import { textsOfSource } from './texts-of-source.ts'

/**
 * `npm run check:words`: the English of what the program says: of the strings, templates and texts of JSX below `src`, and of
 * the docstrings in the files that `src/index.ts` exports from. Prints what is wrong, and fails.
 */

/** Statements of the fleet's database. */
const SQL = /^\s*(?:select|with|insert|update|delete|create|alter|do) /i
/** As many words make a sentence. */
const FEWEST_WORDS = 3

const sentences = textsOfSource(fileURLToPath(new URL('..', import.meta.url)))
  .filter(({ place, text }) => !(place.startsWith('src/fleet/') && SQL.test(text)))
  .flatMap(({ place, text }) => sentencesOf(text).map(sentence => ({ place, sentence })))
for (const { place, sentence } of sentences) {
  for (const what of wrongIn(sentence)) {
    console.error(`${place}: ${what}: ${sentence}`)
    process.exitCode = 1
  }
}
const lengths = sentences.map(({ sentence }) => countWords(sentence)).sort((a, b) => a - b)
const over = (most: number) => lengths.filter(length => length > most).length
console.log(
  `src: ${lengths.length} sentences, median ${lengths[lengths.length >> 1]} words, over 20: ${over(20)}, over ${LONGEST_SENTENCE}: ${over(LONGEST_SENTENCE)}`,
)

function sentencesOf(text: string): string[] {
  return text
    .replace(/<[^>]+>/g, '\n')
    .split('\n')
    .flatMap(line => sentencesOfBlock(line.replace(/`[^`]+`/g, '`code`').trim()))
    .filter(sentence => sentence.split(' ').filter(word => /\p{L}{2}/u.test(word)).length >= FEWEST_WORDS)
}
