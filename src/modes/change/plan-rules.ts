import { truncate } from '../../base/text.ts'
import { type Mistake, type Plan, problemOfMistakes, readPlan } from './plan.ts'

/** Returns why an answer is no usable plan, one line per mistake as `readPlan` says it; null: it is one. Pure. */
export function planProblem(value: unknown): string | null {
  const read = readPlan(value)
  if (!read.ok) return read.problem
  const wrong = mistakesOf(read.value)
  return wrong.length === 0 ? null : problemOfMistakes(wrong)
}

/**
 * Most bytes of a plan or list of tasks as JSON in UTF-8, so that it fits into an event; most entries of its lists; most
 * characters of a path.
 */
export const MOST_PLAN_BYTES = 60 * 1024
const MOST = { files: 200, risks: 30, verification: 20, questions: 20 }
const MOST_PATH_CHARACTERS = 500

/** Returns why an answer is too long, even if its read part is short; null: it is not. Pure. */
export function sizeProblem(value: unknown): string | null {
  const size = Buffer.byteLength(JSON.stringify(value))
  return size > MOST_PLAN_BYTES ? problemOfMistakes([tooLarge(size)]) : null
}

/** Returns the mistakes of a plan with a valid shape. Pure. */
export function mistakesOf(plan: Plan): Mistake[] {
  const { description, files, verification } = plan
  const size = Buffer.byteLength(JSON.stringify(plan))
  const whole = size > MOST_PLAN_BYTES ? [tooLarge(size)] : []
  const lists = (Object.keys(MOST) as (keyof typeof MOST)[]).flatMap(list => {
    const count = plan[list].length
    return count > MOST[list]
      ? [{ place: list, wrong: `has ${count} entries; ${MOST[list]} are the most. ${SHORTER}` }]
      : []
  })
  const empty = description === '' ? [{ place: 'description', wrong: 'is empty; say what to do, and how.' }] : []
  return [
    ...whole,
    ...lists,
    ...empty,
    ...files.flatMap(({ path }, at) => mistakeAt(`files[${at}].path`, problemOfPath(path))),
    ...verification.flatMap(({ run }, at) => mistakeAt(`verification[${at}].run`, problemOfRun(run))),
  ]
}

/** Returns a mistake, if there is one. */
export function mistakeAt(place: string, wrong: string | null): Mistake[] {
  return wrong === null ? [] : [{ place, wrong }]
}

/** Returns the mistake of an answer with too many bytes as JSON. */
export function tooLarge(bytes: number): Mistake {
  return { place: '', wrong: `has ${bytes} bytes as JSON; ${MOST_PLAN_BYTES} (60 KiB) are the most. ${SHORTER}` }
}

const SHORTER = 'Say it in fewer words.'

/** Returns the end of a sentence on why a path names no file of the project; null: it may name one. Pure. */
export function problemOfPath(path: string): string | null {
  const example = 'write one from the root of the project, such as "src/a.ts".'
  if (path === '') return `names no file; ${example}`
  if (path.length > MOST_PATH_CHARACTERS) return `has ${path.length} characters; ${MOST_PATH_CHARACTERS} are the most.`
  const shown = JSON.stringify(truncate(path, 80))
  if (/[\p{Cc}\u2028\u2029\p{Bidi_Control}]/u.test(path)) return `is ${shown}, which has control characters; ${example}`
  if (/^(?:[/\\~]|[a-z]:[/\\])/i.test(path)) return `is ${shown}, an absolute path; ${example}`
  const parts = path.split(/[/\\]/)
  if (parts.includes('..')) return `is ${shown}, which leads out of a folder by ".."; ${example}`
  if (parts.some(part => /^\.(?:git|codemachine)$/i.test(part))) {
    return `is ${shown}, which lies in .git or .codemachine; those are not to be changed. Leave it out.`
  }
  return parts.every(part => part === '' || part === '.') ? `is ${shown}, which names no file; ${example}` : null
}

const MOST_RUN_CHARACTERS = 2_000
const MEND = 'Name a command that fails as long as the work is not done, such as a test, `grep -q`, or `node -e`.'
const SENTENCE = /^(?:\p{Lo}|\p{Lu}\p{Ll}+(?:\s+[\p{L}\p{N}\u2019']+[.,:!?]?){2,}$)/u
const AS_ROOT = /(?:^|[;&|(]\s*|\/)(sudo|doas|su|pkexec)\s/
const ALWAYS_SUCCEEDS = /^(?:true|:|exit(?: 0)?|(?:echo|printf)(?:\s[^&|;<>`$]*)?|)$/

/** Why a line for a shell is no check, the end of a sentence; null if it may be run, and shows then whether it is one. Pure. */
export function problemOfRun(run: string): string | null {
  const line = run.trim()
  if (line === '') return `is empty. ${MEND}`
  if (line.length > MOST_RUN_CHARACTERS)
    return `has ${line.length} characters; ${MOST_RUN_CHARACTERS} are the most. Put what it does into a script of the project, and run that.`
  if (/[\p{Cc}\u2028\u2029]/u.test(line))
    return 'has line breaks or other control characters; write one line, with && or ; between commands.'
  if (/\p{Bidi_Control}/u.test(line)) return 'has characters that reorder it; write it without them.'
  if (SENTENCE.test(line)) return `is a sentence, not a command. ${MEND}`
  const root = AS_ROOT.exec(line)?.[1]
  if (root !== undefined)
    return `uses \`${root}\`; commands run in a sandbox, with no more rights than the person has. Leave it out.`
  const isIdle = line.split(/;|&&|\|\|/).every(part => ALWAYS_SUCCEEDS.test(part.trim()))
  return isIdle ? `proves nothing: it succeeds whatever the work is like. ${MEND}` : null
}
