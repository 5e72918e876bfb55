import type { BuildStep } from './build-place.ts'
import * as source from './build-sources.ts'
import { addFile, patch, updateFile } from './demo-patch.ts'
import { conclude, say, shell, think } from './demo-words.ts'

/** The agents that are given tasks. */
export const taskedAgents = ['software-architect', 'backend-dev', 'frontend-dev', 'qa-engineer']

/** What an agent does that is asked for this; nothing if no part of the build is. */
export function workOn(asked: string): readonly BuildStep[] {
  const task = /^T\d: .*/m.exec(asked)?.[0] ?? ''
  const [, steps = []] = Object.entries(work).find(([beginning]) => task.startsWith(beginning)) ?? []
  return steps
}

/** Makes a page, and looks whether a title in it stands there as it was written. */
const MAKE_PAGE = `d=$(mktemp -d); node bin/reading-list.js books.json "$d/index.html" && grep -c '&lt;in&gt;' "$d/index.html"; rm -r "$d"`
const REACH = `node -e "fetch('https://validator.w3.org')"`

const designing: readonly BuildStep[] = [
  () => [say('First what is asked for.'), shell('cat .codemachine/inputs/specifications.md books.json')],
  () => [
    think(
      '**Three parts**\n\nReading, rendering, and a command that joins them. If each has a folder of its own, they can be made at the same time.',
    ),
    patch(addFile('docs/design.md', source.designText), addFile('package.json', source.packageText)),
  ],
  () => [conclude('docs/design.md has the parts and their folders, and package.json says how to run the tests.')],
]

const explaining: readonly BuildStep[] = [
  () => [shell('cat docs/design.md bin/reading-list.js')],
  () => [patch(addFile('README.md', source.readmeText))],
  () => [say('Now what it says to type.'), shell(MAKE_PAGE)],
  () => [conclude('README.md says how to use and test it. I typed what it says, and the page was there.')],
]

const planningTests: readonly BuildStep[] = [
  () => [shell('cat .codemachine/inputs/specifications.md docs/design.md')],
  () => [patch(addFile('docs/testing.md', source.testPlanText))],
  () => [
    conclude('docs/testing.md says what has to be shown: three parts, and titles with signs that HTML has a use for.'),
  ],
]

const readingTheList: readonly BuildStep[] = [
  () => [
    think(
      '**What can be wrong in a list?**\n\nNo array, a book without a title or an author, a word where true or false belongs. The number of the book is what somebody needs to find it.',
    ),
    say('The list is checked where it is read, so that nobody has to look at raw JSON later.'),
    patch(addFile('src/list/read-list.js', source.readListText)),
  ],
  () => [
    shell(
      `node -e "import('./src/list/read-list.js').then(list => list.readList('books.json')).then(books => fs.writeSync(1, books.length + ' books'))"`,
    ),
  ],
  () => [conclude('src/list/read-list.js reads the list and says which book is wrong, and how. It reads books.json.')],
]

const makingTheCommand: readonly BuildStep[] = [
  () => [shell('cat src/list/read-list.js src/page/render-page.js')],
  () => [patch(addFile('bin/reading-list.js', source.commandText))],
  () => [shell(MAKE_PAGE)],
  () => [conclude('bin/reading-list.js makes the page. I made one of books.json.')],
]

const renderingThePage: readonly BuildStep[] = [
  () => [
    think('**One file**\n\nThe style goes into the page. Two sections: what is left to read, then what was read.'),
    patch(addFile('src/page/render-page.js', source.firstPageText), addFile('src/page/style.css', source.styleText)),
  ],
  () => [
    say('It has no page to stand in yet, so I look at least whether it parses.'),
    shell('node --check src/page/render-page.js'),
  ],
  () => [conclude('src/page/render-page.js makes the page, with its style in it, light and dark.')],
]

const escaping: readonly BuildStep[] = [
  () => [shell('node test/page.test.js')],
  () => [
    say('The test is right: I put titles into the page as HTML. They have to be escaped where HTML is made.'),
    patch(updateFile('src/page/render-page.js', source.pageFix)),
  ],
  () => [shell('node test/page.test.js')],
  () => [conclude('Titles, authors and years are escaped now, and test/page.test.js passes.')],
]

const testing: readonly BuildStep[] = [
  () => [
    think(
      '**From the outside**\n\nThe parts are being made at this moment, so I go by docs/testing.md and not by their code. A title with < and & in it is the case that is easily forgotten.',
    ),
    say('I write these from the specification.'),
    patch(addFile('test/list.test.js', source.listTestText), addFile('test/page.test.js', source.pageTestText)),
  ],
  () => [shell('node --check test/list.test.js && node --check test/page.test.js')],
  () => [
    conclude(
      'test/list.test.js and test/page.test.js are written. They could not be run while the parts are being made.',
    ),
  ],
]

const tryingTheCommand: readonly BuildStep[] = [
  () => [patch(addFile('test/command.test.js', source.commandTestText))],
  () => [shell('node test/command.test.js')],
  () => [conclude('test/command.test.js runs the command as a person does; it passes.')],
]

/** Without a network. */
function validating(words: string): readonly BuildStep[] {
  return [() => [shell(REACH)], () => [conclude(words)]]
}

/** By the beginning of the request, so that what was broken off can be asked for again. */
const work: Readonly<Record<string, readonly BuildStep[]>> = {
  'T1:': designing,
  'T2:': planningTests,
  'T3:': readingTheList,
  'T4: Render': renderingThePage,
  'T4:': escaping,
  'T5:': makingTheCommand,
  'T6:': testing,
  'T7: Test': tryingTheCommand,
  'T7: Ask validator.w3.org about': validating(
    'There is no network here, so nobody at validator.w3.org can be asked. Nothing was written.',
  ),
  'T7: Try it': validating('I looked for a copy of the validator on this machine. There is none.'),
  'T7: Try to': validating(
    'A page that I check myself is not one that the validator has checked; I have not made up an answer of its own.',
  ),
  'T7: Ask': validating('There is still no network.'),
  'T7:': validating('The validator cannot be reached from here. A person has to ask it, or to change the task.'),
  'T8:': explaining,
}
