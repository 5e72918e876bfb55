/** A text as it is, or its first `most` characters and an ellipsis. */
export function clipText(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '')}…` : text
}
