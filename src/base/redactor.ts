/** A value that must not be shown or stored. `[secret NAME]` takes its place. */
export interface Secret {
  name: string
  value: string
}

/**
 * Replaces secrets in what is stored or shown. Finds a value as it is, JSON-escaped (once or twice), percent-encoded, and
 * by each of its longer lines; also where it is cut in pieces by what steers a terminal, such as colours. Does not find a part
 * of a value: one that is cut in two by a length limit, or that comes in two live deltas.
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

/**
 * What a terminal shows nothing of: escape sequences, as they are and as JSON writes them, once or twice, and control
 * characters but for tabs and line ends. Written by hand too, as `\\e` and `\\033`. `row`: the backslashes of what is written.
 */
function steering(row: string): string {
  return [
    // Escape sequences: of colours and the like, of titles and links, and short ones.
    String.raw`(?:\x1b|${row}(?:u001b|x1b|033|e))(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\\]*(?:\x07|\x1b\\|\\+u0007|\\+u001b\\+)|[ -/]*[0-Z\\^-~])`,
    String.raw`\x9b[0-?]*[ -/]*[@-~]`,
    String.raw`[\0-\x08\x0b\x0c\x0e-\x1f\x7f]`,
    `${row}(?:[bf]|u00(?:0[0-8bcef]|1[0-9a-f]|7f))`,
  ].join('|')
}
// A row of backslashes is gone through once and not from each of them, which would take its square in time: a text is
// searched for rows that begin, and of those that steer nothing each is taken as a whole.
const STEERS = new RegExp(steering(String.raw`(?<!\\)\\+`), 'i')
const STEERING = new RegExp(String.raw`${steering(String.raw`\\+`)}|(?<row>\\+)`, 'gi')

/** A text without what steers a terminal; `at`: where each of its characters stood, and last the length of the whole. */
function withoutSteering(text: string): { plain: string; at: number[] } {
  const at: number[] = []
  let plain = ''
  let from = 0
  const keep = (to: number) => {
    for (let each = from; each < to; each++) at.push(each)
    plain += text.slice(from, to)
  }
  for (const { 0: found, index, groups } of text.matchAll(STEERING)) {
    if (groups?.row !== undefined) continue
    keep(index)
    from = index + found.length
  }
  keep(text.length)
  return { plain, at: [...at, text.length] }
}

/** Secrets are looked for in what is left without steering; that which stands in one goes with it. */
function replacedInPieces(text: string, pattern: RegExp, names: ReadonlyMap<string, string>): string {
  const { plain, at } = withoutSteering(text)
  let shown = ''
  let from = 0
  for (const { 0: found, index } of plain.matchAll(pattern)) {
    shown += `${text.slice(from, at[index])}[secret ${names.get(found)}]`
    from = (at[index + found.length - 1] ?? 0) + 1
  }
  return shown + text.slice(from)
}

function unfinishedIn(text: string, forms: readonly string[]): number {
  const { plain, at } = STEERS.test(text) ? withoutSteering(text) : { plain: text, at: null }
  const length = Math.max(...forms.map(form => beginningAtEnd(form, plain)))
  return at === null || length === 0 ? length : text.length - (at[plain.length - length] ?? text.length)
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
