import type { Secret } from '../core/shapes/secrets.ts'
import { codesOf, type FormSearch, formSearchOf } from './form-search.ts'
import { knownForms, solidForms, solidOf } from './secret-forms.ts'
import { partSearchOf } from './secret-parts.ts'

/**
 * Replaces secrets in what is stored or shown. Finds a value as it is, JSON-escaped (once or twice), percent-encoded, and
 * by each of its longer lines; also where it is cut in pieces by what steers a terminal, such as colours. With `isEncoded` also
 * in base64 wherever it stands in what is encoded (standard and URL-safe; with the characters that hold a part of it), in hex digits of either case (alone, and with `:`,
 * `-`, `%` or `\x` between them), as a list of numbers, and all that wrapped over lines, grouped or indented, and
 * long parts of it (`partSearchOf`). Does not find a short part of a value, nor what is compressed, encrypted, reversed, quoted piece by piece, or printed beside offsets as `xxd` does:
 * redact before a text is cut at a length limit, and hold back what `cutUnfinished` says of one that comes in pieces.
 */
export interface Redactor {
  text(text: string): string
  /** A copy of a JSON-like value with all its texts redacted; the same object if nothing was found. */
  event<T>(event: T): T
  /** A line of JSON; it stays valid JSON. */
  line(line: string): string
  /** How many characters at the end of a text that still grows may be the beginning of a secret. */
  unfinished(text: string): number
}

/**
 * Makes the redactor of these secrets. A text without any costs one scan, whatever the number and length of the secrets, and
 * one more where some are encoded.
 */
export function redactorOf(secrets: readonly Secret[]): Redactor {
  const forms = knownForms(secrets)
  if (forms.size === 0) return nothingSecret
  const solid = solidForms(knownForms(secrets.filter(({ isEncoded }) => isEncoded)))
  const [search, solidSearch] = [formSearchOf(forms), formSearchOf(solid)]
  const [parts, solidParts] = [partSearchOf(secrets, false), partSearchOf(secrets, true)]
  const shortest = Math.min(search.shortest, solidSearch.shortest, parts?.shortest ?? search.shortest)
  const text = (text: string) => {
    if (text.length < shortest) return text
    const whole = replacedWithin(text, search)
    const across = solid.size === 0 ? whole : replacedAcrossLines(whole, solidSearch)
    // What is left of a secret: of one that stands there whole nothing is.
    const within = parts === null ? across : replacedWithin(across, parts)
    return solidParts === null ? within : replacedAcrossLines(within, solidParts)
  }
  return {
    text,
    event: event => redacted(event, text, STRUCTURE),
    line: line => redactedLine(line, text),
    unfinished: text => unfinishedIn(text, search, solid.size === 0 ? null : solidSearch),
  }
}

/** The most characters that are held back: secrets are shorter, but what steers a terminal may stand between theirs. */
const MOST_HELD = 64 * 1024

/**
 * A text that comes in pieces, cut where what may be the beginning of a secret begins: `whole` can be redacted and shown, `held`
 * belongs before the next piece. Both are as they came.
 */
export function cutUnfinished(redactor: Redactor, text: string): { whole: string; held: string } {
  const length = redactor.unfinished(text)
  if (length === 0 || length > MOST_HELD) return { whole: text, held: '' }
  const [whole, held] = [text.slice(0, -length), text.slice(-length)]
  // A secret may end with what another one begins with: then it is whole.
  const isCut = redactor.text(whole) + redactor.text(held) !== redactor.text(text)
  return isCut ? { whole: text, held: '' } : { whole, held }
}

/** What ESC is called after backslashes, and what ends a string of a terminal with them. */
const ESC = '(?:u001b|x1b|033|e)'
const BELL = '(?:u0007|x07|007|a)'
const CONTROL = String.raw`\0-\x1f\x7f-\x9f`
/**
 * A title, a link or what else is a string to a terminal, to its end: BEL, or ESC and a backslash, of which JSON writes two for
 * each before its ESC. No control character stands in one, and a row of backslashes only as a whole.
 */
const STRING = String.raw`(?:[^${CONTROL}\\]|(?<!\\)\\+(?![\\]|${ESC}|${BELL}))*(?:\x07|\x9c|\x1b\\|\\+${BELL}|(?<up>\\+)${ESC}\k<up>{1,2})`

/**
 * What a terminal shows nothing of: escape sequences, as they are and as JSON writes them, once or twice, and control
 * characters but for tabs and line ends. Written by hand too, as `\\e` and `\\033`. `row`: the backslashes of what is written.
 */
function steering(row: string): string {
  return [
    // What begins a string, of colours and the like, and short ones.
    String.raw`(?:(?:\x1b|${row}${ESC})[\]PX^_]|[\x90\x98\x9d-\x9f])${STRING}`,
    String.raw`(?:\x1b|${row}${ESC})(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z\\^-~])`,
    String.raw`\x9b[0-?]*[ -/]*[@-~]`,
    String.raw`[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]`,
    `${row}(?:[bf]|u00(?:0[0-8bcef]|1[0-9a-f]|7f))`,
  ].join('|')
}
// A row of backslashes is gone through once and not from each of them, which would take its square in time: a text is
// searched for rows that begin, and of those that steer nothing each is taken as a whole.
const STEERS = new RegExp(steering(String.raw`(?<!\\)\\+`), 'i')
const STEERING = new RegExp(String.raw`${steering(String.raw`\\+`)}|(?<row>\\+)`, 'gi')

/** What steers a terminal and is not whole yet, at the end of a text that comes in pieces. */
const UNFINISHED_STEERING = new RegExp(
  String.raw`(?:\x1b(?:\[[0-?]*)?[ -/]*|\x9b[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^${CONTROL}]*\x1b?)$`,
)

/** A text without something, and where what is left stood in the text. */
interface Reduced {
  codes: Uint16Array
  /** How many of `codes` count. */
  length: number
  placeOf(index: number): number
}

function asItIs(text: string): Reduced {
  return { codes: codesOf(text), length: text.length, placeOf: index => index }
}

/** A text without what steers a terminal. */
function withoutSteering(text: string): Reduced {
  const inText: number[] = [0]
  const inPlain: number[] = [0]
  let plain = ''
  let from = 0
  for (const { 0: found, index, groups } of text.matchAll(STEERING)) {
    if (groups?.row !== undefined) continue
    plain += text.slice(from, index)
    from = index + found.length
    inText.push(from)
    inPlain.push(plain.length)
  }
  plain += text.slice(from)
  // By halves: there may be as many pieces as characters.
  const placeOf = (index: number) => {
    let [low, high] = [0, inPlain.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((inPlain[middle] ?? 0) <= index) low = middle
      else high = middle
    }
    return (inText[low] ?? 0) + index - (inPlain[low] ?? 0)
  }
  return { codes: codesOf(plain), length: plain.length, placeOf }
}

function withoutGaps(before: Reduced, cutBy: 'lines' | 'diff'): Reduced {
  const places = new Uint32Array(before.length)
  const { codes, length } = solidOf(before.codes, cutBy, places)
  return { codes, length, placeOf: index => before.placeOf(places[index] ?? 0) }
}

function replacedWithin(text: string, search: Pick<FormSearch, 'open'>): string {
  const once = replaced(text, asItIs(text), search)
  return STEERS.test(once) ? replaced(once, withoutSteering(once), search) : once
}

/** Secrets are looked for in what is left of a text; what was left out within one goes with it. */
function replaced(text: string, { codes, length, placeOf }: Reduced, search: Pick<FormSearch, 'open'>): string {
  let shown = ''
  let from = 0
  const next = search.open(codes, length)
  for (let found = next(0); found !== null; found = next(found.next)) {
    shown += `${text.slice(from, Math.max(from, placeOf(found.at)))}[secret ${found.name}]`
    from = placeOf(found.end - 1) + 1
  }
  return from === 0 ? text : shown + text.slice(from)
}

/** A sign at the beginning of a line, as in a diff. */
const SIGNED = /\n[+-]|\\n[+-]/

function replacedAcrossLines(text: string, search: Pick<FormSearch, 'open'>): string {
  if (!GAP.test(text)) return text
  const across = (text: string, cutBy: 'lines' | 'diff', reduced: (text: string) => Reduced) => {
    const plain = reduced(text)
    const { codes, length } = solidOf(plain.codes, cutBy)
    // Where nothing stands, nobody has to know where what is left stood.
    return search.open(codes, length)(0) === null ? text : replaced(text, withoutGaps(plain, cutBy), search)
  }
  const both = (text: string, cutBy: 'lines' | 'diff') => {
    const once = across(text, cutBy, asItIs)
    return STEERS.test(once) ? across(once, cutBy, withoutSteering) : once
  }
  const once = both(text, 'lines')
  return SIGNED.test(once) ? both(once, 'diff') : once
}

/** What may stand within a form that is wrapped: white space, as it is or as it is written in a text of JSON. */
const GAP = /[\s\0\u200b]|\\[nrt]/

function unfinishedIn(text: string, search: FormSearch, solidSearch: FormSearch | null): number {
  // More is not held back.
  const tail = text.slice(-MOST_HELD - 1)
  const steers = STEERS.test(tail)
  // A secret may be cut by a title that has not come to its end, or stand in it; by a line end of which only the backslash has come.
  const ways = [tail, ...(steers ? [tail.replace(UNFINISHED_STEERING, '')] : []), tail.replace(/(?<!\\)\\+$/, '')]
  // What reads like something that steers a terminal may be a part of a secret: `CORP\backup`.
  const plains = [...new Set(ways)].flatMap(way =>
    [asItIs, ...(steers ? [withoutSteering] : [])].map(of => [way, of(way)] as const),
  )
  const lengths = plains.map(([way, plain]) => {
    const hasGap = solidSearch !== null && GAP.test(way)
    const solid = hasGap ? [withoutGaps(plain, 'lines')] : []
    const diff = hasGap && SIGNED.test(way) ? [withoutGaps(plain, 'diff')] : []
    const across = solidSearch === null ? [] : [...solid, ...diff].map(each => beginsAt(each, solidSearch))
    return tail.length - Math.min(tail.length, beginsAt(plain, search), ...across)
  })
  return Math.max(...lengths)
}

/** Where in the text the longest beginning of a form stands with which what is left of it ends. */
function beginsAt({ codes, length, placeOf }: Reduced, search: FormSearch): number {
  const longest = search.unfinished(codes, length)
  return longest === 0 ? Number.POSITIVE_INFINITY : placeOf(length - longest)
}

/** The redactor of no secrets: returns what it is given. */
export const nothingSecret: Redactor = {
  text: text => text,
  event: event => event,
  line: line => line,
  unfinished: () => 0,
}

/** Keys of events that the fold decides by: never redacted, even where a secret reads like their value. */
const STRUCTURE: ReadonlySet<string> = new Set([
  'type',
  'at',
  'session',
  'directory',
  'host',
  'kind',
  'class',
  'status',
])

function redacted<T>(value: T, text: (text: string) => string, leftAlone: ReadonlySet<string>): T
function redacted(value: unknown, text: (text: string) => string, leftAlone: ReadonlySet<string>): unknown {
  if (typeof value === 'string') return text(value)
  if (typeof value !== 'object' || value === null) return value
  let copy: object | null = null
  for (const [key, before] of Object.entries(value)) {
    if (leftAlone.has(key)) continue
    const after = redacted(before, text, leftAlone)
    if (after === before) continue
    copy ??= Array.isArray(value) ? [...value] : { ...value }
    Reflect.set(copy, key, after)
  }
  return copy ?? value
}

/** Keys of objects too. What then is no JSON any more had a secret across an escape sequence, and is taken apart. */
function redactedLine(line: string, text: (text: string) => string): string {
  const replaced = text(line)
  if (replaced === line || isJson(replaced) || !isJson(line)) return replaced
  return JSON.stringify(redacted(JSON.parse(line), text, new Set()))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
