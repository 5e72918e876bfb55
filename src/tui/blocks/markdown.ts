import { Lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { unreachable } from '../../base/errors.ts'
import { clipEnd } from '../../base/text.ts'
import { cutLine, padLine, safeText, widthOf, wrapLine } from '../../words/cells.ts'
import type { Role, Theme } from '../terminal/theme.ts'
import { partsOf, underPrefix } from './layout.ts'

/** Where Markdown is drawn. */
export interface MarkdownPlace {
  columns: number
  theme: Theme
}

const MOST_CHARACTERS = 72 * 1024

/**
 * A Markdown text from outside as lines for the terminal; of more than 72 Ki characters the beginning.
 * @param first whether it is the beginning of a message; else a blank line parts it from what is before, so that parts
 * cut off with `finishedPart` look, one after the other, as the whole does
 */
export function markdownLines(text: string, { first, ...place }: MarkdownPlace & { first: boolean }): string[] {
  const blocks = partsOf(safeText(clipEnd(text, MOST_CHARACTERS))).flatMap(lexMarkdown)
  const lines = blocksLines(blocks, place, true)
  return first || lines.length === 0 ? lines : ['', ...lines]
}

/** Blocks one below the other, with a blank line between them if they are `loose`. */
function blocksLines(blocks: readonly MarkedToken[], place: MarkdownPlace, loose: boolean): string[] {
  const lines: string[] = []
  for (const block of blocks) {
    const drawn = blockLines(block, place)
    if (loose && lines.length > 0 && drawn.length > 0) lines.push('')
    for (const line of drawn) lines.push(line)
  }
  return lines
}

function blockLines(block: MarkedToken, place: MarkdownPlace): string[] {
  const { columns, theme } = place
  switch (block.type) {
    case 'paragraph':
    case 'text':
      return wrapAll(inlineLines(block.tokens ?? [block], theme), columns)
    case 'heading':
      return headingLines(block, place)
    case 'code':
      return codeLines(block.text, languageOf(block.lang), place)
    case 'list':
      return listLines(block, place)
    case 'blockquote':
      return quoteLines(block, place)
    case 'table':
      return tableLines(block, place)
    case 'hr':
      return [theme.paint('dim', theme.symbols ? '─'.repeat(columns) : cutLine('---', columns))]
    case 'html':
      return wrapAll(block.text.trimEnd().split('\n'), columns)
    // What links lead to, and what is between blocks; a list has drawn its boxes itself.
    case 'def':
    case 'space':
    case 'checkbox':
      return []
    // Of text, and never on their own.
    case 'br':
    case 'codespan':
    case 'del':
    case 'em':
    case 'escape':
    case 'image':
    case 'link':
    case 'list_item':
    case 'strong':
      return wrapAll(inlineLines([block], theme), columns)
    default:
      return unreachable(block)
  }
}

function wrapAll(lines: readonly string[], columns: number): string[] {
  return lines.flatMap(line => wrapLine(line, columns))
}

function headingLines({ depth, tokens }: Tokens.Heading, { columns, theme }: MarkdownPlace): string[] {
  const signs = hasColours(theme) ? '' : `${'#'.repeat(depth)} `
  const [first = '', ...rest] = inlineLines(tokens, theme, [depth <= 2 ? 'heading' : 'strong'])
  return wrapAll([signs + first, ...rest], columns)
}

function quoteLines({ tokens }: Tokens.Blockquote, { columns, theme }: MarkdownPlace): string[] {
  const bar = theme.symbols ? theme.paint('quote', '│ ') : '> '
  return underPrefix({ first: bar, repeats: true, columns }, inner =>
    blocksLines(closed(tokens), { theme, columns: inner }, true),
  )
}

function listLines(list: Tokens.List, { columns, theme }: MarkdownPlace): string[] {
  const start = list.start === '' ? 1 : list.start
  const width = list.ordered ? `${start + list.items.length - 1}. `.length : 0
  const items = list.items.map((item, i) => {
    const marker = list.ordered ? `${start + i}. `.padStart(width) : bulletOf(item, theme)
    const box = list.ordered && item.task ? bulletOf(item, theme) : ''
    const prefix = { first: theme.paint('accent', marker) + box, columns }
    return underPrefix(prefix, inner => {
      const lines = blocksLines(closed(item.tokens), { theme, columns: inner }, item.loose)
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

/** What a code block says that it is: the first word behind its fence. */
function languageOf(info: string | undefined): string {
  return (info ?? '').trim().split(/[\s,{:]/, 1)[0] ?? ''
}

const LABEL_CELLS = 30

/** A code block: its language, then its lines, moved in, painted by the rules of that language. The code is safe. */
function codeLines(code: string, language: string, { columns, theme }: { columns: number; theme: Theme }): string[] {
  const label = theme.symbols ? language : `code ${language}`.trimEnd()
  return underPrefix({ first: '  ', columns }, inner => [
    ...(label === '' ? [] : wrapLine(theme.paint('dim', cutLine(label, LABEL_CELLS)), inner)),
    ...highlightCode(code.replace(/\n+$/, ''), language, theme).flatMap(line => wrapLine(line, inner)),
  ])
}

type Lowlight = ReturnType<typeof import('lowlight').createLowlight>
type Nodes = ReturnType<Lowlight['highlight']>['children']

let lowlight: Lowlight | null = null

/**
 * Reads the grammars of some forty languages, which takes a moment that nothing should wait for; until it resolves,
 * code is shown in one colour.
 */
export async function loadGrammars(): Promise<void> {
  const { createLowlight, common } = await import('lowlight')
  lowlight ??= createLowlight(common)
}

// A grammar reads a line of any length with patterns that were not made for it.
const MOST_CHARACTERS_OF_HIGHLIGHT_CODE = 16 * 1024
const LONGEST_LINE = 1000

/** Lines of code, each painted in itself; in the code's own colour if its language is not known. */
export function highlightCode(code: string, language: string, theme: Theme): string[] {
  const lines = code.split('\n')
  const isReadable =
    code.length <= MOST_CHARACTERS_OF_HIGHLIGHT_CODE && lines.every(line => line.length <= LONGEST_LINE)
  if (!isReadable || !lowlight?.registered(language)) return lines.map(line => theme.paint('code', line))
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
    if (node.type === 'element') paintNodes(node.children as Nodes, roleOf(node.properties.className) ?? role, paint)
  }
}

const ROLES: Readonly<Record<string, Role>> = {
  keyword: 'keyword',
  'selector-tag': 'keyword',
  tag: 'keyword',
  built_in: 'type',
  type: 'type',
  'selector-class': 'type',
  'selector-id': 'type',
  literal: 'number',
  number: 'number',
  string: 'string',
  regexp: 'string',
  symbol: 'string',
  comment: 'comment',
  meta: 'comment',
  doctag: 'comment',
  title: 'name',
  name: 'name',
  attr: 'name',
  attribute: 'name',
  section: 'heading',
  addition: 'added',
  deletion: 'removed',
  emphasis: 'emphasis',
  strong: 'strong',
  subst: 'plain',
}

/** The role for a node's classes, of which the first is its kind: `hljs-title function_`. */
function roleOf(classes: unknown): Role | undefined {
  const [first] = Array.isArray(classes) ? classes : []
  return ROLES[String(first).replace('hljs-', '')]
}

/**
 * Text of a paragraph, heading or cell, painted; a line for each of its lines. A link that the terminal does not show
 * as one has its address behind it.
 */
export function inlineLines(tokens: readonly Token[], theme: Theme, roles: readonly Role[] = []): string[] {
  const lines = ['']
  const write = (text: string, styles: readonly Role[], url: string | null) => {
    // The lexer has made characters of references such as `&#27;`, which the text was safe with.
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
  /** What the text leads to. */
  url: string | null
  write: (text: string, roles: readonly Role[], url: string | null) => void
}

function writeTokens(tokens: readonly Token[], inline: Inline): void {
  for (const token of closed(tokens)) writeToken(token, inline)
}

function writeToken(token: MarkedToken, inline: Inline): void {
  const { roles, url, write } = inline
  switch (token.type) {
    case 'text':
      if (token.tokens) writeTokens(token.tokens, inline)
      else write(token.escaped ? token.text : readable(token.text), roles, url)
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
    case 'del':
    case 'html':
    case 'def':
    case 'blockquote':
    case 'code':
    case 'hr':
    case 'list':
    case 'list_item':
    case 'space':
    case 'table':
      write(token.raw, roles, url)
      break
    default:
      unreachable(token)
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

/** Whether roles show as anything, or the signs that they were written with have to stay. */
function hasColours(theme: Theme): boolean {
  return theme.paint('strong', 'x') !== 'x'
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

function readable(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name) => ENTITIES[name] ?? all) : text
}

// Deeper than any text that a person would read; the lexer calls itself for each level.
const TOO_DEEP = /^ *(?:(?:>|(?:[-*+]|\d{1,9}[.)])[ ]) *){20}|^ {60,}(?:[-*+>]|\d{1,9}[.)] )/m
// The time for a paragraph grows with the square of these, quickest for the underscore.
const MOST_DELIMITERS = 400
const MOST_UNDERSCORES = 100

/** The blocks of a Markdown text. One that was made to keep a reader busy, or to break it, is a plain text. */
function lexMarkdown(text: string): MarkedToken[] {
  if (TOO_DEEP.test(text)) return [plainText(text)]
  try {
    const lexer = new Lexer({ gfm: true })
    const blocks = lexer.blockTokens(text, [])
    for (const { src, tokens } of lexer.inlineQueue) {
      if (isTooCostly(src)) tokens.push(plainText(src))
      else lexer.inlineTokens(src, tokens)
    }
    return closed(blocks)
  } catch {
    // The lexer refuses what it does not get through; the text is still there to be read.
    return [plainText(text)]
  }
}

/** The inline Markdown of a text whose blocks mean nothing. One that was made to keep a reader busy is a plain text. */
export function lexInline(text: string): MarkedToken[] {
  if (isTooCostly(text)) return [plainText(text)]
  try {
    return closed(new Lexer({ gfm: true }).inlineTokens(text, []))
  } catch {
    return [plainText(text)]
  }
}

/** The lexer's tokens as the closed union that they are as long as it has no extensions. */
function closed(tokens: readonly Token[]): MarkedToken[] {
  return tokens as MarkedToken[]
}

function isTooCostly(text: string): boolean {
  const count = (what: RegExp) => text.match(what)?.length ?? 0
  return text.length > MOST_UNDERSCORES && (count(/[*_~[\]`<!]/g) > MOST_DELIMITERS || count(/_/g) > MOST_UNDERSCORES)
}

function plainText(text: string): MarkedToken {
  return { type: 'text', raw: text, text, escaped: true }
}

const GAP = 2
// A column that has to be narrower than this and than its text breaks most words.
const NARROWEST_COLUMN = 8

/**
 * A table fitted to the width: long cells are wrapped. Where that would leave columns too narrow to read, or for a
 * screen reader, each row is a list of `heading: cell`.
 */
function tableLines(table: Tokens.Table, { columns, theme }: { columns: number; theme: Theme }): string[] {
  const header = table.header.map(cell => painted(cell, theme))
  const rows = table.rows.map(row => row.map(cell => painted(cell, theme)))
  const widths = fittedWidths([header, ...rows], columns)
  if (widths === null || !theme.symbols) return rowsAsLists(header, rows, columns)
  const draw = (cells: readonly string[]) => rowLines(cells, widths, table.align)
  const rule = widths.map(width => '─'.repeat(width)).join(' '.repeat(GAP))
  return [...draw(header), theme.paint('dim', rule), ...rows.flatMap(draw)]
}

function painted({ tokens, header }: Tokens.TableCell, theme: Theme): string {
  return inlineLines(tokens, theme, header ? ['strong'] : []).join(' ')
}

/** The width of each column; null if they cannot all be wide enough. */
function fittedWidths(rows: readonly (readonly string[])[], columns: number): number[] | null {
  const count = rows[0]?.length ?? 0
  const room = columns - GAP * (count - 1)
  if (room < count * 3) return null
  const wanted = Array.from({ length: count }, (_, i) => Math.max(1, ...rows.map(row => widthOf(row[i] ?? ''))))
  let limit = Math.max(...wanted)
  while (wanted.reduce((sum, width) => sum + Math.min(width, limit), 0) > room) limit--
  return limit < Math.min(NARROWEST_COLUMN, ...[Math.max(...wanted)])
    ? null
    : wanted.map(width => Math.min(width, limit))
}

function rowLines(cells: readonly string[], widths: readonly number[], align: Tokens.Table['align']): string[] {
  const wrapped = widths.map((width, i) => wrapLine(cells[i] ?? '', width))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, row) =>
    widths
      .map((width, i) => aligned(wrapped[i]?.[row] ?? '', width, align[i] ?? null))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
}

function aligned(text: string, width: number, align: Tokens.Table['align'][number]): string {
  const room = Math.max(0, width - widthOf(text))
  switch (align) {
    case 'right':
      return ' '.repeat(room) + text
    case 'center':
      return padLine(' '.repeat(Math.floor(room / 2)) + text, width)
    default:
      return padLine(text, width)
  }
}

function rowsAsLists(header: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  return rows.flatMap((row, i) => [
    ...(i > 0 ? [''] : []),
    ...row.flatMap((cell, column) => wrapLine(`${header[column] ?? ''}: ${cell}`, columns)),
  ])
}
