import {
  cleared,
  EMPTY_BUFFER,
  erase,
  expanded,
  paste,
  replaceAll,
  type TextBuffer,
  type as typeText,
} from './buffer.ts'
import { addChip, CHIP, type Chips, escapePlaceholders, expandChips, foldLarge, isChip } from './chips.ts'
import {
  complete,
  type FileWord,
  fileWordAt,
  isComplete,
  nearestCommand,
  offeredWord,
  type Popup,
  parseCommand,
  popupFor,
  type SlashCommand,
  selectNext,
} from './completion.ts'
import { PROMPT, textColumns } from './drawing.ts'
import { extendQuery, type HistorySearch, type HistoryWalk, searchKey, walkTo, withoutDuplicates } from './history.ts'
import { chordOf, directionOf, editKey, type Key, moveVertically } from './keys.ts'
import { caretLine, cleanText, isAtLineEnd, isEmpty, placeCaret } from './text.ts'

/** The prompt field: a text buffer with its history and the completion popup. Keys it does not handle come back as intents. */
export class Composer {
  readonly #searchFiles: (query: string) => Promise<readonly string[]>
  readonly #listeners = new Set<() => void>()
  #state: ComposerSnapshot = { buffer: EMPTY_BUFFER, search: null, popup: null }
  #columns = textColumns(80, PROMPT)
  #commands: readonly SlashCommand[] = []
  #history: readonly string[] = []
  #walk: (HistoryWalk<TextBuffer> & { recalled: TextBuffer }) | null = null
  /** The word that no popup is opened for: its popup was closed, or it was not typed. */
  #dismissed: string | null = null
  #asked: { query: string } | null = null

  /** @param options `searchFiles`: the paths that match the text behind `@`, best first; when it rejects, none */
  constructor({ searchFiles }: { searchFiles(query: string): Promise<readonly string[]> }) {
    this.#searchFiles = searchFiles
  }

  /** Calls the listener after each change until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The present state; the same object until something changes. */
  readonly snapshot = (): ComposerSnapshot => this.#state

  /** The whole text as it is sent, with chips expanded. */
  get text(): string {
    return expanded(this.#state.buffer)
  }

  /** Sets the width (cells) that the composer is drawn in, which vertical moves depend on. */
  resize(columns: number, prompt = PROMPT): void {
    this.#columns = textColumns(columns, prompt)
  }

  /** Sets the slash commands, in the order of the popup. */
  setCommands(commands: readonly SlashCommand[]): void {
    this.#commands = commands
  }

  /** Sets the history of sent prompts, the oldest first. */
  setHistory(entries: readonly string[]): void {
    this.#history = entries
  }

  /** Replaces the text, with the caret at its end. */
  setText(text: string): void {
    this.#recall(replaceAll(this.#state.buffer, text))
  }

  /** Inserts a pasted text, a large one as a chip. While the history is searched, it extends the query. */
  paste(text: string): void {
    const { search } = this.#state
    if (search !== null) this.#set({ search: extendQuery(search, text) })
    else this.#edit(paste(this.#state.buffer, text))
  }

  /** The command in a text; null for an ordinary text. */
  commandIn({ text, chips }: TextBuffer): CommandIntent | null {
    const command = parseCommand(text)
    if (command === null) return null
    const { name, rest } = command
    return this.#commands.some(known => known.name === name)
      ? { kind: 'command', name, rest: expandChips(rest, chips) }
      : { kind: 'unknown-command', name, nearest: nearestCommand(this.#commands, name) }
  }

  /** The text as a draft for a file. */
  draft(): Draft {
    return draftOf(this.#state.buffer)
  }

  /** Replaces the text by a draft. */
  restore(draft: Draft): void {
    this.#recall(bufferOf(draft))
  }

  /** Empties the field; the kill ring stays. */
  clear(): void {
    this.#walk = null
    this.#edit(cleared(this.#state.buffer))
  }

  /** Handles a key; returns the intent that is not the composer's to carry out, or null. */
  key(key: Key): ComposerIntent | null {
    if (this.#state.search !== null) return this.#searchKey(key, this.#state.search)
    if (this.#popupKey(key)) return null
    if (this.#state.popup?.kind === 'commands' && chordOf(key) === 'return') return this.#runChosen(this.#state.popup)
    const direction = directionOf(key)
    if (direction !== null) {
      this.#vertically(direction)
      return null
    }
    return this.#plainKey(key)
  }

  #searchKey(key: Key, search: HistorySearch): ComposerIntent | null {
    const step = searchKey(search, key)
    if (step === null) return { kind: 'unhandled' }
    this.#set({ search: step.kind === 'searching' ? step.search : null })
    if (step.kind === 'taken' && step.text !== null) this.setText(step.text)
    return null
  }

  /** Enter completes the selected command and runs it. */
  #runChosen(popup: Popup): ComposerIntent | null {
    if (!isComplete(popup)) this.#edit(complete(this.#state.buffer, popup))
    return this.#send('submit')
  }

  /** True if the popup has handled the key. */
  #popupKey(key: Key): boolean {
    const { popup, buffer } = this.#state
    if (popup === null) return false
    const direction = directionOf(key)
    const chord = chordOf(key)
    if (direction !== null) this.#set({ popup: selectNext(popup, direction) })
    else if (chord === 'escape') {
      this.#dismissed = offeredWord(buffer.text)
      this.#set({ popup: null })
    } else if (chord === 'tab' || (chord === 'return' && popup.kind === 'files')) this.#edit(complete(buffer, popup))
    else return false
    return true
  }

  #plainKey(key: Key): ComposerIntent | null {
    const { buffer } = this.#state
    const chord = chordOf(key)
    const fixed = FIXED_INTENTS.get(chord)
    if (fixed !== undefined) return fixed
    if (isEmpty(buffer.text)) {
      if (key.input === '?' && chord === '') return { kind: 'help' }
      if (chord === 'ctrl+d') return { kind: 'exit' }
    }
    if (chord === 'return') return this.#enter()
    if (chord === 'tab') return this.text.trim() === '' ? { kind: 'unhandled' } : this.#send('steer')
    if (chord === 'ctrl+r') {
      this.#set({ search: { query: '', texts: withoutDuplicates(this.#history), index: null }, popup: null })
      return null
    }
    if (chord === 'ctrl+e' && isAtLineEnd(buffer.text)) return { kind: 'unhandled' }
    const edited = editKey(buffer, key, this.#columns)
    if (edited === null) return { kind: 'unhandled' }
    this.#edit(edited)
    return null
  }

  #enter(): ComposerIntent | null {
    const { buffer } = this.#state
    const { row, column } = buffer.text
    if (!caretLine(buffer.text).endsWith('\\') || !isAtLineEnd(buffer.text)) return this.#send('submit')
    this.#edit(typeText(erase(buffer, { row, column: column - 1 }), '\n'))
    return null
  }

  #send(kind: 'submit' | 'steer'): ComposerIntent | null {
    const { buffer } = this.#state
    const text = expanded(buffer)
    if (text.trim() === '') return null
    const command = this.commandIn(buffer)
    if (command?.kind !== 'unknown-command') this.clear()
    return command ?? { kind, text }
  }

  /** Moves a row up or down; beyond the text, and from an unchanged text of the history, walks through the history. */
  #vertically(direction: -1 | 1): void {
    const { buffer } = this.#state
    const moved = this.#walk?.recalled === buffer ? null : moveVertically(buffer, direction, this.#columns)
    if (moved !== null) this.#edit(moved)
    else this.#walkHistory(direction)
  }

  #walkHistory(direction: -1 | 1): void {
    const { buffer } = this.#state
    const texts = this.#walk?.texts ?? withoutDuplicates(this.#history)
    const { index, draft } = this.#walk ?? { index: texts.length, draft: buffer }
    const to = walkTo(texts, index, direction, expanded(buffer))
    const text = to === null ? undefined : texts[to]
    if (to !== null && text !== undefined) {
      const recalled = replaceAll(buffer, text)
      this.#recall(recalled)
      this.#walk = { texts, index: to, draft, recalled }
    } else if (direction === 1 && this.#walk !== null) {
      this.#recall({ ...draft, ring: buffer.ring, chips: buffer.chips })
    }
  }

  /** Shows a text that was not typed: no popup opens for it. */
  #recall(buffer: TextBuffer): void {
    this.#walk = null
    this.#dismissed = offeredWord(buffer.text)
    this.#edit(buffer)
  }

  #edit(buffer: TextBuffer): void {
    const offered = offeredWord(buffer.text)
    if (offered !== this.#dismissed) this.#dismissed = null
    const isOpen = offered !== null && this.#dismissed === null
    this.#set({ buffer, popup: isOpen ? popupFor(buffer.text, this.#commands, this.#state.popup) : null })
    this.#askForFiles(isOpen ? fileWordAt(buffer.text) : null)
  }

  #askForFiles(word: FileWord | null): void {
    if (word?.query === this.#asked?.query) return
    const asked = word === null ? null : { query: word.query }
    this.#asked = asked
    if (asked === null) return
    this.#searchFiles(asked.query).then(
      paths => this.#found(asked, paths),
      () => this.#found(asked, []),
    )
  }

  #found(asked: { query: string }, paths: readonly string[]): void {
    const { buffer, popup, search } = this.#state
    const word = fileWordAt(buffer.text)
    if (this.#asked !== asked || word === null || search !== null) return
    // A selection that was made already stays.
    const chosen = popup?.kind === 'files' && popup.selected > 0 ? popup.options[popup.selected] : undefined
    const selected = chosen === undefined ? 0 : Math.max(0, paths.indexOf(chosen))
    this.#set({ popup: paths.length === 0 ? null : { kind: 'files', word, options: paths, selected } })
  }

  #set(change: Partial<ComposerSnapshot>): void {
    this.#state = { ...this.#state, ...change }
    for (const listener of this.#listeners) listener()
  }
}

/** The state of a composer as it is drawn. Immutable: a new object after each change. */
export interface ComposerSnapshot {
  readonly buffer: TextBuffer
  readonly search: HistorySearch | null
  /** The options for the word at the caret; null without any. */
  readonly popup: Popup | null
}

/** A command in a text: a known one, or an unknown one with the `nearest` known name (null: none is near). */
type CommandIntent =
  | { kind: 'command'; name: string; rest: string }
  | { kind: 'unknown-command'; name: string; nearest: string | null }

/** What a key asks of the screen; `unhandled`: the key means nothing to a composer. */
export type ComposerIntent =
  | { kind: 'submit'; text: string }
  | { kind: 'steer'; text: string }
  | CommandIntent
  | { kind: 'take-back' }
  | { kind: 'open-editor' }
  | { kind: 'help' }
  | { kind: 'exit' }
  | { kind: 'interrupt' }
  | { kind: 'unhandled' }

/** The keys whose intent does not depend on the text. */
const FIXED_INTENTS: ReadonlyMap<string, ComposerIntent> = new Map<string, ComposerIntent>([
  ['alt+up', { kind: 'take-back' }],
  ['ctrl+g', { kind: 'open-editor' }],
  ['escape', { kind: 'interrupt' }],
])

/** An unsent text as JSON for a file; `caret` is in UTF-16 units, where a pasted part counts as two. */
interface Draft {
  readonly parts: readonly (string | { readonly pasted: string })[]
  readonly caret: number
}

/** The draft of a buffer. */
export function draftOf({ text, chips }: TextBuffer): Draft {
  const before = text.lines.slice(0, text.row).reduce((units, line) => units + line.length + 1, 0)
  const parts: (string | { pasted: string })[] = []
  for (const piece of text.lines.join('\n').split(CHIP)) {
    const chip = isChip(piece) ? chips.get(piece) : undefined
    const last = parts.at(-1)
    if (chip !== undefined) parts.push({ pasted: chip.text })
    else if (typeof last === 'string') parts[parts.length - 1] = last + piece
    else if (piece !== '') parts.push(piece)
  }
  return { parts, caret: before + text.column }
}

/** The buffer for a draft. */
export function bufferOf({ parts, caret }: Draft): TextBuffer {
  let chips: Chips = new Map()
  let all = ''
  for (const part of parts) {
    const clean = cleanText(typeof part === 'string' ? part : part.pasted)
    const chip = typeof part === 'string' ? null : foldLarge(clean)
    const added = chip === null ? escapePlaceholders(clean, chips) : addChip(chips, chip)
    all += 'text' in added ? added.text : added.character
    chips = added.chips
  }
  const before = all.slice(0, Math.max(0, caret)).split('\n')
  const place = { row: before.length - 1, column: before.at(-1)?.length ?? 0 }
  return { ...EMPTY_BUFFER, chips, text: placeCaret({ lines: all.split('\n'), row: 0, column: 0 }, place) }
}
