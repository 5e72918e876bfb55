import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import type { Section } from './open-search.ts'

/** A page of `docs/`. */
export interface Page {
  /** Relative to `docs/`. */
  path: string
  /** Its first heading. */
  title: string
  /** Its Markdown. */
  text: string
  /** What stands under each of its headings, without marks; the first has the title. */
  sections: readonly { slug: string; heading: string; text: string }[]
}

/** All pages, in the order of the map, `docs/README.md`. */
export interface Book {
  pages: readonly Page[]
  /** The parts of the map, with the pages that each names. */
  groups: readonly { title: string; paths: readonly string[] }[]
  page(path: string): Page
  slugs(): Slugs
}

/** Names headings as GitHub does: in lower case, with dashes, and with a number where a name is taken. */
class Slugs {
  readonly #taken = new Map<string, number>()

  next(heading: string): string {
    const slug = plain(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-')
    const count = this.#taken.get(slug) ?? 0
    this.#taken.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}

/** Reads the book below a checkout. Throws where the map names a page that is not there, or leaves one out. */
export function readBook(root: string): Book {
  const read = (path: string) => readPage(path, readFileSync(join(root, 'docs', path), 'utf8'))
  const map = read('README.md')
  const groups = [...map.text.matchAll(/^## (.+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm)].map(
    ([, title = '', body = '']) => ({
      title,
      paths: [...body.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(([, path = '']) => normalize(path)),
    }),
  )
  const named = ['README.md', ...groups.flatMap(({ paths }) => paths)]
  const there = globSync('**/*.md', { cwd: join(root, 'docs') }).filter(path => !path.startsWith('pictures'))
  const lost = there.filter(path => !named.includes(path))
  if (lost.length > 0) throw new Error(`docs/README.md names no ${lost.join(', ')}: add a line for each.`)
  const pages = [...new Set(named)].map(path => (path === 'README.md' ? map : read(path)))
  const byPath = new Map(pages.map(page => [page.path, page]))
  return {
    pages,
    groups,
    page(path) {
      const page = byPath.get(path)
      if (page === undefined) throw new Error(`docs/README.md names ${path}, which is not there.`)
      return page
    },
    slugs: () => new Slugs(),
  }
}

function readPage(path: string, text: string): Page {
  const slugs = new Slugs()
  const sections: { slug: string; heading: string; text: string }[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.trimStart().startsWith('```')) isCode = !isCode
    const heading = isCode ? undefined : /^#{1,6} (.+)$/.exec(line)?.[1]
    if (heading !== undefined) sections.push({ slug: slugs.next(heading), heading: plain(heading), text: '' })
    const last = sections.at(-1)
    if (last !== undefined && heading === undefined) last.text += `${plain(line)}\n`
  }
  return { path, title: sections[0]?.heading ?? path, text, sections }
}

/** Where a page lies in the site: the map is its first page. */
export function htmlOf(path: string): string {
  return path === 'README.md' ? 'index.html' : path.replace(/\.md$/, '.html')
}

/** What is searched: each section of each page. */
export function sectionsToSearch(pages: readonly Page[]): Section[] {
  return pages.flatMap(({ path, title, sections }) =>
    sections.map(({ slug, heading, text }) => ({
      id: `${htmlOf(path)}${slug === '' ? '' : `#${slug}`}`,
      title: heading === title ? title : `${title}: ${heading}`,
      text,
    })),
  )
}

/** Without the marks of Markdown. */
function plain(text: string): string {
  return text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>]+>|^\s*\|[ |:-]+\|$/g, '')
    .replace(/[`*]|\\(?=\|)/g, '')
}

/** What is wrong with the links of these files: a sentence each. `files`: relative to the checkout. */
export function brokenLinks(root: string, files: readonly string[]): string[] {
  const anchors = new Map<string, Set<string>>()
  const anchorsOf = (file: string) => {
    const known =
      anchors.get(file) ??
      new Set(readPage(file, readFileSync(join(root, file), 'utf8')).sections.map(({ slug }) => slug))
    anchors.set(file, known)
    return known
  }
  return files.flatMap(file => {
    const text = readFileSync(join(root, file), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(
      ([, link, source]) => link ?? source ?? '',
    )
    return targets.flatMap(target => {
      if (/^[a-z]+:/.test(target)) return []
      const [path = '', anchor] = target.split('#')
      const to = path === '' ? file : normalize(join(dirname(file), decodeURI(path)))
      if (!existsSync(join(root, to))) return [`${file}: ${target} is not there`]
      return anchor === undefined || !to.endsWith('.md') || anchorsOf(to).has(anchor)
        ? []
        : [`${file}: ${to} has no heading #${anchor}`]
    })
  })
}
