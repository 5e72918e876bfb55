/**
 * The first `most` words of a command line as a POSIX shell reads them, parted by single spaces; null if a quote does
 * not end, or something in them stands for something else: `$HOME`, `*`, `;`.
 */
export function shellWords(line: string, most: number): string[] | null {
  const words = ['']
  const part = new RegExp(PART, 'sy')
  for (let start = 0; start < line.length; start = part.lastIndex) {
    part.lastIndex = start
    const found = part.exec(line)
    if (found === null) return null
    const [all, single, double, escaped] = found
    if (all !== ' ') words[words.length - 1] += single ?? double?.replace(ESCAPED, '$1') ?? escaped ?? all
    else if (words.push('') > most) return words.slice(0, most)
  }
  return words
}

// In no order can a character belong to two of these, so that a long text takes no longer than its length.
const PART = / |'([^']*)'|"([^"\\$`]*(?:\\.[^"\\$`]*)*)"|\\([^\n])|[^\s'"\\$`|&;<>()*?[#~{}!^]+/s
// Between double quotes a backslash before any other character is one.
const ESCAPED = /\\(?:\n|([$`"\\]))/g
