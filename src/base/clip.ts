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
