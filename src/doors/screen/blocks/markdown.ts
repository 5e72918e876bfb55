import type { MarkedToken, Token, Tokens } from 'marked'
import { closedTokens, decodeEntities, languageOf, lexMarkdown } from '../../../base/markdown-lexer.ts'
import { clipEnd } from '../../../base/text.ts'
import { cutLine, padLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { type LineOptions, MOST_TEXT, underPrefix } from './layout.ts'
import { splitBlocks } from './message-stream.ts'

/**
 * An untrusted Markdown text as lines for the terminal; at most its first 72 Ki characters.
 * @param first whether it is the beginning of a message; otherwise a blank line precedes it, so that the parts that
 * `finishedLength` cuts off look, one after the other, like the whole
 */
export function markdownLines(text: string, { first, ...options }: LineOptions & { first: boolean }): string[] {
  const blocks = splitBlocks(safeText(clipEnd(text, MOST_TEXT))).flatMap(lexMarkdown)
  const lines = blocksLines(blocks, options, true)
  return first || lines.length === 0 ? lines : ['', ...lines]
}

/** Blocks one below the other; `loose`: with a blank line between them. */
function blocksLines(blocks: readonly MarkedToken[], options: LineOptions, loose: boolean): string[] {
  const lines: string[] = []
  for (const block of blocks) {
    const drawn = blockLines(block, options)
    if (loose && lines.length > 0 && drawn.length > 0) lines.push('')
    for (const line of drawn) lines.push(line)
  }
  return lines
}

function blockLines(block: MarkedToken, options: LineOptions): string[] {
  const { columns, theme } = options
  switch (block.type) {
    case 'paragraph':
    case 'text':
      return wrapAll(inlineLines(block.tokens ?? [block], theme), columns)
    case 'heading':
      return headingLines(block, options)
    case 'code':
      return codeLines(block.text, languageOf(block.lang), options)
    case 'list':
      return listLines(block, options)
    case 'blockquote':
      return quoteLines(block, options)
    case 'table':
      return tableLines(block, options)
    case 'hr':
      return [theme.paint('dim', theme.symbols ? '─'.repeat(columns) : cutLine('---', columns))]
    case 'html':
      return wrapAll(block.text.trimEnd().split('\n'), columns)
    // Link definitions, and the space between blocks; a list draws its checkboxes itself.
    case 'def':
    case 'space':
    case 'checkbox':
      return []
    // Inline tokens, which never stand on their own.
    default:
      return wrapAll(inlineLines([block], theme), columns)
  }
}

function wrapAll(lines: readonly string[], columns: number): string[] {
  return lines.flatMap(line => wrapLine(line, columns))
}

function headingLines({ depth, tokens }: Tokens.Heading, { columns, theme }: LineOptions): string[] {
  const signs = hasColours(theme) ? '' : `${'#'.repeat(depth)} `
  const [first = '', ...rest] = inlineLines(tokens, theme, [depth <= 2 ? 'heading' : 'strong'])
  return wrapAll([signs + first, ...rest], columns)
}

function quoteLines({ tokens }: Tokens.Blockquote, { columns, theme }: LineOptions): string[] {
  const bar = theme.symbols ? theme.paint('quote', '│ ') : '> '
  return underPrefix({ first: bar, repeats: true, columns }, inner =>
    blocksLines(closedTokens(tokens), { theme, columns: inner }, true),
  )
}

function listLines(list: Tokens.List, { columns, theme }: LineOptions): string[] {
  const start = list.start === '' ? 1 : list.start
  const width = list.ordered ? `${start + list.items.length - 1}. `.length : 0
  const items = list.items.map((item, i) => {
    const marker = list.ordered ? `${start + i}. `.padStart(width) : bulletOf(item, theme)
    const box = list.ordered && item.task ? bulletOf(item, theme) : ''
    const prefix = { first: theme.paint('accent', marker) + box, columns }
    return underPrefix(prefix, inner => {
      const lines = blocksLines(closedTokens(item.tokens), { theme, columns: inner }, item.loose)
      return lines.length === 0 ? [''] : lines
    })
  })
  return items.flatMap((lines, i) => (list.loose && i > 0 ? ['', ...lines] : lines))
}

function bulletOf({ task, checked }: Tokens.ListItem, { symbols, paint }: Theme): string {
  if (!task) return symbols ? '• ' : '- '
  if (checked) return symbols ? paint('good', '✔ ') : '[done] '
  return symbols ? '○ ' : '[to do] '
}

const LABEL_CELLS = 30

/** A code block, indented: its language, then its lines with syntax highlighting. The code has been through `safeText`. */
function codeLines(code: string, language: string, { columns, theme }: LineOptions): string[] {
  const label = theme.symbols ? language : `code ${language}`.trimEnd()
  return underPrefix({ first: '  ', columns }, inner => [
    ...(label === '' ? [] : wrapLine(theme.paint('dim', cutLine(label, LABEL_CELLS)), inner)),
    ...highlightCode(code.replace(/\n+$/, ''), language, theme).flatMap(line => wrapLine(line, inner)),
  ])
}

type Lowlight = ReturnType<typeof import('lowlight').createLowlight>
type Nodes = ReturnType<Lowlight['highlight']>['children']

let lowlight: Lowlight | null = null

/** Loads the grammars of some forty languages, in the background; until it resolves, code is shown in one colour. */
export async function loadGrammars(): Promise<void> {
  const { createLowlight, common } = await import('./common-grammars.ts')
  lowlight ??= createLowlight(common)
}

// The regular expressions of the grammars take too long for larger code and for longer lines.
const MOST_HIGHLIGHTED = 16 * 1024
const LONGEST_LINE = 1000

const DIFFS: ReadonlySet<string> = new Set(['diff', 'patch'])

/** The role of a line of a unified diff, headings and all. */
function roleInDiff(line: string): Role {
  if (/^(?:\+\+\+|---) /.test(line)) return 'dim'
  if (line.startsWith('@@')) return 'hunk'
  if (line.startsWith('+')) return 'added'
  return line.startsWith('-') ? 'removed' : 'plain'
}

/**
 * Lines of code with syntax highlighting, each with complete SGR sequences; painted as `otherwise` if the language is unknown,
 * or the code larger than 16 KiB.
 */
export function highlightCode(code: string, language: string, theme: Theme, otherwise: Role = 'code'): string[] {
  const lines = code.split('\n')
  if (DIFFS.has(language)) return lines.map(line => theme.paint(roleInDiff(line), line))
  const isSmall = code.length <= MOST_HIGHLIGHTED && lines.every(line => line.length <= LONGEST_LINE)
  if (!isSmall || !lowlight?.registered(language)) return lines.map(line => theme.paint(otherwise, line))
  const painted = ['']
  paintNodes(lowlight.highlight(language, code).children, 'plain', (text, role) => {
    for (const [i, part] of text.split('\n').entries()) {
      if (i > 0) painted.push('')
      painted[painted.length - 1] += theme.paint(role, part)
    }
  })
  return painted
}

function paintNodes(nodes: Nodes, role: Role, paint: (text: string, role: Role) => void): void {
  for (const node of nodes) {
    if (node.type === 'text') paint(node.value, role)
    if (node.type === 'element')
      paintNodes(node.children as Nodes, syntaxRoleOf(node.properties.className) ?? role, paint)
  }
}

const SYNTAX_CLASSES: Readonly<Partial<Record<Role, readonly string[]>>> = {
  keyword: ['keyword', 'selector-tag', 'tag'],
  type: ['built_in', 'type', 'selector-class', 'selector-id'],
  number: ['literal', 'number'],
  string: ['string', 'regexp', 'symbol'],
  comment: ['comment', 'meta', 'doctag'],
  name: ['title', 'name', 'attr', 'attribute'],
  heading: ['section'],
  added: ['addition'],
  removed: ['deletion'],
  emphasis: ['emphasis'],
  strong: ['strong'],
  plain: ['subst'],
}

const SYNTAX_ROLES = new Map(
  Object.entries(SYNTAX_CLASSES).flatMap(([role, classes]) => classes.map(name => [name, role as Role])),
)

/** The role for a node's classes, of which the first is its kind: `hljs-title function_`. */
function syntaxRoleOf(classes: unknown): Role | undefined {
  const [first] = Array.isArray(classes) ? classes : []
  return SYNTAX_ROLES.get(String(first).replace('hljs-', ''))
}

/**
 * The inline text of a paragraph, heading or table cell, painted, a line for each of its lines. Where the terminal shows no
 * links, the address follows the text.
 */
export function inlineLines(tokens: readonly Token[], theme: Theme, roles: readonly Role[] = []): string[] {
  const lines = ['']
  const write = (text: string, styles: readonly Role[], url: string | null) => {
    // The lexer decodes references such as `&#27;`, which were harmless until then.
    for (const [i, part] of safeText(text).split('\n').entries()) {
      if (i > 0) lines.push('')
      const painted = styles.reduce((inner, role) => theme.paint(role, inner), part)
      lines[lines.length - 1] += url === null ? painted : theme.link(painted, url)
    }
  }
  writeTokens(tokens, { theme, roles, url: null, write })
  return lines
}

interface Inline {
  theme: Theme
  roles: readonly Role[]
  /** The target of the link that the text is in; null outside links. */
  url: string | null
  write: (text: string, roles: readonly Role[], url: string | null) => void
}

function writeTokens(tokens: readonly Token[], inline: Inline): void {
  for (const token of closedTokens(tokens)) writeToken(token, inline)
}

function writeToken(token: MarkedToken, inline: Inline): void {
  const { roles, url, write } = inline
  switch (token.type) {
    case 'text':
      if (token.tokens) writeTokens(token.tokens, inline)
      else write(token.escaped ? token.text : decodeEntities(token.text), roles, url)
      break
    case 'strong':
      writeTokens(token.tokens, { ...inline, roles: [...roles, 'strong'] })
      break
    case 'em':
      writeTokens(token.tokens, { ...inline, roles: [...roles, 'emphasis'] })
      break
    case 'codespan':
      write(hasColours(inline.theme) ? token.text : `\`${token.text}\``, [...roles, 'code'], url)
      break
    case 'link':
      writeLink(token, inline)
      break
    case 'image':
      write(`image: ${token.text}${token.text === '' ? '' : ' '}(${token.href})`, roles, url)
      break
    case 'br':
      write('\n', [], null)
      break
    case 'checkbox':
      break
    case 'paragraph':
    case 'heading':
      writeTokens(token.tokens, inline)
      break
    case 'escape':
      write(token.text, roles, url)
      break
    // Shown as it is written.
    default:
      write(token.raw, roles, url)
  }
}

function writeLink({ tokens, text, href }: Tokens.Link, inline: Inline): void {
  const { theme, roles, write } = inline
  writeTokens(tokens, { ...inline, roles: [...roles, 'link'], url: href })
  const isShown =
    theme.link('x', href) !== 'x' || href === text || href === `mailto:${text}` || href === `http://${text}`
  // The text of a link to a file is often the end of its path, which then says nothing new.
  const isPath = !/^[a-z][a-z+.-]+:/i.test(href) && href.endsWith(text)
  if (!isShown && !isPath) write(` (${href})`, [...roles, 'dim'], null)
}

/** Whether roles are visible on this terminal; if not, the Markdown signs stay. */
function hasColours(theme: Theme): boolean {
  return theme.paint('strong', 'x') !== 'x'
}

const COLUMN_GAP = 2
// A column that is narrower than this and than its text breaks most words.
const NARROWEST_COLUMN = 8

/**
 * A table fitted to the width, with long cells wrapped. Where the columns would be too narrow to read, and for a screen
 * reader, each row is a list of `heading: cell`.
 */
function tableLines(table: Tokens.Table, { columns, theme }: LineOptions): string[] {
  const header = table.header.map(cell => cellText(cell, theme))
  const rows = table.rows.map(row => row.map(cell => cellText(cell, theme)))
  const widths = fittedWidths([header, ...rows], columns)
  if (widths === null || !theme.symbols) return rowsAsLists(header, rows, columns)
  const draw = (cells: readonly string[]) => tableRowLines(cells, widths, table.align)
  const rule = widths.map(width => '─'.repeat(width)).join(' '.repeat(COLUMN_GAP))
  return [...draw(header), theme.paint('dim', rule), ...rows.flatMap(draw)]
}

function cellText({ tokens, header }: Tokens.TableCell, theme: Theme): string {
  return inlineLines(tokens, theme, header ? ['strong'] : []).join(' ')
}

/** The width of each column; null if there is not enough room for all of them. */
function fittedWidths(rows: readonly (readonly string[])[], columns: number): number[] | null {
  const count = rows[0]?.length ?? 0
  const room = columns - COLUMN_GAP * (count - 1)
  if (room < count * 3) return null
  const wanted = Array.from({ length: count }, (_, i) => Math.max(1, ...rows.map(row => widthOf(row[i] ?? ''))))
  let limit = Math.max(...wanted)
  while (wanted.reduce((sum, width) => sum + Math.min(width, limit), 0) > room) limit--
  return limit < Math.min(NARROWEST_COLUMN, ...[Math.max(...wanted)])
    ? null
    : wanted.map(width => Math.min(width, limit))
}

function tableRowLines(cells: readonly string[], widths: readonly number[], align: Tokens.Table['align']): string[] {
  const wrapped = widths.map((width, i) => wrapLine(cells[i] ?? '', width))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, row) =>
    widths
      .map((width, i) => aligned(wrapped[i]?.[row] ?? '', width, align[i] ?? null))
      .join(' '.repeat(COLUMN_GAP))
      .trimEnd(),
  )
}

function aligned(text: string, width: number, align: Tokens.Table['align'][number]): string {
  const room = Math.max(0, width - widthOf(text))
  if (align === 'right') return ' '.repeat(room) + text
  return padLine(align === 'center' ? ' '.repeat(Math.floor(room / 2)) + text : text, width)
}

function rowsAsLists(header: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  return rows.flatMap((row, i) => [
    ...(i > 0 ? [''] : []),
    ...row.flatMap((cell, column) => wrapLine(`${header[column] ?? ''}: ${cell}`, columns)),
  ])
}
