/** What a piece of text is, which decides how it is painted. */
export type Role =
  | 'plain'
  | 'dim'
  | 'strong'
  | 'emphasis'
  | 'accent'
  | 'good'
  | 'warning'
  | 'bad'
  | 'heading'
  | 'code'
  | 'link'
  | 'quote'
  | 'person'
  | 'added'
  | 'removed'
  | 'hunk'
  | 'keyword'
  | 'string'
  | 'number'
  | 'comment'
  | 'name'
  | 'type'
  | 'selected'

/** How things look on this terminal. */
export interface Theme {
  /** The text with the SGR sequences of its role around it, or as it is where there are no colours. */
  paint(role: Role, text: string): string
  /** The text as a link (OSC 8) where the terminal is trusted with it, else the text alone. */
  link(text: string, url: string): string
  /** A text in a gradient, each element of `lines` a row of the same figure; as it is where there are no colours. */
  gradient(lines: readonly string[]): string[]
  /** Whether box drawing and other symbols are used; a screen reader gets words. */
  readonly symbols: boolean
}
