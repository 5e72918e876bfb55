/** Facts about a form of a secret. */
export interface KnownForm {
  /** Name of the secret. */
  name: string
  /** The base64 characters before and after it, if they contain bits of the secret. */
  lead?: Neighbour
  trail?: Neighbour
}

/** A base64 character with some known bits of six. */
export interface Neighbour {
  /** Bit mask of the known bits. */
  mask: number
  bits: number
}

/** Returns the UTF-16 units of a text. */
export function codesOf(text: string): Uint16Array {
  const bytes = Buffer.from(text, 'utf16le')
  return new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
}

/** Returns the text of UTF-16 units. */
export function textOf(codes: Uint16Array): string {
  return Buffer.from(codes.buffer, codes.byteOffset, codes.byteLength).toString('utf16le')
}

/** A form found in a text. */
export interface FoundForm {
  at: number
  /** Index after it, including neighbours that contain bits of it. */
  end: number
  /** Start of the next search: another form may begin in this one's neighbours. */
  next: number
  name: string
}

/** Searches for any number of forms at once. */
export interface FormSearch {
  /** Lengths of the shortest and the longest form. */
  shortest: number
  longest: number
  /**
   * Returns a function that finds the first form from some place on, the longest if several begin there; null: none. Call it
   * with rising places. `length`: of the text.
   */
  open(text: Uint16Array, length: number): (from: number) => FoundForm | null
  /** Returns how many last characters of a growing text may start a form, or be its neighbours. */
  unfinished(text: Uint16Array, length: number): number
}

interface Form extends KnownForm {
  codes: Uint16Array
  /** For each place in it: number of units from there that equal its start; null: not computed yet. */
  again: Uint32Array | null
}

/**
 * Searches for all forms in one scan (Wu-Manber): the end of a text window gives the distance that it can move without
 * missing a form. Number and length of forms cost almost nothing.
 */
export function formSearchOf(known: ReadonlyMap<string, KnownForm>): FormSearch {
  const forms: Form[] = [...known].map(([form, of]) => ({ ...of, codes: codesOf(form), again: null }))
  // A form may be the start of another, so the longest is tried first.
  forms.sort((a, b) => b.codes.length - a.codes.length)
  const shortest = forms.at(-1)?.codes.length ?? Number.POSITIVE_INFINITY
  const longest = forms[0]?.codes.length ?? 0
  const window = Math.min(shortest, MOST_WINDOW)
  const block = Math.min(BLOCK, window)
  const bits = Math.min(20, Math.max(12, Math.ceil(Math.log2(forms.length * window * 4 + 1))))
  const hashAt = (text: Uint16Array, end: number) => hashOf(text, end, block) >>> (32 - bits)
  const most = window - block + 1
  const shifts = new Uint8Array(2 ** bits).fill(most)
  const byEnd = new Map<number, Form[]>()
  for (const form of forms) {
    for (let end = block - 1; end < window; end++) {
      const hash = hashAt(form.codes, end)
      shifts[hash] = Math.min(shifts[hash] ?? most, window - 1 - end)
    }
    const hash = hashAt(form.codes, window - 1)
    byEnd.set(hash, [...(byEnd.get(hash) ?? []), form])
  }
  return {
    shortest,
    longest,
    open(text, length) {
      const matches = new Matches(text, length)
      return from => {
        for (let end = from + window - 1; end < length; ) {
          const hash = hashAt(text, end)
          const shift = shifts[hash] as number
          if (shift > 0) {
            end += shift
            continue
          }
          const at = end - window + 1
          for (const form of byEnd.get(hash) ?? [])
            if (at + form.codes.length <= length && matches.at(form, at) === form.codes.length)
              return withNeighbours(form, text, length, at)
          end++
        }
        return null
      }
    },
    unfinished: (text, length) => forms.reduce((most, form) => Math.max(most, unfinishedOf(form, text, length)), 0),
  }
}

const BLOCK = 3
/** Longer windows would not help: their ends match some form start more often. */
const MOST_WINDOW = 32

function hashOf(text: Uint16Array, end: number, block: number): number {
  let hash = text[end] as number
  if (block > 1) hash = (hash << 10) ^ (text[end - 1] as number)
  if (block > 2) hash = Math.imul(hash, 0x9e37) ^ (text[end - 2] as number)
  return Math.imul(hash, 0x9e3779b1)
}

/** Failed matches of at least this length are remembered. */
const LONG_MATCH = 64

/**
 * Compares forms with a text, from start to end. It reuses earlier comparisons of the same form: a repetitive secret would
 * take quadratic time otherwise.
 */
class Matches {
  readonly #text: Uint16Array
  readonly #length: number
  /** For each form: the matched part of the text that reaches farthest. */
  readonly #known = new Map<Form, { at: number; end: number }>()

  constructor(text: Uint16Array, length: number) {
    this.#text = text
    this.#length = length
  }

  /** Returns how many units there match the form's start. */
  at(form: Form, at: number): number {
    const { codes } = form
    const known = this.#known.get(form)
    let count = 0
    if (known !== undefined && at < known.end) {
      form.again ??= repeatsOf(codes)
      const again = form.again[at - known.at] as number
      if (again < known.end - at) return again
      count = known.end - at
    }
    const most = Math.min(codes.length, this.#length - at)
    while (count < most && codes[count] === this.#text[at + count]) count++
    if (count >= LONG_MATCH) this.#known.set(form, { at, end: at + count })
    return count
  }
}

/** Computes `Form.again`, the Z function, in linear time. */
function repeatsOf(codes: Uint16Array): Uint32Array {
  const again = new Uint32Array(codes.length)
  again[0] = codes.length
  let [from, end] = [0, 0]
  for (let at = 1; at < codes.length; at++) {
    let count = at < end ? Math.min(end - at, again[at - from] as number) : 0
    while (at + count < codes.length && codes[count] === codes[at + count]) count++
    again[at] = count
    if (at + count > end) [from, end] = [at, at + count]
  }
  return again
}

function withNeighbours({ codes, name, lead, trail }: Form, text: Uint16Array, length: number, at: number): FoundForm {
  const next = at + codes.length
  const before = lead === undefined ? 0 : leadLength(lead, text, at)
  const { taken } = trail === undefined ? { taken: 0 } : trailOf(trail, text, length, next)
  return { at: at - before, end: next + taken, next, name }
}

/** Returns how many units before that place are the leading character. */
function leadLength(lead: Neighbour, text: Uint16Array, at: number): number {
  let to = at
  while (to > 0 && at - to < MOST_LINE_END && isLineEnd(text[to - 1])) to--
  for (const length of [1, 3]) if (to >= length && fits(lead, text, to - length, length)) return at - to + length
  return 0
}

/** Returns how many units from there are the trailing character and its padding; `isOpen`: more of it may follow. */
function trailOf(trail: Neighbour, text: Uint16Array, length: number, at: number): { taken: number; isOpen: boolean } {
  let from = at
  while (from < length && from - at < MOST_LINE_END && isLineEnd(text[from])) from++
  if (from === length) return { taken: 0, isOpen: true }
  const size = text[from] === PERCENT ? 3 : 1
  if (from + size > length) return { taken: 0, isOpen: true }
  if (!fits(trail, text, from, size)) return { taken: 0, isOpen: false }
  let end = from + size
  const most = end + MOST_EQUALS
  while (end < Math.min(length, most) && text[end] === EQUALS) end++
  return { taken: end - at, isOpen: end === length && end < most }
}

const [PERCENT, EQUALS] = [37, 61]
const [MOST_LINE_END, MOST_EQUALS] = [2, 2]
/** Possible units after a whole form: a line end, the character, and padding. */
const MOST_BEHIND = MOST_LINE_END + 3 + MOST_EQUALS

function isLineEnd(code: number | undefined): boolean {
  return code === 10 || code === 13
}

function fits({ mask, bits }: Neighbour, text: Uint16Array, at: number, length: number): boolean {
  const written = textOf(text.slice(at, at + length))
  const six = length === 1 ? sixBitsOf(written.charCodeAt(0)) : (PERCENT_ENCODED.get(written.toUpperCase()) ?? -1)
  return six >= 0 && (six & mask) === (bits & mask)
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const PERCENT_ENCODED: ReadonlyMap<string, number> = new Map([
  ['%2B', 62],
  ['%2F', 63],
])

/** Returns the value of a base64 or base64url character; -1: another one. */
export function sixBitsOf(code: number): number {
  const character = String.fromCharCode(code)
  return BASE64.indexOf(character === '-' ? '+' : character === '_' ? '/' : character)
}

function unfinishedOf(form: Form, text: Uint16Array, length: number): number {
  const { codes, lead, trail } = form
  const matches = new Matches(text, length)
  const before = (at: number) => (lead === undefined ? 0 : leadLength(lead, text, at))
  const first = codes[0] as number
  const behind = trail === undefined ? -1 : MOST_BEHIND
  for (let at = text.indexOf(first, Math.max(0, length - codes.length - behind)); at !== -1 && at < length; ) {
    const count = matches.at(form, at)
    if (at + count === length && count < codes.length) return length - at + before(at)
    if (count === codes.length && trail !== undefined && trailOf(trail, text, length, at + count).isOpen)
      return length - at + before(at)
    at = text.indexOf(first, at + 1)
  }
  return before(length)
}
