import { lastLines } from './text.ts'

/** Patterns of failures from test runners, compilers and shells, each at its place in a line. */
const NAMES_FAILURE = [
  /\bFAIL(?:ED|URES?|S)?\b/,
  /\b(?:fail(?:ed|ing|ures?)|errors?)\b(?=[:;,]|\s*$)/i,
  /\bfailed\b/i,
  /\b[1-9]\d* (?:fail(?:ed|ing|ures?)|errors?)\b/i,
  /\berror(?:\[\w+\]|\s[A-Z]+\d+)?:/i,
  /\b[A-Z]\w*(?:Error|Exception)\b/,
  /^\s*not ok\b/,
  /^\s*(?:✗|✘|×|✖|●|\d+\))\s/,
  /\bpanicked at\b|^Traceback\b|^E\s{2,}\S/,
  /^\s*(?:expected|received|actual)\b.*[:=]/i,
]
/** Table rows (coverage, times) and sums of zero are not failures. */
const NAMES_NONE = /\|.*\||\b0 (?:fail|error)|\bno (?:fail|error)/i

const MAY_NAME = /fail|error|exception|not ok|panicked|traceback|expected|received|actual|[✗✘×✖●]|\d\)\s|^E\s{2}/im

const MOST_LINE = 300

/** Returns true if a text may name a failure; fast, with false positives. */
export function mayNameFailure(text: string): boolean {
  return MAY_NAME.test(text)
}

/** Returns true if an output line names a failure. */
export function namesFailure(line: string): boolean {
  const start = line.slice(0, MOST_LINE)
  return !NAMES_NONE.test(start) && NAMES_FAILURE.some(pattern => pattern.test(start))
}

/**
 * Returns the end of an output in whole lines, at most `limit` characters. The first failure lines of the rest go above it,
 * in at most half of the room. `earlier`: failure lines from before the output.
 */
export function endWithFailures(text: string, limit: number, earlier: readonly string[] = []): string {
  const end = lastLines(text, limit)
  if (end.length === text.length && earlier.length === 0) return end
  const rest = text.slice(0, text.length - end.length)
  const named = namedIn([...earlier, ...rest.split('\n')], limit / 2)
  if (named.length === 0) return end
  const above = [...named, LEFT_OUT].map(line => `${line}\n`).join('')
  const room = limit - above.length
  // Failure lines in the part that is cut now are kept, too.
  const cut = text.slice(text.length - end.length, text.length - lastLines(text, room).length)
  const again = namedIn([...earlier, ...rest.split('\n'), ...cut.split('\n')], limit / 2)
  const head = [...again, LEFT_OUT].map(line => `${line}\n`).join('')
  return head + lastLines(text, Math.max(0, limit - head.length))
}

const LEFT_OUT = '[…]'

function namedIn(lines: readonly string[], limit: number): string[] {
  const named: string[] = []
  let left = limit - LEFT_OUT.length - 1
  for (const line of lines) {
    if (!namesFailure(line)) continue
    const shown = line.slice(0, MOST_LINE).toWellFormed()
    left -= shown.length + 1
    if (left < 0) break
    named.push(shown)
  }
  return named
}
