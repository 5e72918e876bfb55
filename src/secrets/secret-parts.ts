import type { Secret } from '../core/shapes/secrets.ts'
import { codesOf, type FormSearch, type FoundForm, formSearchOf, type KnownForm, textOf } from './form-search.ts'
import { solidOf } from './secret-forms.ts'

/** Looks for long parts of secrets, which a command prints that cuts one in two. */
type PartSearch = Pick<FormSearch, 'open' | 'shortest'>

/**
 * Looks for parts of encoded secrets that are at least half of one, 40 characters of a long one, as they are, in base64 and in
 * hex. Parts of fewer than 10 characters are not looked for; nor are those of fewer than 16 without a digit, or without anything else:
 * they stand in texts that have nothing to do with the secret. Null: no secret has such a part.
 * @param across whether texts are searched of which `solidOf` has left out what may cut a secret
 */
export function partSearchOf(secrets: readonly Secret[], across: boolean): PartSearch | null {
  const wholes = secrets.filter(({ isEncoded }) => isEncoded).flatMap(secret => wholesOf(secret, across))
  // Any part of twice a block's length has a block in it that begins at a multiple of that length.
  const blocks = new Map<string, KnownForm>()
  const places = new Map<string, Place[]>()
  for (const whole of wholes) {
    const block = Math.floor((whole.least + 1) / 2)
    for (let at = 0; at + block <= whole.codes.length; at += block) {
      const text = textOf(whole.codes.slice(at, at + block))
      const known = places.get(text) ?? []
      if (known.length < MOST_PLACES) places.set(text, [...known, { whole, at }])
      blocks.set(text, { name: whole.name })
    }
  }
  if (blocks.size === 0) return null
  const search = formSearchOf(blocks)
  return {
    shortest: search.shortest,
    open(text, length) {
      const next = search.open(text, length)
      return from => {
        for (let found = next(from); found !== null; found = next(found.next)) {
          const part = partAround(found, text, length, from, places)
          if (part !== null) return part
        }
        return null
      }
    },
  }
}

/** A form of a secret of which parts are looked for. */
interface Whole {
  name: string
  codes: Uint16Array
  /** Of a part, characters. */
  least: number
}

interface Place {
  whole: Whole
  at: number
}

const LEAST_PART = 10
/** As that, of letters or of digits alone. */
const LEAST_PLAIN_PART = 16
/** Of a secret however long. */
const ENOUGH = 40
/** Of longer ones only parts as they are. */
const MOST_ENCODED = 4_096
/** Of a block that a secret has more than once; of the rest whoever looks finds the same part by another block. */
const MOST_PLACES = 8

function wholesOf({ name, value }: Secret, across: boolean): Whole[] {
  const readable = name.replace(/[^\w .:-]/g, '_')
  const whole = value.trim()
  const least = Math.min(ENOUGH, Math.max(LEAST_PART, Math.ceil(whole.length / 2)))
  const bytes = Buffer.from(whole, 'utf8')
  const hex = bytes.toString('hex')
  const inBase64 = [0, 1, 2].map(before => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    return encoded.slice(before === 0 ? 0 : before + 1)
  })
  const encoded = bytes.length > MOST_ENCODED ? [] : [hex, hex.toUpperCase(), ...inBase64]
  const forms = [
    { form: whole, least },
    ...encoded.map((form, index) => ({ form, least: index < 2 ? 2 * least : Math.ceil((4 * least) / 3) - 3 })),
  ]
  return forms.flatMap(({ form, least }) => {
    const solid = solidOf(codesOf(form), 'lines')
    const codes = across ? solid.codes.slice(0, solid.length) : codesOf(form)
    return codes.length < least ? [] : [{ name: readable, codes, least }]
  })
}

/** The longest part that this block stands in; null if none is long enough. It begins at `from` or behind it. */
function partAround(
  found: FoundForm,
  text: Uint16Array,
  length: number,
  from: number,
  places: ReadonlyMap<string, readonly Place[]>,
): FoundForm | null {
  const known = places.get(textOf(text.slice(found.at, found.end))) ?? []
  const parts = known.flatMap(({ whole, at }) => {
    const { codes, name, least } = whole
    let [start, end] = [found.at, found.end]
    for (let place = at - 1; place >= 0 && start > from && text[start - 1] === codes[place]; place--) start--
    for (let place = at + end - found.at; place < codes.length && end < length && text[end] === codes[place]; place++)
      end++
    return end - start >= least && tells(textOf(text.slice(start, end))) ? [{ at: start, end, next: end, name }] : []
  })
  return parts.reduce<FoundForm | null>(
    (most, part) => (most === null || part.end - part.at > most.end - most.at ? part : most),
    null,
  )
}

/** Whether a part can hardly stand anywhere but in the secret. */
function tells(part: string): boolean {
  return part.length >= LEAST_PLAIN_PART || (/\d/.test(part) && /\D/.test(part))
}
