import parseUnits from 'parse-duration'

/** Returns the first `limit` characters, with a note of the cut length; never splits a surrogate pair. */
export function clipEnd(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}\n[… ${text.length - limit} more characters]`
}

/** Shortens a text to `limit` characters, with a final ellipsis; never splits a surrogate pair. */
export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).toWellFormed()}…`
}

/** Returns the last `limit` characters, with a note of the length cut before. */
export function clipStart(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `[${text.length - limit} characters before …]\n${text.slice(-limit).toWellFormed()}`
}

/** Adds a missing full stop; texts of a reviewer or the system may lack it. */
export function asSentence(text: string): string {
  const trimmed = text.trimEnd()
  return /[.!?:…]$/.test(trimmed) ? trimmed : `${trimmed}.`
}

/** Adds a missing final line end; an empty text stays empty. */
export function withLineEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

/** Returns the last lines of at most `limit` characters together; of a longer line, its last words. */
export function lastLines(text: string, limit: number): string {
  if (text.length <= limit) return text
  const end = text.slice(-limit - 1)
  const cut = end.indexOf('\n')
  if (cut !== -1) return end.slice(cut + 1)
  return end.slice(Math.max(1, end.search(/\s/) + 1)).toWellFormed()
}

/**
 * Fills the `{{name}}` placeholders of our own text in one pass; placeholders inside values stay. Throws if a placeholder
 * has no value.
 */
export function fillPlaceholders(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (placeholder, inner: string) => {
    const name = inner.trim()
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) throw new Error(`No value for the placeholder ${placeholder}`)
    return value
  })
}

/** Returns true if the letters occur in the text in this order. */
export function hasInOrder(text: string, letters: string): boolean {
  let at = 0
  for (const letter of letters) {
    at = text.indexOf(letter, at) + letter.length
    if (at < letter.length) return false
  }
  return true
}

const NEWLINE = 0x0a

/**
 * Cuts a byte stream into lines at the byte `\n` only (not at U+2028, as `readline` does). Decodes whole lines, so a
 * character across two chunks stays whole. A line above `maxBytes` is dropped and counted.
 */
export class LineSplitter {
  #parts: Buffer[] = []
  #length = 0
  #overlong = false
  readonly #maxBytes: number
  readonly #onLine: (line: string) => void
  readonly #onOverlong: (bytes: number) => void

  constructor(onLine: (line: string) => void, maxBytes: number, onOverlong: (bytes: number) => void = () => {}) {
    this.#onLine = onLine
    this.#maxBytes = maxBytes
    this.#onOverlong = onOverlong
  }

  push(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#add(chunk.subarray(start, end))
      this.#finishLine()
      start = end + 1
    }
    if (start < chunk.length) this.#add(chunk.subarray(start))
  }

  /** Number of bytes after the last newline. */
  get unfinished(): number {
    return this.#length
  }

  /** Emits the rest after the last newline as a line; nothing if the stream ended with a newline. */
  end(): void {
    if (this.#length > 0) this.#finishLine()
  }

  #add(part: Buffer): void {
    this.#length += part.length
    if (this.#length > this.#maxBytes) {
      this.#overlong = true
      this.#parts = []
    } else if (part.length > 0) this.#parts.push(part)
  }

  #finishLine(): void {
    const [first] = this.#parts
    const bytes = this.#length
    const overlong = this.#overlong
    const line =
      first === undefined ? '' : (this.#parts.length === 1 ? first : Buffer.concat(this.#parts)).toString('utf8')
    this.#parts = []
    this.#length = 0
    this.#overlong = false
    if (overlong) this.#onOverlong(bytes)
    else this.#onLine(line)
  }
}

/** Returns the nearest known name; at most 1/3 of its letters (see `round`) differ, without case and dashes; else null. */
export function nearestName(written: string, known: readonly string[], round = Math.floor): string | null {
  const distances = known.map(name => ({ name, distance: editDistance(plain(written), plain(name)) }))
  const near = distances.filter(({ name, distance }) => distance <= Math.max(1, round(name.length / 3)))
  return near.sort((a, b) => a.distance - b.distance)[0]?.name ?? null
}

function plain(name: string): string {
  // No name is longer; the cost is the product of the lengths.
  return name.slice(0, 100).toLowerCase().replace(/[-_]/g, '')
}

/** Levenshtein distance: number of added, removed or replaced letters. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= to.length; j++) {
      const replaced = at(row, j - 1) + (to[j - 1] === letter ? 0 : 1)
      next.push(Math.min(replaced, at(row, j) + 1, at(next, j - 1) + 1))
    }
    row = next
  }
  return at(row, to.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}

/** Size limit of a prompt in UTF-8, 1 MiB: codex accepts as many characters, and `MAIN.md` as many bytes. */
const MOST_BYTES = 1_048_576

/** Returns why a text is not a valid goal, prompt or remark for codex, a sentence; null: it is. */
export function problemOfPrompt(prompt: string): string | null {
  return prompt.trim() === '' ? 'The prompt is empty; say what to do.' : problemOfPromptSize(prompt)
}

/** Returns why a prompt is too long, a sentence; null: it is not. */
export function problemOfPromptSize(prompt: string): string | null {
  // A NUL counts three bytes: a file stores U+FFFD for it.
  const bytes = Buffer.byteLength(prompt.replaceAll('\0', '\uFFFD'))
  if (bytes <= MOST_BYTES) return null
  return `The prompt has ${bytes} bytes, and may have at most ${MOST_BYTES} (1 MiB). Put the text into a file, and name that file.`
}

/** Parses `2G`, `1.5 GB`, `500M` or `800k` to bytes, by 1024; null: another text. */
export function parseBytes(text: string): number | null {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? []
  if (number === undefined) return null
  return Math.round(Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' '))
}

/** Formats a number of bytes for people: `1.4 GiB`, `12 MiB`, `3 KiB`. */
export function formatBytes(bytes: number): string {
  const step = BYTE_UNITS.findLastIndex((_, index) => bytes >= 1024 ** index)
  const value = bytes / 1024 ** Math.max(0, step)
  return `${value < 10 && step > 1 ? value.toFixed(1) : Math.floor(value)} ${BYTE_UNITS[Math.max(0, step)]}`
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Parses a duration (`8h`, `1h30m`, `1.5 days`, `2d 12h`) to ms; null: another text, or no unit. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim()
  // The library ignores unknown parts: for it, "1h banana" is an hour, and "1,5h" is fifteen.
  if (!DURATION.test(trimmed)) return null
  const ms = parseUnits(trimmed)
  return ms === null ? null : Math.round(ms)
}

const DURATION = /^(?:\d+(?:\.\d+)?\s*(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\s*)+$/

/** Decodes bytes; null: not UTF-8. `keepsMark`: true keeps a byte order mark. */
export function utf8Text(bytes: Uint8Array, keepsMark = false): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes)
  } catch {
    return null
  }
}

/**
 * Repairs UTF-8 characters split by line or column breaks: `fold -b`, `cut -b` and `split` cut between bytes. Moves the
 * break after the character. Returns the same bytes if nothing was split.
 */
export function wholeCharacters(bytes: Buffer): Buffer {
  let mended: Buffer | null = null
  for (let at = 0; at < bytes.length; at++) {
    if ((bytes[at] as number) < 0xc2) continue
    const places = placesOfCharacter(bytes, at)
    const last = places.at(-1) ?? at
    if (last - at >= places.length) {
      mended ??= Buffer.from(bytes)
      let to = at
      for (const place of places) mended[to++] = bytes[place] as number
      for (let from = at; from < last; from++) if (!places.includes(from)) mended[to++] = bytes[from] as number
    }
    at = last
  }
  return mended ?? bytes
}

/** Returns the positions of the bytes of a non-ASCII character that begins there; only the first if it is incomplete. */
function placesOfCharacter(bytes: Buffer, at: number): number[] {
  const first = bytes[at] as number
  const length = first >= 0xf5 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
  const places = [at]
  for (let next = at + 1; places.length < length; next++) {
    const gap = gapAt(bytes, next)
    next += gap
    const byte = bytes[next] ?? 0
    if (gap > MOST_GAP || byte < 0x80 || byte > 0xbf) return [at]
    places.push(next)
  }
  return places
}

const MOST_GAP = 64

/** Returns the number of white space bytes there, including a diff's sign after a line end. */
function gapAt(bytes: Buffer, at: number): number {
  let end = at
  while (end - at <= MOST_GAP && isBlank(bytes[end])) {
    const isSigned = bytes[end] === 0x0a && (bytes[end + 1] === 0x2b || bytes[end + 1] === 0x2d)
    end += isSigned ? 2 : 1
  }
  return end - at
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || (byte !== undefined && byte >= 0x09 && byte <= 0x0d)
}

/** Removes control characters, line-reordering characters and outer blanks; line ends become `\n`. Pure. */
export function cleanText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, '\n').replace(STEERING, '').trim()
}

const STEERING = /[^\t\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu

/** Converts `maxTime` to `max_time`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/** Returns a name in quotes, shortened if long. */
export function quotedName(name: string): string {
  return JSON.stringify(truncate(name, 60))
}
