import { type FileWord, fileWordAt } from './file-word.ts'
import { commandPrefix, isSubsequence, matchCommands, type SlashCommand } from './slash-commands.ts'
import type { Text } from './text.ts'

/** What is offered for the word at the caret. */
export type Popup =
  | {
      readonly kind: 'commands'
      readonly typed: string
      readonly options: readonly SlashCommand[]
      readonly selected: number
    }
  | { readonly kind: 'files'; readonly word: FileWord; readonly options: readonly string[]; readonly selected: number }

/** The word at the caret that something may be offered for, with its place, or null. Equal only if nothing of it changed. */
export function offeredWord(text: Text): string | null {
  const typed = commandPrefix(text)
  if (typed !== null) return `/${typed}`
  const word = fileWordAt(text)
  return word === null ? null : `${text.row}:${word.start}@${word.query}`
}

/**
 * The popup for the word at the caret, null if there is nothing to offer. Of the files that were found before, those
 * that still fit stay until others are found.
 */
export function popupFor(text: Text, commands: readonly SlashCommand[], before: Popup | null): Popup | null {
  const typed = commandPrefix(text)
  if (typed !== null) {
    if (before?.kind === 'commands' && before.typed === typed) return before
    const options = matchCommands(commands, typed)
    return options.length === 0 ? null : { kind: 'commands', typed, options, selected: 0 }
  }
  const word = fileWordAt(text)
  if (word === null || before?.kind !== 'files') return null
  if (before.word.query === word.query) return { ...before, word }
  const wanted = word.query.toLowerCase()
  const options = before.options.filter(path => isSubsequence(wanted, path.toLowerCase()))
  return options.length === 0 ? null : { kind: 'files', word, options, selected: 0 }
}

/** The popup with the option before (-1) or behind (1) the selected one; the last is before the first. */
export function selectNext(popup: Popup, direction: -1 | 1): Popup {
  const count = popup.options.length
  return { ...popup, selected: (popup.selected + direction + count) % count }
}
