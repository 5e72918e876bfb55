import { fileMention } from './file-word.ts'
import type { Popup } from './popup.ts'
import { caretLine, endOf } from './text.ts'
import { erase, moveTo, type TextBuffer, type } from './text-buffer.ts'

/** Whether the selected command is already written in full. */
export function isComplete(popup: Popup): boolean {
  return popup.kind === 'commands' && popup.options[popup.selected]?.name === popup.typed
}

/** The text with the selected option in place of the word that it was offered for. */
export function complete(buffer: TextBuffer, popup: Popup): TextBuffer {
  const { text } = buffer
  if (popup.kind === 'commands') {
    const name = popup.options[popup.selected]?.name ?? popup.typed
    return type(erase(moveTo(buffer, endOf(text)), { row: 0, column: 0 }), `/${name} `)
  }
  const mention = fileMention(popup.options[popup.selected] ?? popup.word.query)
  const { start, end } = popup.word
  const emptied = erase(moveTo(buffer, { row: text.row, column: end }), { row: text.row, column: start })
  return type(emptied, /^\s/.test(caretLine(text).slice(end)) ? mention.trimEnd() : mention)
}
