/** A text that stands in the field as one thing: what is sent for it, and what is shown of it. */
export interface Chip {
  readonly text: string
  readonly label: string
}

/** The chips of a field by the character that stands for each, one of plane 16. */
export type Chips = ReadonlyMap<string, Chip>

/** Whether a text is a character that stands for a chip. */
export function isChip(text: string): boolean {
  const code = text.codePointAt(0) ?? 0
  return code >= FIRST && code <= LAST
}

/** What stands for chips, apart: to split a line at them or to replace them. */
export const CHIP = /([\u{100000}-\u{10FFFD}])/gu

/** A text as it is taken into a field: newlines as LF, no control characters but them and tabs, whole surrogate pairs. */
export function cleanText(text: string): string {
  const lines = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text
  return lines.toWellFormed().replace(CONTROLS, '')
}

// Every control character but newline and tab.
const CONTROLS = /[^\n\t\P{Cc}]+/gu

/** A cleaned text with every character that would pass for a chip made into one, so that it is sent as it came. */
export function withoutImpostors(text: string, chips: Chips): { text: string; chips: Chips } {
  if (!MAY_BE_CHIP.test(text)) return { text, chips }
  let all = chips
  const held = text.replace(CHIP, character => {
    const label = `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}>`
    const added = addChip(all, { text: character, label })
    all = added.chips
    return added.character
  })
  return { text: held, chips: all }
}

// The first halves of the surrogate pairs of plane 16.
const MAY_BE_CHIP = /[\uDBC0-\uDBFF]/

/** A cleaned text as a chip if it is a large one (more than 10 lines or 2,000 characters), else null. */
export function foldLarge(text: string): Chip | null {
  const lines = countLines(text)
  if (lines <= MOST_LINES && text.length <= MOST_CHARACTERS) return null
  const [count, noun] = lines > MOST_LINES ? [lines, 'lines'] : [text.length, 'characters']
  return { text, label: `[${count.toLocaleString('en-US')} ${noun} pasted]` }
}

const MOST_LINES = 10
const MOST_CHARACTERS = 2_000

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/**
 * The chips with one more, or the one with the same text that they hold already, and the character that stands for it.
 * Of more chips than anybody makes by hand nothing is kept but a replacement character.
 */
export function addChip(chips: Chips, chip: Chip): { chips: Chips; character: string } {
  let next = FIRST
  for (const [character, { text, label }] of chips) {
    if (text === chip.text && label === chip.label) return { chips, character }
    next = Math.max(next, (character.codePointAt(0) ?? 0) + 1)
  }
  if (chips.size >= MOST_CHIPS) return { chips, character: '\ufffd' }
  const character = String.fromCodePoint(next)
  return { chips: new Map([...chips, [character, chip]]), character }
}

const MOST_CHIPS = 10_000
const FIRST = 0x100000
const LAST = 0x10fffd

/** A text of the field with its chips replaced by what they stand for. */
export function expandChips(text: string, chips: Chips): string {
  return MAY_BE_CHIP.test(text) ? text.replace(CHIP, character => chips.get(character)?.text ?? '') : text
}
