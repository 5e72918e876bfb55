/** The list of the person, which the repository starts with. */
export const booksText = `[
  { "title": "The Left Hand of Darkness", "author": "Ursula K. Le Guin", "year": 1969, "read": true },
  { "title": "Momo", "author": "Michael Ende", "year": 1973, "read": false },
  { "title": "C++ <in> a Nutshell & Beyond", "author": "Nobody", "year": 2003, "read": false }
]
`

export const packageText = `{
  "name": "reading-list",
  "version": "0.1.0",
  "description": "Makes a page of the books in a file.",
  "private": true,
  "type": "module",
  "bin": { "reading-list": "bin/reading-list.js" },
  "scripts": { "test": "node --test" },
  "engines": { "node": ">=20" }
}
`

export const designText = `# How it is put together

- \`src/list/read-list.js\`: the file, checked. Nothing behind it looks at raw JSON.
- \`src/page/render-page.js\`: books in, one HTML text out. Pure, so that tests need no files.
- \`src/page/style.css\`: put into the page, which is a single file that can be sent to somebody.
- \`bin/reading-list.js\`: reads, renders, writes; the only part that knows the command line.
- \`test/\`: one file for each part.

No dependencies. Titles and authors are somebody's text: they are escaped where HTML is made, and nowhere else.
`

export const testPlanText = `# How it is tested

1. The list: a good one is read; what is wrong in a bad one is said with the number of the book.
2. The page: what is left to read comes first; a title with \`<\`, \`>\`, \`&\` or \`"\` stands there as it was written.
3. The command: it writes the page, and answers 1 with one sentence if it cannot.

\`node --test\` runs everything. In a sandbox it may tell only which file failed; \`node test/NAME.test.js\` tells why.
`

export const readListText = `import { readFile } from 'node:fs/promises'

/** The books in a JSON file. Throws an error that says which book is wrong, and how. */
export async function readList(file) {
  return checkList(JSON.parse(await readFile(file, 'utf8')))
}

export function checkList(value) {
  if (!Array.isArray(value)) throw new Error('The list has to be an array of books.')
  for (const [index, book] of value.entries()) {
    const place = \`Book \${index + 1}\`
    if (typeof book?.title !== 'string' || book.title === '') throw new Error(\`\${place} has no title.\`)
    if (typeof book.author !== 'string' || book.author === '') throw new Error(\`\${place} has no author.\`)
    if (typeof book.read !== 'boolean') throw new Error(\`\${place}: "read" has to be true or false.\`)
  }
  return value
}
`

/** The first delivery: a title is taken for HTML. */
export const firstPageText = `/** One HTML page of these books, what is left to read first. */
export function renderPage(books, style) {
  const left = books.filter(book => !book.read)
  const read = books.filter(book => book.read)
  return \`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Reading list</title>
<style>
\${style}</style>
</head>
<body>
<h1>Reading list</h1>
\${section('Left to read', left)}
\${section('Read', read)}
</body>
</html>
\`
}

function section(heading, books) {
  if (books.length === 0) return \`<h2>\${heading}</h2>\\n<p>Nothing.</p>\`
  return \`<h2>\${heading}</h2>\\n<ul>\\n\${books.map(entry).join('\\n')}\\n</ul>\`
}

function entry({ title, author, year }) {
  const when = year === undefined ? '' : \` (\${year})\`
  return \`<li><cite>\${title}</cite>, \${author}\${when}</li>\`
}
`

/** What the second delivery changes in it. */
export const pageFix = `   const when = year === undefined ? '' : \` (\${year})\`
-  return \`<li><cite>\${title}</cite>, \${author}\${when}</li>\`
+  return \`<li><cite>\${escaped(title)}</cite>, \${escaped(author)}\${escaped(when)}</li>\`
+}
+
+const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
+
+function escaped(text) {
+  return text.replace(/[&<>"]/g, sign => ENTITIES[sign])
 }
`

export const styleText = `body { max-width: 40em; margin: 2em auto; font: 1.1em/1.5 Georgia, serif; color: #222; background: #fffdf8; }
h2 { font-size: 1em; letter-spacing: 0.05em; text-transform: uppercase; color: #666; }
ul { padding-left: 1.2em; }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #1c1b19; } h2 { color: #aaa; } }
`

export const commandText = `#!/usr/bin/env node
import { readFile, writeFile } from 'node:fs/promises'
import { argv, exit, stderr } from 'node:process'
import { readList } from '../src/list/read-list.js'
import { renderPage } from '../src/page/render-page.js'

const [from, to] = argv.slice(2)
if (from === undefined || to === undefined) {
  stderr.write('Usage: reading-list BOOKS.json PAGE.html\\n')
  exit(2)
}
try {
  const style = await readFile(new URL('../src/page/style.css', import.meta.url), 'utf8')
  await writeFile(to, renderPage(await readList(from), style))
} catch (error) {
  stderr.write(\`reading-list: \${error.message}\\n\`)
  exit(1)
}
`

export const listTestText = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkList, readList } from '../src/list/read-list.js'

const book = { title: 'Momo', author: 'Michael Ende', read: false }

test('the list of this repository is a good one', async () => {
  assert.equal((await readList(new URL('../books.json', import.meta.url))).length, 3)
})

test('what is wrong is said with the number of the book', () => {
  assert.throws(() => checkList({}), /array of books/)
  assert.throws(() => checkList([book, { ...book, title: '' }]), /Book 2 has no title/)
  assert.throws(() => checkList([{ ...book, read: 'yes' }]), /Book 1: "read" has to be true or false/)
})
`

export const pageTestText = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderPage } from '../src/page/render-page.js'

const book = { title: 'Momo', author: 'Michael Ende', year: 1973, read: false }

test('what is left to read comes first', () => {
  const page = renderPage([{ ...book, title: 'Old', read: true }, { ...book, title: 'New' }], '')
  assert.ok(page.indexOf('New') < page.indexOf('Old'))
})

test('a title stands there as it was written', () => {
  const page = renderPage([{ ...book, title: 'a <b> & "c"' }], '')
  assert.match(page, /a &lt;b&gt; &amp; &quot;c&quot;/)
})
`

export const commandTestText = `import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const file = name => fileURLToPath(new URL(\`../\${name}\`, import.meta.url))

async function run(...args) {
  const [code] = await once(fork(file('bin/reading-list.js'), args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] }), 'exit')
  return code
}

test('the command writes the page', async t => {
  const folder = await mkdtemp(join(tmpdir(), 'reading-list-'))
  t.after(() => rm(folder, { recursive: true }))
  const page = join(folder, 'index.html')
  assert.equal(await run(file('books.json'), page), 0)
  assert.match(await readFile(page, 'utf8'), /C\\+\\+ &lt;in&gt; a Nutshell &amp; Beyond/)
})

test('the command answers 1 if there is no list, and 2 if it was called wrongly', async () => {
  assert.equal(await run('gone.json', 'page.html'), 1)
  assert.equal(await run(), 2)
})
`

export const readmeText = `# reading-list

Makes one page of the books in a file: what is left to read, then what was read.

    node bin/reading-list.js books.json index.html

Each book is \`{ "title": "…", "author": "…", "year": 1973, "read": false }\`; the year may be left out. The page is a single
file, with its style in it, that can be opened from the disk or sent to somebody.

It answers 0, or 1 with one sentence if it cannot read the list or write the page, or 2 if it was called wrongly.

## Tests

    node --test

How it is put together: [docs/design.md](docs/design.md).
`
