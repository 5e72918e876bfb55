import { cutLine, widthOf, wrapLine } from '../../../tell/words/cells.ts'
import { oneLine, safeText } from '../../../tell/words/safe-text.ts'
import { markdownLines } from '../blocks/markdown.ts'
import type { Theme } from '../terminal/theme.ts'
import { EMPTY_BUFFER, expanded, paste, type TextBuffer } from './buffer.ts'
import { type Area, type DrawnField, optionMark, scrollWindow, textColumns, textLines } from './drawing.ts'
import { chordOf, directionOf, editKey, type Key, moveVertically } from './keys.ts'
import { isEmpty } from './text.ts'

/**
 * One of the answers to choose from. `confirms`: it ends or loses something, so a digit only selects it. `removes`: `d` and
 * Delete remove it from the list that it stands for.
 */
export interface PickerOption {
  readonly id: string
  readonly label: string
  readonly hint?: string
  readonly confirms?: true
  readonly removes?: true
}

/**
 * A question with its options. `markdown`: what it is about, scrolled where it is longer than its rows; `body`: what is
 * said below that; `freeText`: the label of the answer that is typed; left out where none may be; `freeTextAt`: its row
 * among the choices, from 0; left out: the last; `at`: the row that is selected at first; left out: 0.
 */
export interface PickerQuestion {
  readonly title: string
  readonly markdown?: string
  readonly body?: readonly string[]
  readonly options: readonly PickerOption[]
  readonly freeText?: string
  /** Called with each option that the choice moves to. */
  readonly onMove?: (id: string) => void
  readonly freeTextAt?: number
  readonly at?: number
}

/** The state of a question that is being answered. Immutable. */
export interface Picker {
  readonly question: PickerQuestion
  /** The index of the selected row: an option, or the free text. */
  readonly selected: number
  /** Whether keys go into the free text. */
  readonly writing: boolean
  readonly written: TextBuffer
  /** The rows of `markdown` that are scrolled out above. */
  readonly scrolled: number
}

/** The answer to a question; `closed`: by Esc. */
export type PickerResult =
  | { kind: 'chosen' | 'removed'; id: string }
  | { kind: 'text'; text: string }
  | { kind: 'closed' }

/** The prompt of the free text. */
const WRITING_PROMPT = '  › '

/** The state in which a question opens; without options it begins in the free text. */
export function openPicker(question: PickerQuestion): Picker {
  const writing = question.options.length === 0 && question.freeText !== undefined
  return { question, selected: question.at ?? 0, writing, written: EMPTY_BUFFER, scrolled: 0 }
}

/** A picker after a key, and the answer if the key gave one (else null). `area`: where it is drawn. */
export function pickerKey(picker: Picker, key: Key, area: Area): { picker: Picker; result: PickerResult | null } {
  const scrolled = scrolledBy(picker, key, area)
  if (scrolled !== null) return goOn({ ...picker, scrolled })
  return picker.writing ? writingKey(picker, key, area.columns) : choosingKey(picker, key, area.columns)
}

/** The rows above after a key that scrolls; null for any other key, and where nothing can be scrolled. */
function scrolledBy(picker: Picker, key: Key, area: Area): number | null {
  const { question, writing } = picker
  if (question.markdown === undefined) return null
  const { from, rows, most } = layOut(picker, area).text
  if (most === 0) return null
  // A row is seen again, where there are more than a few.
  const page = rows < 4 ? Math.max(1, rows) : rows - 1
  const chord = chordOf(key)
  // As in the pager; where an answer may be typed, only by the keys that give no text.
  const typed = writing || question.freeText !== undefined || chord !== '' ? '' : key.input
  if (chord === 'pagedown' || typed === ' ') return Math.min(most, from + page)
  if (chord === 'pageup' || typed === 'b') return Math.max(0, from - page)
  if (writing) return null
  if (chord === 'home') return 0
  return chord === 'end' ? most : null
}

/** A picker after a paste, which opens the free text if the question has one. */
export function pickerPaste(picker: Picker, text: string): Picker {
  return picker.question.freeText === undefined ? picker : { ...opened(picker), written: paste(picker.written, text) }
}

/** The row of the free text; it is none of the choices' where nothing may be typed. */
function freeTextRow({ options, freeText, freeTextAt = options.length }: PickerQuestion): number {
  return freeText === undefined ? -1 : Math.min(freeTextAt, options.length)
}

/** The option in a row; undefined in that of the free text, and beyond the last. */
function optionIn(question: PickerQuestion, row: number): PickerOption | undefined {
  const free = freeTextRow(question)
  return row === free ? undefined : question.options[free !== -1 && row > free ? row - 1 : row]
}

/** Whether only Enter takes the selected option. */
export function isToConfirm({ question, selected, writing }: Picker): boolean {
  return !writing && optionIn(question, selected)?.confirms === true
}

/** The selected option, if it can be removed from its list. */
export function removableOf({ question, selected, writing }: Picker): PickerOption | null {
  const option = writing ? undefined : optionIn(question, selected)
  return option?.removes === true ? option : null
}

/** The number of rows to select from. */
function countChoices({ options, freeText }: PickerQuestion): number {
  return options.length + (freeText === undefined ? 0 : 1)
}

type Step = ReturnType<typeof pickerKey>

function choosingKey(picker: Picker, key: Key, columns: number): Step {
  const count = countChoices(picker.question)
  const direction = directionOf(key)
  if (direction !== null && count > 0) {
    return goOn({ ...picker, selected: (picker.selected + direction + count) % count })
  }
  const chord = chordOf(key)
  if (chord === 'escape') return { picker, result: { kind: 'closed' } }
  if (chord === 'return') return choose(picker, picker.selected)
  const removable = chord === 'delete' || (chord === '' && key.input === 'd') ? removableOf(picker) : null
  if (removable !== null) return { picker, result: { kind: 'removed', id: removable.id } }
  if (chord !== '') return goOn(picker)
  if (/^[1-9]$/.test(key.input)) {
    const row = Number(key.input) - 1
    if (row >= count) return goOn(picker)
    return optionIn(picker.question, row)?.confirms ? goOn({ ...picker, selected: row }) : choose(picker, row)
  }
  if (picker.question.freeText === undefined || key.input.trim() === '') return goOn(picker)
  return writingKey(opened(picker), key, columns)
}

function choose(picker: Picker, index: number): Step {
  const option = optionIn(picker.question, index)
  if (option !== undefined) return { picker: { ...picker, selected: index }, result: { kind: 'chosen', id: option.id } }
  return goOn(index < countChoices(picker.question) ? opened(picker) : picker)
}

function opened(picker: Picker): Picker {
  return { ...picker, selected: freeTextRow(picker.question), writing: true }
}

function writingKey(picker: Picker, key: Key, columns: number): Step {
  const chord = chordOf(key)
  const { written, question } = picker
  if (chord === 'escape' || (chord === 'backspace' && isEmpty(written.text))) return leaveWriting(picker, chord)
  if (chord === 'return') {
    const text = expanded(written)
    return text.trim() === '' ? goOn(picker) : { picker, result: { kind: 'text', text } }
  }
  const width = textColumns(columns, WRITING_PROMPT)
  const direction = directionOf(key)
  if (direction === null) return goOn({ ...picker, written: editKey(written, key, width) ?? written })
  const moved = moveVertically(written, direction, width)
  if (moved !== null) return goOn({ ...picker, written: moved })
  return goOn(
    direction === -1 && question.options.length > 0
      ? { ...picker, writing: false, selected: Math.max(0, picker.selected - 1) }
      : picker,
  )
}

/** Back to the options with what was written kept; without any there is nothing to go back to. */
function leaveWriting(picker: Picker, chord: string): Step {
  if (picker.question.options.length > 0) return goOn({ ...picker, writing: false })
  return { picker, result: chord === 'escape' ? { kind: 'closed' } : null }
}

function goOn(picker: Picker): Step {
  return { picker, result: null }
}

/**
 * A question as it is drawn: title, text, body, choices. If rows are few, the present choice comes first, then its
 * neighbours, some rows of the text, the title, and the body. An ellipsis says that there is more of the body. A line with
 * the place and the scroll keys says so of the text.
 */
export function pickerLines(picker: Picker, area: Area): DrawnField {
  const { columns, theme } = area
  const { title, text, body, choices, field } = layOut(picker, area)
  const lines = [
    ...title.map(line => theme.paint('strong', line)),
    ...textRows(text, columns, theme),
    ...body,
    ...Array.from({ length: choices.to - choices.from }, (_, at) =>
      choiceRow(picker, choices.from + at, choices, columns, theme),
    ),
  ]
  // What is written stands below the choices, wherever among them it is chosen.
  if (field?.caret == null) return { lines, caret: null }
  return { lines: [...lines, ...field.lines], caret: { x: field.caret.x, y: lines.length + field.caret.y } }
}

/** The parts of a question in the rows that each is given. */
interface PickerLayout {
  title: string[]
  text: TextWindow
  body: string[]
  choices: Shown
  field: DrawnField | null
}

/** The rows of the text that are shown; `most`: the rows that can be scrolled out above, 0 where all are shown. */
interface TextWindow {
  all: readonly string[]
  from: number
  rows: number
  most: number
  /** Whether there is room for a blank line below it. */
  isSpaced: boolean
}

/** The choices that stay beside a long text, if there are so many rows. */
const LEAST_CHOICES = 3

function layOut(picker: Picker, area: Area): PickerLayout {
  const { columns, maxRows, theme } = area
  const { question, selected } = picker
  const field = picker.writing ? fieldLines(picker, area) : null
  const title = maxRows > 1 ? wrapLine(oneLine(question.title, 1_000), columns).slice(0, Math.ceil(maxRows / 4)) : []
  const room = Math.max(0, maxRows - title.length - (field === null ? 0 : field.lines.length))
  // One that is answered in writing alone has nothing to choose from.
  const count = question.options.length === 0 ? 0 : countChoices(question)
  const all = markdownRows(question, area)
  const forChoices = Math.min(count, Math.max(LEAST_CHOICES, Math.floor(room / 2)))
  const kept = Math.max(0, Math.min(all.length, room - forChoices))
  const { from, to } = scrollWindow(count, selected, room - kept)
  const body = bodyLines(question.body ?? [], columns, room - kept - (to - from), theme)
  const text = textWindow(all, picker.scrolled, room - (to - from) - body.length)
  return { title, text, body, choices: { from, to, count }, field }
}

function textWindow(all: readonly string[], scrolled: number, room: number): TextWindow {
  if (all.length <= room) return { all, from: 0, rows: all.length, most: 0, isSpaced: all.length < room }
  // Its place takes a row.
  const rows = room < 2 ? room : room - 1
  const most = all.length - rows
  return { all, from: Math.min(scrolled, most), rows, most, isSpaced: false }
}

function textRows({ all, from, rows, most, isSpaced }: TextWindow, columns: number, theme: Theme): string[] {
  const shown = all.slice(from, from + rows)
  if (shown.length === 0) return []
  if (most === 0) return isSpaced ? [...shown, ''] : shown
  const place = `${from + 1}${theme.symbols ? '–' : ' to '}${from + rows} of ${all.length}`
  const forms = [`lines ${place}, PgUp and PgDn scroll`, `${place} PgUp PgDn`, place]
  const words = forms.find(form => widthOf(form) + 4 <= columns) ?? place
  const line = theme.symbols ? `── ${words} ` : words
  const rule = theme.symbols ? '─'.repeat(Math.max(0, columns - widthOf(line))) : ''
  return rows < 1 || columns < 2 ? shown : [...shown, theme.paint('dim', cutLine(line + rule, columns))]
}

/** The rows of a question's text as they were last drawn, which takes long enough not to be done for each frame. */
const DRAWN = new WeakMap<PickerQuestion, { columns: number; theme: Theme; rows: readonly string[] }>()

function markdownRows(
  question: PickerQuestion,
  { columns, theme }: Pick<Area, 'columns' | 'theme'>,
): readonly string[] {
  const { markdown } = question
  if (markdown === undefined) return []
  const drawn = DRAWN.get(question)
  if (drawn?.columns === columns && drawn.theme === theme) return drawn.rows
  const rows = markdownLines(markdown, { columns, theme, first: true })
  DRAWN.set(question, { columns, theme, rows })
  return rows
}

function fieldLines(picker: Picker, { columns, maxRows, theme }: Area): DrawnField {
  const rows = maxRows < 4 ? 1 : Math.floor(maxRows / 2)
  return textLines(picker.written, { columns, maxRows: rows, theme, prompt: theme.symbols ? WRITING_PROMPT : '  > ' })
}

function bodyLines(body: readonly string[], columns: number, room: number, theme: Theme): string[] {
  if (room <= 0) return []
  const lines: string[] = []
  for (const paragraph of body) {
    for (const line of safeText(paragraph).split('\n')) lines.push(...wrapLine(line, columns))
    if (lines.length > room) return [...lines.slice(0, room - 1), theme.paint('dim', theme.symbols ? '…' : '...')]
  }
  return lines
}

interface Shown {
  from: number
  to: number
  count: number
}

function choiceRow(
  { question, selected, writing, written }: Picker,
  index: number,
  shown: Shown,
  columns: number,
  theme: Theme,
): string {
  const isSelected = index === selected
  const before = `${edge(index, shown, theme) ?? optionMark(isSelected, theme)}${index < 9 ? `${index + 1}. ` : '   '}`
  const { label, hint } = optionAt(question, index)
  const kept = index === freeTextRow(question) && !writing ? oneLine(expanded(written).slice(0, 200), 100) : ''
  const name = cutLine(`${before}${oneLine(label, 400)}${kept === '' ? '' : ` ${kept}`}`, columns)
  const rest = hint === undefined ? '' : cutLine(`  ${oneLine(hint, 400)}`, Math.max(0, columns - widthOf(name)))
  return `${isSelected ? theme.paint('selected', name) : name}${rest === '' ? '' : theme.paint('dim', rest)}`
}

/** That there are more choices is told in the first and last row that are shown, unless that one is selected. */
function edge(index: number, { from, to, count }: Shown, theme: Theme): string | null {
  if (to - from < 3) return null
  if (index === from && from > 0) return theme.symbols ? '↑ ' : '^ '
  return index === to - 1 && to < count ? (theme.symbols ? '↓ ' : 'v ') : null
}

function optionAt(question: PickerQuestion, index: number): Pick<PickerOption, 'label' | 'hint'> {
  return optionIn(question, index) ?? { label: question.freeText ?? '' }
}
