import { parse } from 'unbash'
import { programsIn, syntaxErrorIn, verdictOfScript } from './script.ts'
import { isWeak } from './verdict.ts'

/** The most of a line for a shell, in characters. */
const MOST_CHARACTERS = 2_000

/**
 * Why a line for a shell proves nothing, or may not be run at all: the end of a sentence that says how it is mended; null if
 * it may stand. What it is made of is looked at, not how it is written: `true;`, `npm test || :` and `sh -c "exit 0"` succeed
 * whatever the work is like. One that always fails may stand. Pure.
 * @param made files that the change makes: that one of them is there proves nothing
 */
export function weakness(run: string, made: readonly string[] = []): string | null {
  const line = run.trim()
  if (line === '') return `is empty. ${MEND}`
  if (line.length > MOST_CHARACTERS) {
    return `has ${line.length} characters; ${MOST_CHARACTERS} are the most. Put what it does into a script of the project, and run that.`
  }
  if (/[\p{Cc}\u2028\u2029]/u.test(line)) {
    return 'has line breaks or other control characters; write one line, with && or ; between commands.'
  }
  if (/\p{Bidi_Control}/u.test(line)) return 'has characters that reorder it; write it without them.'
  if (isProse(line)) return `is prose, not a command. ${MEND}`
  const script = parse(line)
  const broken = syntaxErrorIn(script)
  if (broken !== null) return `cannot be read as a line for a shell (${broken}); mend its syntax, or simplify it.`
  const forbidden = programsIn(script).find(name => ROOT.has(name))
  if (forbidden !== undefined) {
    return `uses \`${forbidden}\`; commands run in a sandbox, with no more rights than the person has. Leave it out.`
  }
  const verdict = verdictOfScript(script, made)
  return isWeak(verdict) ? `proves nothing: ${verdict.why}. ${MEND}` : null
}

const MEND = 'Name a command that fails as long as the work is not done, such as a test, `grep -q`, or `node -e`.'

/** What would run something as somebody else. */
const ROOT = new Set(['sudo', 'doas', 'su', 'pkexec', 'runuser', 'sudoedit', 'run0', 'gosu'])

/** Words by which sentences begin, and words that no command has among its own. */
const BEGINNINGS =
  /^(?:check|verify|ensure|confirm|make sure|manually|inspect|review|run|execute|start|open|look|see|test that|test if|test whether|the|it|all|there|this|when|if the|please|should|visit|use|compare|observe|validate|assert)\s/i
const FUNCTION_WORDS = /\b(?:the|that|is|are|should|must|works?|correctly|still|whether|without|when)\b/i
const PLAIN_WORD = /^["'(]?[\p{L}'’-]+["')]?[.,:;!?]?$/u

/** Whether a line is a sentence for people. A program of this name, with options or paths, is none. */
function isProse(line: string): boolean {
  const words = line.split(/\s+/)
  const [first = ''] = words
  if (/^[^\p{ASCII}]/u.test(first) && !first.includes('/')) return true
  if (/[&|;<>$=]/.test(line) && !/[.!?]$/.test(line)) return false
  const plain = words.filter(word => PLAIN_WORD.test(word) && !word.startsWith('-')).length
  const isMostlyPlain = plain >= words.length - Math.ceil(words.length / 4)
  if (words.length >= 3 && isMostlyPlain && BEGINNINGS.test(line) && (/^[A-Z]/.test(line) || FUNCTION_WORDS.test(line)))
    return true
  const hasOptions = words.some(word => /^--?\w/.test(word))
  if (words.length >= 3 && isMostlyPlain && !hasOptions && /^\p{Lu}\p{Ll}/u.test(first)) return true
  return words.length >= 4 && plain === words.length && FUNCTION_WORDS.test(words.slice(1).join(' '))
}
