import {
  addChip,
  CHIP,
  type Chips,
  cleanText,
  EMPTY_TEXT,
  endOf,
  escapePlaceholders,
  expandChips,
  foldLarge,
  insertAt,
  isChip,
  type Place,
  placeCaret,
  removeTo,
  type Text,
} from './text.ts'

/** A text that is being edited, with its undo stack and kill ring. Immutable. */
export interface TextBuffer {
  readonly text: Text
  readonly chips: Chips
  /** The undo stack, the newest text last. */
  readonly undo: readonly Text[]
  /** The kill ring, the newest text first. */
  readonly ring: readonly string[]
  readonly last: LastEdit | null
  /** The column of cells that vertical moves keep to; null after any other edit. */
  readonly goal: number | null
}

/** The last edit, for those that are merged with it. */
type LastEdit =
  | { kind: 'typed'; spaced: boolean }
  | { kind: 'erased' }
  | { kind: 'killed' }
  | { kind: 'yanked'; before: Text; index: number }

/** An empty buffer. */
export const EMPTY_BUFFER: TextBuffer = {
  text: EMPTY_TEXT,
  chips: new Map(),
  undo: [],
  ring: [],
  last: null,
  goal: null,
}

/** Types a text at the caret; undo takes it back word by word. */
export function type(buffer: TextBuffer, typed: string): TextBuffer {
  const held = escapePlaceholders(cleanText(typed), buffer.chips)
  if (held.text === '') return buffer
  const { last } = buffer
  const spaced = /\s$/.test(held.text)
  const goesOn = last?.kind === 'typed' && (spaced || !last.spaced)
  const text = insertAt(buffer.text, held.text)
  return { ...changed(buffer, text, goesOn), chips: held.chips, last: { kind: 'typed', spaced } }
}

/** Inserts a text as one edit; a large one as a chip. */
export function paste(buffer: TextBuffer, pasted: string): TextBuffer {
  const clean = cleanText(pasted)
  if (clean === '') return buffer
  const chip = foldLarge(clean)
  const { text, chips } = chip === null ? escapePlaceholders(clean, buffer.chips) : addChip(buffer.chips, chip)
  return { ...changed(buffer, insertAt(buffer.text, text)), chips }
}

// A longer line would make every key slow.
const LINE_CHARS = 10_000

/** Replaces the whole text, the caret at its end. A line of more than 10,000 characters becomes a chip. */
export function replaceAll(buffer: TextBuffer, replacement: string): TextBuffer {
  let { chips } = buffer
  const lines: string[] = []
  for (const line of cleanText(replacement).split('\n')) {
    const chip = line.length > LINE_CHARS ? foldLarge(line) : null
    const held = chip === null ? escapePlaceholders(line, chips) : addChip(chips, chip)
    lines.push(held.text)
    chips = held.chips
  }
  const text = { lines, row: 0, column: 0 }
  return { ...changed(buffer, { ...text, ...endOf(text) }), chips }
}

/** Deletes the text between the caret and a place, without keeping it for yank. */
export function erase(buffer: TextBuffer, to: Place): TextBuffer {
  const { text, removed } = removeTo(buffer.text, to)
  if (removed === '') return buffer
  return { ...changed(buffer, text, buffer.last?.kind === 'erased'), last: { kind: 'erased' } }
}

const MOST_KILLS = 30

/** Deletes the text between the caret and a place into the kill ring; joined with the kill directly before it. */
export function kill(buffer: TextBuffer, to: Place): TextBuffer {
  const { text, removed } = removeTo(buffer.text, to)
  if (removed === '') return { ...buffer, last: buffer.last?.kind === 'killed' ? buffer.last : null }
  const backward = to.row < buffer.text.row || (to.row === buffer.text.row && to.column < buffer.text.column)
  const [newest = '', ...older] = buffer.last?.kind === 'killed' ? buffer.ring : ['', ...buffer.ring]
  const ring = [backward ? removed + newest : newest + removed, ...older].slice(0, MOST_KILLS)
  return { ...changed(buffer, text), ring, last: { kind: 'killed' } }
}

/** Inserts the newest text of the kill ring. */
export function yank(buffer: TextBuffer): TextBuffer {
  return yankFrom(buffer, buffer.text, 0, false)
}

/** Replaces the text that was just yanked by the next older one of the kill ring; no change after any other edit. */
export function yankOlder(buffer: TextBuffer): TextBuffer {
  if (buffer.last?.kind !== 'yanked') return buffer
  return yankFrom(buffer, buffer.last.before, (buffer.last.index + 1) % buffer.ring.length, true)
}

function yankFrom(buffer: TextBuffer, before: Text, index: number, goesOn: boolean): TextBuffer {
  const killed = buffer.ring[index]
  if (killed === undefined) return buffer
  return { ...changed(buffer, insertAt(before, killed), goesOn), last: { kind: 'yanked', before, index } }
}

/** Takes the last edit back. */
export function undo(buffer: TextBuffer): TextBuffer {
  const text = buffer.undo.at(-1)
  return text === undefined ? buffer : { ...buffer, text, undo: buffer.undo.slice(0, -1), last: null, goal: null }
}

/** Moves the caret. `goal`: the column of cells that the next vertical move keeps to. */
export function moveTo(buffer: TextBuffer, place: Place, goal: number | null = null): TextBuffer {
  return { ...buffer, text: placeCaret(buffer.text, place), last: null, goal }
}

/** An empty buffer with the same kill ring. */
export function cleared(buffer: TextBuffer): TextBuffer {
  const kept = new Set(buffer.ring.flatMap(killed => [...killed]))
  const chips = new Map([...buffer.chips].filter(([character]) => kept.has(character)))
  return { ...EMPTY_BUFFER, ring: buffer.ring, chips }
}

/** The whole text as it is sent, with chips expanded. */
export function expanded({ text, chips }: TextBuffer): string {
  return expandChips(text.lines.join('\n'), chips)
}

const MOST_UNDOS = 100

function changed(buffer: TextBuffer, text: Text, goesOn = false): TextBuffer {
  const undo = goesOn ? buffer.undo : [...buffer.undo.slice(-MOST_UNDOS + 1), buffer.text]
  return { ...buffer, text, undo, last: null, goal: null }
}

/** An unsent text as JSON for a file; `caret` is in UTF-16 units, where a pasted part counts as two. */
export interface Draft {
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
    all += added.text
    chips = added.chips
  }
  const before = all.slice(0, Math.max(0, caret)).split('\n')
  const place = { row: before.length - 1, column: before.at(-1)?.length ?? 0 }
  return { ...EMPTY_BUFFER, chips, text: placeCaret({ lines: all.split('\n'), row: 0, column: 0 }, place) }
}
