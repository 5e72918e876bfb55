import type { LoginState } from '../../words/login.ts'
import { erase, type HistorySearch, moveTo, searchFor, searchOlder, type TextBuffer, type } from './buffer.ts'
import { chordOf, type Key } from './keys.ts'
import { caretLine, cleanText, endOf, isEmpty, previousBoundary, type Text } from './text.ts'

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

/** The word with `@` that the caret is in: where it is in its line (UTF-16 units), and what to search for. */
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

/** A path as it stands in the text, with a space behind it. */
function fileMention(path: string): string {
  return /\s/.test(path) ? `@"${path}" ` : `@${path} `
}

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

/** A slash command that the composer offers; `name` is without the slash, `note` says what is special about it now. */
export interface SlashCommand {
  readonly name: string
  readonly description: string
  readonly note: string | null
}

/** A text that is a command: one line that begins with `/name`, where a path such as `/etc/hosts` is none. */
export interface CommandText {
  name: string
  rest: string
}

/** The command that a text of the field is, or null for an ordinary one. */
export function parseCommand({ lines }: Text): CommandText | null {
  const [, name, rest = ''] = (lines.length === 1 && /^\/([^\s/]+)(?:\s+(.*))?$/s.exec(lines[0]?.trimEnd() ?? '')) || []
  return name === undefined ? null : { name, rest }
}

/** What is typed of a command's name while the caret is in it, or null. */
function commandPrefix(text: Text): string | null {
  if (isEmpty(text) || text.lines.length > 1) return null
  const line = text.lines[0] ?? ''
  if (!/^\/[^\s/]*$/.test(line.slice(0, text.column))) return null
  return /^\/([^\s/]*)\s*$/.exec(line)?.[1] ?? null
}

/** The commands that a beginning may stand for: the very one, those that begin so, those with its letters in order. */
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
  return isSubsequence(typed, name) ? 2 : 3
}

/** Whether the letters of one text occur in the other in the same order. */
function isSubsequence(letters: string, text: string): boolean {
  let at = 0
  for (const letter of letters) {
    at = text.indexOf(letter, at) + letter.length
    if (at < letter.length) return false
  }
  return true
}

const MOST_COMPARED = 40

/** The name that was probably meant by a wrong one, at most a third of its letters away; null if there is none. */
export function nearestCommand(commands: readonly SlashCommand[], wrong: string): string | null {
  if (wrong.length > MOST_COMPARED) return null
  const distances = commands.map(({ name }) => ({ name, distance: editDistance(name, wrong.toLowerCase()) }))
  const [nearest] = distances.toSorted((a, b) => a.distance - b.distance)
  if (nearest === undefined) return null
  return nearest.distance <= Math.max(1, Math.ceil(wrong.length / 3)) ? nearest.name : null
}

/** How many letters must be put in, taken out or changed to make one word of the other (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1]
    for (let j = 0; j < other.length; j += 1) {
      const changed = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1)
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** How a search of the history goes on after a key. */
export type SearchStep =
  | { kind: 'searching'; search: HistorySearch }
  | { kind: 'taken'; text: string | null }
  | { kind: 'cancelled' }

const OLDER = new Set(['ctrl+r', 'up', 'ctrl+p'])
const CANCEL = new Set(['escape', 'ctrl+g', 'ctrl+c'])
const TAKE = new Set(['return', 'tab', 'right', 'ctrl+f', 'end', 'ctrl+e'])

/** What a key means while the history is searched, or null for one that means nothing then. */
export function searchKey(search: HistorySearch, key: Key): SearchStep | null {
  const chord = chordOf(key)
  if (chord === '') return { kind: 'searching', search: extendQuery(search, key.input) }
  if (chord === 'backspace') {
    const { query } = search
    return { kind: 'searching', search: searchFor(search, query.slice(0, previousBoundary(query, query.length))) }
  }
  if (OLDER.has(chord)) return { kind: 'searching', search: searchOlder(search) }
  if (CANCEL.has(chord)) return { kind: 'cancelled' }
  if (!TAKE.has(chord)) return null
  return { kind: 'taken', text: search.index === null ? null : (search.texts[search.index] ?? null) }
}

const MOST_SEARCHED = 200

/** The search with more behind its query, of which only the first line counts. */
export function extendQuery(search: HistorySearch, added: string): HistorySearch {
  const [line = ''] = cleanText(added).split('\n')
  return searchFor(search, (search.query + line).slice(0, MOST_SEARCHED).toWellFormed())
}

/** A slash command: its name without the slash, what it does, and what it is about just now. */
export interface SlashCommandInfo {
  name: string
  description: string
  note: string | null
}

/** All slash commands in the order of the popup; of `/login` and `/logout` the one that applies. `login`: null if not known. */
export function slashCommands({ login }: { login: LoginState | null }): SlashCommandInfo[] {
  const account =
    login?.kind === 'in'
      ? command('logout', "Take codemachine's own login away", `rounds use ${login.by}`)
      : command('login', "Log codex in for codemachine's rounds")
  return [
    command('start', 'Start what the specification asks for'),
    command('templates', 'Show and choose what /start starts'),
    account,
    command('version', 'Show the versions of codemachine and codex'),
    command('help', 'Show keys and commands'),
    command('mcp', 'Show the MCP servers that codex has'),
    command('resume', 'Go on with a session'),
    command('queue', 'Show and change what waits'),
    command('report', 'Show what a session has done'),
    command('doctor', 'Look for what is missing or in the way'),
    command('model', 'Choose the model and its effort'),
    command('theme', 'Choose the colours'),
    command('exit', 'Leave; a session can be resumed'),
  ]
}

function command(name: string, description: string, note: string | null = null): SlashCommandInfo {
  return { name, description, note }
}
