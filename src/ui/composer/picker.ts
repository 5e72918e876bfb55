import { chordOf, directionOf, editKey, moveVertically } from './edit-key.ts'
import type { Key } from './key.ts'
import { isEmpty } from './text.ts'
import { EMPTY_BUFFER, expanded, paste, type TextBuffer } from './text-buffer.ts'
import { textColumns } from './text-lines.ts'

/** One of the answers that a person may choose. */
export interface PickerOption {
  readonly id: string
  readonly label: string
  readonly hint?: string
}

/** A question with its answers; `freeText` is the label of the one that is written, if that is allowed. */
export interface PickerQuestion {
  readonly title: string
  readonly body?: readonly string[]
  readonly options: readonly PickerOption[]
  readonly freeText?: string
}

/** A question that is being answered. Never changed in place. */
export interface Picker {
  readonly question: PickerQuestion
  /** The chosen row: of the options, or behind them that of the free text. */
  readonly selected: number
  /** Whether keys go into the free text. */
  readonly writing: boolean
  readonly written: TextBuffer
}

/** What a person has answered. */
export type PickerResult = { kind: 'chosen'; id: string } | { kind: 'text'; text: string } | { kind: 'closed' }

/** What stands before the free text that is being written. */
export const WRITING_PROMPT = '  › '

/** A question as it is first shown; one that has no options is answered in writing. */
export function openPicker(question: PickerQuestion): Picker {
  const writing = question.options.length === 0 && question.freeText !== undefined
  return { question, selected: 0, writing, written: EMPTY_BUFFER }
}

/** A picker after a key, and the answer if the key gave one. `columns`: how wide it is drawn. */
export function pickerKey(picker: Picker, key: Key, columns: number): { picker: Picker; result: PickerResult | null } {
  return picker.writing ? writingKey(picker, key, columns) : choosingKey(picker, key, columns)
}

/** A picker after something was pasted: it opens the free text if there may be one. */
export function pickerPaste(picker: Picker, text: string): Picker {
  return picker.question.freeText === undefined ? picker : { ...opened(picker), written: paste(picker.written, text) }
}

/** How many rows can be chosen. */
export function countChoices({ options, freeText }: PickerQuestion): number {
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
  if (chord !== '') return goOn(picker)
  // It only goes there: what begins with a number may be meant as an answer in words, and one of them stops the work.
  if (/^[1-9]$/.test(key.input))
    return goOn(Number(key.input) > count ? picker : { ...picker, selected: Number(key.input) - 1 })
  if (picker.question.freeText === undefined || key.input.trim() === '') return goOn(picker)
  return writingKey(opened(picker), key, columns)
}

function choose(picker: Picker, index: number): Step {
  const option = picker.question.options[index]
  if (option !== undefined) return { picker: { ...picker, selected: index }, result: { kind: 'chosen', id: option.id } }
  return goOn(index < countChoices(picker.question) ? opened(picker) : picker)
}

function opened(picker: Picker): Picker {
  return { ...picker, selected: picker.question.options.length, writing: true }
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
      ? { ...picker, writing: false, selected: question.options.length - 1 }
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
