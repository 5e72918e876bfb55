/** The first `limit` characters of a text, with a note of how much was left out; never cuts a surrogate pair. */
export function clipEnd(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}\n[… ${text.length - limit} more characters]`
}

/** The last `limit` characters of a text, with a note of how much was left out before. */
export function clipStart(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `[${text.length - limit} characters before …]\n${text.slice(-limit).toWellFormed()}`
}

/** The last lines of a text that have at most `limit` characters together; of a line that is longer its last words. */
export function lastLines(text: string, limit: number): string {
  if (text.length <= limit) return text
  const end = text.slice(-limit - 1)
  const cut = end.indexOf('\n')
  if (cut !== -1) return end.slice(cut + 1)
  return end.slice(Math.max(1, end.search(/\s/) + 1)).toWellFormed()
}
