/** A text on one line as code in Markdown: between more backticks than it has itself in a row. */
export function inlineCode(text: string): string {
  const longest = longestRun(text)
  const ticks = '`'.repeat(longest + 1)
  return longest === 0 ? `\`${text}\`` : `${ticks} ${text} ${ticks}`
}

/**
 * A text as a block of code in Markdown that no line of it closes, without the line breaks at its end.
 * @param language stands behind the fence
 */
export function codeBlock(text: string, language = ''): string {
  const longest = Math.max(2, longestRun(text))
  const fence = '`'.repeat(Math.min(longest + 1, MOST_TICKS))
  // A run as long as that is broken up, so that no fence grows with the text.
  const content = longest < MOST_TICKS ? text : text.replace(/`{3,}/g, run => `${run.slice(0, 2)}\u200b`)
  return `${fence}${language}\n${content.replace(/\n+$/, '')}\n${fence}`
}

const MOST_TICKS = 100

function longestRun(text: string): number {
  let longest = 0
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  return longest
}
