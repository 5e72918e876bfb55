import { diffWordsWithSpace } from 'diff'
import type { DiffLine } from '../../../project/diff/comparison.ts'
import { cutLine, padLine, wrapLine } from '../../../tell/words/cells.ts'
import { formatNumber } from '../../../tell/words/numbers.ts'
import { safeText } from '../../../tell/words/safe-text.ts'
import { underPrefix } from '../blocks/layout.ts'
import { highlightCode } from '../blocks/markdown.ts'
import { markRanges, type PagerSource } from '../pager/source.ts'
import type { Role, Theme } from '../terminal/theme.ts'

/**
 * The diff of a file for a pager: one below the other, or side by side. Syntax and changed words are highlighted where they
 * are shown. A line of more than 2,000 characters is cut, and says by how much.
 */
export class DiffLines implements PagerSource {
  readonly isWhole = true
  readonly #lines: readonly DiffLine[]
  readonly #language: string
  readonly #theme: Theme
  readonly #digits: number
  /** By line: the line that it has replaced, or that replaces it; -1 without one. */
  readonly #partners: Int32Array
  readonly #painted = new Map<number, string[]>()
  /** Side by side: of each row its left and its right line, -1 for none. */
  #pairs: Int32Array | null = null

  /** @param path names the language by its ending */
  constructor(lines: readonly DiffLine[], path: string, theme: Theme) {
    this.#lines = lines
    this.#language = languageOf(path)
    this.#theme = theme
    const highest = lines.reduce((most, { before, after }) => Math.max(most, before ?? 0, after ?? 0), 0)
    this.#digits = String(highest).length
    this.#partners = partnersOf(lines)
  }

  get count(): number {
    return this.#pairs === null ? this.#lines.length : this.#pairs.length / 2
  }

  get isSideBySide(): boolean {
    return this.#pairs !== null
  }

  /** The indices of the headings of changes, in the present arrangement. */
  get changes(): number[] {
    const found: number[] = []
    for (let index = 0; index < this.count; index++)
      if (this.#lines[this.lineAt(index)]?.kind === 'hunk') found.push(index)
    return found
  }

  /** Arranges the lines side by side, or one below the other. */
  arrange(isSideBySide: boolean): void {
    if (isSideBySide !== this.isSideBySide) this.#pairs = isSideBySide ? pairsOf(this.#lines, this.#partners) : null
  }

  /** The line of the diff at an index of the present arrangement. */
  lineAt(index: number): number {
    if (this.#pairs === null) return index
    const left = this.#pairs[2 * index] ?? -1
    return left === -1 ? (this.#pairs[2 * index + 1] ?? -1) : left
  }

  /** The index at which a line of the diff is shown. */
  indexOf(line: number): number {
    if (this.#pairs === null) return line
    return Math.max(0, Math.floor(this.#pairs.indexOf(line) / 2))
  }

  line(index: number): string {
    if (this.#pairs === null) return this.#text(index)
    const [left, right] = this.#pair(index)
    return left === right || right === -1
      ? this.#text(left)
      : `${left === -1 ? '' : this.#text(left)} ${this.#text(right)}`
  }

  onGrow(): () => void {
    return () => {}
  }

  rows(index: number, columns: number): string[] {
    const [left, right] = this.#pair(index)
    const line = this.#lines[Math.max(left, right)]
    if (line === undefined) return ['']
    if (line.kind === 'hunk') return [this.#theme.paint('hunk', cutLine(this.#text(Math.max(left, right)), columns))]
    if (line.kind === 'note') return wrapLine(this.#theme.paint('dim', this.#text(Math.max(left, right))), columns)
    if (this.#pairs === null)
      return this.#cell(index, columns, columns < ONE_NUMBER ? 'none' : columns < TWO_NUMBERS ? 'one' : 'both')
    const half = Math.floor((columns - BETWEEN.length) / 2)
    const [before, after] = [left, right].map((at, side) =>
      at === -1 ? [] : this.#cell(at, half, side === 0 ? 'before' : 'after'),
    )
    const bar = this.#theme.paint('dim', this.#theme.symbols ? BETWEEN : ' | ')
    return Array.from(
      { length: Math.max(before?.length ?? 0, after?.length ?? 0) },
      (_, row) => `${padLine(before?.[row] ?? '', half)}${bar}${after?.[row] ?? ''}`,
    )
  }

  #pair(index: number): [left: number, right: number] {
    return this.#pairs === null ? [index, index] : [this.#pairs[2 * index] ?? -1, this.#pairs[2 * index + 1] ?? -1]
  }

  /** A line behind its numbers and its sign. */
  #cell(at: number, columns: number, numbers: 'none' | 'one' | 'both' | 'before' | 'after'): string[] {
    const { kind, before, after } = this.#lines[at] ?? { kind: 'same', before: null, after: null }
    const { sign, role } = SIGNS[kind] ?? { sign: ' ', role: 'dim' }
    const written = (number: number | null) => String(number ?? '').padStart(this.#digits)
    const shown = {
      none: '',
      one: `${written(after ?? before)} `,
      both: `${written(before)} ${written(after)} `,
      before: `${written(before)} `,
      after: `${written(after)} `,
    }[numbers]
    const first = this.#theme.paint(role, `${shown}${sign} `)
    return underPrefix({ first, columns }, inner => wrapLine(this.#code(at), inner))
  }

  /** A line of the file with its syntax and its changed words. */
  #code(at: number): string {
    const block = Math.floor(at / BLOCK)
    let painted = this.#painted.get(block)
    if (painted === undefined) {
      if (this.#painted.size >= MOST_BLOCKS) this.#painted.clear()
      painted = this.#paint(block * BLOCK)
      this.#painted.set(block, painted)
    }
    return painted[at - block * BLOCK] ?? ''
  }

  /** The lines of a block from `from` on: those of the file before and those of the file after are code of their own. */
  #paint(from: number): string[] {
    const to = Math.min(this.#lines.length, from + BLOCK)
    const painted: string[] = []
    for (const other of ['added', 'removed'] as const) {
      const some: number[] = []
      for (let at = from; at < to; at++) if (this.#lines[at]?.kind !== other && isOfFile(this.#lines[at])) some.push(at)
      const texts = some.map(at => this.#text(at))
      const code = texts.map(text => (text.length > LONGEST_PAINTED ? '' : text)).join('\n')
      const lines = highlightCode(code, this.#language, this.#theme, 'plain')
      for (const [i, at] of some.entries()) painted[at - from] = lines[i] || (texts[i] ?? '')
    }
    if (this.#theme.paint('selected', 'x') !== 'x')
      for (let at = from; at < to; at++)
        painted[at - from] = markRanges(painted[at - from] ?? '', this.#changedWords(at))
    return painted
  }

  /** Where the words are that the line's partner has otherwise, as edges of ranges. */
  #changedWords(at: number): readonly number[] {
    const partner = this.#partners[at] ?? -1
    if (partner === -1) return []
    const [removed, added] = [Math.min(at, partner), Math.max(at, partner)]
    return wordEdges(this.#text(removed), this.#text(added), at === removed ? 'removed' : 'added')
  }

  /** The text of a line, safe to show. */
  #text(at: number): string {
    const text = this.#lines[at]?.text ?? ''
    if (text.length <= MOST_CHARS) return safeText(text)
    const left = formatNumber(text.length - MOST_CHARS)
    return `${safeText(text.slice(0, MOST_CHARS))} … ${left} more characters`
  }
}

const SIGNS: Readonly<Partial<Record<DiffLine['kind'], { sign: string; role: Role }>>> = {
  added: { sign: '+', role: 'added' },
  removed: { sign: '-', role: 'removed' },
}

/** How many lines are painted at once, and how many blocks of them are kept. */
const BLOCK = 64
const MOST_BLOCKS = 64
const MOST_CHARS = 2_000
const LONGEST_PAINTED = 1_000
const BETWEEN = ' │ '
/** From how many columns on a line has a number, and two. */
const ONE_NUMBER = 30
const TWO_NUMBERS = 60

/** The name of a file's language as the grammars know it: its ending, or the whole name. */
function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  return name.slice(name.lastIndexOf('.') + 1)
}

function isOfFile(line: DiffLine | undefined): boolean {
  return line !== undefined && line.kind !== 'hunk' && line.kind !== 'note'
}

/** The lines of each run of changed lines, the first removed one with the first added one, and so on. */
function partnersOf(lines: readonly DiffLine[]): Int32Array {
  const partners = new Int32Array(lines.length).fill(-1)
  for (const { removed, added } of runsOf(lines)) {
    for (let i = 0; i < Math.min(removed.length, added.length); i++) {
      const [before = -1, after = -1] = [removed[i], added[i]]
      partners[before] = after
      partners[after] = before
    }
  }
  return partners
}

interface Run {
  /** A line that is not changed, -1 behind the last one. */
  end: number
  /** The changed lines before it, and remarks among them. */
  removed: number[]
  added: number[]
  notes: number[]
}

function* runsOf(lines: readonly DiffLine[]): Generator<Run> {
  let run: Omit<Run, 'end'> = { removed: [], added: [], notes: [] }
  for (const [at, { kind }] of lines.entries()) {
    if (kind === 'removed') run.removed.push(at)
    else if (kind === 'added') run.added.push(at)
    else if (kind === 'note') run.notes.push(at)
    else {
      yield { ...run, end: at }
      run = { removed: [], added: [], notes: [] }
    }
  }
  yield { ...run, end: -1 }
}

function pairsOf(lines: readonly DiffLine[], partners: Int32Array): Int32Array {
  const pairs: number[] = []
  for (const { removed, added, notes, end } of runsOf(lines)) {
    for (const at of removed) pairs.push(at, partners[at] ?? -1)
    for (const at of added) if (partners[at] === -1) pairs.push(-1, at)
    for (const at of notes) pairs.push(at, at)
    if (end !== -1) pairs.push(end, end)
  }
  return Int32Array.from(pairs)
}

// Longer lines, and those that differ in more, would take too long.
const LONGEST_COMPARED = 500
const MOST_EDITS = 60

/** The edges of what differs in one of two lines; none where they have little in common. */
function wordEdges(before: string, after: string, side: 'removed' | 'added'): number[] {
  if (before.length > LONGEST_COMPARED || after.length > LONGEST_COMPARED) return []
  const parts = diffWordsWithSpace(before, after, { maxEditLength: MOST_EDITS }) ?? []
  const common = parts.reduce((sum, part) => sum + (part.added || part.removed ? 0 : part.value.trim().length), 0)
  if (3 * common < Math.max(before.trim().length, after.trim().length)) return []
  const edges: number[] = []
  let at = 0
  for (const part of parts) {
    if (side === 'removed' ? part.added : part.removed) continue
    if (part.added || part.removed) edges.push(at, at + part.value.length)
    at += part.value.length
  }
  return edges
}
