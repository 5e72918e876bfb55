import type { Secret } from '../core/shapes/secrets.ts'
import { codesOf, type FormSearch, formSearchOf } from './form-search.ts'
import { knownForms, solidForms, solidOf } from './secret-forms.ts'
import { partSearchOf } from './secret-parts.ts'

/**
 * Replaces secrets in stored or shown texts. Finds a value as written, JSON-escaped (once or twice), percent-encoded, or by
 * each longer line. Terminal sequences (colours) may split it. `isEncoded` adds base64 at any offset (standard and URL-safe,
 * with neighbours that contain a part of it), hex digits (both cases, alone or with `:`, `-`, `%` or `\x` between them), and
 * number lists. It also finds these wrapped, grouped or indented, and long parts of a value (`partSearchOf`). Not found:
 * short parts; compressed, encrypted, reversed or piecewise quoted values; values next to offsets, as `xxd` prints. So
 * redact a text before cutting it, and hold back the `cutUnfinished` part of a streamed text.
 */
export interface Redactor {
  text(text: string): string
  /** Returns a copy of a JSON-like value with redacted texts; the same object if nothing was found. */
  event<T>(event: T): T
  /** Redacts a line of JSON, which stays valid JSON. */
  line(line: string): string
  /** Returns how many last characters of a growing text may start a secret. */
  unfinished(text: string): number
}

/**
 * Creates the redactor of these secrets. A text without secrets costs one scan for any number and length of secrets. Encoded
 * ones cost one more.
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
    // Next, parts of secrets; whole ones are already replaced.
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

/** Limit of held back characters: secrets are shorter, but terminal sequences may be inside them. */
const MOST_HELD = 64 * 1024

/**
 * Cuts a streamed text where a secret may start: `whole` can be redacted and shown, `held` belongs before the next piece.
 * Both are unchanged text.
 */
export function cutUnfinished(redactor: Redactor, text: string): { whole: string; held: string } {
  const length = redactor.unfinished(text)
  if (length === 0 || length > MOST_HELD) return { whole: text, held: '' }
  const [whole, held] = [text.slice(0, -length), text.slice(-length)]
  // A secret may end with the start of another one: then it is complete.
  const isCut = redactor.text(whole) + redactor.text(held) !== redactor.text(text)
  return isCut ? { whole: text, held: '' } : { whole, held }
}

/** Names of ESC after backslashes, and of BEL, which ends a terminal string. */
const ESC = '(?:u001b|x1b|033|e)'
const BELL = '(?:u0007|x07|007|a)'
const CONTROL = String.raw`\0-\x1f\x7f-\x9f`
/**
 * A terminal string (title, link, …) to its end: BEL, or ESC and a backslash; JSON writes two backslashes for each one
 * before its ESC. It contains no control character, and a row of backslashes only as a whole.
 */
const STRING = String.raw`(?:[^${CONTROL}\\]|(?<!\\)\\+(?![\\]|${ESC}|${BELL}))*(?:\x07|\x9c|\x1b\\|\\+${BELL}|(?<up>\\+)${ESC}\k<up>{1,2})`

/**
 * Returns a pattern of invisible terminal text: escape sequences, as written and as JSON writes them, once or twice, and
 * control characters except tabs and line ends. Also hand-written ones: `\\e`, `\\033`. `row`: pattern of the backslashes.
 */
function steering(row: string): string {
  return [
    // Sequences: string starts, colours and other controls, short ones.
    String.raw`(?:(?:\x1b|${row}${ESC})[\]PX^_]|[\x90\x98\x9d-\x9f])${STRING}`,
    String.raw`(?:\x1b|${row}${ESC})(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z\\^-~])`,
    String.raw`\x9b[0-?]*[ -/]*[@-~]`,
    String.raw`[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]`,
    `${row}(?:[bf]|u00(?:0[0-8bcef]|1[0-9a-f]|7f))`,
  ].join('|')
}
// A row of backslashes is scanned once, not from each backslash, which would take quadratic time. So a search looks for row
// starts, and takes each row without a sequence as a whole.
const STEERS = new RegExp(steering(String.raw`(?<!\\)\\+`), 'i')
const STEERING = new RegExp(String.raw`${steering(String.raw`\\+`)}|(?<row>\\+)`, 'gi')

/** An incomplete terminal sequence at the end of a streamed text. */
const UNFINISHED_STEERING = new RegExp(
  String.raw`(?:\x1b(?:\[[0-?]*)?[ -/]*|\x9b[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^${CONTROL}]*\x1b?)$`,
)

/** A reduced text, with the original position of each unit. */
interface Reduced {
  codes: Uint16Array
  /** Number of valid `codes`. */
  length: number
  placeOf(index: number): number
}

function asItIs(text: string): Reduced {
  return { codes: codesOf(text), length: text.length, placeOf: index => index }
}

/** Removes terminal sequences from a text. */
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
  // Binary search: there may be as many pieces as characters.
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

/** Replaces secrets found in a reduced text, with the removed characters inside them. */
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

/** A sign at the start of a line, as in a diff. */
const SIGNED = /\n[+-]|\\n[+-]/

function replacedAcrossLines(text: string, search: Pick<FormSearch, 'open'>): string {
  if (!GAP.test(text)) return text
  const across = (text: string, cutBy: 'lines' | 'diff', reduced: (text: string) => Reduced) => {
    const plain = reduced(text)
    const { codes, length } = solidOf(plain.codes, cutBy)
    // Without a match, the positions are not needed.
    return search.open(codes, length)(0) === null ? text : replaced(text, withoutGaps(plain, cutBy), search)
  }
  const both = (text: string, cutBy: 'lines' | 'diff') => {
    const once = across(text, cutBy, asItIs)
    return STEERS.test(once) ? across(once, cutBy, withoutSteering) : once
  }
  const once = both(text, 'lines')
  return SIGNED.test(once) ? both(once, 'diff') : once
}

/** Possible gaps in a wrapped form: white space, literal or escaped as in JSON. */
const GAP = /[\s\0\u200b]|\\[nrt]/

function unfinishedIn(text: string, search: FormSearch, solidSearch: FormSearch | null): number {
  // No more than this is held back.
  const tail = text.slice(-MOST_HELD - 1)
  const steers = STEERS.test(tail)
  // A secret may be cut by an unfinished title, or be inside one; or by a line end whose backslash alone has arrived.
  const ways = [tail, ...(steers ? [tail.replace(UNFINISHED_STEERING, '')] : []), tail.replace(/(?<!\\)\\+$/, '')]
  // A part of a secret may look like a terminal sequence: `CORP\backup`.
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

/** Returns the text position of the longest form start at the end of the reduced text. */
function beginsAt({ codes, length, placeOf }: Reduced, search: FormSearch): number {
  const longest = search.unfinished(codes, length)
  return longest === 0 ? Number.POSITIVE_INFINITY : placeOf(length - longest)
}

/** The redactor without secrets: returns its input. */
export const nothingSecret: Redactor = {
  text: text => text,
  event: event => event,
  line: line => line,
  unfinished: () => 0,
}

/** Event keys that the fold depends on: never redacted, even if a secret equals their value. */
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

/** Also redacts object keys. Invalid JSON means a secret crossed an escape; then each text is redacted separately. */
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
