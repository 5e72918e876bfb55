import { cutLine, padLine, widthOf } from '../cells.ts'
import { oneLine } from '../safe-text.ts'
import type { Theme } from '../theme.ts'
import type { ComposerSnapshot } from './composer.ts'
import { keepEnd } from './keep-end.ts'
import type { Popup } from './popup.ts'
import { scrolled } from './scrolled.ts'
import type { SlashCommand } from './slash-commands.ts'
import type { Frame } from './text-lines.ts'

/** What is offered for the word at the caret, a row for each; none if nothing is. */
export function popupLines({ popup }: ComposerSnapshot, { columns, maxRows, theme }: Frame): string[] {
  if (popup === null) return []
  const { from, to } = scrolled(popup.options.length, popup.selected, maxRows)
  return rowsOf(popup, from, to, columns, theme)
}

function rowsOf(popup: Popup, from: number, to: number, columns: number, theme: Theme): string[] {
  if (popup.kind === 'commands') {
    const options = popup.options.slice(from, to)
    const names = Math.max(...popup.options.map(({ name }) => widthOf(name))) + 3
    return options.map((command, at) => commandRow(command, names, at + from === popup.selected, columns, theme))
  }
  // The end of a path tells more of it than its beginning.
  return popup.options.slice(from, to).map((path, at) => {
    const isSelected = at + from === popup.selected
    return painted(
      `${mark(isSelected, theme)}${keepEnd(oneLine(path, 4_096), Math.max(1, columns - 2))}`,
      isSelected,
      columns,
      theme,
    )
  })
}

function commandRow(command: SlashCommand, names: number, isSelected: boolean, columns: number, theme: Theme): string {
  const name = `${mark(isSelected, theme)}${padLine(`/${command.name}`, names)}`
  const note = command.note === null ? '' : ` (${oneLine(command.note, 200)})`
  return painted(`${name}${oneLine(command.description, 400)}${note}`, isSelected, columns, theme)
}

function painted(row: string, isSelected: boolean, columns: number, theme: Theme): string {
  const line = cutLine(row, columns)
  return isSelected ? theme.paint('selected', line) : line
}

/** What stands before an option. */
export function mark(isSelected: boolean, theme: Theme): string {
  if (!isSelected) return '  '
  return theme.symbols ? '❯ ' : '> '
}
