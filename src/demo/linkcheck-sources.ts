/** The idea that the demo's repository starts with. */
export const ideaText = `# Idea

A command that tells which links in Markdown files lead nowhere, so that I can run it before I publish.

    linkcheck README.md docs/guide.md
`

export const packageText = `{
  "name": "linkcheck",
  "version": "0.1.0",
  "description": "Finds the links in Markdown files that lead nowhere.",
  "private": true,
  "type": "module",
  "bin": { "linkcheck": "bin/linkcheck.js" },
  "scripts": { "test": "node --test" },
  "engines": { "node": ">=20" }
}
`

/** The first attempt, which takes code for text: its own test fails. */
export const firstLinksText = `const link = /\\[[^\\]]*\\]\\(([^)\\s]+)[^)]*\\)/g

/** The links in a Markdown text, each with the line that it stands in. */
export function findLinks(markdown) {
  const links = []
  for (const [index, text] of markdown.split('\\n').entries()) {
    for (const match of text.matchAll(link)) links.push({ line: index + 1, target: match[1] })
  }
  return links
}
`

export const linksTestText = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLinks } from '../src/links.js'

test('links and images are found with their lines', () => {
  const markdown = 'See [a](one.md).\\n\\n![b](two.png "title") and [c](three.md#part)'
  assert.deepEqual(findLinks(markdown), [
    { line: 1, target: 'one.md' },
    { line: 3, target: 'two.png' },
    { line: 3, target: 'three.md#part' },
  ])
})

test('what looks like a link in code is none', () => {
  const markdown = 'Write \`[a](b.md)\`, or:\\n\\n\`\`\`md\\n[c](d.md)\\n\`\`\`\\n\\n[e](f.md)'
  assert.deepEqual(findLinks(markdown), [{ line: 7, target: 'f.md' }])
})
`

export const proseText = `/** The lines of a Markdown text as [number, text], without fenced code. */
export function* proseLines(markdown) {
  let fence = null
  for (const [index, text] of markdown.split('\\n').entries()) {
    const mark = /^ {0,3}(\`{3,}|~{3,})/.exec(text)?.[1]
    if (fence === null && mark !== undefined) fence = mark
    else if (fence !== null && mark?.startsWith(fence)) fence = null
    else if (fence === null) yield [index + 1, text]
  }
}
`

export const linksFix = `+import { proseLines } from './prose.js'
+
 const link = /\\[[^\\]]*\\]\\(([^)\\s]+)[^)]*\\)/g

 /** The links in a Markdown text, each with the line that it stands in. */
 export function findLinks(markdown) {
   const links = []
-  for (const [index, text] of markdown.split('\\n').entries()) {
-    for (const match of text.matchAll(link)) links.push({ line: index + 1, target: match[1] })
+  for (const [line, text] of proseLines(markdown)) {
+    const withoutCode = text.replace(/\`[^\`]*\`/g, '')
+    for (const match of withoutCode.matchAll(link)) links.push({ line, target: match[1] })
   }
   return links
 }
`

export const checkText = `import { access, readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { findLinks } from './links.js'

/** The broken links of a Markdown file. Links to other hosts are not followed. */
export async function checkFile(file) {
  const problems = []
  for (const { line, target } of findLinks(await readFile(file, 'utf8'))) {
    const reason = await whatIsWrong(file, target)
    if (reason !== null) problems.push({ file, line, target, reason })
  }
  return problems
}

async function whatIsWrong(file, target) {
  if (/^([a-z][a-z0-9+.-]*:|\\/\\/)/i.test(target)) return null
  const [path] = target.split('#')
  const found = path === '' || (await exists(resolve(dirname(file), path)))
  return found ? null : 'no such file'
}

async function exists(path) {
  return access(path).then(() => true, () => false)
}
`

export const mainText = `import { checkFile } from './check.js'

/** The whole command: checks these files, tells what it finds, and gives the exit code. */
export async function main(files, tell) {
  if (files.length === 0) {
    tell('Usage: linkcheck FILE.md ...')
    return 2
  }
  const problems = (await Promise.all(files.map(checkFile))).flat()
  for (const { file, line, target, reason } of problems) tell(\`\${file}:\${line}: \${target}: \${reason}\`)
  tell(problems.length === 0 ? 'No broken links.' : \`Broken links: \${problems.length}\`)
  return problems.length === 0 ? 0 : 1
}
`

export const binText = `#!/usr/bin/env node
import { main } from '../src/main.js'

process.exitCode = await main(process.argv.slice(2), console.log)
`

export const checkTestText = `import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkFile } from '../src/check.js'
import { main } from '../src/main.js'

/** Writes these files to a fresh directory, and gives the path of the first and the targets that are broken in it. */
async function check(t, files) {
  const directory = await mkdtemp(join(tmpdir(), 'linkcheck-'))
  t.after(() => rm(directory, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  const file = join(directory, Object.keys(files)[0])
  const problems = await checkFile(file)
  return { file, broken: problems.map(problem => \`\${problem.target}: \${problem.reason}\`) }
}

test('a link to a file that is not there is broken', async t => {
  const { broken } = await check(t, { 'page.md': '[a](here.md) [b](gone.md)', 'here.md': '' })
  assert.deepEqual(broken, ['gone.md: no such file'])
})

test('links to other hosts are left alone', async t => {
  const { broken } = await check(t, { 'page.md': '[a](https://example.org/x) [b](mailto:a@example.org)' })
  assert.deepEqual(broken, [])
})

test('the command answers 1 for broken links and names their place', async t => {
  const { file } = await check(t, { 'page.md': 'Text.\\n[b](gone.md)' })
  const lines = []
  assert.equal(await main([file], line => lines.push(line)), 1)
  assert.match(lines[0], /page\\.md:2: gone\\.md: no such file/)
})
`

export const anchorsText = `import { proseLines } from './prose.js'

/** The anchors of the headings in a Markdown text, as GitHub makes them: \`## Two words\` is \`two-words\`. */
export function findAnchors(markdown) {
  const anchors = new Set()
  for (const [, text] of proseLines(markdown)) {
    const title = /^ {0,3}#{1,6}\\s+(.*?)\\s*#*\\s*$/.exec(text)?.[1]
    if (title !== undefined) anchors.add(unused(anchors, slug(title)))
  }
  return anchors
}

function slug(title) {
  return title
    .toLowerCase()
    .replace(/[^\\p{L}\\p{N}\\s_-]/gu, '')
    .replace(/\\s/g, '-')
}

function unused(anchors, wanted) {
  for (let n = 0; ; n++) {
    const anchor = n === 0 ? wanted : \`\${wanted}-\${n}\`
    if (!anchors.has(anchor)) return anchor
  }
}
`

export const checkWithAnchors = [
  ` import { access, readFile } from 'node:fs/promises'
 import { dirname, resolve } from 'node:path'
+import { findAnchors } from './anchors.js'
 import { findLinks } from './links.js'
`,
  `-  const [path] = target.split('#')
-  const found = path === '' || (await exists(resolve(dirname(file), path)))
-  return found ? null : 'no such file'
+  const [path, anchor] = target.split('#')
+  const aim = path === '' ? file : resolve(dirname(file), path)
+  if (!(await exists(aim))) return 'no such file'
+  if (!anchor || !aim.endsWith('.md')) return null
+  return findAnchors(await readFile(aim, 'utf8')).has(anchor) ? null : 'no such heading'
 }
`,
]

export const anchorTest = `+test('a link to a heading needs that heading, in this file or another', async t => {
+  const { broken } = await check(t, {
+    'page.md': '# Top, and more\\n[a](#top-and-more) [b](#down) [c](other.md#twice-1) [d](other.md#twice-2)',
+    'other.md': '## Twice\\n\\n## Twice\\n',
+  })
+  assert.deepEqual(broken, ['#down: no such heading', 'other.md#twice-2: no such heading'])
+})
+
 test('the command answers 1 for broken links and names their place', async t => {
`

export const readmeText = `# linkcheck

Tells which links in Markdown files lead nowhere.

    node bin/linkcheck.js README.md docs/guide.md

- A link to a file needs that file; a link to a heading needs that heading. See [Limits](#limits).
- It prints a line for each broken link, with file and line number.
- It answers 0 if there are none, 1 if there are some, and 2 if it was called wrongly.

## Limits

Links to other hosts are not followed. Reference links (\`[text][name]\`) are not looked at.

## Tests

    node --test
`

export const noteText = `# How to test

\`node --test\`, no installation needed. In a sandbox it may tell only which file failed; \`node test/NAME.test.js\` tells why.
Tests that need files write them to the temporary directory of the system.

What is code and what is text is decided in one place, \`src/prose.js\`; both links and headings go through it.
`

export const encodedNameTest = `+test('a name may be percent-encoded, and a percent sign that stands for itself is no error', async t => {
+  const { broken } = await check(t, {
+    'page.md': '# Größe\\n[a](my%20notes.md) [b](#gr%C3%B6%C3%9Fe) [c](100%.md) [d](my%20gone.md)',
+    'my notes.md': '',
+    '100%.md': '',
+  })
+  assert.deepEqual(broken, ['my%20gone.md: no such file'])
+})
+
 test('the command answers 1 for broken links and names their place', async t => {
`

export const encodedNames = [
  `-  const [path, anchor] = target.split('#')
+  const [path, anchor] = target.split('#').map(decoded)
`,
  ` async function exists(path) {
   return access(path).then(() => true, () => false)
 }
+
+function decoded(text) {
+  try {
+    return decodeURIComponent(text)
+  } catch {
+    return text
+  }
+}
`,
]
