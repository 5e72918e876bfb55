import parseUnits from 'parse-duration'

/** The first `limit` characters of a text, with a note of how much was left out; never cuts a surrogate pair. */
export function clipEnd(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `${text.slice(0, limit).toWellFormed()}\n[… ${text.length - limit} more characters]`
}

/** A text in at most `limit` characters, the last of them an ellipsis if it was longer; never cuts a surrogate pair. */
export function truncate(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 1).toWellFormed()}…`
}

/** The last `limit` characters of a text, with a note of how much was left out before. */
export function clipStart(text: string, limit: number): string {
  if (text.length <= limit) return text
  return `[${text.length - limit} characters before …]\n${text.slice(-limit).toWellFormed()}`
}

/** The text with a full stop at its end, which a reviewer or the system may have left out. */
export function asSentence(text: string): string {
  const trimmed = text.trimEnd()
  return /[.!?:…]$/.test(trimmed) ? trimmed : `${trimmed}.`
}

/** A text whose last line has an end; an empty one has no line. */
export function withLineEnd(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`
}

/** The last lines of a text that have at most `limit` characters together; of a line that is longer its last words. */
export function lastLines(text: string, limit: number): string {
  if (text.length <= limit) return text
  const end = text.slice(-limit - 1)
  const cut = end.indexOf('\n')
  if (cut !== -1) return end.slice(cut + 1)
  return end.slice(Math.max(1, end.search(/\s/) + 1)).toWellFormed()
}

/**
 * Puts values in for the `{{name}}` of one of our own texts, in one pass: what looks like a placeholder inside a value
 * stays as it is. Throws if the text has a placeholder that no value is given for.
 */
export function fillPlaceholders(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (placeholder, inner: string) => {
    const name = inner.trim()
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) throw new Error(`No value for the placeholder ${placeholder}`)
    return value
  })
}

/** Whether the letters occur in the text in the same order. */
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
 * Cuts a byte stream into lines on the byte `\n` alone (not on U+2028, as `readline` does), and decodes each whole line,
 * so that a character split over two chunks stays whole. A line longer than `maxBytes` is dropped and counted.
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

  /** How many bytes have come after the last newline. */
  get unfinished(): number {
    return this.#length
  }

  /** What came after the last newline, as a line; nothing if the stream ended with one. */
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

/** The known name that was most likely meant: at most a third of its letters, rounded by `round`, differ, not counting case and dashes. */
export function nearestName(written: string, known: readonly string[], round = Math.floor): string | null {
  const distances = known.map(name => ({ name, distance: editDistance(plain(written), plain(name)) }))
  const near = distances.filter(({ name, distance }) => distance <= Math.max(1, round(name.length / 3)))
  return near.sort((a, b) => a.distance - b.distance)[0]?.name ?? null
}

function plain(name: string): string {
  // No name is longer; the distance takes the product of the lengths.
  return name.slice(0, 100).toLowerCase().replace(/[-_]/g, '')
}

/** Levenshtein's: how many letters have to be added, taken away or replaced. */
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

/** The most that one prompt may take in UTF-8, 1 MiB: codex takes as many characters, and `MAIN.md` holds as many bytes. */
const MOST_BYTES = 1_048_576

/** Why a text cannot be a goal, a prompt or a remark for codex, as a sentence; null if it can. */
export function problemOfPrompt(prompt: string): string | null {
  return prompt.trim() === '' ? 'The prompt is empty; say what to do.' : problemOfPromptSize(prompt)
}

/** Why a text is too long to be one, as a sentence; null if it is not. */
export function problemOfPromptSize(prompt: string): string | null {
  // A NUL takes the three bytes of the U+FFFD that stands for it in a file.
  const bytes = Buffer.byteLength(prompt.replaceAll('\0', '\uFFFD'))
  if (bytes <= MOST_BYTES) return null
  return `The prompt has ${bytes} bytes, and may have at most ${MOST_BYTES} (1 MiB); put the text into a file and name that file.`
}

/** The bytes that `2G`, `1.5 GB`, `500M` or `800k` means, by 1024; null for anything else. */
export function parseBytes(text: string): number | null {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? []
  if (number === undefined) return null
  return Math.round(Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' '))
}

/** A number of bytes as a person reads it: `1.4 GiB`, `12 MiB`, `3 KiB`. */
export function formatBytes(bytes: number): string {
  const step = BYTE_UNITS.findLastIndex((_, index) => bytes >= 1024 ** index)
  const value = bytes / 1024 ** Math.max(0, step)
  return `${value < 10 && step > 1 ? value.toFixed(1) : Math.floor(value)} ${BYTE_UNITS[Math.max(0, step)]}`
}

const BYTE_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

/** Parses a duration such as `8h`, `1h30m`, `1.5 days` or `2d 12h` into ms; null for any other text, or without a unit. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim()
  // The library passes over what it does not know: to it "1h banana" is an hour, and "1,5h" are fifteen.
  if (!DURATION.test(trimmed)) return null
  const ms = parseUnits(trimmed)
  return ms === null ? null : Math.round(ms)
}

const DURATION = /^(?:\d+(?:\.\d+)?\s*(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\s*)+$/

/** The text of bytes; null if they are not UTF-8. `keepsMark`: whether a byte order mark stays. */
export function utf8Text(bytes: Uint8Array, keepsMark = false): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes)
  } catch {
    return null
  }
}

/**
 * UTF-8 with each character whole that was cut by what stands between lines and columns: `fold -b`, `cut -b` and `split` cut between bytes.
 * What stood within such a character stands behind it. The same bytes if nothing was cut.
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

/** Where the bytes of the character stand that begins there, which is none of ASCII; only the first, if it is not whole. */
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

/** How many bytes of white space stand there, with the sign of a diff behind a line end. */
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

/** A text without what no text needs: control characters, what reorders lines, blanks around it; its lines end in `\n`. Pure. */
export function cleanText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, '\n').replace(STEERING, '').trim()
}

const STEERING = /[^\t\n\P{Cc}]|[\u2028\u2029\p{Bidi_Control}]/gu

/** `maxTime` as `max_time`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

/** A name in quotes, cut short where it is long. */
export function quotedName(name: string): string {
  return JSON.stringify(truncate(name, 60))
}
