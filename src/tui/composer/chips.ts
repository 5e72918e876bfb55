/** A pasted text that is shown and edited as one character: `text` is sent, `label` is shown. */
interface Chip {
  readonly text: string
  readonly label: string
}

/** The chips of a field by their placeholder, a private-use character of plane 16. */
export type Chips = ReadonlyMap<string, Chip>

/** Whether a text begins with the placeholder of a chip. */
export function isChip(text: string): boolean {
  const code = text.codePointAt(0) ?? 0
  return code >= FIRST && code <= LAST
}

/** Matches the placeholder of a chip, to split a line at them or to replace them. */
export const CHIP = /([\u{100000}-\u{10FFFD}])/gu

/** A text with every placeholder character that was typed or pasted turned into a chip of itself, so that it is sent as it is. */
export function escapePlaceholders(text: string, chips: Chips): { text: string; chips: Chips } {
  if (!MAY_BE_CHIP.test(text)) return { text, chips }
  let all = chips
  const escaped = text.replace(CHIP, character => {
    const label = `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}>`
    const added = addChip(all, { text: character, label })
    all = added.chips
    return added.character
  })
  return { text: escaped, chips: all }
}

// The high surrogates of plane 16.
const MAY_BE_CHIP = /[\uDBC0-\uDBFF]/

/** The chip for a large text (more than 10 lines or 2,000 characters); null for any other. */
export function foldLarge(text: string): Chip | null {
  const lines = countLines(text)
  if (lines <= MOST_LINES && text.length <= MOST_CHARS) return null
  const [count, noun] = lines > MOST_LINES ? [lines, 'lines'] : [text.length, 'characters']
  return { text, label: `[${count.toLocaleString('en-US')} ${noun} pasted]` }
}

const MOST_LINES = 10
const MOST_CHARS = 2_000

function countLines(text: string): number {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < text.length - 1; at = text.indexOf('\n', at + 1)) lines += 1
  return lines
}

/**
 * The chips with one more (or with the equal one that they hold already), and its placeholder. Beyond 10,000 chips the text
 * is lost: the character is U+FFFD.
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

/** A text with the placeholders replaced by the texts of their chips. */
export function expandChips(text: string, chips: Chips): string {
  return MAY_BE_CHIP.test(text) ? text.replace(CHIP, character => chips.get(character)?.text ?? '') : text
}
