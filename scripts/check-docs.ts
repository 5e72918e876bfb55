import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { countWords, LONGEST_SENTENCE, sentencesOfBlock, wrongIn } from './english.ts'
import { brokenLinks, readBook } from './site/book.ts'

/**
 * `npm run check:docs`: the links of all pages, the number of words that people have to read, and their English: no sentence over
 * 35 words, and none of the words that readers stumbled over. Prints what is wrong, and fails.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Pages that a script writes: their sentences stand in the code. */
const MADE = ['reference/commands.md', 'reference/settings.md', 'reference/keys.md', 'inside/promises.md']
const MOST_WORDS = 30_000
const MOST_WORDS_OF_README = 700
const MOST_WORDS_OF_GUIDE = 900

/** A page of which a script writes the tables. */
const WITH_MADE_TABLES = 'reference/events.md'
const byHand = (path: string, text: string) => (path === WITH_MADE_TABLES ? text.replace(/^\|.*\n/gm, '') : text)
const book = readBook(ROOT)
const written = book.pages
  .filter(({ path }) => !MADE.includes(path))
  .map(page => ({ ...page, text: byHand(page.path, page.text) }))
const prose = [
  ...written.map(({ path, text }) => ({ file: `docs/${path}`, text })),
  { file: 'README.md', text: readFileSync(join(ROOT, 'README.md'), 'utf8') },
]
const files = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...globSync('docs/**/*.md', { cwd: ROOT }),
]
// What a person has to read: each kind of error is searched for.
const total = written.reduce((sum, { text }) => sum + countWords(text.split('\n## Errors by code\n')[0] ?? ''), 0)
const problems = [
  ...brokenLinks(
    ROOT,
    files.filter(file => existsSync(join(ROOT, file))),
  ),
  ...(total > MOST_WORDS ? [`docs: ${total} words; at most ${MOST_WORDS}`] : []),
  ...prose.flatMap(({ file, text }) => {
    const most =
      file === 'README.md'
        ? MOST_WORDS_OF_README
        : file.startsWith('docs/guides/')
          ? MOST_WORDS_OF_GUIDE
          : Number.POSITIVE_INFINITY
    return countWords(text) > most ? [`${file}: ${countWords(text)} words; at most ${most}`] : []
  }),
  ...prose.flatMap(({ file, text }) =>
    sentencesOf(text).flatMap(sentence => wrongIn(sentence).map(what => `${file}: ${what}: ${sentence}`)),
  ),
]
for (const problem of problems) console.error(problem)
const lengths = prose.flatMap(({ text }) => sentencesOf(text).map(countWords)).sort((a, b) => a - b)
console.log(
  `docs: ${written.length} pages, ${total} words; ${lengths.length} sentences, median ${lengths[lengths.length >> 1]} words, over ${LONGEST_SENTENCE}: ${lengths.filter(length => length > LONGEST_SENTENCE).length}`,
)
if (problems.length > 0) process.exitCode = 1

/** The sentences of a page: of its paragraphs, of the items of its lists, and of the cells of its tables; not of code. */
function sentencesOf(text: string): string[] {
  return (
    text
      .replace(/^ *```[\s\S]*?^ *```/gm, '')
      .replace(/<[^>]+>/g, '')
      // What is code counts as a word.
      .replace(/`[^`\n]+`/g, '`code`')
      .split(/\n\s*\n|\n(?=\s*(?:[-*#|]|\d+\. ))|(?<!\\)\|/)
      .flatMap(block => sentencesOfBlock(block.replaceAll('\n', ' ')))
  )
}
