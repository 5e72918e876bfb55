/** A value that must not be shown or stored. `[secret NAME]` takes its place. */
export interface Secret {
  name: string
  value: string
}

/**
 * Replaces secrets in what is stored or shown. Finds a value as it is, JSON-escaped (once or twice), percent-encoded, and
 * by each of its longer lines; also where it is cut in pieces by what steers a terminal, such as colours. Does not find a part
 * of a value: redact before a text is cut at a length limit, and hold back what `cutUnfinished` says of one that comes in pieces.
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

/** Makes the redactor of these secrets. A text without any costs one scan. */
export function redactorOf(secrets: readonly Secret[]): Redactor {
  const names = namesByForm(secrets)
  if (names.size === 0) return nothingSecret
  // A value may be the beginning of another: the longest is looked for first.
  const forms = [...names.keys()].sort((a, b) => b.length - a.length)
  const pattern = new RegExp(forms.map(escaped).join('|'), 'g')
  const replaced = (text: string) => text.replace(pattern, found => `[secret ${names.get(found)}]`)
  const text = (text: string) => {
    const once = replaced(text)
    return STEERS.test(once) ? replacedInPieces(once, pattern, names) : once
  }
  return {
    text,
    event: event => redacted(event, text, STRUCTURE),
    line: line => redactedLine(line, text),
    unfinished: text => unfinishedIn(text, forms),
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

/** A run of characters that stand together in a text, by where they stand in there and in the text without what steers a terminal. */
interface Piece {
  inText: number
  inPlain: number
}

/** A text without what steers a terminal, and the pieces that it is made of. */
function withoutSteering(text: string): { plain: string; pieces: readonly Piece[] } {
  const pieces: Piece[] = [{ inText: 0, inPlain: 0 }]
  let plain = ''
  let from = 0
  for (const { 0: found, index, groups } of text.matchAll(STEERING)) {
    if (groups?.row !== undefined) continue
    plain += text.slice(from, index)
    from = index + found.length
    pieces.push({ inText: from, inPlain: plain.length })
  }
  return { plain: plain + text.slice(from), pieces }
}

/** Where a character of the text without steering stands in the text. A search by halves: there may be as many pieces as characters. */
function placeOf(index: number, pieces: readonly Piece[]): number {
  let [low, high] = [0, pieces.length]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((pieces[middle]?.inPlain ?? 0) <= index) low = middle
    else high = middle
  }
  const { inText, inPlain } = pieces[low] ?? { inText: 0, inPlain: 0 }
  return inText + index - inPlain
}

/** Secrets are looked for in what is left without steering; that which stands in one goes with it. */
function replacedInPieces(text: string, pattern: RegExp, names: ReadonlyMap<string, string>): string {
  const { plain, pieces } = withoutSteering(text)
  let shown = ''
  let from = 0
  for (const { 0: found, index } of plain.matchAll(pattern)) {
    shown += `${text.slice(from, placeOf(index, pieces))}[secret ${names.get(found)}]`
    from = placeOf(index + found.length - 1, pieces) + 1
  }
  return shown + text.slice(from)
}

function unfinishedIn(text: string, forms: readonly string[]): number {
  const longest = (plain: string) => Math.max(...forms.map(form => beginningAtEnd(form, plain)))
  if (!STEERS.test(text)) return longest(text)
  // A secret may be cut by a title that has not come to its end, or stand in it.
  const ways = new Set([text, text.replace(UNFINISHED_STEERING, '')])
  const lengths = [...ways].map(way => {
    const { plain, pieces } = withoutSteering(way)
    const length = longest(plain)
    return length === 0 ? 0 : text.length - placeOf(plain.length - length, pieces)
  })
  return Math.max(...lengths)
}

/** The redactor of no secrets: returns what it is given. */
export const nothingSecret: Redactor = {
  text: text => text,
  event: event => event,
  line: line => line,
  unfinished: () => 0,
}

function namesByForm(secrets: readonly Secret[]): Map<string, string> {
  const names = new Map<string, string>()
  for (const { name, value } of secrets) {
    // In a line of JSON the name must not end the text that it stands in.
    const readable = name.replace(/[^\w .:-]/g, '_')
    for (const part of partsOf(value)) for (const form of formsOf(part)) if (!names.has(form)) names.set(form, readable)
  }
  return names
}

/** A key in several lines is printed line by line: in a diff, say. */
function partsOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map(line => line.trim())
  const long = lines.length === 1 ? [] : lines.filter(line => line.length >= 20 && !line.startsWith('-----'))
  return [value.trim(), ...long]
}

function formsOf(value: string): string[] {
  const once = inJson(value)
  return [value, once, inJson(once), encodeURIComponent(value.toWellFormed())]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** The length of the longest beginning of `form`, short of the whole, with which `text` ends. */
function beginningAtEnd(form: string, text: string): number {
  const end = text.slice(1 - form.length)
  const first = form.charAt(0)
  for (let at = end.indexOf(first); at !== -1; at = end.indexOf(first, at + 1)) {
    if (form.startsWith(end.slice(at))) return end.length - at
  }
  return 0
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

// RegExp.escape came with Node 24.
function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
