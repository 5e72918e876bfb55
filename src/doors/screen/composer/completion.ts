import { hasInOrder } from '../../../base/text.ts'
import { erase, moveTo, type TextBuffer, type } from './buffer.ts'
import { caretLine, endOf, isEmpty, type Text } from './text.ts'

/** Whether the selected command is already typed in full. */
export function isComplete(popup: Popup): boolean {
  return popup.kind === 'commands' && popup.options[popup.selected]?.name === popup.typed
}

/** Whether the selected command waits for a text. */
export function takesText(popup: Popup): boolean {
  return popup.kind === 'commands' && popup.options[popup.selected]?.takesText === true
}

/** The buffer with the selected option in place of the word at the caret. */
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

/** The `@` word that the caret is in: its offsets in the line (UTF-16 units), and the path to search for. */
export interface FileWord {
  readonly start: number
  readonly end: number
  readonly query: string
}

/** The `@` word at the caret, `@"with spaces"` too; null if the caret is in no such word. */
export function fileWordAt(text: Text): FileWord | null {
  const line = caretLine(text)
  const before = /(?:^|\s)@(?:"([^"]*)|([^\s"]*))$/.exec(line.slice(0, text.column))
  if (before === null) return null
  const quoted = before[1] !== undefined
  const query = before[1] ?? before[2] ?? ''
  const after = (quoted ? /^[^"]*"/ : /^\S*/).exec(line.slice(text.column))?.[0] ?? ''
  return { start: text.column - query.length - (quoted ? 2 : 1), end: text.column + after.length, query }
}

/** A path as it is inserted, followed by a space. */
function fileMention(path: string): string {
  return /\s/.test(path) ? `@"${path}" ` : `@${path} `
}

/** The options for the word at the caret: commands for `/`, files for `@`. */
export type Popup =
  | {
      readonly kind: 'commands'
      readonly typed: string
      readonly options: readonly SlashCommand[]
      readonly selected: number
    }
  | { readonly kind: 'files'; readonly word: FileWord; readonly options: readonly string[]; readonly selected: number }

/** An identity of the `/` or `@` word at the caret, equal as long as neither the word nor its place changes; null without one. */
export function offeredWord(text: Text): string | null {
  const typed = commandPrefix(text)
  if (typed !== null) return `/${typed}`
  const word = fileWordAt(text)
  return word === null ? null : `${text.row}:${word.start}@${word.query}`
}

/** The popup for the word at the caret; null without options. The matching ones of the files before stay until new ones are found. */
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
  const options = before.options.filter(path => hasInOrder(path.toLowerCase(), wanted))
  return options.length === 0 ? null : { kind: 'files', word, options, selected: 0 }
}

/** The popup with the previous (-1) or next (1) option selected, going round at the ends. */
export function selectNext(popup: Popup, direction: -1 | 1): Popup {
  const count = popup.options.length
  return { ...popup, selected: (popup.selected + direction + count) % count }
}

/**
 * A slash command: its name without the slash, what it does, and a note on its present state (null: none). `takesText`: it
 * says nothing without a text behind it, so Enter puts its name into the field.
 */
export interface SlashCommand {
  readonly name: string
  readonly description: string
  readonly note: string | null
  readonly takesText?: true
}

/** The command in a text of one line that begins with `/name`; null for any other text, such as a path (`/etc/hosts`). */
export function parseCommand({ lines }: Text): { name: string; rest: string } | null {
  const [, name, rest = ''] = (lines.length === 1 && /^\/([^\s/]+)(?:\s+(.*))?$/s.exec(lines[0]?.trimEnd() ?? '')) || []
  return name === undefined ? null : { name, rest }
}

/** The part of a command's name that is typed, while the caret is in it; null otherwise. */
function commandPrefix(text: Text): string | null {
  if (isEmpty(text) || text.lines.length > 1) return null
  const line = text.lines[0] ?? ''
  if (!/^\/[^\s/]*$/.test(line.slice(0, text.column))) return null
  return /^\/([^\s/]*)\s*$/.exec(line)?.[1] ?? null
}

/** The commands that match a prefix, best first: the exact name, names that begin with it, names with its letters in order. */
function matchCommands(commands: readonly SlashCommand[], typed: string): SlashCommand[] {
  const wanted = typed.toLowerCase()
  const ranked = commands.map(command => ({ command, rank: rankOf(command.name.toLowerCase(), wanted) }))
  return ranked
    .filter(({ rank }) => rank < 3)
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ command }) => command)
}

function rankOf(name: string, typed: string): number {
  if (name === typed) return 0
  if (name.startsWith(typed)) return 1
  return hasInOrder(name, typed) ? 2 : 3
}
