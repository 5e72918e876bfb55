import {
  addChip,
  type Chips,
  cleanText,
  EMPTY_TEXT,
  endOf,
  expandChips,
  foldLarge,
  insertAt,
  type Place,
  placeCaret,
  removeTo,
  type Text,
  withoutImpostors,
} from './text.ts'

/** A text that is being edited, with what editing it needs to remember. Never changed in place. */
export interface TextBuffer {
  readonly text: Text
  readonly chips: Chips
  /** The texts to go back to, the newest last. */
  readonly undo: readonly Text[]
  /** What was killed, the newest first. */
  readonly ring: readonly string[]
  readonly last: LastEdit | null
  /** The cell that moves up and down keep to, from the start of the row. */
  readonly goal: number | null
}

/** The edit that was just made, for those that go on with it. */
type LastEdit =
  | { kind: 'typed'; spaced: boolean }
  | { kind: 'erased' }
  | { kind: 'killed' }
  | { kind: 'yanked'; before: Text; index: number }

/** A buffer with nothing in it. */
export const EMPTY_BUFFER: TextBuffer = {
  text: EMPTY_TEXT,
  chips: new Map(),
  undo: [],
  ring: [],
  last: null,
  goal: null,
}

/** Types a text at the caret; what is typed in one go is undone in one go, word by word. */
export function type(buffer: TextBuffer, typed: string): TextBuffer {
  const held = withoutImpostors(cleanText(typed), buffer.chips)
  if (held.text === '') return buffer
  const { last } = buffer
  const spaced = /\s$/.test(held.text)
  const goesOn = last?.kind === 'typed' && (spaced || !last.spaced)
  const text = insertAt(buffer.text, held.text)
  return { ...changed(buffer, text, goesOn), chips: held.chips, last: { kind: 'typed', spaced } }
}

/** Puts in a text as one edit: a large one as a chip, any other as it is. */
export function paste(buffer: TextBuffer, pasted: string): TextBuffer {
  const clean = cleanText(pasted)
  if (clean === '') return buffer
  const chip = foldLarge(clean)
  if (chip === null) {
    const held = withoutImpostors(clean, buffer.chips)
    return { ...changed(buffer, insertAt(buffer.text, held.text)), chips: held.chips }
  }
  const { chips, character } = addChip(buffer.chips, chip)
  return { ...changed(buffer, insertAt(buffer.text, character)), chips }
}

// A longer line than anybody writes would make every key slow.
const MOST_IN_LINE = 10_000

/** The text in place of all that there is, the caret at its end. Only lines that nobody could edit become chips. */
export function replaceAll(buffer: TextBuffer, replacement: string): TextBuffer {
  let { chips } = buffer
  const lines: string[] = []
  for (const line of cleanText(replacement).split('\n')) {
    const chip = line.length > MOST_IN_LINE ? foldLarge(line) : null
    const added = chip === null ? null : addChip(chips, chip)
    const held = added === null ? withoutImpostors(line, chips) : { text: added.character, chips: added.chips }
    lines.push(held.text)
    chips = held.chips
  }
  const text = { lines, row: 0, column: 0 }
  return { ...changed(buffer, { ...text, ...endOf(text) }), chips }
}

/** Takes away what is between the caret and a place; it is not kept for yanking. */
export function erase(buffer: TextBuffer, to: Place): TextBuffer {
  const { text, removed } = removeTo(buffer.text, to)
  if (removed === '') return buffer
  return { ...changed(buffer, text, buffer.last?.kind === 'erased'), last: { kind: 'erased' } }
}

const MOST_KILLS = 30

/** Takes away what is between the caret and a place and keeps it for yanking, together with the kill just before. */
export function kill(buffer: TextBuffer, to: Place): TextBuffer {
  const { text, removed } = removeTo(buffer.text, to)
  if (removed === '') return { ...buffer, last: buffer.last?.kind === 'killed' ? buffer.last : null }
  const backward = to.row < buffer.text.row || (to.row === buffer.text.row && to.column < buffer.text.column)
  const [newest = '', ...older] = buffer.last?.kind === 'killed' ? buffer.ring : ['', ...buffer.ring]
  const ring = [backward ? removed + newest : newest + removed, ...older].slice(0, MOST_KILLS)
  return { ...changed(buffer, text), ring, last: { kind: 'killed' } }
}

/** Puts in what was killed last. */
export function yank(buffer: TextBuffer): TextBuffer {
  return yankFrom(buffer, buffer.text, 0, false)
}

/** Puts in an older kill in place of the one just yanked; nothing if none was. */
export function yankOlder(buffer: TextBuffer): TextBuffer {
  if (buffer.last?.kind !== 'yanked') return buffer
  return yankFrom(buffer, buffer.last.before, (buffer.last.index + 1) % buffer.ring.length, true)
}

function yankFrom(buffer: TextBuffer, before: Text, index: number, goesOn: boolean): TextBuffer {
  const killed = buffer.ring[index]
  if (killed === undefined) return buffer
  return { ...changed(buffer, insertAt(before, killed), goesOn), last: { kind: 'yanked', before, index } }
}

/** The text as it was before the last edit. */
export function undo(buffer: TextBuffer): TextBuffer {
  const text = buffer.undo.at(-1)
  return text === undefined ? buffer : { ...buffer, text, undo: buffer.undo.slice(0, -1), last: null, goal: null }
}

/** Moves the caret; a move up or down says which cell the next one keeps to. */
export function moveTo(buffer: TextBuffer, place: Place, goal: number | null = null): TextBuffer {
  return { ...buffer, text: placeCaret(buffer.text, place), last: null, goal }
}

/** An empty buffer that still knows what was killed. */
export function cleared(buffer: TextBuffer): TextBuffer {
  const kept = new Set(buffer.ring.flatMap(killed => [...killed]))
  const chips = new Map([...buffer.chips].filter(([character]) => kept.has(character)))
  return { ...EMPTY_BUFFER, ring: buffer.ring, chips }
}

/** The whole text as it is sent, chips expanded. */
export function expanded({ text, chips }: TextBuffer): string {
  return expandChips(text.lines.join('\n'), chips)
}

const MOST_UNDOS = 100

function changed(buffer: TextBuffer, text: Text, goesOn = false): TextBuffer {
  const undo = goesOn ? buffer.undo : [...buffer.undo.slice(-MOST_UNDOS + 1), buffer.text]
  return { ...buffer, text, undo, last: null, goal: null }
}

/** A walk through what was sent before; the texts are without duplicates, the newest last. */
export interface HistoryWalk<Draft> {
  readonly texts: readonly string[]
  /** Which text is shown. */
  readonly index: number
  /** What was in the field when the walk began. */
  readonly draft: Draft
}

/** A search backwards through what was sent before. */
export interface HistorySearch {
  readonly query: string
  readonly texts: readonly string[]
  /** Which text is shown, or null before anything was typed and where nothing matches. */
  readonly index: number | null
}

/** The texts of a history, each where it was sent last. */
export function withoutDuplicates(entries: readonly string[]): string[] {
  return [...new Set(entries.toReversed())].reverse()
}

/** The nearest older text (-1) or newer one (1) that differs from what is shown; null beyond either end. */
export function walkTo(texts: readonly string[], from: number, direction: -1 | 1, shown: string): number | null {
  let index = from + direction
  while (texts[index] === shown) index += direction
  return index >= 0 && index < texts.length ? index : null
}

/** The search for another query, from the newest on. */
export function searchFor(search: HistorySearch, query: string): HistorySearch {
  return { ...search, query, index: query === '' ? null : findOlder(search.texts, query, search.texts.length) }
}

/** The next older match; stays where there is none. */
export function searchOlder(search: HistorySearch): HistorySearch {
  if (search.index === null) return search
  return { ...search, index: findOlder(search.texts, search.query, search.index) ?? search.index }
}

function findOlder(texts: readonly string[], query: string, before: number): number | null {
  // As in readline's smart relatives: capitals in the query mean capitals.
  const folded = query === query.toLowerCase()
  for (let index = before - 1; index >= 0; index -= 1) {
    const text = texts[index] ?? ''
    if ((folded ? text.toLowerCase() : text).includes(query)) return index
  }
  return null
}
