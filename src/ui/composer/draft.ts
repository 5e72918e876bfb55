import { addChip, CHIP, type Chips, cleanText, foldLarge, isChip, withoutImpostors } from './chips.ts'
import { placeCaret } from './text.ts'
import { EMPTY_BUFFER, type TextBuffer } from './text-buffer.ts'

/** An unsent text as it can be written to a file (JSON); the caret is counted in UTF-16 units, a pasted part as two. */
export interface Draft {
  readonly parts: readonly (string | { readonly pasted: string })[]
  readonly caret: number
}

/** What there is to keep of a text that was not sent. */
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

/** The text of a draft to go on with. */
export function bufferOf({ parts, caret }: Draft): TextBuffer {
  let chips: Chips = new Map()
  let all = ''
  for (const part of parts) {
    const clean = cleanText(typeof part === 'string' ? part : part.pasted)
    const chip = typeof part === 'string' ? null : foldLarge(clean)
    const held = chip === null ? withoutImpostors(clean, chips) : addChip(chips, chip)
    all += 'text' in held ? held.text : held.character
    chips = held.chips
  }
  const before = all.slice(0, Math.max(0, caret)).split('\n')
  const place = { row: before.length - 1, column: before.at(-1)?.length ?? 0 }
  return { ...EMPTY_BUFFER, chips, text: placeCaret({ lines: all.split('\n'), row: 0, column: 0 }, place) }
}
