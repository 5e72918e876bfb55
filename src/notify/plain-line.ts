/**
 * A text from outside on one line, at most `limit` characters, as it may stand in a notification: without control
 * characters, line separators and what reorders a line; never half a character.
 */
export function plainLine(text: string, limit: number): string {
  const line = text
    .slice(0, LOOK_AHEAD * limit)
    .toWellFormed()
    .replace(STEERING, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  if (line.length <= limit) return line
  return `${line.slice(0, limit - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** How much of a text is looked at, in limits: most of it could be blanks. */
const LOOK_AHEAD = 4

const STEERING = /[\p{Cc}\u2028\u2029\p{Bidi_Control}]/gu
