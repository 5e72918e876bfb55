import { cutLine, widthOf, wrapLine } from '../cells.ts'
import { oneLine, safeText } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import { countChoices, type Picker, type PickerOption, type PickerQuestion, WRITING_PROMPT } from './picker.ts'
import { mark } from './popup-lines.ts'
import { scrolled } from './scrolled.ts'
import { expanded } from './text-buffer.ts'
import { type Drawn, type Frame, textLines } from './text-lines.ts'

/**
 * A question as it is drawn: title, body, choices. Where rows are few the choice at hand comes first, then its
 * neighbours, the title, and the body; the body tells by an ellipsis that there is more of it.
 */
export function pickerLines(picker: Picker, frame: Frame): Drawn {
  const { columns, maxRows, theme } = frame
  const field = picker.writing ? fieldLines(picker, frame) : null
  const title =
    maxRows > 1 ? wrapLine(oneLine(picker.question.title, 1_000), columns).slice(0, Math.ceil(maxRows / 4)) : []
  const room = maxRows - title.length
  const fieldRows = field === null ? 0 : field.lines.length
  // One that is answered in writing alone has nothing to choose from.
  const count = picker.question.options.length === 0 ? 0 : countChoices(picker.question)
  const choiceRoom = room - fieldRows
  const { from, to } = scrolled(count, picker.selected, Math.max(0, choiceRoom))
  const body = bodyLines(picker.question.body ?? [], columns, choiceRoom - (to - from), theme)
  const choices = Array.from({ length: to - from }, (_, at) =>
    choiceRow(picker, from + at, { from, to, count }, columns, theme),
  )
  const lines = [...title.map(line => theme.paint('strong', line)), ...body, ...choices]
  // The free text is the last choice: what is written stands below it.
  if (field?.caret == null) return { lines, caret: null }
  return { lines: [...lines, ...field.lines], caret: { x: field.caret.x, y: lines.length + field.caret.y } }
}

function fieldLines(picker: Picker, { columns, maxRows, theme }: Frame): Drawn {
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
  const before = `${edge(index, shown, theme) ?? mark(isSelected, theme)}${index < 9 ? `${index + 1}. ` : '   '}`
  const { label, hint } = optionAt(question, index)
  const kept = index === question.options.length && !writing ? oneLine(expanded(written).slice(0, 200), 100) : ''
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

function optionAt({ options, freeText }: PickerQuestion, index: number): Pick<PickerOption, 'label' | 'hint'> {
  return options[index] ?? { label: freeText ?? '' }
}
