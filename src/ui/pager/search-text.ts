/** What is looked for: the text as it stands; capitals count only if it has one. */
export interface Search {
  readonly text: string
  /** Whether a line with colours and links, which do not count, has it. */
  isIn(line: string): boolean
  /** The line with each place marked in reverse video. */
  mark(line: string): string
}

export function searchFor(text: string): Search {
  const source = text.toWellFormed().replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const flags = /\p{Lu}/u.test(text) ? 'u' : 'iu'
  const [one, all] = [new RegExp(source, flags), new RegExp(source, `${flags}g`)]
  return {
    text,
    isIn: line => one.test(plainOf(line)),
    mark: line => markAll(line, all),
  }
}

/** A line without its sequences. */
function plainOf(line: string): string {
  return line.includes(ESC) ? line.replace(SEQUENCE, '') : line
}

function markAll(line: string, pattern: RegExp): string {
  // Each place, as offsets into the plain text: begin, end, begin, end, …
  const edges = [...plainOf(line).matchAll(pattern)].flatMap(({ index, 0: found }) => [index, index + found.length])
  if (edges.length === 0) return line
  let [out, at, passed] = ['', 0, 0]
  const copy = (text: string) => {
    let rest = text
    // What begins where this text ends is marked in the next one, behind the sequences in between.
    const isDue = (edge: number) => edge < at + rest.length || (passed % 2 === 1 && edge === at + rest.length)
    for (let edge = edges[passed]; edge !== undefined && isDue(edge); edge = edges[++passed]) {
      out += rest.slice(0, edge - at) + (passed % 2 === 0 ? REVERSE : NOT_REVERSE)
      rest = rest.slice(edge - at)
      at = edge
    }
    out += rest
    at += rest.length
  }
  let from = 0
  for (const { index, 0: sequence } of line.matchAll(SEQUENCE)) {
    copy(line.slice(from, index))
    // A reset inside what was found must not end the mark.
    out += passed % 2 === 1 ? sequence + REVERSE : sequence
    from = index + sequence.length
  }
  copy(line.slice(from))
  return out
}

const ESC = String.fromCharCode(0x1b)
const SEQUENCE = new RegExp(`${ESC}\\[[\\d;:]*m|${ESC}\\][^\\u0007${ESC}]*(?:\\u0007|${ESC}\\\\)`, 'g')
const REVERSE = '\x1b[7m'
const NOT_REVERSE = '\x1b[27m'
