interface Section {
  level: number
  isOpenWork: boolean
  /** Indent of the section's first entry: plain entries deeper than this are notes to another entry. */
  indent: number | null
}

const OPEN_WORK: readonly Heading[] = ['inprogress', 'todo']

type Heading = 'inprogress' | 'todo'

/**
 * The entries of a Markdown text that are still to do: under the headings "In progress" and "Todo", every unchecked
 * `- [ ]`, and every top-level bullet without a box. Code fences and HTML comments do not count.
 * @param under under which of the two
 */
export function openEntries(markdown: string, under: readonly Heading[] = OPEN_WORK): string[] {
  const open: string[] = []
  let section: Section = { level: 0, isOpenWork: false, indent: null }
  for (const line of visibleLines(markdown)) {
    const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/s.exec(line)
    if (heading !== null) {
      section = sectionAfter(section, under, heading[1]?.length ?? 1, heading[2] ?? '')
      continue
    }
    if (!section.isOpenWork) continue
    const entry = /^([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?(.*)$/s.exec(line)
    if (entry === null) continue
    const [, margin = '', box, text = ''] = entry
    const indent = margin.replaceAll('\t', '    ').length
    section.indent ??= indent
    const counts = box === ' ' || (box === undefined && indent <= section.indent + 1)
    if (counts && !meansNothing(text)) open.push(text.trim())
  }
  return open
}

function sectionAfter(section: Section, under: readonly Heading[], level: number, heading: string): Section {
  const title = heading.toLowerCase().replace(/[^a-z]/g, '')
  if (title === 'inprogress' || title === 'todo') {
    return { level, isOpenWork: under.includes(title), indent: null }
  }
  const isPart = section.isOpenWork && level > section.level && title !== 'done'
  return isPart ? { ...section, indent: null } : { level, isOpenWork: false, indent: null }
}

function meansNothing(text: string): boolean {
  const words = text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
  return words === '' || words === 'none' || words === 'nothing'
}

function* visibleLines(markdown: string): Generator<string> {
  let fence: string | null = null
  let inComment = false
  for (const raw of markdown.split(/\r?\n/)) {
    if (inComment) {
      inComment = !raw.includes('-->')
      continue
    }
    if (fence !== null) {
      if (closesFence(raw, fence)) fence = null
      continue
    }
    fence = openedFence(raw)
    if (fence !== null) continue
    const line = withoutComments(raw)
    inComment = startsComment(line)
    if (!inComment) yield line
  }
}

function openedFence(line: string): string | null {
  return /^[ \t]*(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1] ?? null
}

function closesFence(line: string, fence: string): boolean {
  const text = line.trim()
  return text.startsWith(fence) && text === (fence[0] ?? '').repeat(text.length)
}

// By indexOf: a pattern would look for the end again from every one of a million beginnings.
function withoutComments(line: string): string {
  let visible = ''
  let at = 0
  for (;;) {
    const start = line.indexOf('<!--', at)
    const end = start === -1 ? -1 : line.indexOf('-->', start + 4)
    if (end === -1) return visible + line.slice(at)
    visible += line.slice(at, start)
    at = end + 3
  }
}

/** In the middle of a line an unclosed `<!--` is only text. */
function startsComment(line: string): boolean {
  return /^[ \t]*(?:[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)?<!--/.test(line)
}
