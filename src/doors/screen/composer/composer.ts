import { nearestName } from '../../../base/text.ts'
import { KEY_ACTIONS, type KeyActionId, type Keymap } from '../../../project/settings/keys.ts'
import {
  bufferOf,
  cleared,
  type Draft,
  draftOf,
  EMPTY_BUFFER,
  erase,
  expanded,
  paste,
  replaceAll,
  type TextBuffer,
  type as typeText,
} from './buffer.ts'
import {
  complete,
  type FileWord,
  fileWordAt,
  isComplete,
  offeredWord,
  type Popup,
  parseCommand,
  popupFor,
  type SlashCommand,
  selectNext,
  takesText,
} from './completion.ts'
import { type ComposerSnapshot, type HistorySearch, PROMPT, textColumns } from './drawing.ts'
import { chordOf, directionOf, editKey, type Key, moveVertically } from './keys.ts'
import { caretLine, cleanText, expandChips, isAtLineEnd, isEmpty, previousBoundary } from './text.ts'

/** The prompt field: a text buffer with its history and the completion popup. Keys it does not handle come back as intents. */
export class Composer {
  readonly #searchFiles: (query: string) => Promise<readonly string[]>
  readonly #keymap: Keymap
  readonly #listeners = new Set<() => void>()
  #state: ComposerSnapshot = { buffer: EMPTY_BUFFER, search: null, popup: null }
  #columns = textColumns(80, PROMPT)
  #commands: readonly SlashCommand[] = []
  #history: readonly string[] = []
  /** The texts that were put aside, the newest last; they follow the history. */
  #aside: readonly string[] = []
  #walk: HistoryWalk | null = null
  /** The word that no popup is opened for: its popup was closed, or it was not typed. */
  #dismissed: string | null = null
  #asked: { query: string } | null = null
  /** What was refused, as long as nobody has edited it. */
  #refused: TextBuffer | null = null

  /** @param options `searchFiles`: the paths that match the text behind `@`, best first; when it rejects, none */
  constructor({ searchFiles, keymap }: { searchFiles(query: string): Promise<readonly string[]>; keymap: Keymap }) {
    this.#searchFiles = searchFiles
    this.#keymap = keymap
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

  /** Empties the field; the history brings its text back. */
  putAside(): void {
    this.#aside = [...this.#aside, this.text].slice(-MOST_ASIDE)
    this.clear()
  }

  /** Whether the text was refused, and has not been edited since. */
  get isRefused(): boolean {
    return this.#refused === this.#state.buffer
  }

  /** Replaces the text by one that was refused. */
  setRefused(text: string): void {
    this.setText(text)
    this.#refused = this.#state.buffer
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
      : {
          kind: 'unknown-command',
          name,
          nearest: nearestName(
            name,
            this.#commands.map(each => each.name),
            Math.ceil,
          ),
        }
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

  /** Searches what was sent before; the keys that follow are those of the search. */
  search(): void {
    this.#set({ search: { query: '', texts: withoutDuplicates(this.#entries), index: null }, popup: null })
  }

  #searchKey(key: Key, search: HistorySearch): ComposerIntent | null {
    const step = searchKey(search, key)
    if (step === null) {
      const action = this.#keymap.inField(chordOf(key), false)
      return action === null || EDITS.has(action) || action === 'take_back' ? null : { kind: 'action', action }
    }
    this.#set({ search: step.search })
    if (step.taken !== undefined) this.setText(step.taken)
    return null
  }

  /** Enter completes the selected command and runs it, or waits for its text. */
  #runChosen(popup: Popup): ComposerIntent | null {
    const waits = takesText(popup)
    if (waits || !isComplete(popup)) this.#edit(complete(this.#state.buffer, popup))
    return waits ? null : this.#send('submit')
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
    // A text of several characters is never the name of a key.
    const typed = key.input.length === 1 ? key.input : ''
    const action = this.#keymap.inField(chord === '' ? typed : chord, isEmpty(buffer.text))
    if (action === 'submit') return this.#enter()
    if (action === 'tell') return this.#send('steer')
    if (action === 'search') {
      this.search()
      return null
    }
    const edited = editKey(buffer, key, this.#columns)
    if (edited === null || (action !== null && !EDITS.has(action)))
      return action === null ? null : { kind: 'action', action }
    this.#edit(edited)
    return null
  }

  /** What was sent before, the newest last, with what was put aside. */
  get #entries(): readonly string[] {
    return [...this.#history, ...this.#aside]
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
    if (command?.kind === 'unknown-command') this.#refused = buffer
    else {
      // What was sent is in the history itself.
      this.#aside = this.#aside.filter(each => each !== text)
      this.clear()
    }
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
    const texts = this.#walk?.texts ?? withoutDuplicates(this.#entries)
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

/** A command in a text: a known one, or an unknown one with the `nearest` known name (null: none is near). */
type CommandIntent =
  | { kind: 'command'; name: string; rest: string }
  | { kind: 'unknown-command'; name: string; nearest: string | null }

/** What a key asks of the screen. `action`: one of the table of keys that is not the composer's own. */
export type ComposerIntent =
  | { kind: 'submit'; text: string }
  | { kind: 'steer'; text: string }
  | CommandIntent
  | { kind: 'action'; action: KeyActionId }

/** As many texts are kept that were put aside. */
const MOST_ASIDE = 20

/** The actions of the table that edit the text. */
const EDITS: ReadonlySet<KeyActionId> = new Set(KEY_ACTIONS.filter(({ isEdit }) => isEdit === true).map(({ id }) => id))

/** A walk through the prompts that were sent before: without duplicates, the newest last. */
interface HistoryWalk {
  readonly texts: readonly string[]
  /** The index of the text that is shown. */
  readonly index: number
  /** The content of the field when the walk began. */
  readonly draft: TextBuffer
  /** The content while the text is shown unchanged. */
  readonly recalled: TextBuffer
}

/** A history without duplicates: each text stands where it was sent last. */
function withoutDuplicates(entries: readonly string[]): string[] {
  return [...new Set(entries.toReversed())].reverse()
}

/** The index of the nearest older (-1) or newer (1) text that differs from the shown one; null beyond either end. */
function walkTo(texts: readonly string[], from: number, direction: -1 | 1, shown: string): number | null {
  let index = from + direction
  while (texts[index] === shown) index += direction
  return index >= 0 && index < texts.length ? index : null
}

const OLDER = new Set(['ctrl+r', 'up', 'ctrl+p'])
const CANCEL = new Set(['escape', 'ctrl+g', 'ctrl+c'])
const TAKE = new Set(['return', 'tab', 'right', 'ctrl+f', 'end', 'ctrl+e'])

/** The search after a key, null when it is over, and the match that was taken, if one was. Null for any other key. */
function searchKey(
  search: HistorySearch,
  key: Key,
): { search: HistorySearch | null; taken?: string | undefined } | null {
  const chord = chordOf(key)
  const { query, texts, index } = search
  if (chord === '') return { search: extendQuery(search, key.input) }
  if (chord === 'backspace') return { search: searchFor(search, query.slice(0, previousBoundary(query, query.length))) }
  if (OLDER.has(chord)) return { search: searchOlder(search) }
  if (CANCEL.has(chord)) return { search: null }
  return TAKE.has(chord) ? { search: null, taken: index === null ? undefined : texts[index] } : null
}

const QUERY_CHARS = 200

/** The search with a text added to its query; of the text only the first line counts. */
function extendQuery(search: HistorySearch, added: string): HistorySearch {
  const [line = ''] = cleanText(added).split('\n')
  return searchFor(search, (search.query + line).slice(0, QUERY_CHARS).toWellFormed())
}

/** The search for another query, from the newest text on. */
function searchFor(search: HistorySearch, query: string): HistorySearch {
  return { ...search, query, index: query === '' ? null : findOlder(search.texts, query, search.texts.length) }
}

/** The search at the next older match; unchanged if there is none. */
function searchOlder(search: HistorySearch): HistorySearch {
  if (search.index === null) return search
  return { ...search, index: findOlder(search.texts, search.query, search.index) ?? search.index }
}

function findOlder(texts: readonly string[], query: string, before: number): number | null {
  // Smart case: capitals in the query match only capitals.
  const folded = query === query.toLowerCase()
  for (let index = before - 1; index >= 0; index -= 1) {
    const text = texts[index] ?? ''
    if ((folded ? text.toLowerCase() : text).includes(query)) return index
  }
  return null
}
