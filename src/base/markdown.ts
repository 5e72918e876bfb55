/** Returns a one-line text as inline code, between more backticks than its longest run. */
export function inlineCode(text: string): string {
  const longest = longestRun(text)
  const ticks = '`'.repeat(longest + 1)
  return longest === 0 ? `\`${text}\`` : `${ticks} ${text} ${ticks}`
}

/**
 * Returns a text as a code block that none of its lines can close, without final line breaks.
 * @param language word after the fence
 */
export function codeBlock(text: string, language = ''): string {
  const longest = Math.max(2, longestRun(text))
  const fence = '`'.repeat(Math.min(longest + 1, MOST_TICKS))
  // Longer runs are broken up, so the fence stays short.
  const content = longest < MOST_TICKS ? text : text.replace(/`{3,}/g, run => `${run.slice(0, 2)}\u200b`)
  return `${fence}${language}\n${content.replace(/\n+$/, '')}\n${fence}`
}

const MOST_TICKS = 100

function longestRun(text: string): number {
  let longest = 0
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length)
  return longest
}
