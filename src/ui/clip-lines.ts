import { clipEnd } from '../base/clip.ts'

const MOST_CHARACTERS = 8000

/** The first `limit` lines of a text (and at most 8,000 characters), then `rest` if some were left out. */
export function clipLines(text: string, limit: number, rest: string): string {
  const trimmed = text.trim()
  const lines = trimmed.split('\n')
  if (lines.length <= limit && trimmed.length <= MOST_CHARACTERS) return trimmed
  const shown = clipEnd(lines.slice(0, limit).join('\n'), MOST_CHARACTERS)
  const left = lines.length - limit
  return `${shown}\n[… ${left > 0 ? `${left} more ${left === 1 ? 'line' : 'lines'}; ` : ''}${rest}]`
}
