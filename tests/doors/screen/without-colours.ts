// biome-ignore lint/suspicious/noControlCharactersInRegex: what a theme writes begins with one
const OURS = /\x1b\[[\d;]*m|\x1b\]8;;[!-~]*\x07/g

/** A line without the colours and links of our themes. */
export function withoutColours(line: string): string {
  return line.replace(OURS, '')
}
