import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { Marked, Renderer, type Tokens } from 'marked'
import { htmlOf, type Page, readBook, sectionsToSearch } from './site/book.ts'

/**
 * `npm run docs` makes a site of `docs/` in `site/`. It opens from the folder, without a server and without a network: links are
 * relative, and the search has its index in a script.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SITE = join(ROOT, 'site')

const book = readBook(ROOT)
rmSync(SITE, { recursive: true, force: true })
for (const page of book.pages) {
  const file = join(SITE, htmlOf(page.path))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, documentOf(page))
}
cpSync(join(ROOT, 'docs/pictures'), join(SITE, 'pictures'), { recursive: true })
cpSync(join(ROOT, 'scripts/site/style.css'), join(SITE, 'style.css'))
writeFileSync(join(SITE, 'pages.js'), `globalThis.PAGES = ${JSON.stringify(sectionsToSearch(book.pages))}\n`)
await build({
  entryPoints: [join(ROOT, 'scripts/site/search.ts')],
  outfile: join(SITE, 'search.js'),
  bundle: true,
  minify: true,
  format: 'iife',
  logLevel: 'warning',
})
console.log(
  `${book.pages.length} pages in ${relative(process.cwd(), SITE)}: open ${join(relative(process.cwd(), SITE), 'index.html')}`,
)

function documentOf(page: Page): string {
  const up = relative(dirname(page.path), '.') || '.'
  const groups = book.groups.map(({ title, paths }) => {
    const links = paths.map(path => {
      const here = path === page.path ? ' aria-current="page"' : ''
      return `<li><a href="${up}/${htmlOf(path)}"${here}>${escaped(book.page(path).title)}</a></li>`
    })
    return `<h2>${escaped(title)}</h2><ul>${links.join('')}</ul>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(page.title)} · codemachine</title>
<link rel="stylesheet" href="${up}/style.css">
</head>
<body data-up="${up}">
<a class="skip" href="#text">Skip to the text</a>
<header><a href="${up}/index.html">codemachine</a>
<search><input type="search" placeholder="Search" aria-label="Search"><ol hidden></ol></search></header>
<details class="menu"><summary>Pages</summary><nav aria-label="Pages">${groups.join('')}</nav></details>
<main id="text">${textOf(page)}</main>
<script src="${up}/pages.js"></script>
<script src="${up}/search.js"></script>
</body>
</html>
`
}

function textOf(page: Page): string {
  const plain = new Renderer()
  const slugs = book.slugs()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const id = slugs.next(text)
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h${depth}>\n`
      },
      link(link: Tokens.Link) {
        return plain.link.call(this, {
          ...link,
          href: link.href.replace(/(README)?\.md(?=#|$)/, (_, map) => (map ? 'index.html' : '.html')),
        })
      },
      table(table: Tokens.Table) {
        return `<div class="table">${plain.table.call(this, table)}</div>`
      },
    },
  })
  return marked.parse(page.text, { async: false })
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
