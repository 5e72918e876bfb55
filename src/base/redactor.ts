/** A value that must not be shown or stored. `[secret NAME]` takes its place. */
export interface Secret {
  name: string
  value: string
}

/**
 * Replaces secrets in what is stored or shown. Finds a value as it is, JSON-escaped (once or twice), percent-encoded, and
 * by each of its longer lines. Does not find a part of a value: one that is cut in two by a length limit, or that comes in
 * two live deltas.
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
  const text = (text: string) => text.replace(pattern, found => `[secret ${names.get(found)}]`)
  return {
    text,
    event: event => redacted(event, text, STRUCTURE),
    line: line => redactedLine(line, text),
    unfinished: text => Math.max(...forms.map(form => beginningAtEnd(form, text))),
  }
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
