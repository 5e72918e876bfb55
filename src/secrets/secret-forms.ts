import type { Secret } from '../core/shapes/secrets.ts'
import { codesOf, type KnownForm, type Neighbour, sixBitsOf, textOf } from './form-search.ts'

/**
 * Returns the forms of these secrets, with facts about each. They are the value without white space around it, and its
 * longer lines. Each is literal, JSON-escaped once or twice, and percent-encoded. `isEncoded` adds encodings of its bytes:
 * base64 at any offset, hex digits, and decimal numbers.
 */
export function knownForms(secrets: readonly Secret[]): Map<string, KnownForm> {
  const forms = new Map<string, KnownForm>()
  for (const { name, value, isEncoded = false } of secrets) {
    // The name must not end a JSON string that contains it.
    const readable = name.replace(/[^\w .:-]/g, '_')
    const whole = value.trim()
    const plain = [whole, whole.replaceAll('\r\n', '\n'), ...linesOf(value)]
      .flatMap(writtenForms)
      .filter(form => form !== '')
    const encoded = isEncoded
      ? [...escapedForms(whole), ...quotedForms(whole), ...encodedForms(whole), ...recodedForms(whole)]
      : []
    const add = (form: string, known: KnownForm) => {
      if (!forms.has(form)) forms.set(form, known)
    }
    for (const form of [...plain, ...encoded.filter(form => form.length >= LEAST_ENCODED)])
      add(form, { name: readable })
    if (!isEncoded) continue
    const bytes = Buffer.from(whole, 'utf8')
    for (const { written, ...ends } of [0, 1, 2].map(before => base64Forms(bytes, before)))
      for (const form of written) if (form.length >= LEAST_ENCODED) add(form, { name: readable, ...ends })
  }
  return forms
}

/** Shorter forms would match unrelated texts. */
const LEAST_ENCODED = 8
/** The same limit for digits across white space: tables have numbers side by side. */
const LEAST_DIGITS = 16

/** A key of several lines may be printed line by line, in a diff for example. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map(line => line.trim())
  return lines.length === 1 ? [] : lines.filter(line => line.length >= 20 && !line.startsWith('-----'))
}

function writtenForms(value: string): string[] {
  const once = inJson(value)
  return [value, once, inJson(once), encodeURIComponent(value.toWellFormed())]
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Forms of JSON and URLs that other programs write. */
function escapedForms(value: string): string[] {
  const json = inJson(value)
  const units = (text: string, which: RegExp) => text.replace(which, each => `\\u${hexOf(each).padStart(4, '0')}`)
  const ascii = units(json, /[\x7f-\uffff]/g)
  const slashes = [json, ascii].map(form => form.replaceAll('/', '\\/'))
  // Go escapes for HTML; .NET does, too, and writes only ASCII.
  const html = units(json, /[<>&\u2028\u2029]/g)
  const dotnet = units(json.replaceAll('\\"', '"'), /["&'+<>`\x7f-\uffff]/g)
  const upper = dotnet.replace(/\\u[0-9a-f]{4}/g, code => `\\u${code.slice(2).toUpperCase()}`)
  return [
    ...[ascii, ...slashes, html, upper].flatMap(form => [form, inJson(form)]),
    ...[...new Set(CODED_IN_ADDRESSES.map(coded => percentEncoded(value, coded)))]
      .flatMap(form => [form, form.replace(/%../g, code => code.toLowerCase())])
      .flatMap(form => [form, form.replaceAll('%20', '+')]),
  ]
}

/** What programs do not leave as it is in an address. */
const CODED_IN_ADDRESSES = [
  /[^\w.~-]/gu,
  // Python leaves a slash.
  /[^\w.~/-]/gu,
  /[^\w.~!'()*-]/gu,
  /[^\w.~!'()*/-]/gu,
  // Forms, and axios.
  /[^\w.*-]/gu,
  /[^\w.~!'()*:$,-]/gu,
  // `encodeURI`; then a query, a path and a password by the standard of addresses.
  /[^\w.~!'()*;,/?:@&=+$#-]/gu,
  /[\0-\x20"#<>'\x7f-\u{10ffff}]/gu,
  /[\0-\x20"#<>?^`{}\x7f-\u{10ffff}]/gu,
  /[\0-\x20"#<>?^`{}/:;=@[\\\]|\x7f-\u{10ffff}]/gu,
]

function percentEncoded(value: string, coded: RegExp): string {
  return value.toWellFormed().replace(coded, each => IN_ADDRESSES[each.charCodeAt(0)] ?? encodeURIComponent(each))
}

/** The characters of ASCII. */
const IN_ADDRESSES = Array.from({ length: 128 }, (_, code) => `%${code.toString(16).toUpperCase().padStart(2, '0')}`)

/**
 * As shells, `ls` and git quote it. Where the locale has no such characters (`LANG=C`), each byte of them is an octal number,
 * which `ls` puts between quotes of its own.
 */
function quotedForms(value: string): string[] {
  const octal = (text: string) =>
    Buffer.from(text, 'utf8').reduce((all, byte) => `${all}\\${byte.toString(8).padStart(3, '0')}`, '')
  const hex = (text: string) => Buffer.from(text, 'utf8').toString('hex').replace(/../g, String.raw`\x$&`)
  const other = /\P{ASCII}+/gu
  const inSingle = value.replaceAll("'", String.raw`'\''`)
  const inDouble = value.replace(/[\\"]/g, String.raw`\$&`)
  const exported = value.replace(/[\\"$`]/g, String.raw`\$&`)
  const escaped = value.replace(/[\\']/g, String.raw`\$&`)
  const words = value.replace(/[^\w@%+=:,./\u0080-\uffff-]/g, String.raw`\$&`)
  return [value, inSingle, inDouble, exported, escaped, words]
    .flatMap(form => [
      form,
      ...[octal, hex, (each: string) => `'$'${octal(each)}''`].map(bytes => form.replace(other, bytes)),
    ])
    .flatMap(form => [form, inJson(form)])
}

/** Forms of non-ASCII characters after one program reads another's bytes in a wrong encoding. */
function recodedForms(value: string): string[] {
  if (/^\p{ASCII}*$/u.test(value)) return []
  const other = /\P{ASCII}/gu
  const lost = ['\ufffd', '?', ''].map(each => value.replace(other, each))
  return [...lost, Buffer.from(value, 'utf8').toString('latin1'), value.normalize('NFC'), value.normalize('NFD')]
}

function encodedForms(value: string): string[] {
  const bytes = Buffer.from(value, 'utf8')
  const pairs = bytes.toString('hex').match(/../g) ?? []
  const inC = `\\x${pairs.join('\\x')}`
  return [
    ...[pairs.join(''), pairs.join(':'), `%${pairs.join('%')}`, pairs.join('-')].flatMap(form => [
      form,
      form.toUpperCase(),
    ]),
    inC,
    inJson(inC),
    pairs.map(pair => `0x${pair}`).join(','),
    bytes.join(','),
  ]
}

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16)
}

/**
 * Returns the base64 part that is independent of surrounding bytes, with `before` bytes before (modulo 3). Adds the
 * neighbours that contain bits of the first and last byte.
 */
function base64Forms(bytes: Buffer, before: number): { written: string[]; lead?: Neighbour; trail?: Neighbour } {
  const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const [from, to] = [before * 8, (before + bytes.length) * 8]
  const own = encoded.slice(Math.ceil(from / 6), Math.floor(to / 6))
  const written = [own, own.replaceAll('+', '-').replaceAll('/', '_'), encodeURIComponent(own)]
  const neighbour = (bit: number, mask: number) => ({ mask, bits: sixBitsOf(encoded.charCodeAt(Math.floor(bit / 6))) })
  return {
    written,
    ...(from % 6 === 0 ? {} : { lead: neighbour(from, 63 >> (from % 6)) }),
    ...(to % 6 === 0 ? {} : { trail: neighbour(to, 63 & ~(63 >> (to % 6))) }),
  }
}

/** Returns the forms without gap characters, for `solidOf`. */
export function solidForms(forms: ReadonlyMap<string, KnownForm>): Map<string, KnownForm> {
  const solid = new Map<string, KnownForm>()
  for (const [form, known] of forms) {
    const { codes, length } = solidOf(codesOf(form), 'lines')
    const least = /^\d+$/.test(form) ? LEAST_DIGITS : LEAST_ENCODED
    const text = length < least ? '' : textOf(codes.subarray(0, length))
    if (text !== '' && !solid.has(text)) solid.set(text, known)
  }
  return solid
}

/** A text without its gaps. */
interface Solid {
  codes: Uint16Array
  /** Number of valid `codes`. */
  length: number
}

const [LF, SPACE, PLUS, MINUS, BACKSLASH, LOWER_N, LOWER_R, LOWER_T] = [10, 32, 43, 45, 92, 110, 114, 116]

/**
 * Removes white space, control characters and escaped line ends and tabs (`\n` after any number of backslashes). So wrapped,
 * grouped or indented text is joined.
 * @param cutBy `diff`: also removes a `+` or `-` at the start of a line
 * @param places filled with the original position of each remaining unit
 */
export function solidOf(text: Uint16Array, cutBy: 'lines' | 'diff', places?: Uint32Array): Solid {
  const codes = new Uint16Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; ) {
    const gap = gapAt(text, at, cutBy)
    at += gap
    if (gap > 0) continue
    // A row of backslashes is scanned as a whole, not from each one.
    for (const end = text[at] === BACKSLASH ? endOfRow(text, at) : at + 1; at < end; at++) {
      if (places !== undefined) places[length] = at
      codes[length++] = text[at] as number
    }
  }
  return { codes, length }
}

/** Returns the number of removed units there. */
function gapAt(text: Uint16Array, at: number, cutBy: 'lines' | 'diff'): number {
  const code = text[at] as number
  if (code !== BACKSLASH) {
    if (!isLeftOut(code)) return 0
    return code === LF && cutBy === 'diff' && isSign(text[at + 1]) ? 2 : 1
  }
  const end = endOfRow(text, at)
  const next = text[end]
  if (next !== LOWER_N && next !== LOWER_R && next !== LOWER_T) return 0
  const hasSign = next === LOWER_N && cutBy === 'diff' && isSign(text[end + 1])
  return end + (hasSign ? 2 : 1) - at
}

function endOfRow(text: Uint16Array, at: number): number {
  let end = at + 1
  while (text[end] === BACKSLASH) end++
  return end
}

function isSign(code: number | undefined): boolean {
  return code === PLUS || code === MINUS
}

/** Returns true for white space, control and invisible characters. */
function isLeftOut(code: number): boolean {
  if (code <= SPACE) return true
  if (code < 0x7f) return false
  return code <= 0xa0 || code === 0x200b || code === 0x2028 || code === 0x2029 || code === 0xfeff
}
