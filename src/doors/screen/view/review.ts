import { cutLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { formatNumber } from '../../../tell/words/numbers.ts'
import { oneLine } from '../../../tell/words/safe-text.ts'
import type { Key } from '../composer/keys.ts'
import { Pager } from '../pager/pager.ts'
import type { DiffLines } from './diff-lines.ts'
import {
  type FullView,
  fittingHints,
  type Pointer,
  type Stage,
  type ViewFrame,
  type ViewNotice,
  viewChord,
} from './full-view.ts'
import { keysOfView } from './key-overlay.ts'
import { ListView } from './list.ts'
import { nameOf, Review, type ReviewedFile, type ReviewOptions } from './reviewed-files.ts'

/** What changed between two states of the files: a list of the files with their counts, and from there the diff of each. */
export function reviewOf(options: ReviewOptions): FullView {
  const { theme, keymap } = options
  const review = new Review(options)
  const list: ListView<ReviewedFile> = new ListView({
    title: () => review.title,
    noun: 'file',
    theme,
    keymap,
    rows: () => review.files,
    columns: [
      { head: 'File', cell: file => nameOf(file, theme) },
      {
        head: '',
        cell: file => (review.protectedPaths.has(file.path) ? 'protected' : ''),
        most: 9,
        role: () => 'warning',
        from: 40,
      },
      { head: '', cell: kindOf, most: 8, role: () => 'dim', from: 50 },
      {
        head: '',
        cell: ({ added }) => (added ? `+${formatNumber(added)}` : ''),
        most: 9,
        align: 'right',
        role: () => 'added',
        from: 30,
      },
      {
        head: '',
        cell: ({ removed }) => (removed ? `−${formatNumber(removed)}` : ''),
        most: 9,
        align: 'right',
        role: () => 'removed',
        from: 30,
      },
    ],
    textOf: file => (file.from === null ? file.path : `${file.path} ${file.from}`),
    idOf: file => file.path,
    get empty() {
      return review.emptyWords
    },
    open: (file, stage) => stage.open(new FileDiff(review, list, file)),
    also: 'review',
    actions: {
      edit_file: (file, stage) => review.edit(file, stage, notice => list.say(notice)),
      put_back: (file, stage) => review.askToPutBack(file, stage, notice => list.say(notice)),
      undo_put_back: (_, stage) => review.undo(stage, notice => list.say(notice)),
    },
    search: 'asked',
    hints: () => [
      `${keymap.label('open')} its diff`,
      ...review.hints(),
      `${keymap.label('find')} find`,
      `${keymap.label('close')} back`,
    ],
    follow: changed => review.follow(changed),
  })
  return list
}

/** The width from which on two files stand side by side. */
const SIDE_BY_SIDE = 140

/** The diff of one file after the other. */
class FileDiff implements FullView {
  readonly #review: Review
  readonly #list: Pick<ListView<ReviewedFile>, 'shown' | 'choose'>
  #file: ReviewedFile
  #index: number
  #diff: DiffLines | null = null
  #pager: Pager | null = null
  #changes: readonly number[] = []
  /** The change that was gone to last; null once another key has moved. */
  #change: number | null = null
  /** Where the diff opens that is being read. */
  #opensAt: 'start' | 'last change' | number = 'start'
  #wantsSides = true
  #columns = 80

  /** @param list whose rows are gone through; each that is gone to is chosen there */
  constructor(review: Review, list: Pick<ListView<ReviewedFile>, 'shown' | 'choose'>, file: ReviewedFile) {
    this.#review = review
    this.#list = list
    this.#file = file
    this.#index = list.shown.indexOf(file)
  }

  frame({ columns, rows }: { columns: number; rows: number }): ViewFrame {
    this.#columns = columns
    const { theme } = this.#review.options
    const pager = this.#shown(columns)
    const head = rows >= 4 ? [this.#heading(columns)] : []
    if (pager !== null) {
      const { lines, caret } = pager.frame({ columns, rows: rows - head.length })
      return { lines: [...head, ...lines], caret: caret === null ? null : { x: caret.x, y: caret.y + head.length } }
    }
    const isThere = this.#list.shown.some(({ path }) => path === this.#file.path)
    const words = isThere ? 'Loading changes …' : `No change since ${this.#review.from}.`
    const body = [...wrapLine(theme.paint('dim', words), columns), ...Array<string>(rows).fill('')]
    const last = this.#notice ?? { text: this.#keysIn(columns), role: 'dim' as const }
    const line = theme.paint(last.role, cutLine(oneLine(last.text, 300), columns))
    return { lines: [...head, ...body.slice(0, Math.max(0, rows - head.length - 1)), line].slice(0, rows), caret: null }
  }

  press(key: Key, stage: Stage): void {
    this.#notice = null
    this.#pager?.say(null)
    if (this.#pager?.isTyping) {
      this.#pager.press(key, stage)
      return
    }
    const { keymap } = this.#review.options
    const tell = (notice: ViewNotice) => this.#say(notice)
    const action = keymap.inView('review', viewChord(key))
    switch (action) {
      case 'next_file':
      case 'previous_file':
        this.#goToFile(action === 'next_file' ? 1 : -1, 'start')
        break
      case 'next_hunk':
      case 'previous_hunk':
        this.#goToChange(action === 'next_hunk' ? 1 : -1)
        break
      case 'side_by_side':
        this.#toggleSides()
        break
      case 'edit_file':
        this.#answer(this.#review.edit(this.#file, stage, tell))
        break
      case 'put_back':
        this.#answer(this.#review.askToPutBack(this.#file, stage, tell))
        break
      case 'undo_put_back':
        this.#answer(this.#review.undo(stage, tell))
        break
      case 'close':
        stage.close()
        break
      case 'keys_here':
        stage.open(keysOfView('review', this.#review.options))
        break
      default:
        this.#change = null
        this.#pager?.press(key, stage)
    }
  }

  paste(text: string): void {
    this.#pager?.paste(text)
  }

  point(pointer: Pointer): void {
    this.#change = null
    this.#pager?.point(pointer)
  }

  workOn(): boolean {
    return this.#pager?.workOn() ?? false
  }

  /** A notice where no pager shows it. */
  #notice: ViewNotice | null = null

  #say(notice: ViewNotice): void {
    this.#notice = notice
    this.#pager?.say(oneLine(notice.text, 300))
  }

  #answer(said: string | null): void {
    if (said !== null) this.#say({ text: said, role: 'warning' })
  }

  /** The pager of the file, arranged for the width; null while there is nothing to page through. */
  #shown(columns: number): Pager | null {
    const files = this.#list.shown
    const at = files.findIndex(({ path }) => path === this.#file.path)
    const file = files[at]
    const diff = file === undefined ? null : this.#review.diffOf(file)
    if (file !== undefined) [this.#file, this.#index] = [file, at]
    if (diff !== this.#diff) this.#take(diff)
    if (diff === null || this.#pager === null) return null
    const sides = this.#wantsSides && columns >= SIDE_BY_SIDE
    if (sides !== diff.isSideBySide || this.#changes.length === 0) {
      const line = diff.lineAt(this.#pager.top)
      diff.arrange(sides)
      this.#changes = diff.changes
      this.#pager.redraw()
      if (line > 0) this.#pager.show(diff.indexOf(line))
    }
    if (this.#opensAt === 'last change') this.#showChange(this.#changes.length - 1)
    else if (this.#opensAt !== 'start') this.#pager.show(this.#opensAt)
    this.#opensAt = 'start'
    return this.#pager
  }

  #take(diff: DiffLines | null): void {
    // The same file is read anew: it stays where it was.
    if (this.#pager !== null && this.#opensAt === 'start') this.#opensAt = this.#pager.top
    const { theme, keymap } = this.#review.options
    this.#diff = diff
    this.#changes = []
    this.#change = null
    this.#pager =
      diff === null
        ? null
        : new Pager({
            title: () => this.#position(),
            source: diff,
            theme,
            keymap,
            at: 'start',
            hints: () => this.#hints(),
          })
    if (this.#notice !== null) this.#pager?.say(oneLine(this.#notice.text, 300))
  }

  #goToFile(step: 1 | -1, opensAt: 'start' | 'last change'): void {
    const files = this.#list.shown
    const isThere = files[this.#index]?.path === this.#file.path
    // Where the file has gone from the list, the next one stands in its place.
    const file = files[this.#index + (step === 1 && !isThere ? 0 : step)]
    if (file === undefined) {
      this.#answer(step === 1 ? 'This is the last file.' : 'This is the first file.')
      return
    }
    this.#pager = null
    this.#diff = null
    this.#opensAt = opensAt
    this.#file = file
    this.#index = files.indexOf(file)
    this.#list.choose(file.path)
  }

  #goToChange(step: 1 | -1): void {
    const top = this.#pager?.top ?? 0
    const behind = this.#changes.findIndex(index => index > top)
    const last = behind === -1 ? this.#changes.length - 1 : behind - 1
    const isWithin = this.#change === null && step === -1 && (this.#changes[last] ?? top) < top
    const to = this.#change === null ? last + (isWithin ? 0 : step) : this.#change + step
    if (to >= 0 && to < this.#changes.length) this.#showChange(to)
    else this.#goToFile(step, step === 1 ? 'start' : 'last change')
  }

  #showChange(to: number): void {
    const index = this.#changes[to]
    if (index === undefined) return
    this.#change = to
    this.#pager?.show(index)
  }

  #toggleSides(): void {
    if (this.#columns < SIDE_BY_SIDE) {
      this.#answer(`Side by side needs ${SIDE_BY_SIDE} columns.`)
      return
    }
    this.#wantsSides = !this.#wantsSides
  }

  #heading(columns: number): string {
    const { theme } = this.#review.options
    const { added, removed, path } = this.#file
    const counts =
      added === null
        ? ''
        : `  ${theme.paint('added', `+${formatNumber(added)}`)} ${theme.paint('removed', `−${formatNumber(removed ?? 0)}`)}`
    const mark = this.#review.protectedPaths.has(path) ? theme.paint('warning', '  protected') : ''
    const name = nameOf(this.#file, theme)
    const room = columns - widthOf(counts) - widthOf(mark)
    return cutLine(theme.paint('strong', room < LEAST_NAME ? name : endOf(name, room)) + counts + mark, columns)
  }

  #position(): string {
    const changes = this.#changes.length
    const all = changes === 1 ? '1 change' : `${formatNumber(changes)} changes`
    const change = this.#change === null ? all : `change ${this.#change + 1} of ${formatNumber(changes)}`
    return `file ${formatNumber(this.#index + 1)} of ${formatNumber(this.#list.shown.length)} · ${change}`
  }

  #keysIn(columns: number): string {
    const wayOut = this.#review.options.keymap.label('close')
    return fittingHints(this.#hints(), { columns, wayOut, between: '  ' }).join('  ')
  }

  #hints(): string[] {
    const { keymap } = this.#review.options
    const both = (next: 'next_hunk' | 'next_file', before: 'previous_hunk' | 'previous_file') =>
      `${keymap.label(next)}/${keymap.label(before)}`
    return [
      `${both('next_hunk', 'previous_hunk')} change`,
      `${both('next_file', 'previous_file')} file`,
      ...this.#review.hints(),
      ...(this.#columns < SIDE_BY_SIDE ? [] : [`${keymap.label('side_by_side')} side by side`]),
      `${keymap.label('close')} back`,
    ]
  }
}

const LEAST_NAME = 8

/** The end of a name, as it is the end that tells files apart. */
function endOf(name: string, columns: number): string {
  let shown = name
  while (widthOf(shown) > columns - 1 && shown !== '')
    shown = shown.slice(Math.max(1, Math.floor((shown.length - columns) / 2)))
  return shown === name ? name : `…${shown.toWellFormed()}`
}

function kindOf({ how, added, modeBefore, modeAfter, removed }: ReviewedFile): string {
  if (how === 'added') return 'new'
  if (how !== 'changed') return how
  if (added === null) return 'not text'
  if (modeBefore.slice(0, 3) !== modeAfter.slice(0, 3)) return 'link'
  return modeBefore !== modeAfter && added + (removed ?? 0) === 0 ? 'mode' : ''
}
