import type { Secret } from '../core/shapes/secrets.ts'
import { codesOf, type FormSearch, type FoundForm, formSearchOf, type KnownForm, textOf } from './form-search.ts'
import { solidOf } from './secret-forms.ts'

/** Searches for long parts of secrets, printed by commands that cut one in two. */
type PartSearch = Pick<FormSearch, 'open' | 'shortest'>

/**
 * Creates a search for parts of encoded secrets: at least half of one, or 40 characters of a long one; literal, in base64
 * and in hex. Ignores parts under 10 characters. Also ignores parts under 16 characters without a digit, or with only
 * digits: they occur by chance. Null: no secret has a long enough part.
 * @param across true: the searched texts have no gaps (`solidOf`)
 */
export function partSearchOf(secrets: readonly Secret[], across: boolean): PartSearch | null {
  const wholes = secrets.filter(({ isEncoded }) => isEncoded).flatMap(secret => wholesOf(secret, across))
  // Any part of twice a block's length contains a block that begins at a multiple of that length.
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

/** A form of a secret whose parts are searched for. */
interface Whole {
  name: string
  codes: Uint16Array
  /** Shortest part, characters. */
  least: number
}

interface Place {
  whole: Whole
  at: number
}

const LEAST_PART = 10
/** The same limit for only letters or only digits. */
const LEAST_PLAIN_PART = 16
/** Enough characters of any long secret. */
const ENOUGH = 40
/** Longer secrets are only searched for literally, bytes. */
const MOST_ENCODED = 4_096
/** Limit of places of a repeated block; another block finds the same part. */
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

/** Returns the longest part around this block, not before `from`; null: none is long enough. */
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

/** Returns true if a part is unlikely to occur by chance. */
function tells(part: string): boolean {
  return part.length >= LEAST_PLAIN_PART || (/\d/.test(part) && /\D/.test(part))
}
